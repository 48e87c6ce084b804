//! `spindle disk alignment`: the share of database pages that cross from one chunk of an array to the next.

use anyhow::Result;
use clap::Args;
use itertools::Itertools as _;
use serde::Serialize;
use spindle_model::{Alignment, Layer, StackSpec as Tree};

use crate::cmd::output::print_answer;
use crate::stack::{LVM_DATA_STARTS_BYTES, PARTITION_STARTS_BYTES, StackSpec};
use spindle_base::Mistake;
use spindle_base::units::{format_size_bytes, parse_size_bytes};

#[derive(Debug, Args)]
pub(super) struct AlignmentArguments {
    /// A ready-made stack that contains an array. The chunk is taken from it.
    stack: Option<String>,
    /// Distance from the start of the array to the first byte of the file system [default: the usual starts
    /// of partitions and volumes].
    #[arg(long, value_name = "SIZE", value_parser = parse_size_bytes)]
    offset: Option<u64>,
    /// Chunk size (strip, stripe element) of the array.
    #[arg(long, value_name = "SIZE", default_value = "64 KiB", value_parser = parse_size_bytes, conflicts_with = "stack")]
    chunk: u64,
    /// Page size of the database.
    #[arg(long, value_name = "SIZE", default_value = "16 KiB", value_parser = parse_size_bytes)]
    page: u64,
    /// Alignment of extents in the file system: its block, or its `sunit` or `stride` [default: the block and
    /// the chunk].
    #[arg(long, value_name = "SIZE", value_parser = parse_size_bytes)]
    extent_alignment: Option<u64>,
    /// Print a JSON array.
    #[arg(long)]
    json: bool,
}

/// The block of xfs and ext4.
const BLOCK_BYTES: u64 = 4096;

#[derive(Debug, Serialize)]
struct Row {
    start: String,
    offset_bytes: u64,
    chunk_bytes: u64,
    page_bytes: u64,
    extent_alignment_bytes: u64,
    /// As a share of all pages.
    crossing_share: f64,
    crossing: String,
}

/// # Errors
/// An argument is not a size, or no array can have it.
pub(super) fn run(arguments: &AlignmentArguments) -> Result<()> {
    let chunk_bytes = match &arguments.stack {
        Some(name) => chunk_of(StackSpec::of_name(name, None, "none")?.tree())
            .ok_or_else(|| Mistake::new(format!("{name}: has no array, so no page can cross a chunk")))?,
        None => arguments.chunk,
    };
    let page_bytes = arguments.page;
    let extents =
        arguments.extent_alignment.map_or_else(|| vec![BLOCK_BYTES, chunk_bytes], |bytes| vec![bytes]);
    let starts = arguments.offset.map_or_else(usual_starts, |bytes| vec![("given".to_owned(), bytes)]);
    let mut rows = Vec::new();
    for (start, offset_bytes) in &starts {
        for &extent_alignment_bytes in &extents {
            let alignment =
                Alignment { offset_bytes: *offset_bytes, chunk_bytes, page_bytes, extent_alignment_bytes };
            alignment.validate().map_err(|invalid| Mistake::of_flag(&invalid.key, invalid.problem))?;
            let share = alignment.crossing_share();
            rows.push(Row {
                start: start.clone(),
                offset_bytes: *offset_bytes,
                chunk_bytes,
                page_bytes,
                extent_alignment_bytes,
                crossing_share: share.as_f64(),
                crossing: share.to_string(),
            });
        }
    }
    print_answer(arguments.json, &rows, || table(&rows))
}

/// Usual starts of partitions, and of logical volumes on the older kind of partition.
fn usual_starts() -> Vec<(String, u64)> {
    let partitions = PARTITION_STARTS_BYTES.map(|(name, bytes)| (format!("partition at {name}"), bytes));
    let pairs = PARTITION_STARTS_BYTES.into_iter().cartesian_product(LVM_DATA_STARTS_BYTES);
    let volumes =
        pairs.map(|((partition, start), (name, bytes))| (format!("{name}, at {partition}"), start + bytes));
    partitions.into_iter().chain(volumes).collect()
}

/// Chunk of the topmost array.
fn chunk_of(tree: &Tree) -> Option<u64> {
    match tree {
        Tree::Layer(Layer::Raid(parameters), _) => Some(parameters.chunk_bytes),
        _ => tree.branches().iter().find_map(|branch| chunk_of(&branch.stack)),
    }
}

fn table(rows: &[Row]) -> String {
    let (page, chunk) = rows.first().map_or((0, 0), |row| (row.page_bytes, row.chunk_bytes));
    let mut text = format!(
        "pages of {} on chunks of {}\n\n{:<52} {:>12} {:>17} {:>16}\n",
        format_size_bytes(page),
        format_size_bytes(chunk),
        "start",
        "offset",
        "extents at every",
        "pages that cross"
    );
    for row in rows {
        let crossing = match row.crossing_share {
            0.0 => "none".to_owned(),
            share => format!("{} ({:.0} %)", row.crossing, 100.0 * share),
        };
        let extent = format_size_bytes(row.extent_alignment_bytes);
        text += &format!("{:<52} {:>12} {extent:>17} {crossing:>16}\n", row.start, row.offset_bytes);
    }
    text
}
