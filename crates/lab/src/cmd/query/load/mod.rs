//! `spindle query load --table NAME FILE...`: files into the shards that have their rows.

mod arguments;
mod progress;

use std::time::Duration;

use anyhow::Result;
use spindle_base::Mistake;
use spindle_base::text::{columns, plural, thousands};
use spindle_scatter::load::{self, Counts, Destination, Request, Summary};

pub(super) use arguments::LoadArguments;
use arguments::request;
use progress::Progress;

use crate::cmd::output;
use crate::host::interrupt::Interrupt;

pub(super) fn run(arguments: &LoadArguments) -> Result<()> {
    if arguments.set.is_some() {
        let words =
            "is not supported: a column gets its value from the file; a generated column can compute another";
        return Err(Mistake::of_flag("set", words).into());
    }
    let request = request(arguments)?;
    let interrupt = Interrupt::listen()?;
    let mut progress = Progress::new(&request.inputs);
    let outcome = load::run(&request, &mut |bytes| {
        interrupt.check()?;
        progress.at(bytes);
        Ok(())
    });
    progress.bar.finish_and_clear();
    match outcome {
        Ok(summary) => output::print(&told(&request, &summary, progress.began.elapsed())),
        Err(error) => {
            if let Destination::Servers { state: Some(state), .. } = &request.destination
                && state.exists()
                && !error.is::<Mistake>()
            {
                eprintln!(
                    "{} says what is committed; the same command with --resume goes on",
                    state.display()
                );
            }
            Err(error)
        }
    }
}

fn told(request: &Request, summary: &Summary, took: Duration) -> String {
    let took_s = took.as_secs_f64();
    let mut text = format!("{} read in {took_s:.1} s", plural(summary.rows as usize, "row"));
    match summary.rejected() {
        0 => text += "\n",
        count => {
            text += &format!(", {} rejected: {}\n", thousands(&count.to_string()), request.rejects.display())
        }
    }
    let row = |(name, counts): &(String, Counts)| {
        let number = |word: &str, count: u64| match count {
            0 => String::new(),
            _ => format!("{} {word}", thousands(&count.to_string())),
        };
        let done = match request.destination {
            Destination::Servers { .. } => "loaded",
            Destination::Directory(_) => "written",
        };
        [
            name.clone(),
            format!("{} {done}", plural(counts.loaded as usize, "row")),
            number("replaced", counts.replaced),
            number("ignored", counts.ignored),
            number("rejected", counts.rejected),
        ]
    };
    text += &columns(summary.shards.iter().map(row));
    if let Destination::Directory(_) = request.destination {
        text += &format!("each file is loaded by: {}\n", summary.statement);
    }
    text
}
