//! Latency histograms as text: HDR, microseconds, three digits, V2 encoding, base64.

use anyhow::{Context, Result, anyhow};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};

/// One hour; longer latencies count as one hour.
const LONGEST_US: u64 = 3_600_000_000;

pub fn new() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_US, 3).expect("the bounds are constants that the crate accepts")
}

pub fn encode(histogram: &Histogram<u64>) -> String {
    let mut bytes = Vec::new();
    V2Serializer::new().serialize(histogram, &mut bytes).expect("writing to memory does not fail");
    STANDARD.encode(bytes)
}

pub fn decode(text: &str) -> Result<Histogram<u64>> {
    let bytes = STANDARD.decode(text).context("the histogram is not base64")?;
    Deserializer::new()
        .deserialize(&mut bytes.as_slice())
        .map_err(|error| anyhow!("the histogram is not in HDR V2 form: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_survives_the_text() {
        let mut histogram = new();
        for latency_us in [1, 250, 99_999, LONGEST_US] {
            histogram.saturating_record(latency_us);
        }
        assert_eq!(decode(&encode(&histogram)).unwrap(), histogram);
        assert!(decode("no histogram").is_err());
    }
}
