//! How long a flash drive lasts under a workload: by the cycles of its cells, and by the figure of its sheet.
//!
//! A cell endures a number of program and erase cycles, so the drive endures that number times its NAND. The
//! workload programs its host writes times its own write amplification, which the model of the drive counts.
//! A sheet's terabytes written (TBW) already contain a write amplification: that of the sheet's workload, for
//! an enterprise drive mostly JESD219's. They are the limit of the warranty; the cycles are the limit of the
//! cells.
//!
//! Sources: JEDEC JESD218, Solid-State Drive Requirements and Endurance Test Method, and JESD219, Solid-State
//! Drive Endurance Workloads (2010). The formula, cycles = host writes x write amplification x wear-levelling
//! factor / capacity, is Intel's on the X25-M, as The Tech Report quotes it (2008).
//!
//! # Divergence
//! * Wear is even over all blocks. Intel gave 1.1 for the X25-M's wear levelling.
//! * A program in SLC mode counts like any other, although it wears a cell less.

use serde::Serialize;
use spindle_model::{FlashParameters, Parameters};

use crate::stack::Endurance;

const SECONDS_PER_DAY: f64 = 86_400.0;
/// With leap years.
const DAYS_PER_YEAR: f64 = 365.25;
/// Of a warranty, which does not count leap days.
const DAYS_PER_WARRANTY_YEAR: f64 = 365.0;

/// Writes to one drive at the offered rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct DailyWrites {
    /// Bytes that the host writes a day.
    pub host_bytes: f64,
    /// Bytes that the drive programs into NAND a day, garbage collection included.
    pub nand_bytes: f64,
}

impl DailyWrites {
    /// From the counters of a drive over `seconds` of model time, in which its state was steady.
    pub fn over(host_bytes: u64, nand_bytes: u64, seconds: f64) -> DailyWrites {
        let a_day = |bytes: u64| if seconds > 0.0 { bytes as f64 / seconds * SECONDS_PER_DAY } else { 0.0 };
        DailyWrites { host_bytes: a_day(host_bytes), nand_bytes: a_day(nand_bytes) }
    }

    /// From the erases of the average block and the bytes of the host, both per second of model time.
    pub fn of_erases(host_bytes_per_s: f64, erases_per_s_of_a_block: f64, raw_bytes: u64) -> DailyWrites {
        DailyWrites {
            host_bytes: host_bytes_per_s * SECONDS_PER_DAY,
            nand_bytes: erases_per_s_of_a_block * raw_bytes as f64 * SECONDS_PER_DAY,
        }
    }

    /// Bytes programmed for a byte of the host; `None` if the host writes nothing.
    pub fn write_amplification(&self) -> Option<f64> {
        (self.host_bytes > 0.0).then(|| self.nand_bytes / self.host_bytes)
    }
}

/// Sizes of a drive on which its life depends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DriveSize {
    /// User capacity.
    pub capacity_bytes: u64,
    /// NAND for data and spare space.
    pub raw_bytes: u64,
}

impl DriveSize {
    /// `None` for a device without cells that wear.
    pub fn of(parameters: &Parameters) -> Option<DriveSize> {
        let Parameters::Flash(FlashParameters { capacity_bytes, raw_bytes, .. }) = *parameters else {
            return None;
        };
        Some(DriveSize { capacity_bytes, raw_bytes })
    }
}

/// The life of a drive under a workload. `None` where no figure is known, or where nothing is written.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Life {
    /// Full writes of the drive a day (DWPD), by the host.
    pub drive_writes_per_day: f64,
    /// Bytes programmed for a byte of the host.
    pub write_amplification: Option<f64>,
    /// Years until the cells have had their cycles.
    pub years_by_cycles: Option<f64>,
    /// Years until the host has written what the sheet allows (TBW, or DWPD over the warranty).
    pub years_by_bytes_written: Option<f64>,
}

impl Life {
    /// The shorter of the two.
    pub fn years(&self) -> Option<f64> {
        self.years_by_cycles.into_iter().chain(self.years_by_bytes_written).reduce(f64::min)
    }
}

/// How long a drive with this endurance lasts.
pub fn life(endurance: Option<&Endurance>, writes: DailyWrites, size: DriveSize) -> Life {
    let cycles_bytes =
        endurance.and_then(|known| Some(known.program_erase_cycles? as f64 * size.raw_bytes as f64));
    let host_bytes = endurance.and_then(|known| host_budget_bytes(known, size.capacity_bytes));
    Life {
        drive_writes_per_day: writes.host_bytes / size.capacity_bytes.max(1) as f64,
        write_amplification: writes.write_amplification(),
        years_by_cycles: years(cycles_bytes, writes.nand_bytes),
        years_by_bytes_written: years(host_bytes, writes.host_bytes),
    }
}

/// Bytes that the host may write: the sheet's own figure, or its drive writes a day over the warranty.
fn host_budget_bytes(endurance: &Endurance, capacity_bytes: u64) -> Option<f64> {
    let by_days = || {
        let days = endurance.warranty_years? as f64 * DAYS_PER_WARRANTY_YEAR;
        Some(endurance.drive_writes_per_day()? * capacity_bytes as f64 * days)
    };
    endurance.total_bytes_written.map(|bytes| bytes as f64).or_else(by_days)
}

fn years(budget_bytes: Option<f64>, bytes_per_day: f64) -> Option<f64> {
    let days = budget_bytes? / bytes_per_day;
    days.is_finite().then_some(days / DAYS_PER_YEAR)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::StackSpec;

    const TB: f64 = 1e12;
    const SIZE: DriveSize = DriveSize { capacity_bytes: 1_000_000_000_000, raw_bytes: 1_100_000_000_000 };

    fn endurance(
        cycles: Option<u64>,
        written_tb: Option<u64>,
        daily: Option<f64>,
        years: Option<u64>,
    ) -> Endurance {
        Endurance {
            program_erase_cycles: cycles,
            total_bytes_written: written_tb.map(|tb| tb * 1_000_000_000_000),
            drive_writes_per_day_per_million: daily.map(|daily| (daily * 1e6) as u64),
            warranty_years: years,
        }
    }

    #[track_caller]
    fn check(endurance: &Endurance, writes: DailyWrites, cycles: Option<f64>, written: Option<f64>) {
        let life = life(Some(endurance), writes, SIZE);
        let rounded = |years: Option<f64>| years.map(|years| (years * 1000.0).round() / 1000.0);
        assert_eq!((rounded(life.years_by_cycles), rounded(life.years_by_bytes_written)), (cycles, written));
    }

    #[test]
    fn cycles_count_what_is_programmed_and_the_sheet_what_the_host_writes() {
        let known = endurance(Some(3_652), Some(730), None, None);
        // 4 TB a day are a cycle of 1.1 TB in 0.275 days.
        let writes = DailyWrites { host_bytes: 1.0 * TB, nand_bytes: 4.0 * TB };
        check(&known, writes, Some(2.75), Some(1.999));
        let life = life(Some(&known), writes, SIZE);
        assert_eq!((life.drive_writes_per_day, life.write_amplification), (1.0, Some(4.0)));
        assert_eq!(life.years(), life.years_by_bytes_written);
    }

    #[test]
    fn drive_writes_a_day_need_the_years_of_the_warranty() {
        let writes = DailyWrites { host_bytes: 2.0 * TB, nand_bytes: 2.0 * TB };
        check(&endurance(None, None, Some(1.3), Some(5)), writes, None, Some(3.248));
        check(&endurance(None, None, Some(1.3), None), writes, None, None);
    }

    #[test]
    fn an_unknown_endurance_gives_no_years() {
        let writes = DailyWrites { host_bytes: TB, nand_bytes: TB };
        assert_eq!(life(None, writes, SIZE).years(), None);
        check(&endurance(None, None, None, Some(5)), writes, None, None);
    }

    #[test]
    fn a_drive_that_is_only_read_has_no_end() {
        let writes = DailyWrites::over(0, 0, 60.0);
        check(&endurance(Some(3_000), Some(75), None, None), writes, None, None);
        assert_eq!(writes.write_amplification(), None);
    }

    #[test]
    fn erases_and_programmed_bytes_tell_the_same() {
        let by_bytes = DailyWrites::over(1_000_000, 2_200_000, 1.0);
        let by_erases = DailyWrites::of_erases(1e6, 2e-6, SIZE.raw_bytes);
        assert!((by_bytes.nand_bytes / by_erases.nand_bytes - 1.0).abs() < 1e-9, "{by_erases:?}");
        assert_eq!(by_bytes.host_bytes, 86_400e6);
    }

    /// Intel: 20 GB a day, times 1.1 twice, consume about 550 of 10,000 cycles in five years.
    #[test]
    fn the_published_example_of_the_x25m_comes_out() {
        let stack = StackSpec::of_name("x25m-80-g1", None, "xfs").unwrap();
        let drive = stack.drives()[0];
        let host_bytes = 20e9;
        let writes = DailyWrites { host_bytes, nand_bytes: host_bytes * 1.1 * 1.1 };
        let size = DriveSize::of(drive.parameters).unwrap();
        let life = life(drive.facts.endurance.as_ref(), writes, size);
        let cycles_in_five_years = 10_000.0 * 5.0 / life.years_by_cycles.unwrap();
        assert!((500.0..600.0).contains(&cycles_in_five_years), "{cycles_in_five_years}");
    }
}
