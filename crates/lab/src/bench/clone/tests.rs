//! Each test measures a model in virtual time, as if fio had measured it, and clones it. The clone must match
//! the model.

use super::*;
use crate::bench::raw;
use crate::stack::{Profile, StackSpec};

const SIZE: &str = "4 GiB";

fn cloned(profile: &str, writes: bool) -> (Clone, StackSpec) {
    let stack = StackSpec::of_name(profile, Some(SIZE), "none").unwrap();
    let source = Source {
        path: PathBuf::new(),
        size_bytes: stack.size_bytes(),
        writes,
        rotational: None,
        description: "a model".to_owned(),
    };
    let options = Options { seconds: 1, date: "2026-01-31", real_time: false, dilation: Dilation::NONE };
    let mut ask = |access, block_bytes, iodepth, offset: u64, span_bytes| {
        let question = Question { place: Place::Raw, access, block_bytes, iodepth };
        // The model's closed loop begins at the start of the device.
        let span = if offset > 0 { stack.size_bytes() } else { span_bytes };
        let requests = raw::Requests { span_bytes: span, count: 3_000 };
        let (row, latencies_us) = raw::sample(stack.build(7), 7, &question, requests).unwrap();
        let latencies_ns = latencies_us.iter().map(|us| ((us * 1e3) as u64, 1)).collect();
        Ok(Observation { question, span_bytes, figures: Figures { row, latencies_ns } })
    };
    (clone_asking(&source, options, &mut ask).unwrap(), stack)
}

/// Every question the clone was fitted to, within the tolerance.
fn check(profile: &str, writes: bool, tolerance: f64) -> Clone {
    let (clone, _) = cloned(profile, writes);
    for row in &clone.rows {
        assert!((row.ratio - 1.0).abs() <= tolerance, "{profile}, {}: {}", row.question, table(&clone));
    }
    let read = Profile::parse("mine.toml", "mine", &clone.profile).unwrap();
    assert_eq!(read.summary, "A clone of a model, measured by spindle disk clone on 2026-01-31.");
    for line in clone.profile.lines().filter(|line| line.contains("source = ")) {
        assert!(line.contains("source = \"measured by spindle disk clone on 2026-01-31: "), "{line}");
    }
    clone
}

#[test]
fn a_disk_is_cloned() {
    let clone = check("hdd-7200", false, 0.1);
    assert_eq!(clone.kind, Kind::Disk);
    assert!(clone.profile.contains("rotation = { value = \"7200 rpm\""), "{}", clone.profile);
}

#[test]
fn flash_is_cloned() {
    let clone = check("x25m-80", true, 0.1);
    assert_eq!(clone.kind, Kind::Flash);
    assert!(check("iodrive-160", false, 0.1).notes[0].contains("no write was measured"));
}

/// A device whose bottleneck is the dies instead of the front end.
#[test]
fn parallel_dies_are_cloned() {
    check("flash-285us-4ch", false, 0.15);
}

#[test]
fn virtual_machines_call_everything_rotational() {
    assert_eq!(decide(Some(true), 80.0), Kind::Flash);
    assert_eq!(decide(Some(true), 12_000.0), Kind::Disk);
    assert_eq!(decide(None, 12_000.0), Kind::Disk);
    assert_eq!(decide(Some(false), 12_000.0), Kind::Flash);
}
