//! Sentences that several outputs share.

/// What to do about too few trials for a verdict; `None` if they are enough.
pub(crate) fn too_few_trials(trials_per_cell: usize) -> Option<String> {
    let count = match trials_per_cell {
        1 => "one trial is",
        2 => "two trials are",
        _ => return None,
    };
    Some(format!(
        "{count} too few for a verdict: set `trials = 3` or more and run again; finished trials are kept"
    ))
}
