//! Summaries of a small fake `/proc` and `/sys`.

use std::fs;
use std::path::Path;

use insta::assert_snapshot;

use super::*;

/// Writes `path: content` files below a directory.
fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for (path, content) in files {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{content}\n")).unwrap();
    }
    root
}

fn words(root: &Path) -> String {
    let mut text = String::new();
    for section in Summary::read(root).sections() {
        text += &format!("{}\n", section.title);
        let lines = section.lines.iter().filter(|(name, _)| name != "architecture");
        text.extend(lines.map(|(name, value)| format!("  {name}: {value}\n")));
    }
    text
}

const CPU: &str = "sys/devices/system/cpu";

/// Two sockets of one core with two threads each, of which one is offline.
fn processor() -> Vec<(String, String)> {
    let mut files = Vec::new();
    let mut add = |path: String, content: &str| files.push((path, content.to_owned()));
    for (cpu, socket) in [(0, "0"), (1, "0"), (2, "1"), (3, "1")] {
        add(format!("{CPU}/cpu{cpu}/topology/physical_package_id"), socket);
        add(format!("{CPU}/cpu{cpu}/topology/core_id"), "0");
        add(
            format!("{CPU}/cpu{cpu}/cpufreq/scaling_governor"),
            if cpu == 2 { "powersave" } else { "performance" },
        );
        add(format!("{CPU}/cpu{cpu}/cache/index0/level"), "1");
        add(format!("{CPU}/cpu{cpu}/cache/index0/type"), "Data");
        add(format!("{CPU}/cpu{cpu}/cache/index0/size"), "48K");
        add(format!("{CPU}/cpu{cpu}/cache/index0/shared_cpu_list"), if socket == "0" { "0-1" } else { "2" });
    }
    add(format!("{CPU}/cpu3/online"), "0");
    add(format!("{CPU}/cpu0/cpufreq/scaling_driver"), "intel_pstate");
    add(format!("{CPU}/cpu0/cpufreq/scaling_min_freq"), "800000");
    add(format!("{CPU}/cpu0/cpufreq/scaling_max_freq"), "3600000");
    add(format!("{CPU}/cpuidle/current_driver"), "intel_idle");
    add(format!("{CPU}/cpu0/cpuidle/state0/name"), "POLL");
    add(format!("{CPU}/cpu0/cpuidle/state0/latency"), "0");
    add(format!("{CPU}/cpu0/cpuidle/state1/name"), "C6");
    add(format!("{CPU}/cpu0/cpuidle/state1/latency"), "133");
    add(format!("{CPU}/cpu0/cpuidle/state1/disable"), "1");
    files
}

fn of_strings(files: &[(String, String)]) -> tempfile::TempDir {
    let files: Vec<(&str, &str)> =
        files.iter().map(|(path, content)| (path.as_str(), content.as_str())).collect();
    machine(&files)
}

#[test]
fn threads_cores_caches_and_idle_states_are_counted_by_their_topology() {
    let root = of_strings(&processor());
    assert_snapshot!(words(root.path()), @r"
    Platform
      hypervisor: none found
    Processor
      threads: 2 sockets, 2 cores, 3 threads
      caches: L1 data 2 x 48 KiB
      frequency: performance and powersave, intel_pstate, 800 to 3600 MHz
      idle states: intel_idle, POLL (0 us), C6 (133 us, disabled)
    Memory
      swap: none
      huge pages: none
    ");
}

#[test]
fn memory_swap_and_the_kernels_settings() {
    let root = machine(&[
        ("proc/meminfo", "MemTotal:       16384 kB\nSwapTotal: 4096 kB"),
        (
            "proc/swaps",
            "Filename Type Size Used Priority\n/home/alice/swap file 2048 0 -2\n/dev/sda2 partition 2048 0 -3",
        ),
        ("proc/sys/vm/swappiness", "1"),
        ("proc/sys/vm/dirty_ratio", "20"),
        ("proc/sys/vm/dirty_background_ratio", "10"),
        ("sys/devices/system/node/node0/meminfo", "Node 0 MemTotal:  8192 kB\nNode 0 MemFree: 1 kB"),
        ("sys/devices/system/node/node0/cpulist", "0-1"),
        ("sys/devices/system/node/node1/meminfo", "Node 1 MemTotal:  8192 kB"),
        ("sys/devices/system/node/node1/cpulist", "2-3"),
        ("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "512"),
        ("sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", "0"),
        ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never"),
    ]);
    assert_snapshot!(words(root.path()), @r"
    Platform
      hypervisor: none found
    Memory
      total: 16.8 MB
      NUMA: node 0: 8.4 MB, cores 0-1; node 1: 8.4 MB, cores 2-3
      swap: file 2.1 MB, partition 2.1 MB
      huge pages: 512 x 2 MiB
      transparent huge pages: madvise
      vm settings: dirty_background_ratio 10, dirty_ratio 20, swappiness 1
    ");
}

/// Two disks with a misaligned partition each, an array of them, and a logical volume with a user's name.
const DISKS: [(&str, &str); 45] = [
    ("sys/block/loop0/size", "2048"),
    ("sys/block/sr0/size", "0"),
    ("sys/block/sda/size", "1953525168"),
    ("sys/block/sda/dev", "8:0"),
    ("sys/block/sda/alignment_offset", "0"),
    ("sys/block/sda/device/vendor", "ATA     "),
    ("sys/block/sda/device/model", "ST1000NM0033-9ZM"),
    ("sys/block/sda/device/serial", "Z1W4XYZ0"),
    ("sys/block/sda/queue/scheduler", "none [mq-deadline] kyber"),
    ("sys/block/sda/queue/nr_requests", "256"),
    ("sys/block/sda/queue/read_ahead_kb", "128"),
    ("sys/block/sda/queue/rotational", "1"),
    ("sys/block/sda/queue/write_cache", "write back"),
    ("sys/block/sda/queue/wbt_lat_usec", "75000"),
    ("sys/block/sda/queue/logical_block_size", "512"),
    ("sys/block/sda/queue/physical_block_size", "4096"),
    ("sys/block/sda/queue/minimum_io_size", "4096"),
    ("sys/block/sda/sda1/partition", "1"),
    ("sys/block/sda/sda1/dev", "8:1"),
    ("sys/block/sda/sda1/start", "63"),
    ("sys/block/sda/sda1/size", "1048576"),
    ("sys/block/sda/sda10/partition", "10"),
    ("sys/block/sda/sda10/start", "2099200"),
    ("sys/block/sda/sda10/size", "1048576"),
    ("sys/block/sda/sda2/partition", "2"),
    ("sys/block/sda/sda2/start", "1050624"),
    ("sys/block/sda/sda2/size", "1048576"),
    ("sys/block/sdb/size", "1953525168"),
    ("sys/block/md127/size", "3906764800"),
    ("sys/block/md127/slaves/sda10/partition", "10"),
    ("sys/block/md127/slaves/sdb/size", "1953525168"),
    ("sys/block/md127/alignment_offset", "-1"),
    ("sys/block/md127/queue/optimal_io_size", "131072"),
    ("sys/block/md127/md/level", "raid5"),
    ("sys/block/md127/md/raid_disks", "3"),
    ("sys/block/md127/md/chunk_size", "65536"),
    ("sys/block/md127/md/degraded", "1"),
    ("sys/block/md127/md/array_state", "clean"),
    ("sys/block/md127/md/sync_action", "recover"),
    ("sys/block/md127/md/bitmap/location", "+8"),
    ("sys/block/dm-0/size", "1048576"),
    ("sys/block/dm-0/dev", "253:0"),
    ("sys/block/dm-0/slaves/md127/size", "3906764800"),
    ("sys/block/dm-0/dm/uuid", "LVM-sEcReTuUiD"),
    ("sys/block/dm-0/dm/name", "vg_dbhost7-mysql"),
];

#[test]
fn block_devices_are_a_tree_with_alignment_and_arrays() {
    assert_snapshot!(words(machine(&DISKS).path()), @r"
    Platform
      hypervisor: none found
    Memory
      swap: none
      huge pages: none
    Block devices
      sda: disk 1 TB, ATA ST1000NM0033-9ZM, blocks of 512 (physical 4096)
        sda1: partition 536.9 MB, starts at 32256 B, NOT ALIGNED: 3584 bytes past a boundary of 4096
        sda2: partition 536.9 MB, starts at 513 MiB, aligned
        sda10: partition 536.9 MB, starts at 1025 MiB, aligned
          md127: raid 2 TB, on sda10 sdb, raid5 of 3 disks, chunk 64 KiB, clean, DEGRADED by 1, recover, bitmap, stripe 128 KiB, NOT ALIGNED, says the kernel
            dm-0: lvm 536.9 MB
      sdb: disk 1 TB
    Queues
      sda: nr_requests 256, read_ahead_kb 128, rotational 1, scheduler mq-deadline, wbt_lat_usec 75000, write_cache write back
    ");
}

#[test]
fn one_mount_of_each_file_system_that_keeps_data_is_told() {
    let table = "\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/root rw,errors=remount-ro
23 22 0:21 / /proc rw,nosuid - proc proc rw
24 22 253:0 / /srv/acme\\040db rw,noatime - xfs /dev/mapper/vg_dbhost7-mysql rw,logbsize=256k,noquota
25 22 8:1 /etc/hosts /etc/hosts rw,relatime - ext4 /dev/root rw
26 22 0:50 / /mnt/share rw - nfs4 dbhost8:/export rw,vers=4,addr=10.1.2.3
27 22 7:0 / /run/spindle/x rw - xfs /dev/loop0 rw
28 22 0:60 / /home ro - btrfs /dev/sdb rw,compress=zstd:3,subvol=/@alice";
    let root = machine(
        &[
            &DISKS[..],
            &[("proc/self/mountinfo", table), ("sys/block/loop0/dev", "7:0"), ("sys/block/sdb/dev", "8:16")],
        ]
        .concat(),
    );
    let told = words(root.path());
    let file_systems = told.split_once("File systems\n").unwrap().1;
    assert_snapshot!(file_systems, @r"
    /: ext4 on sda1: rw,relatime,errors=remount-ro
    /srv/...: xfs on dm-0: rw,noatime,logbsize=256k,noquota
    /mnt/...: nfs4: rw,vers=4
    /home: btrfs on sdb: ro,compress=zstd:3
    ");
}

#[test]
fn a_summary_has_no_name_that_a_user_chose_and_no_serial_number() {
    let mut files: Vec<(&str, &str)> = DISKS.to_vec();
    files.extend([
        ("proc/sys/kernel/hostname", "dbhost7"),
        ("etc/machine-id", "sEcReT"),
        ("sys/class/dmi/id/sys_vendor", "Dell Inc."),
        ("sys/class/dmi/id/product_name", "PowerEdge R740"),
        ("sys/class/dmi/id/product_serial", "sEcReT"),
        ("sys/class/dmi/id/product_uuid", "sEcReT"),
        ("proc/swaps", "Filename Type Size Used Priority\n/home/alice/swap file 2048 0 -2"),
        (
            "proc/self/mountinfo",
            "1 1 253:0 / /home/alice rw - xfs /dev/mapper/vg_dbhost7-mysql rw,uid=7,user=alice",
        ),
    ]);
    let summary = serde_json::to_string(&Summary::read(machine(&files).path())).unwrap();
    assert!(summary.contains("PowerEdge R740") && summary.contains("/home/..."), "{summary}");
    for secret in ["sEcReT", "dbhost7", "alice", "Z1W4XYZ0", "mysql"] {
        assert!(!summary.contains(secret), "{secret} in {summary}");
    }
}

#[test]
fn an_empty_machine_and_a_record_without_fields_are_read() {
    let root = tempfile::tempdir().unwrap();
    let summary = Summary::read(root.path());
    assert_eq!(summary.block_devices, []);
    assert_eq!(serde_json::from_str::<Summary>("{}").unwrap(), Summary::default());
    let again: Summary = serde_json::from_str(&serde_json::to_string(&summary).unwrap()).unwrap();
    assert_eq!(again, summary);
}

#[test]
fn this_machine_has_threads_and_memory() {
    let summary = Summary::read(Path::new("/"));
    assert!(summary.processor.threads > 0 && summary.memory.total_bytes > 1 << 20, "{summary:?}");
}
