//! What a user needs: `5000 new orders a minute, p95 50 ms`.

use spindle_base::Mistake;
use spindle_base::units::parse_duration_ns;

/// A rate, and the longest time for a share of the transactions.
#[derive(Debug, Clone, PartialEq)]
pub struct Need {
    /// As written.
    pub text: String,
    /// Events of the metric a second.
    pub per_second: f64,
    /// As written, without the number: `new orders`.
    pub what: String,
    pub latency: Option<LatencyNeed>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LatencyNeed {
    /// 0.95 for p95.
    pub quantile: f64,
    pub at_most_ms: f64,
}

/// Quantiles that a need may name. Above them a simulation has too few transactions.
const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99)];
const EXAMPLE: &str = "`5000 new orders a minute, p95 50 ms`";

impl Need {
    /// Reads a need for a workload whose metric has this name.
    ///
    /// # Errors
    /// It is not a need, or of something that the workload does not count.
    pub fn parse(text: &str, metric: &str) -> Result<Need, Mistake> {
        let mistake = |words: String| Mistake::at("--need", format!("{words}; write it as {EXAMPLE}"));
        let mut parts = text.split(',').map(str::trim);
        let (per_second, what) = rate(parts.next().unwrap_or("")).map_err(&mistake)?;
        if !counts(metric, &what) {
            let words = format!("`{what}` is not what this workload counts, which is {metric}");
            return Err(Mistake::at("--need", words));
        }
        let latency = parts.next().map(latency).transpose().map_err(&mistake)?;
        match parts.next() {
            None => Ok(Need { text: text.trim().to_owned(), per_second, what, latency }),
            Some(more) => Err(mistake(format!("`{more}` is one part too many"))),
        }
    }
}

impl Need {
    /// The rate that clients offer now.
    pub fn offered(per_second: f64, metric: &str) -> Need {
        let what = metric.split(" per ").next().unwrap_or(metric).to_owned();
        Need { text: format!("today's {per_second:.0} {what} a second"), per_second, what, latency: None }
    }

    /// The rate in the unit of a metric: `new orders per minute`.
    pub fn in_units_of(&self, metric: &str) -> f64 {
        if metric.contains(" per minute") { 60.0 * self.per_second } else { self.per_second }
    }
}

/// Whether the metric counts what the need asks for: `new orders` for `new-order transactions per minute`.
fn counts(metric: &str, what: &str) -> bool {
    let plain = |words: &str| words.trim().replace('-', " ").trim_end_matches('s').to_ascii_lowercase();
    let counted = metric.split(" per ").next().unwrap_or(metric);
    !what.is_empty() && plain(counted).starts_with(&plain(what))
}

fn rate(text: &str) -> Result<(f64, String), String> {
    let refused = || format!("`{text}` is no rate");
    let (number, words) = text.split_once(' ').ok_or_else(refused)?;
    let number: f64 = number.replace('_', "").parse().map_err(|_| refused())?;
    if !number.is_finite() || number <= 0.0 {
        return Err(format!("{number} is no rate, which is above zero"));
    }
    let periods = [(" a second", 1.0), (" per second", 1.0), (" a minute", 60.0), (" per minute", 60.0)];
    let found = periods.into_iter().find_map(|(end, seconds)| Some((words.strip_suffix(end)?, seconds)));
    let (what, seconds) =
        found.ok_or_else(|| format!("`{text}` does not end with `a second` or `a minute`"))?;
    Ok((number / seconds, what.trim().to_owned()))
}

fn latency(text: &str) -> Result<LatencyNeed, String> {
    let (name, time) = text.split_once(' ').ok_or_else(|| format!("`{text}` is no latency"))?;
    let known = QUANTILES.iter().find(|(known, _)| *known == name);
    let (_, quantile) = known.ok_or_else(|| format!("`{name}` is none of p50, p90, p95 and p99"))?;
    let at_most_ns = parse_duration_ns(time).map_err(|words| format!("`{time}`: {words}"))?;
    Ok(LatencyNeed { quantile: *quantile, at_most_ms: at_most_ns as f64 / 1e6 })
}

#[cfg(test)]
mod tests {
    use super::*;

    const METRIC: &str = "new orders per minute, those rolled back by intent included";

    #[track_caller]
    fn check(text: &str, expect: &str) {
        let found = match Need::parse(text, METRIC) {
            Ok(need) => format!("{need:?}"),
            Err(mistake) => mistake.to_string(),
        };
        assert!(found.contains(expect), "{found}");
    }

    #[test]
    fn a_need_is_a_rate_and_a_latency() {
        let need = Need::parse("6000 new orders a minute, p95 50 ms", METRIC).unwrap();
        let latency = Some(LatencyNeed { quantile: 0.95, at_most_ms: 50.0 });
        assert_eq!((need.per_second, need.what.as_str(), need.latency), (100.0, "new orders", latency));
        assert_eq!(need.in_units_of(METRIC), 6_000.0);
        check("100 new orders per second", "per_second: 100.0");
    }

    #[test]
    fn a_mistake_names_the_part() {
        check("fast", "`fast` is no rate");
        check("-5 new orders a minute", "no rate, which is above zero");
        check("5000 new orders", "does not end with");
        check("5000 transactions a second", "not what this workload counts");
        check("5000 new orders a minute, p98 5 ms", "none of p50");
        check("5000 new orders a minute, p95 5", "`5`");
    }
}
