//! Statistics of trials: descriptions, intervals, comparisons, trends, and when they suffice.
//!
//! No dependencies, no clock, no randomness without a seed. Every formula cites its source. Functions that
//! need at least two values return `None` for fewer: one trial has a value but no interval.
//!
//! The parts of "is the answer known?":
//!
//! * [`steady`]: from where on a window counts;
//! * [`settling`]: whether a load that goes on has become steady;
//! * [`looks`]: intervals that hold at a stop;
//! * [`precision`]: whether a comparison has enough trials;
//! * [`allocation`]: what to run next, and how much is left;
//! * [`mod@components`]: how long a window and how many trials cost least;
//! * [`equivalence`]: better, worse, the same, or not known yet.
//!
//! Of cells that differ in one number: [`curve`], the peak, the knee, and where two curves cross.

pub mod allocation;
pub mod compare;
pub mod components;
pub mod curve;
pub mod demerit;
pub mod describe;
pub mod drift;
pub mod equivalence;
pub mod looks;
pub mod precision;
pub mod random;
pub mod settling;
pub mod steady;
pub mod student;

pub use allocation::{CellTrials, Outlook, outlook};
pub use compare::{
    Comparison, Interval, Method, Sample, Verdict, compare, mean_interval, more_trials, narrowing, paired,
};
pub use components::{Components, Costs, Window, WindowPlan, components};
pub use curve::{Crossing, Knee, Peak, RatioAt, crossings, knee, peak};
pub use demerit::{Demerit, QuantileFunction, demerit, demerit_within};
pub use describe::{error_of_count, fewest_for_quantile, mean, quantile, standard_deviation, variance};
pub use drift::{Drift, drift};
pub use equivalence::{Aim, Answer, Known, answer, is_not_worse};
pub use precision::{CLOSER, Goal, Standing, State, standing};
pub use settling::{has_settled, trend};
pub use steady::{Truncation, mser5, snia_steady_from, steady_from};

/// The confidence of every interval that Spindle prints.
pub const CONFIDENCE: f64 = 0.95;
