//! What the server's own series, and the cores, were before and after an event.

use itertools::Itertools as _;
use serde::Serialize;
use spindle_stats::{CONFIDENCE, Sample, compare, mean};

use super::{Figure, Ratio, figure};
use crate::record::{Measurement, SeriesUnit};
use crate::report::view::table::variation;

/// One series in the two parts of the window beside an event. Means over the trials.
#[derive(Debug, Clone, Serialize)]
pub struct Level {
    /// Without its unit.
    pub name: String,
    pub unit: SeriesUnit,
    /// After the name; empty for a plain number.
    pub unit_words: &'static str,
    pub before: Figure,
    pub after: Figure,
    /// After to before.
    pub ratio: Option<Ratio>,
    /// Coefficient of variation from second to second, before and after.
    pub variation: Option<[f64; 2]>,
}

const CORES: &str = "cpu_busy";

/// The series of the trials that have them, without those that stand still. `part` is the one before the event.
pub(super) fn levels(trials: &[(u32, &Measurement)], part: usize) -> Vec<Level> {
    let Some((_, first)) = trials.first() else { return Vec::new() };
    let charted = first.series.charts.iter().flat_map(|chart| &chart.lines);
    let of_server = charted.filter(|name| first.series.server.contains_key(*name));
    let names = of_server.map(String::as_str).unique().chain([CORES]);
    names.filter_map(|name| level(name, trials, part)).collect()
}

fn level(name: &str, trials: &[(u32, &Measurement)], part: usize) -> Option<Level> {
    let seconds = |measurement: &'_ Measurement, part: usize| {
        let series = match name {
            CORES => Some(&measurement.series.cpu_busy),
            name => measurement.series.server.get(name),
        };
        let seconds = measurement.parts.get(part)?.seconds(series?, measurement.duration_s);
        (!seconds.is_empty()).then(|| seconds.to_vec())
    };
    let of_trial = |(block, measurement): &(u32, &Measurement)| {
        Some((*block, [seconds(measurement, part)?, seconds(measurement, part + 1)?]))
    };
    let parts = trials.iter().map(of_trial).collect::<Option<Vec<(u32, [Vec<f64>; 2])>>>()?;
    let all = parts.iter().flat_map(|(_, sides)| sides).flatten();
    // One that stands still is left out.
    all.dedup().nth(1)?;
    let samples = |side: usize| {
        let sample = |(block, sides): &(u32, [Vec<f64>; 2])| {
            Some(Sample { block: *block, value: mean(&sides[side])? })
        };
        parts.iter().map(sample).collect::<Option<Vec<Sample>>>()
    };
    let (before, after) = (samples(0)?, samples(1)?);
    let mean_of = |samples: &[Sample]| figure(samples.iter().map(|sample| sample.value).collect());
    let uneven = |side: usize| {
        let of_trials = parts.iter().map(|(_, sides)| variation(&sides[side]));
        mean(&of_trials.collect::<Option<Vec<f64>>>()?)
    };
    let (words, unit) = SeriesUnit::split(name);
    Some(Level {
        name: words,
        unit,
        unit_words: unit.words(),
        before: mean_of(&before)?,
        after: mean_of(&after)?,
        ratio: compare(&before, &after, CONFIDENCE).as_ref().map(Ratio::new),
        variation: uneven(0).zip(uneven(1)).map(|(before, after)| [before, after]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{ChartHead, PartView};
    use crate::report::precision::tests::{add, records};

    /// Trials of ten seconds with an event in the middle, and these checkpoint ages.
    fn trials(ages: &[[f64; 10]]) -> Vec<Measurement> {
        let mut records = records(1);
        for (block, age) in (1..).zip(ages) {
            add(&mut records, 0, block, Some(1.0));
            let measurement = records.trials.last_mut().unwrap().measurement.as_mut().unwrap();
            measurement.duration_s = 10.0;
            let part = |from_s, to_s| PartView { from_s, to_s, ..PartView::default() };
            measurement.parts = vec![part(0.0, 5.2), part(5.2, 10.0)];
            let series = &mut measurement.series;
            let named = |name: &str, values: &[f64]| (name.to_owned(), values.to_vec());
            series.server =
                [named("checkpoint_age_bytes", age), named("log_capacity_bytes", &[8.0; 10])].into();
            series.cpu_busy = vec![0.5; 10];
            let lines = ["log_capacity_bytes", "checkpoint_age_bytes", "cpu_user"].map(str::to_owned);
            series.charts = vec![ChartHead { title: "Log".to_owned(), lines: lines.into() }];
        }
        records.trials.into_iter().skip(1).filter_map(|trial| trial.measurement).collect()
    }

    #[test]
    fn a_series_has_its_mean_and_its_unevenness_before_and_after() {
        let trials = trials(&[
            [10.0, 30.0, 10.0, 30.0, 20.0, 5.0, 5.0, 5.0, 5.0, 5.0],
            [12.0, 36.0, 12.0, 36.0, 24.0, 6.0, 6.0, 6.0, 6.0, 6.0],
        ]);
        let measured: Vec<(u32, &Measurement)> = (1..).zip(&trials).collect();
        let levels = levels(&measured, 0);
        let names: Vec<&str> = levels.iter().map(|level| level.name.as_str()).collect();
        assert_eq!(names, ["checkpoint age"], "what stands still is left out");
        let Level { before, after, ratio, variation, .. } = &levels[0];
        assert_eq!((before.mean, after.mean), (22.0, 5.5));
        assert!((ratio.as_ref().unwrap().ratio - 0.25).abs() < 1e-9);
        let [uneven_before, uneven_after] = variation.unwrap();
        assert!((uneven_before - 0.447).abs() < 1e-3 && uneven_after == 0.0, "{variation:?}");
    }

    #[test]
    fn a_series_that_one_trial_lacks_is_left_out() {
        let mut trials = trials(&[[1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0]; 2]);
        trials[1].series.server.clear();
        let measured: Vec<(u32, &Measurement)> = (1..).zip(&trials).collect();
        assert!(levels(&measured, 0).is_empty());
        assert!(levels(&measured[..1], 1).is_empty(), "nothing is after the last part");
    }
}
