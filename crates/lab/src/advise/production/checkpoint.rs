//! Whether a whole checkpoint was in a window. Without one, the writes that a checkpoint brings are missing in
//! the figures, or are too many.
//!
//! A checkpoint of InnoDB moves on while pages are written. Its cycle is as long as its age: the log that was
//! written since is the log whose pages are still to be written. A whole one was in the window if the checkpoint
//! moved on by the largest age of the window. Log that fills up while nothing is flushed breaks the rule, and
//! so does a short stretch of continuous flushing. PostgreSQL's checkpoints follow each other; a whole cycle
//! ends with the second one that was completed.

use crate::server::telemetry::production::Checkpoint;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Cycle {
    Whole,
    Partial {
        /// Length of a window that would have a whole one at this rate, if there is a rate.
        needed_s: Option<f64>,
    },
}

/// A window of this length, with where the checkpoint was in each sample. `None` if the server does not tell.
pub(super) fn cycle(samples: &[Checkpoint], duration_s: f64) -> Option<Cycle> {
    let (first, last) = (samples.first()?, samples.last()?);
    match (*first, *last) {
        (Checkpoint::Counted(before), Checkpoint::Counted(after)) => {
            Some(counted(after - before, duration_s))
        }
        (
            Checkpoint::Moving { written_bytes, checkpoint_bytes },
            Checkpoint::Moving { written_bytes: written_last, checkpoint_bytes: checkpoint_last },
        ) => {
            let advanced = checkpoint_last - checkpoint_bytes;
            let age_most = samples.iter().filter_map(age_bytes).fold(0.0, f64::max);
            // Nothing that was changed is to be written.
            let is_reading = written_last <= written_bytes;
            Some(match is_reading || (advanced > 0.0 && advanced >= age_most) {
                true => Cycle::Whole,
                false => {
                    let needed_s = duration_s * age_most / advanced;
                    Cycle::Partial { needed_s: (advanced > 0.0).then_some(needed_s) }
                }
            })
        }
        _ => None,
    }
}

fn age_bytes(sample: &Checkpoint) -> Option<f64> {
    match sample {
        Checkpoint::Moving { written_bytes, checkpoint_bytes } => Some(written_bytes - checkpoint_bytes),
        Checkpoint::Counted(_) => None,
    }
}

fn counted(checkpoints: f64, duration_s: f64) -> Cycle {
    /// The first one may have begun before the window.
    const WHOLE_WITH: f64 = 2.0;
    if checkpoints >= WHOLE_WITH {
        return Cycle::Whole;
    }
    // One in the window: two ends of others are at most two of its lengths away.
    Cycle::Partial { needed_s: (checkpoints > 0.0).then_some(duration_s * (WHOLE_WITH + 1.0) / checkpoints) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Megabytes of log, and of log up to the checkpoint, of a window of 100 s.
    fn moving(samples: &[(f64, f64)]) -> Option<Cycle> {
        let sample = |(written, checkpoint): &(f64, f64)| Checkpoint::Moving {
            written_bytes: written * 1e6,
            checkpoint_bytes: checkpoint * 1e6,
        };
        cycle(&samples.iter().map(sample).collect::<Vec<_>>(), 100.0)
    }

    fn partial(needed_s: f64) -> Option<Cycle> {
        Some(Cycle::Partial { needed_s: Some(needed_s) })
    }

    const NEVER: Option<Cycle> = Some(Cycle::Partial { needed_s: None });
    const WHOLE: Option<Cycle> = Some(Cycle::Whole);

    #[test]
    fn a_checkpoint_that_moves_on_by_its_age_was_whole() {
        // Continuous flushing at an age of 50 MB.
        assert_eq!(moving(&[(50.0, 0.0), (80.0, 30.0), (110.0, 60.0)]), WHOLE);
        // A sharp one: the age fell from 50 MB to nothing.
        assert_eq!(moving(&[(10.0, 0.0), (50.0, 0.0), (60.0, 55.0)]), WHOLE);
    }

    #[test]
    fn log_that_only_fills_up_has_none() {
        assert_eq!(moving(&[(0.0, 0.0), (20.0, 0.0), (40.0, 0.0)]), NEVER);
        assert_eq!(moving(&[(0.0, 0.0), (100.0, 20.0), (160.0, 40.0)]), partial(300.0));
    }

    #[test]
    fn a_short_stretch_of_continuous_flushing_says_how_long_is_enough() {
        assert_eq!(moving(&[(50.0, 0.0), (60.0, 10.0)]), partial(500.0));
    }

    #[test]
    fn a_server_that_changes_nothing_needs_none() {
        assert_eq!(moving(&[(50.0, 40.0), (50.0, 40.0)]), WHOLE);
    }

    #[test]
    fn two_of_postgresql_are_a_whole_one() {
        let counted = |counts: &[f64]| {
            cycle(&counts.iter().copied().map(Checkpoint::Counted).collect::<Vec<_>>(), 100.0)
        };
        assert_eq!(counted(&[7.0, 8.0, 9.0]), WHOLE);
        assert_eq!(counted(&[7.0, 7.0, 8.0]), partial(300.0));
        assert_eq!(counted(&[7.0, 7.0]), NEVER);
    }

    #[test]
    fn a_server_that_does_not_tell_is_unknown() {
        assert_eq!(moving(&[]), None);
    }
}
