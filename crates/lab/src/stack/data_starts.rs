//! Positions of the first byte of data under partitioning tools and LVM, in bytes from the start of the
//! divided device.

/// Position of the first extent of a physical volume in LVM (`pvs -o pe_start`).
///
/// Source: "change default alignment of pe_start to 1MB", lvm-devel, 2010-08-05. It also gives the earlier
/// value: an alignment of 64 KiB, which with the default metadata area came to 192 KiB. A start at 64 KiB
/// itself, without such an area, is an assumption.
pub const LVM_DATA_STARTS_BYTES: [(&str, u64); 3] = [
    ("LVM2 since August 2010", 1 << 20),
    ("LVM2 before", 192 << 10),
    ("LVM2 before, metadata within 64 KiB", 64 << 10),
];

/// Position of the first partition.
///
/// Sector 63 is the start of the second track in the geometry of 63 sectors a track that BIOSes report. Its
/// successor is 1 MiB (fdisk, parted: the same message as for [`LVM_DATA_STARTS_BYTES`]).
pub const PARTITION_STARTS_BYTES: [(&str, u64); 2] = [("sector 63", 63 * 512), ("1 MiB", 1 << 20)];

#[cfg(test)]
mod tests {
    use super::*;
    use spindle_model::Alignment;

    const KIB: u64 = 1 << 10;

    fn alignment(offset_bytes: u64, chunk_bytes: u64, page_bytes: u64) -> Alignment {
        Alignment { offset_bytes, chunk_bytes, page_bytes, extent_alignment_bytes: chunk_bytes }
    }

    #[test]
    fn names_of_partition_offsets_mean_these_starts() {
        let kinds = spindle_model::Layer::kinds();
        let partition = kinds.iter().find(|kind| kind.names.contains(&"partition")).unwrap();
        let offset = partition.fields.iter().find(|field| field.key == "offset").unwrap();
        let expect = [
            ("lvm", LVM_DATA_STARTS_BYTES[0].1),
            ("lvm-before-2010", LVM_DATA_STARTS_BYTES[1].1),
            ("sector-63", PARTITION_STARTS_BYTES[0].1),
        ];
        assert_eq!(offset.names, expect);
    }

    #[test]
    fn every_start_of_lvm_data_keeps_an_aligned_partition_aligned() {
        let [(_, sector_63), (_, aligned)] = PARTITION_STARTS_BYTES;
        for (name, start_bytes) in LVM_DATA_STARTS_BYTES {
            let is_aligned =
                |partition: u64| alignment(partition + start_bytes, 64 * KIB, 16 * KIB).is_aligned();
            assert!(is_aligned(aligned), "{name}");
            assert!(!is_aligned(sector_63), "{name}");
        }
    }

    #[test]
    fn old_lvm_data_misaligns_the_row_of_a_larger_chunk() {
        let chunk_of_256 = |start_bytes| alignment((1 << 20) + start_bytes, 256 * KIB, 256 * KIB);
        let shares = LVM_DATA_STARTS_BYTES.map(|(_, start)| chunk_of_256(start).crossing_share().to_string());
        assert_eq!(shares, ["0/1", "1/1", "1/1"]);
    }
}
