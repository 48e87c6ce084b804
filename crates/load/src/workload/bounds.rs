//! Parameters that are counts. The bound is declared once, beside the fields. Scenarios and options are
//! refused with the same sentence.

/// Each terminal is a thread and a connection.
pub(crate) const TERMINALS_MAX: u64 = 10_000;
/// Transactions per second. No server on one machine reaches it.
pub(crate) const RATE_MAX: u64 = 1_000_000;

/// A parameter that is a count, from 1 to `most`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// The parameter's name in scenarios.
    pub(super) key: &'static str,
    value: u64,
    most: u64,
}

impl Count {
    pub(crate) fn new(key: &'static str, value: impl Into<u64>, most: u64) -> Count {
        Count { key, value: value.into(), most }
    }

    /// Why the count is out of range, without its key.
    pub(super) fn complaint(&self) -> Option<String> {
        let Count { value, most, .. } = self;
        let is_in_range = (1..=*most).contains(value);
        (!is_in_range).then(|| format!("{value} is out of range; it can be 1 to {most}"))
    }
}

/// A field that is a count. A missing field is within any bound.
pub(crate) trait Counted {
    fn count(self) -> Option<u64>;
}

impl Counted for u32 {
    fn count(self) -> Option<u64> {
        Some(self.into())
    }
}

impl Counted for u64 {
    fn count(self) -> Option<u64> {
        Some(self)
    }
}

impl<T: Counted> Counted for Option<T> {
    fn count(self) -> Option<u64> {
        self?.count()
    }
}

/// Fields with their maximum: `counts!(self, rows <= 1_000, rate <= RATE_MAX)`. The key is the field's name.
macro_rules! counts {
    ($spec:ident, $($field:ident <= $most:expr),+ $(,)?) => {
        [$((stringify!($field), $crate::workload::Counted::count($spec.$field), $most)),+]
            .into_iter()
            .filter_map(|(key, value, most)| Some($crate::workload::Count::new(key, value?, most)))
            .collect::<Vec<_>>()
    };
}
pub(crate) use counts;

/// Parses the value of an option. The workload checks its bounds.
pub(crate) fn whole_number<T: TryFrom<u64>>(text: &str) -> Result<T, String> {
    let number: u64 = text.parse().map_err(|_| "write a whole number from 1 on".to_owned())?;
    T::try_from(number).map_err(|_| "no count can be that large".to_owned())
}

/// The default of a field that is a count.
pub(crate) fn default_number<const NUMBER: u32, T: From<u32>>() -> T {
    NUMBER.into()
}
