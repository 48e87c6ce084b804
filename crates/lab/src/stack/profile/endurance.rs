//! `[endurance]` of a profile: how much may be written to a flash drive before its cells wear out. A drive
//! behaves the same with it and without it, so the hash of a stack does not contain it.
//!
//! Program and erase cycles hold for any workload. Terabytes written (TBW) and drive writes a day (DWPD) hold
//! for the workload of the sheet, and contain its write amplification. Sources: JEDEC JESD218 (the rating and
//! its test) and JESD219 (the workloads of clients and enterprises), both of 2010.

use spindle_base::Mistake;
use spindle_model::declare;
use spindle_model::parameter::Declared;

use crate::stack::explained::{Explanation, explanations};
use crate::stack::values::{self, Form};

const DRIVE_WRITES: &str = "drive_writes_per_day";

declare! {
    /// How much may be written to a flash drive, as its maker or a test states it. A figure that no text states
    /// is absent.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Endurance {
        /// Program and erase cycles of each block (P/E).
        pub program_erase_cycles: Option<u64> = Count "program_erase_cycles" in 1..=10_000_000;
        /// Bytes that the host may write (TBW of the sheet).
        pub total_bytes_written: Option<u64> = Size "total_bytes_written" in 1..=1 << 60;
        /// Share of the capacity that may be written each day of the warranty (DWPD of the sheet). A number counts
        /// full writes: 1.3 is 130 %.
        pub drive_writes_per_day_per_million: Option<u64> = Share "drive_writes_per_day" in 1..=1_000_000_000;
        /// Years of the warranty, to which the other figures are limited.
        pub warranty_years: Option<u64> = Count "warranty_years" in 1..=50;
    }
}

impl Endurance {
    /// The table of a profile, and its facts with their origins.
    ///
    /// # Errors
    /// Every key that is not declared, and every value that is invalid or has no origin.
    pub(super) fn read(table: toml::Table) -> Result<(Endurance, Vec<Explanation>), Mistake> {
        let fields = Endurance::fields();
        let entries = values::read(with_shares(table), Form::Sourced, &fields, &[])?;
        let values = values::values(&entries);
        let facts = explanations(&fields, &values, &entries);
        Ok((Endurance::from_values(values)?, facts))
    }

    /// Full writes of the drive a day (DWPD).
    pub fn drive_writes_per_day(&self) -> Option<f64> {
        Some(self.drive_writes_per_day_per_million? as f64 / 1e6)
    }
}

/// Drive writes a day as a share. Sheets state them as a number.
fn with_shares(mut table: toml::Table) -> toml::Table {
    let fact = table.get_mut(DRIVE_WRITES).and_then(toml::Value::as_table_mut);
    if let Some(value) = fact.and_then(|fact| fact.get_mut("value")) {
        let number = value.as_float().or(value.as_integer().map(|whole| whole as f64));
        if let Some(number) = number {
            *value = toml::Value::String(format!("{} %", (number * 1e6).round() / 1e4));
        }
    }
    table
}
