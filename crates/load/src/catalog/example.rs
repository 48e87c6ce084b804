//! Parameters for a new scenario: those that a workload declares as its example, with the count that gives a
//! database of the requested size.

use clap::{Command, Subcommand as _};
use serde::Serialize;
use serde_json::{Map, Value};

use super::WorkloadSpec;

/// A workload as a new scenario has it.
#[derive(Debug, Clone, PartialEq)]
pub struct Written {
    pub spec: WorkloadSpec,
    /// The workload in one sentence.
    pub about: String,
    /// Keys besides `kind`, in the order of declaration.
    pub keys: Vec<WrittenKey>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WrittenKey {
    pub key: String,
    pub value: Value,
    /// Help of the option with the same name.
    pub about: String,
}

/// Counts above this are out of every bound.
const COUNT_MOST: u64 = 1 << 40;

impl WorkloadSpec {
    /// The example of a kind. Its freshly loaded database has about `bytes` if it can have any size. `None`
    /// if the kind has no example.
    ///
    /// # Errors
    /// No database of the kind has about that size: the end of a sentence that begins with the size.
    pub fn example(kind: &str, bytes: u64) -> Option<Result<Written, String>> {
        let example = WorkloadSpec::facts_of(kind)?.example?;
        let mut table: Map<String, Value> =
            serde_json::from_str(example.table).expect("a test reads every example");
        table.insert("kind".to_owned(), kind.into());
        if let Some(key) = example.size_key {
            match fitting_count(&table, key, bytes) {
                Ok(count) => table.insert(key.to_owned(), count.into()),
                Err(words) => return Some(Err(words)),
            };
        }
        let spec = serde_json::from_value(table.clone().into()).expect("a test reads every example");
        let command = WorkloadSpec::augment_subcommands(Command::new("load"));
        let command = command.find_subcommand(kind).expect("every kind has its options");
        let keys = command.get_arguments().filter_map(|argument| {
            let key = argument.get_id().to_string();
            let about = argument.get_long_help().or(argument.get_help());
            let about = about.map(ToString::to_string).unwrap_or_default();
            Some(WrittenKey { value: table.get(&key)?.clone(), key, about })
        });
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        Some(Ok(Written { spec, about, keys: keys.collect() }))
    }
}

/// The count whose database is nearest to the size.
fn fitting_count(table: &Map<String, Value>, key: &str, bytes: u64) -> Result<u64, String> {
    let size = |count: u64| size_bytes(table, key, count);
    let fits = |count: u64| size(count).is_some_and(|its| its <= bytes);
    // The largest count that fits; sizes grow with the count, and counts beyond the bound have none.
    let (mut below, mut above) = (0, COUNT_MOST);
    while above - below > 1 {
        let middle = below.midpoint(above);
        if fits(middle) { below = middle } else { above = middle }
    }
    let refusal = |than: &str, count: u64| {
        let data = with_count(table, key, count).and_then(|spec| spec.data());
        data.map_or_else(String::new, |data| {
            let size = spindle_base::text::size(data.bytes);
            format!("is {than} database of this workload, {size} ({})", data.words)
        })
    };
    match (below, size(above)) {
        (0, Some(least)) if bytes < least / 2 => Err(refusal("less than the smallest", above)),
        (0, _) => Ok(1),
        (_, None) if size(below).is_some_and(|most| most < bytes / 2) => {
            Err(refusal("more than the largest", below))
        }
        (_, Some(next)) if next - bytes < bytes - size(below).unwrap_or(0) => Ok(plain(above)),
        _ => Ok(plain(below)),
    }
}

/// Two digits are enough for a size.
fn plain(count: u64) -> u64 {
    let step = 10_u64.pow(count.max(1).ilog10().saturating_sub(1));
    count / step * step
}

/// `None` if the count is out of bounds.
fn size_bytes(table: &Map<String, Value>, key: &str, count: u64) -> Option<u64> {
    let spec = with_count(table, key, count).filter(|spec| spec.complaint().is_none())?;
    spec.data().map(|data| data.bytes)
}

fn with_count(table: &Map<String, Value>, key: &str, count: u64) -> Option<WorkloadSpec> {
    let mut table = table.clone();
    table.insert(key.to_owned(), count.into());
    serde_json::from_value(table.into()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(kind: &str, asked: u64) -> u64 {
        WorkloadSpec::example(kind, asked).unwrap().unwrap().spec.data().unwrap().bytes
    }

    #[test]
    fn every_example_is_valid_and_has_the_requested_size() {
        for kind in WorkloadSpec::kinds_that(|facts| facts.example.is_some()) {
            for asked in [1 << 28, 1 << 30, 50 << 30] {
                let written = WorkloadSpec::example(kind, asked).unwrap().unwrap();
                assert_eq!((written.spec.kind(), written.spec.complaint()), (kind, None));
                assert!(written.keys.iter().all(|key| !key.about.is_empty()), "{kind}: {:?}", written.keys);
                let has_size = written.spec.facts().example.is_some_and(|example| example.size_key.is_some());
                let ratio = written.spec.data().unwrap().bytes as f64 / asked as f64;
                assert!(!has_size || (0.75..1.25).contains(&ratio), "{kind}: {ratio}");
            }
        }
    }

    #[test]
    fn every_kind_with_a_database_of_its_own_has_an_example() {
        // A file of the user's SQL has no example, and the mock no database.
        assert_eq!(WorkloadSpec::kinds_that(|facts| facts.example.is_none()), ["custom", "mock"]);
    }

    #[test]
    fn a_size_that_no_database_of_the_kind_has_is_refused_with_the_nearest() {
        let refused = |kind: &str, bytes: u64| WorkloadSpec::example(kind, bytes).unwrap().unwrap_err();
        assert_eq!(
            refused("tpcc", 10 << 20),
            "is less than the smallest database of this workload, 104.9 MB (1 warehouse)"
        );
        assert!(refused("tpcc", 1 << 50).starts_with("is more than the largest database"));
        assert_eq!(bytes("tpcc", 60 << 20), bytes("tpcc", 140 << 20));
        assert!(WorkloadSpec::example("custom", 1 << 30).is_none());
    }

    #[test]
    fn counts_have_two_digits() {
        for (count, expect) in [(1, 1), (20, 20), (204, 200), (894_784, 890_000)] {
            assert_eq!(plain(count), expect);
        }
    }
}
