//! How long a window and how many trials reach a precision at least cost.
//!
//! The figure of a trial varies for two reasons: within a window from second to second, which a longer window
//! averages out, and from trial to trial, which only more trials do. Kalibera and Jones, "Rigorous
//! benchmarking in reasonable time", International Symposium on Memory Management 2013, separate the two and
//! weigh them against their costs. Here the lower level is the second of a window, and the higher level is
//! the trial with its set-up.
//!
//! All variances are relative: squares of shares of the mean, as of logarithms.
//!
//! # Divergence
//! Kalibera and Jones take the figures of the lower level as independent. Seconds of a database are not: a
//! checkpoint slows many in a row. The variance of a second is therefore multiplied by (1 + r) / (1 - r),
//! with r the correlation of neighbours, as in [`mod@crate::drift`]. Figures of trials of several blocks
//! contain the drift of the machine between blocks, which the comparison of pairs does not; the number of
//! trials is then too high rather than too low.

use crate::drift::{FEWEST_VALUES, corrected_correlation};
use crate::looks::{FEWEST_PAIRS, MOST_PAIRS, widened};
use crate::{mean, variance};

/// A measured window of one trial of a cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window<'a> {
    /// The figure of the trial.
    pub figure: f64,
    /// Its figures per second.
    pub seconds: &'a [f64],
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Components {
    /// What a window of one second would contribute to the variance of its trial: a window of L seconds
    /// contributes this / L.
    pub within: f64,
    /// Variance between trials with windows of any length.
    pub between: f64,
}

/// What trials cost, in seconds of waiting.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Costs {
    /// Of everything but the window: restore, start, warm-up, checks.
    pub set_up_s: f64,
    /// Of one second of the window: 1, and k in time that is dilated k times.
    pub second_s: f64,
}

/// Windows and pairs of trials that reach a precision at least cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WindowPlan {
    pub window_s: u32,
    pub pair_count: u32,
    /// Of all pairs: two trials each.
    pub cost_s: f64,
}

/// The components of the trials of one cell. `None` for fewer than two windows, for a window with fewer than
/// eight seconds or with a mean or a figure that is not positive and finite, and where neighbours are so
/// alike that the windows are shorter than twice the seconds that count as one.
pub fn components(windows: &[Window]) -> Option<Components> {
    let relative: Vec<Vec<f64>> = windows.iter().map(residuals).collect::<Option<_>>()?;
    let figures: Vec<f64> = windows.iter().map(|window| window.figure.ln()).collect();
    if figures.iter().any(|figure| !figure.is_finite()) {
        return None;
    }
    let of_figures = variance(&figures)?;
    let second_count: usize = relative.iter().map(Vec::len).sum();
    let length = second_count as f64 / relative.len() as f64;
    let squares: f64 = relative.iter().flatten().map(|residual| residual * residual).sum();
    let lagged: f64 =
        relative.iter().flat_map(|window| window.windows(2)).map(|pair| pair[0] * pair[1]).sum();
    if squares <= f64::EPSILON {
        return Some(Components { within: 0.0, between: of_figures });
    }
    let correlation = corrected_correlation(lagged / squares, length);
    // Seconds that are worth one independent second.
    let worth = (1.0 + correlation) / (1.0 - correlation);
    if 2.0 * worth > length {
        return None;
    }
    // Residuals around the mean of correlated seconds are too small by the variance of that mean.
    let of_second = squares / second_count as f64 / (1.0 - worth / length);
    let within = of_second * worth;
    let share =
        relative.iter().map(|window| within / window.len() as f64).sum::<f64>() / relative.len() as f64;
    Some(Components { within, between: (of_figures - share).max(0.0) })
}

/// The seconds of a window as shares of their mean, less 1.
fn residuals(window: &Window) -> Option<Vec<f64>> {
    let level = mean(window.seconds).filter(|level| *level > 0.0 && level.is_finite())?;
    let is_long = window.seconds.len() >= FEWEST_VALUES;
    is_long.then(|| window.seconds.iter().map(|second| second / level - 1.0).collect())
}

impl Components {
    /// Variance of the figure of a trial with such a window.
    pub fn of_trial(&self, window_s: f64) -> f64 {
        self.between + self.within / window_s
    }

    /// The length of window, in seconds, that costs least for many trials: Kalibera and Jones' number of
    /// repetitions on the lower level, sqrt(cost of a set-up / cost of a second * within / between). `None`
    /// if trials do not vary between each other, because then the longest window is the best.
    pub fn cheapest_window_s(&self, costs: Costs) -> Option<f64> {
        let window_s = (costs.set_up_s / costs.second_s * self.within / self.between).sqrt();
        window_s.is_finite().then_some(window_s)
    }

    /// The cheapest windows, between `shortest_s` and `longest_s`, and pairs whose ratio has this half-width,
    /// as a share of the ratio, by [`crate::looks::widened`]. Both cells vary alike. `None` if no allowed
    /// window and no number of pairs up to [`MOST_PAIRS`] reach it.
    ///
    /// # Panics
    /// If a cost or the half-width is not positive, or the shortest window is longer than the longest or is
    /// 0.
    pub fn plan(&self, half_width: f64, costs: Costs, shortest_s: u32, longest_s: u32) -> Option<WindowPlan> {
        assert!(costs.set_up_s > 0.0 && costs.second_s > 0.0, "costs are positive, not {costs:?}");
        assert!(half_width > 0.0, "a half-width is positive, not {half_width}");
        assert!(0 < shortest_s && shortest_s <= longest_s, "{shortest_s} s to {longest_s} s is no range");
        let mut best: Option<WindowPlan> = None;
        for pair_count in FEWEST_PAIRS..=MOST_PAIRS {
            let pairs = 2.0 * f64::from(pair_count);
            // Further pairs cost more than the best even with the shortest windows.
            let floor_s = pairs * (costs.set_up_s + f64::from(shortest_s) * costs.second_s);
            if best.is_some_and(|best| best.cost_s <= floor_s) {
                break;
            }
            let Some(window_s) = self.shortest_window_s(half_width, pair_count, shortest_s, longest_s) else {
                continue;
            };
            let cost_s = pairs * (costs.set_up_s + f64::from(window_s) * costs.second_s);
            if best.is_none_or(|best| cost_s < best.cost_s) {
                best = Some(WindowPlan { window_s, pair_count, cost_s });
            }
        }
        best
    }

    /// The shortest allowed window with which so many pairs reach the half-width.
    fn shortest_window_s(&self, half_width: f64, pair_count: u32, from_s: u32, to_s: u32) -> Option<u32> {
        // The log ratio of a pair has twice the variance of a trial.
        let allowed = (half_width.ln_1p() / widened(pair_count, 1.0)?).powi(2) / 2.0;
        let room = allowed - self.between;
        let window_s = if self.within == 0.0 && room >= 0.0 { 0.0 } else { self.within / room };
        let is_reached = room >= 0.0 && window_s <= f64::from(to_s);
        is_reached.then(|| (window_s.ceil() as u32).max(from_s))
    }
}

#[cfg(test)]
#[path = "components_tests.rs"]
mod tests;
