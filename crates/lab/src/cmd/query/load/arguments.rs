//! The options of a load, and the request they make.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, ValueEnum};
use spindle_base::Mistake;
use spindle_scatter::facts::TableName;
use spindle_scatter::load::{self, Destination, Format, FormatTexts, Input, Request, Start};

use crate::cmd::query::servers::ServersArguments;

#[derive(Debug, Args)]
pub(in crate::cmd::query) struct LoadArguments {
    /// Files of rows, in their order; `-` is the standard input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The table that the rows go to; it exists on every server.
    #[arg(long, value_name = "[DATABASE.]TABLE")]
    table: String,
    #[command(flatten)]
    servers: ServersArguments,
    /// The columns of the fields, in the order of the file; a field of `@name` is passed over [default: those of the
    /// table].
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    columns: Option<Vec<String>>,
    /// What to do with a row whose key is in the table already.
    #[arg(long, value_enum, default_value_t = OnDuplicate::Error)]
    on_duplicate: OnDuplicate,
    /// File of the rows that are not loaded, with line and reason [default: FILE.rejects.csv].
    #[arg(long, value_name = "FILE")]
    rejects: Option<PathBuf>,
    /// The load ends if there are more of them.
    #[arg(long, value_name = "ROWS", default_value_t = 1000)]
    rejects_most: u64,
    /// Rows of a shard in one transaction; 32 MiB end one as well.
    #[arg(long, value_name = "ROWS", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..))]
    batch: u32,
    /// Write a file for each shard into this directory, and load nothing.
    #[arg(long, value_name = "DIRECTORY", conflicts_with_all = ["state", "resume"])]
    split_into: Option<PathBuf>,
    /// Where what is committed is noted while the load goes on [default: FILE.load-state].
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Go on with the load that has left its state there. All other options stay as they were.
    #[arg(long)]
    resume: bool,
    /// What became of a batch of which only the server knows whether it was committed.
    #[arg(long, value_enum, requires = "resume")]
    in_doubt: Option<InDoubt>,
    /// Refused: a loaded value is the file's.
    #[arg(long, value_name = "EXPRESSION", hide = true)]
    pub(super) set: Option<String>,
    // The last, because its heading is that of all options behind it.
    #[command(flatten)]
    format: FormatArguments,
}

/// LOAD DATA's options, by its names.
#[derive(Debug, Args)]
#[command(next_help_heading = "Format of the files")]
struct FormatArguments {
    /// What the other options of the format begin with.
    #[arg(long, value_enum, default_value_t = Preset::Tsv)]
    format: Preset,
    /// Text between fields; `\t`, `\n`, `\r`, `\0`, `\Z` and `\\` are escapes here as in SQL.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    fields_terminated_by: Option<String>,
    /// Character around fields, or nothing.
    #[arg(
        long,
        value_name = "CHARACTER",
        allow_hyphen_values = true,
        visible_alias = "fields-optionally-enclosed-by"
    )]
    fields_enclosed_by: Option<String>,
    /// Character that escapes the next one, or nothing.
    #[arg(long, value_name = "CHARACTER", allow_hyphen_values = true)]
    fields_escaped_by: Option<String>,
    /// Text before the fields of a line; lines without it are passed over.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    lines_starting_by: Option<String>,
    /// Text behind each line.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    lines_terminated_by: Option<String>,
    /// Lines at the beginning of each file that are passed over.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    ignore_lines: u64,
    /// Character set of the files, by the server's name for it [default: utf8mb4].
    #[arg(long, value_name = "NAME")]
    character_set: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Preset {
    /// Tabs between fields, and escapes by backslashes: what LOAD DATA reads without options.
    Tsv,
    /// Commas between fields, quotation marks around them where needed, and no escapes (RFC 4180).
    Csv,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OnDuplicate {
    /// Reject it.
    Error,
    /// It replaces the row in the table.
    Replace,
    /// Leave it out, and count it.
    Ignore,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum InDoubt {
    /// Its rows are in the table.
    Loaded,
    /// They are not.
    Missing,
}

pub(super) fn request(arguments: &LoadArguments) -> Result<Request> {
    let input = |path: &PathBuf| match path.as_os_str() == "-" {
        true => Input::Standard,
        false => Input::File(path.clone()),
    };
    let inputs: Vec<Input> = arguments.files.iter().map(input).collect();
    if inputs.iter().filter(|input| **input == Input::Standard).count() > 1 {
        return Err(Mistake::new("the standard input can be read once: name `-` once").into());
    }
    let first = arguments.files.first().filter(|path| path.as_os_str() != "-");
    let beside = |ending: &str| {
        let mut path =
            first.map_or_else(|| arguments.table.clone().into(), |first| first.clone().into_os_string());
        path.push(ending);
        PathBuf::from(path)
    };
    let state = arguments.state.clone().or_else(|| first.map(|_| beside(".load-state")));
    let destination = match &arguments.split_into {
        Some(directory) => Destination::Directory(directory.clone()),
        None => Destination::Servers { state, start: start(arguments) },
    };
    let (schema, name) = match arguments.table.split_once('.') {
        Some((schema, name)) => (Some(schema.to_owned()), name),
        None => (None, arguments.table.as_str()),
    };
    Ok(Request {
        cluster: arguments.servers.cluster()?,
        table: TableName { schema, name: name.to_owned() },
        columns: arguments.columns.clone(),
        format: format(&arguments.format)?,
        is_line_end_given: arguments.format.lines_terminated_by.is_some(),
        on_duplicate: match arguments.on_duplicate {
            OnDuplicate::Error => load::OnDuplicate::Error,
            OnDuplicate::Replace => load::OnDuplicate::Replace,
            OnDuplicate::Ignore => load::OnDuplicate::Ignore,
        },
        inputs,
        rejects: arguments.rejects.clone().unwrap_or_else(|| beside(".rejects.csv")),
        rejects_most: arguments.rejects_most,
        batch_rows: arguments.batch as usize,
        destination,
    })
}

fn start(arguments: &LoadArguments) -> Start {
    if !arguments.resume {
        return Start::New;
    }
    Start::Resume(arguments.in_doubt.map(|found| match found {
        InDoubt::Loaded => load::InDoubt::Loaded,
        InDoubt::Missing => load::InDoubt::Missing,
    }))
}

fn format(arguments: &FormatArguments) -> Result<Format> {
    let preset = match arguments.format {
        Preset::Tsv => Format::tsv(),
        Preset::Csv => Format::csv(),
    };
    let texts = FormatTexts {
        fields_terminated_by: arguments.fields_terminated_by.as_deref(),
        fields_enclosed_by: arguments.fields_enclosed_by.as_deref(),
        fields_escaped_by: arguments.fields_escaped_by.as_deref(),
        lines_starting_by: arguments.lines_starting_by.as_deref(),
        lines_terminated_by: arguments.lines_terminated_by.as_deref(),
        ignore_lines: arguments.ignore_lines,
        character_set: arguments.character_set.as_deref(),
    };
    Ok(preset.with(&texts)?)
}
