//! Bounds and parsers of parameters that are counts. A field declares its bound with `range`, and
//! [`crate::WorkloadSpec::complaint`] checks it for scenarios and options alike.

/// Each terminal is a thread and a connection.
pub(crate) const TERMINALS_MAX: u64 = 10_000;
/// Transactions per second. No server on one machine reaches it.
pub(crate) const RATE_MAX: u64 = 1_000_000;

/// Parses the value of an option. The workload checks its bounds.
pub(crate) fn whole_number<T: TryFrom<u64>>(text: &str) -> Result<T, String> {
    let number: u64 = text.parse().map_err(|_| "write a whole number from 1 on".to_owned())?;
    T::try_from(number).map_err(|_| "no count can be that large".to_owned())
}

/// The default of a field that is a count.
pub(crate) fn default_number<const NUMBER: u32, T: From<u32>>() -> T {
    NUMBER.into()
}
