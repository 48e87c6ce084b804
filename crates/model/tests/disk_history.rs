//! The times of the answers of a hard disk, to the nanosecond. A faster model must give the same times.
//!
//! A change that is meant to change results says so in CHANGELOG.md, and puts its numbers here.

mod common;

use common::history::Script;
use spindle_model::{
    DiskParameters, MICROSECOND, MILLISECOND, Operation, Parameters, ReadRetries, Request, RequestId, Rng,
    Stroke, WriteCache,
};

const SIZE_BYTES: u64 = 256 << 30;
const SECTOR_BYTES: u64 = 512;

/// Which requests there are.
#[derive(Debug, Clone, Copy)]
struct Mix {
    /// Per thousand; the rest are FLUSH, discard and write-zeroes, a third each.
    reads: u64,
    writes: u64,
    forced_percent: u64,
    /// Where they are; below the device's size.
    span_bytes: u64,
    /// Most of them have this size.
    size_bytes: u64,
    /// One request in ten has up to this number of sectors, and begins at any sector.
    most_sectors: u64,
    /// Continue the request before.
    sequential_percent: u64,
}

const RANDOM: Mix = Mix {
    reads: 1_000,
    writes: 0,
    forced_percent: 0,
    span_bytes: SIZE_BYTES,
    size_bytes: 4_096,
    most_sectors: 64,
    sequential_percent: 0,
};
const WRITES: Mix = Mix { reads: 0, writes: 1_000, ..RANDOM };
/// Something of everything, dense enough that writes overlap.
const EVERYTHING: Mix = Mix {
    reads: 480,
    writes: 490,
    forced_percent: 3,
    span_bytes: 64 << 20,
    most_sectors: 600,
    sequential_percent: 30,
    ..RANDOM
};

impl Mix {
    fn operation(&self, rng: &mut Rng) -> Operation {
        let (reads, transfers) = (self.reads, self.reads + self.writes);
        match rng.below(1_000) {
            number if number < reads => Operation::Read,
            number if number < transfers => Operation::Write,
            _ => [Operation::Flush, Operation::Discard, Operation::WriteZeroes][rng.below(3) as usize],
        }
    }

    /// `end` is where the one before ended, in sectors.
    fn sectors(&self, end: u64, rng: &mut Rng) -> (u64, u64) {
        let span = self.span_bytes / SECTOR_BYTES;
        let usual = self.size_bytes / SECTOR_BYTES;
        let (start, count) = match rng.below(10) {
            0 => (rng.below(span - self.most_sectors), 1 + rng.below(self.most_sectors)),
            _ => (rng.below(span / usual) * usual, usual),
        };
        let continues = rng.below(100) < self.sequential_percent && end + count <= span;
        (if continues { end } else { start }, count)
    }
}

/// A mostly busy drive that is sometimes idle for long enough to write back.
fn pause_ns(rng: &mut Rng) -> u64 {
    match rng.below(1_000) {
        0 => 60 * MILLISECOND,
        1..200 => rng.below(4 * MILLISECOND),
        _ => 0,
    }
}

/// Saturated all the time.
fn no_pause(_: &mut Rng) -> u64 {
    0
}

const RETRIES: Option<ReadRetries> = Some(ReadRetries { per_million: 50_000, mean_rotations: 3 });

const BUSY: Script = Script { request_count: 20_000, most_in_flight: 32, pause_ns: no_pause };
const ONE_BY_ONE: Script = Script { most_in_flight: 1, ..BUSY };
const BURSTS: Script = Script { pause_ns, ..BUSY };

/// A large desktop drive that sees 32 commands.
fn disk(write_cache: WriteCache) -> DiskParameters {
    let Parameters::Disk(disk) = common::disk(write_cache) else { unreachable!("a hard disk") };
    DiskParameters {
        zone_count: 16,
        tracks_per_cylinder: 4,
        queue_depth: 32,
        age_limit_ns: 500 * MILLISECOND,
        cache_bytes: 8 << 20,
        physical_sector_bytes: 512,
        read_segments: 16,
        dirty_runs: 256,
        destage_candidates: 32,
        destage_idle_ns: 20 * MILLISECOND,
        read_retries: None,
        ..disk
    }
}

/// A server's drive at the start of its stroke: short settling, longer shortest seeks than from track to
/// track.
fn server_disk(write_cache: WriteCache) -> DiskParameters {
    DiskParameters {
        rotation_per_minute: 15_000,
        seek_track_to_track_ns: 200 * MICROSECOND,
        seek_minimum_ns: 900 * MICROSECOND,
        seek_average_ns: 3_400 * MICROSECOND,
        write_settle_ns: 300 * MICROSECOND,
        tracks_per_cylinder: 7,
        zone_count: 5,
        queue_depth: 64,
        stroke: Stroke::Short,
        ..disk(write_cache)
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Expected {
    /// Hashes of completions and of the fates of writes in power cuts.
    sums: (u64, u64),
    seeks: u64,
}

fn check(parameters: DiskParameters, script: Script, mix: Mix, sums: (u64, u64), seeks: u64) {
    let mut device = common::device(Parameters::Disk(parameters), SIZE_BYTES, 1);
    let mut end = 0;
    let history = common::history::history(&mut *device, script, |number, rng| {
        let operation = mix.operation(rng);
        let (start, count) = if operation == Operation::Flush { (0, 0) } else { mix.sectors(end, rng) };
        end = start + count;
        Request {
            id: RequestId(number),
            operation,
            offset_bytes: start * SECTOR_BYTES,
            size_bytes: count * SECTOR_BYTES,
            force_unit_access: operation == Operation::Write && rng.below(100) < mix.forced_percent,
        }
    });
    let found = Expected { sums: (history.sum, history.fates), seeks: history.counters.seeks };
    let (sum, fates) = found.sums;
    assert_eq!(found, Expected { sums, seeks }, "({sum:#018x}, {fates:#018x}), {}", found.seeks);
}

#[test]
fn random_reads_one_by_one() {
    check(
        disk(WriteCache::Volatile),
        ONE_BY_ONE,
        RANDOM,
        (0xa9ad_d5e0_2479_62d2, 0xcbf2_9ce4_8422_2325),
        19_996,
    );
}

#[test]
fn random_reads_that_are_sorted() {
    check(disk(WriteCache::Volatile), BUSY, RANDOM, (0x2f1a_c2c7_261b_1457, 0xcbf2_9ce4_8422_2325), 19_874);
}

#[test]
fn more_reads_than_the_drive_sees_and_some_grow_too_old() {
    let parameters =
        DiskParameters { queue_depth: 8, age_limit_ns: 60 * MILLISECOND, ..disk(WriteCache::Off) };
    check(
        parameters,
        Script { most_in_flight: 50, ..BURSTS },
        RANDOM,
        (0xf456_3ff1_f55c_4620, 0xcbf2_9ce4_8422_2325),
        19_804,
    );
}

#[test]
fn reads_of_few_cylinders_at_many_heads() {
    let mix = Mix { span_bytes: 100 << 20, ..RANDOM };
    check(
        server_disk(WriteCache::Off),
        Script { most_in_flight: 100, ..BUSY },
        mix,
        (0xe42d_28db_86d7_f6e9, 0xcbf2_9ce4_8422_2325),
        13_870,
    );
}

#[test]
fn streams_of_reads_from_the_segments() {
    let mix = Mix { sequential_percent: 80, span_bytes: 1 << 30, ..RANDOM };
    check(
        disk(WriteCache::Off),
        Script { most_in_flight: 3, ..BURSTS },
        mix,
        (0x6767_3a4a_29bf_d635, 0xcbf2_9ce4_8422_2325),
        4_032,
    );
}

#[test]
fn reads_that_need_retries() {
    let parameters = DiskParameters { read_retries: RETRIES, ..server_disk(WriteCache::Off) };
    check(parameters, BURSTS, RANDOM, (0xc64d_ed54_7475_d437, 0xcbf2_9ce4_8422_2325), 19_873);
}

#[test]
fn cached_writes_one_by_one() {
    check(
        disk(WriteCache::Volatile),
        ONE_BY_ONE,
        WRITES,
        (0x1f94_41a3_312f_9e82, 0xea92_73d7_cf3e_d8b1),
        18_975,
    );
}

#[test]
fn cached_writes_that_fill_the_cache() {
    check(disk(WriteCache::Volatile), BUSY, WRITES, (0x6faa_5c01_ddea_01b2, 0xd2a3_dc4f_db28_75c4), 18_851);
}

#[test]
fn cached_writes_with_time_to_write_back() {
    check(
        disk(WriteCache::Protected),
        BURSTS,
        WRITES,
        (0x2ed9_29f0_ce36_22e2, 0x7d13_5e60_7a90_ff65),
        18_843,
    );
}

#[test]
fn long_runs_of_cached_writes() {
    let mix = Mix { sequential_percent: 95, most_sectors: 3_000, size_bytes: 64 << 10, ..WRITES };
    check(disk(WriteCache::Volatile), BURSTS, mix, (0x8d55_a059_47c7_d380, 0x535e_f958_41bd_ef69), 1_112);
}

#[test]
fn writes_to_the_platter() {
    check(disk(WriteCache::Off), BUSY, WRITES, (0x5818_73af_9c1f_e338, 0xd065_c953_ae2e_fb4d), 19_868);
}

#[test]
fn parts_of_physical_sectors_to_the_platter() {
    let parameters = DiskParameters { physical_sector_bytes: 4_096, ..server_disk(WriteCache::Off) };
    check(
        parameters,
        BURSTS,
        Mix { size_bytes: 2_048, ..WRITES },
        (0x9543_38a7_5b10_e8fb, 0xaf79_6b86_aa67_bc08),
        19_868,
    );
}

#[test]
fn reads_beside_cached_writes() {
    let mix = Mix { reads: 500, writes: 500, ..RANDOM };
    check(disk(WriteCache::Volatile), BUSY, mix, (0x576b_a488_dc8a_0252, 0x7d5f_5d9e_79d1_11b3), 18_843);
}

#[test]
fn reads_beside_writes_to_the_platter() {
    let mix = Mix { reads: 500, writes: 500, ..RANDOM };
    check(
        server_disk(WriteCache::Off),
        Script { most_in_flight: 64, ..BUSY },
        mix,
        (0x7b97_0654_ce48_e23d, 0xbbc6_464f_3fc8_a019),
        19_741,
    );
}

#[test]
fn everything_behind_a_volatile_cache() {
    check(
        disk(WriteCache::Volatile),
        BURSTS,
        EVERYTHING,
        (0x1303_666b_a7cf_9104, 0xbed4_cfc5_0796_2472),
        12_414,
    );
}

#[test]
fn everything_behind_a_protected_cache() {
    check(
        server_disk(WriteCache::Protected),
        BURSTS,
        EVERYTHING,
        (0x1fd6_c34d_c1e8_67c2, 0x17b3_eff5_2892_50a6),
        10_344,
    );
}

#[test]
fn everything_without_a_write_cache() {
    check(disk(WriteCache::Off), BURSTS, EVERYTHING, (0x3a79_e70f_e316_65ec, 0xa88c_7834_ef14_b7d8), 11_649);
}

#[test]
fn everything_on_a_drive_with_little_room() {
    let Parameters::Disk(parameters) = common::disk(WriteCache::Volatile) else {
        unreachable!("a hard disk")
    };
    let mix = Mix { span_bytes: 16 << 20, ..EVERYTHING };
    check(parameters, BURSTS, mix, (0x1747_bfca_9c9f_a353, 0x0c92_02cd_b841_0e48), 11_842);
}
