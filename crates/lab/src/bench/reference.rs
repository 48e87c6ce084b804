//! A stored distribution of response times, and the distance of a model from it: the demerit figure.
//!
//! ```toml
//! summary = "one sentence: what was measured"
//! source = "where, by whom, how"
//! operation = "random-read"
//! block_size = "4 KiB"
//! iodepth = 1
//! # Probability and latency in microseconds, both rising.
//! quantiles = [[0.01, 5300.0], [0.5, 17200.0], [0.99, 28400.0]]
//! ```

use std::path::Path;

use anyhow::{Result, anyhow, ensure};
use serde::{Deserialize, Serialize};
use spindle_stats::{QuantileFunction, demerit};

use crate::bench::raw;
use crate::bench::{Access, Place, Question};
use crate::stack::StackSpec;
use spindle_base::Mistake;
use spindle_base::units::parse_size_bytes;

const IODEPTHS_HIGH: u64 = 1_024;
/// Probabilities in the table.
const SHOWN: [f64; 7] = [0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99];
/// Probabilities in a stored file: in steps of half a per cent, and the far tail.
const STORED_STEPS: u32 = 200;
const STORED_TAIL: f64 = 0.999;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reference {
    pub summary: String,
    pub source: String,
    pub operation: Access,
    #[serde(alias = "io_unit")]
    pub block_size: String,
    #[serde(alias = "threads")]
    pub iodepth: u64,
    pub quantiles: Vec<(f64, f64)>,
}

/// A model compared with a reference.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Agreement {
    pub stack: String,
    pub reference: Reference,
    /// Mean over the probabilities that the reference covers.
    pub reference_mean_us: f64,
    pub demerit_us: f64,
    /// As a share of the reference's mean.
    pub demerit_share: Option<f64>,
    /// Probability, latency of the reference, latency of the model.
    pub quantiles_us: Vec<(f64, f64, f64)>,
}

impl Reference {
    pub fn read(path: &Path) -> Result<Reference, Mistake> {
        let shown = path.display();
        let text = std::fs::read_to_string(path)
            .map_err(|error| Mistake::new(format!("--reference: {shown} cannot be read: {error}")))?;
        Reference::parse(&text).map_err(|problem| Mistake::new(format!("--reference: {shown}: {problem}")))
    }

    /// The error is one sentence.
    pub fn parse(text: &str) -> Result<Reference> {
        let read: Reference =
            toml::from_str(text).map_err(|error| anyhow!(error.message().replace('\n', " ")))?;
        parse_size_bytes(&read.block_size).map_err(|problem| anyhow!("block_size: {problem}"))?;
        let iodepth = read.iodepth;
        ensure!(
            (1..=IODEPTHS_HIGH).contains(&iodepth),
            "iodepth: is {iodepth}, must be 1 to {IODEPTHS_HIGH}"
        );
        let is_simple = read.operation != Access::Fsync;
        ensure!(
            is_simple,
            "operation: `fsync` consists of two requests; a reference is of reads or of writes"
        );
        ensure!(
            QuantileFunction::of_quantiles(&read.quantiles).is_some(),
            "quantiles: must be at least two pairs of a probability from 0 to 1 and microseconds, both rising"
        );
        Ok(read)
    }

    /// Makes a reference from a histogram of latencies in nanoseconds; `None` when it is empty.
    pub fn of_latencies(
        question: &Question,
        latencies_ns: &[(u64, u64)],
        summary: &str,
        source: &str,
    ) -> Option<Reference> {
        let total: u64 = latencies_ns.iter().map(|(_, count)| count).sum();
        let at = |probability: f64| {
            let mut below = 0;
            let reached = latencies_ns.iter().find(|(_, count)| {
                below += count;
                below as f64 >= probability * total as f64
            });
            reached.map(|&(latency_ns, _)| (probability, latency_ns as f64 / 1e3))
        };
        let steps = (1..STORED_STEPS).map(|step| f64::from(step) / f64::from(STORED_STEPS));
        let quantiles: Vec<(f64, f64)> = steps.chain([STORED_TAIL]).filter_map(at).collect();
        (total > 0).then(|| Reference {
            summary: summary.to_owned(),
            source: source.to_owned(),
            operation: question.access,
            block_size: spindle_base::units::format_size_bytes(question.block_bytes),
            iodepth: question.iodepth,
            quantiles,
        })
    }

    pub fn question(&self) -> Question {
        let block_bytes = parse_size_bytes(&self.block_size).expect("checked when it was read");
        Question { place: Place::Raw, access: self.operation, block_bytes, iodepth: self.iodepth }
    }

    /// Answers the reference's question with the stack in virtual time, and compares.
    pub fn hold_against(self, stack: &StackSpec, seed: u64) -> Result<Agreement, Mistake> {
        let too_small =
            || Mistake::new(format!("--size: {} is too small for the reference's requests", stack.label()));
        let requests = raw::Requests { span_bytes: stack.size_bytes(), count: raw::REQUEST_COUNT };
        let (_, latencies_us) =
            raw::sample(stack.build(seed), seed, &self.question(), requests).ok_or_else(too_small)?;
        let ours = QuantileFunction::of_samples(&latencies_us).ok_or_else(too_small)?;
        let theirs = QuantileFunction::of_quantiles(&self.quantiles).expect("checked when it was read");
        let distance = demerit(&theirs, &ours).expect("samples are known for every probability");
        let (low, high) = theirs.range();
        let quantile = |probability: &f64| {
            let model_us = spindle_stats::quantile(&latencies_us, *probability).unwrap_or(0.0);
            (*probability, theirs.value(*probability), model_us)
        };
        Ok(Agreement {
            stack: stack.label().to_owned(),
            reference_mean_us: theirs.mean(),
            demerit_us: distance.absolute,
            demerit_share: distance.share_of_mean,
            quantiles_us: SHOWN.iter().filter(|shown| (low..=high).contains(*shown)).map(quantile).collect(),
            reference: self,
        })
    }
}

pub fn table(agreement: &Agreement) -> String {
    let (reference, question) = (&agreement.reference, agreement.reference.question());
    let mut text = format!(
        "{}: {}, {}, iodepth {}\nreference: {} ({})\n\n{:>8}  {:>14}  {:>14}\n",
        agreement.stack,
        question.access.words(),
        reference.block_size,
        reference.iodepth,
        reference.summary,
        reference.source,
        "quantile",
        "reference us",
        "model us"
    );
    for (probability, reference_us, model_us) in &agreement.quantiles_us {
        text.push_str(&format!("{probability:>8}  {reference_us:>14.1}  {model_us:>14.1}\n"));
    }
    let share = agreement.demerit_share.map_or(String::new(), |share| {
        format!(", {:.1} % of the reference's mean of {:.1} us", share * 100.0, agreement.reference_mean_us)
    });
    text.push_str(&format!("\ndemerit {:.1} us{share}\n", agreement.demerit_us));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEST_DEVICE: &str =
        "summary = \"s\"\nsource = \"t\"\noperation = \"random-read\"\nio_unit = \"16 KiB\"\nthreads = 1\n";

    fn hold(quantiles: &str) -> Agreement {
        let reference = Reference::parse(&format!("{TEST_DEVICE}quantiles = {quantiles}")).unwrap();
        let stack = StackSpec::of_name("flash-285us-4ch", Some("1 GiB"), "none").unwrap();
        reference.hold_against(&stack, 1).unwrap()
    }

    fn complaint(quantiles: &str) -> String {
        Reference::parse(&format!("{TEST_DEVICE}quantiles = {quantiles}")).unwrap_err().to_string()
    }

    #[test]
    fn a_model_that_is_right_has_no_demerit() {
        let agreement = hold("[[0.0, 285.0], [1.0, 285.0]]");
        assert_eq!((agreement.demerit_us, agreement.demerit_share), (0.0, Some(0.0)));
        assert_eq!(agreement.quantiles_us.len(), SHOWN.len());
    }

    #[test]
    fn a_model_that_is_a_tenth_too_slow_has_that_demerit() {
        let agreement = hold("[[0.1, 259.0], [0.9, 259.0]]");
        assert!((agreement.demerit_us - 26.0).abs() < 1e-9, "{agreement:?}");
        assert!((agreement.demerit_share.unwrap() - 26.0 / 259.0).abs() < 1e-9);
        assert!(table(&agreement).ends_with("demerit 26.0 us, 10.0 % of the reference's mean of 259.0 us\n"));
    }

    #[test]
    fn what_is_stored_reads_back() {
        let question =
            Question { place: Place::Raw, access: Access::RandomRead, block_bytes: 4_096, iodepth: 2 };
        let stored = Reference::of_latencies(&question, &[(1_000, 900), (5_000, 100)], "s", "t").unwrap();
        let read = Reference::parse(&toml::to_string(&stored).unwrap()).unwrap();
        assert_eq!((read.question(), &read), (question, &stored));
        assert_eq!(stored.quantiles[99], (0.5, 1.0));
        assert_eq!(stored.quantiles.last(), Some(&(0.999, 5.0)));
        assert_eq!(Reference::of_latencies(&question, &[], "s", "t"), None);
    }

    #[test]
    fn what_is_no_distribution_is_refused() {
        assert!(complaint("[[0.5, 1.0]]").starts_with("quantiles: must be at least two pairs"));
        assert!(complaint("[[0.5, 2.0], [0.9, 1.0]]").starts_with("quantiles:"));
        assert!(complaint("\"fast\"").contains("invalid type"));
        let commits = TEST_DEVICE.replace("random-read", "fsync");
        assert!(
            Reference::parse(&format!("{commits}quantiles = [[0.1, 1.0], [0.2, 1.0]]"))
                .unwrap_err()
                .to_string()
                .starts_with("operation:")
        );
    }
}
