//! Sentences about the curves of a sweep. They claim no more than the intervals support.

use itertools::Itertools as _;

use super::pair::{Crossed, Equivalent, PairRatio, PairView};
use super::{CurveView, KneeView, MARGIN, SweepView};
use crate::record::{SweptPart, SweptValue};
use crate::report::format::{self, the, the_first};

/// Equivalents that the sentences name.
const EQUIVALENTS_MOST: usize = 3;

pub(super) fn sentences(view: &SweepView) -> Vec<String> {
    let of_curves = view.curves.iter().map(|curve| view.of_curve(curve));
    let of_pairs = view.pairs.iter().flat_map(|pair| {
        let equivalents = view.of_equivalents(pair);
        std::iter::once(view.of_pair(pair)).chain(equivalents)
    });
    of_curves.chain(of_pairs).collect()
}

impl SweepView {
    /// A value of the axis: `16 terminals`, `128M`, `innodb_io_capacity = 200`.
    fn words(&self, index: usize) -> String {
        let value = &self.values[index];
        self.in_unit(&value.value, value.number == Some(1.0))
    }

    /// Several values: `8 and 16 terminals`.
    fn list(&self, indices: impl IntoIterator<Item = usize>) -> String {
        let values = indices.into_iter().map(|index| self.values[index].value.as_str()).collect_vec();
        let is_one = values == ["1"];
        self.in_unit(&format::list(values), is_one)
    }

    fn in_unit(&self, value: &str, is_one: bool) -> String {
        let key = self.key.as_str();
        match self.values.first() {
            Some(SweptValue { is_memory: true, .. }) => value.to_owned(),
            // The workloads' counts are named after what they count.
            Some(SweptValue { part: SweptPart::Workload, number: Some(_), .. }) if key.ends_with('s') => {
                format!("{value} {}", if is_one { &key[..key.len() - 1] } else { key })
            }
            _ => format!("`{key}` = {value}"),
        }
    }

    /// A place between the values.
    fn between(&self, at: f64) -> String {
        self.in_unit(&self.number(at), false)
    }

    fn number(&self, at: f64) -> String {
        match self.values.iter().all(|value| value.is_memory) {
            true => format::bytes(at as u64),
            false if at >= 10.0 => format::number(at.round()),
            false => format!("{at:.1}"),
        }
    }

    fn of_curve(&self, curve: &CurveView) -> String {
        let CurveView { title, points, peak, knee } = curve;
        let noun = if self.lower_is_better { "shortest time" } else { "peak" };
        let point = &points[peak.index];
        let mean = format::number(point.mean.unwrap_or(f64::NAN));
        let interval = point.interval.map_or_else(String::new, |range| format!(" (95 % interval {range})"));
        let mut sentence = format!(
            "{} has its {noun} with {}: {mean} {}{interval}",
            the_first(title),
            self.words(peak.index),
            self.metric
        );
        let level = peak.level.iter().copied().filter(|index| *index != peak.index).collect_vec();
        if !level.is_empty() {
            sentence += &format!("; the trials do not tell {} from it", self.list(level));
        }
        sentence += ".";
        knee.map_or(sentence.clone(), |knee| format!("{sentence} {}", self.of_knee(knee, peak.index)))
    }

    fn of_knee(&self, knee: KneeView, peak: usize) -> String {
        let percent = MARGIN * 100.0;
        let last = self.values.len() - 1;
        match (knee.earliest, knee.latest) {
            _ if peak == 0 => "No smaller value was measured.".to_owned(),
            (earliest, latest) if earliest < latest => format!(
                "Its knee, from which on it is the same within {percent} %, lies between {}; more trials would narrow it.",
                self.list([earliest, latest])
            ),
            (knee, _) if knee == peak && peak == last => format!(
                "With {} it is still more than {percent} % away, and the values end here: more may lie beyond.",
                self.words(peak - 1)
            ),
            (knee, _) if knee == peak => {
                format!(
                    "Its knee is there too: with {} it is more than {percent} % away.",
                    self.words(peak - 1)
                )
            }
            (knee, _) => format!(
                "Its knee is at {}: from there on up to the peak, it is the same within {percent} %.",
                self.words(knee)
            ),
        }
    }

    fn of_pair(&self, pair: &PairView) -> String {
        let titles = [&self.curves[pair.base].title, &self.curves[pair.other].title];
        let states = pair.ratios.iter().enumerate().filter_map(|(index, ratio)| Some((index, (*ratio)?)));
        let states = states.collect_vec();
        let shown = states.iter().map(|(_, ratio)| ratio.ahead).filter(|ahead| *ahead != 0).unique();
        match shown.collect_vec().as_slice() {
            [] => format!(
                "No difference between {} and {} is shown with any of these values.",
                the(titles[0]),
                the(titles[1])
            ),
            [1] => self.of_leader(titles[1], titles[0], &states, |ratio| ratio.ratio),
            [_] => self.of_leader(titles[0], titles[1], &states, |ratio| 1.0 / ratio.ratio),
            _ => {
                let crossing = |crossed: &Crossed| {
                    let after = titles[usize::from(crossed.other_leads_after)];
                    format!("{}, after which {} is ahead", self.of_place(crossed), the(after))
                };
                // Noise around one is a crossing without an end on either side.
                let has_ends = |one: &&Crossed| one.low.is_some() && one.high.is_some();
                let mut crossings = pair.crossings.iter().filter(has_ends).collect_vec();
                if crossings.is_empty() {
                    crossings = pair.crossings.iter().collect();
                }
                format!(
                    "{} and {} cross at {}.",
                    the_first(titles[0]),
                    the(titles[1]),
                    format::list(crossings.into_iter().map(crossing))
                )
            }
        }
    }

    /// About curves of which only one is ever shown to be ahead.
    fn of_leader(
        &self,
        leader: &str,
        follower: &str,
        states: &[(usize, PairRatio)],
        times: fn(PairRatio) -> f64,
    ) -> String {
        let is_ahead = |(_, ratio): &&(usize, PairRatio)| ratio.ahead != 0;
        let factor = |(index, ratio): &(usize, PairRatio)| {
            format!("{} times with {}", format::number(times(*ratio)), self.words(*index))
        };
        let (ahead, level): (Vec<&(usize, PairRatio)>, Vec<_>) = states.iter().partition(is_ahead);
        let (first, last) = (ahead[0], ahead[ahead.len() - 1]);
        let level = level.iter().map(|(index, _)| *index).collect_vec();
        let ends = match first.0 == last.0 {
            true => factor(first),
            false => format!("{} and {}", factor(first), factor(last)),
        };
        if level.is_empty() {
            return format!(
                "{} and {} do not cross in this range: {} is ahead everywhere, {ends}.",
                the_first(leader),
                the(follower),
                the(leader)
            );
        }
        let is_after = level.iter().all(|index| *index < first.0);
        let is_before = level.iter().all(|index| *index > last.0);
        let from = self.words(first.0);
        if is_after && self.values[0].part == SweptPart::Workload && !self.lower_is_better {
            let level = self.list(level);
            return format!(
                "From {from} on, {} no longer keeps up with {}: {} is ahead {ends}; with {level}, no difference is shown.",
                the(follower),
                the(leader),
                the(leader)
            );
        }
        let range = match (is_after, is_before) {
            (true, _) => format!("from {from} on"),
            (_, true) => format!("up to {}", self.words(last.0)),
            _ => format!("with {}", self.list(ahead.iter().map(|(index, _)| *index))),
        };
        format!(
            "{} is ahead of {} {range}, {ends}; with {}, no difference is shown.",
            the_first(leader),
            the(follower),
            self.list(level)
        )
    }

    /// `812 MiB (95 % interval 700 MiB to 950 MiB)`.
    fn of_place(&self, crossed: &Crossed) -> String {
        let interval = match (crossed.low, crossed.high) {
            (Some(low), Some(high)) => format!("95 % interval {} to {}", self.number(low), self.number(high)),
            (Some(low), None) => format!("95 % interval from {} on", self.number(low)),
            (None, Some(high)) => format!("95 % interval up to {}", self.number(high)),
            (None, None) => "the interval has no end in this range".to_owned(),
        };
        format!("about {} ({interval})", self.between(crossed.at))
    }

    /// How much of the swept memory the faster storage replaces.
    fn of_equivalents(&self, pair: &PairView) -> Vec<String> {
        let reached = pair.equivalents.iter().filter(|one| one.place.is_some()).take(EQUIVALENTS_MOST);
        let is_less =
            |one: &&Equivalent| one.place.is_none() && one.at_most.is_some_and(|most| most.ahead < 0);
        let out_of_reach = pair.equivalents.iter().find(is_less);
        reached.chain(out_of_reach).filter_map(|one| self.of_equivalent(one)).collect()
    }

    fn of_equivalent(&self, one: &Equivalent) -> Option<String> {
        let (slower, faster) = (&self.curves[one.slower].title, &self.curves[one.faster].title);
        let faster = format!("{} with {}", the(faster), self.words(one.index));
        Some(match &one.place {
            Some(place) => {
                format!("{} gives as much with {} as {faster}.", the_first(slower), self.of_place(place))
            }
            None => {
                let most = one.at_most?;
                let interval =
                    most.interval.map_or_else(String::new, |range| format!(" (95 % interval {range})"));
                format!(
                    "{} with {}, the largest of these values, gives {} times{interval} as much as {faster}.",
                    the_first(slower),
                    self.words(self.values.len() - 1),
                    format::number(most.ratio)
                )
            }
        })
    }
}
