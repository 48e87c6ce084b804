//! `spindle new`: writes a scenario from five answers. Options answer in advance; a terminal is asked for the
//! rest, and without one the rest takes defaults.

mod ask;
mod offers;
#[cfg(test)]
mod tests;

use std::fs::OpenOptions;
use std::io::{self, IsTerminal as _, Stderr, StdinLock, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum as _};
use spindle_base::units::parse_size_bytes;
use spindle_base::{Mistake, near, text};
use spindle_load::WorkloadSpec;

use self::ask::{Offer, Questions};
use self::offers::ServerChoice;
use crate::cmd::doctor::examine;
use crate::cmd::output::print;
use crate::host::provenance;
use crate::run::{self, preflight};
use crate::scenario::draft::{Draft, DraftStack, Precision};
use crate::scenario::plan::plan;
use crate::scenario::{Bounds, Scenario};
use crate::server::{Advised, Source, Trust, catalog};

/// A disk of today's servers, and of a cloud.
const STORAGE: &str = "hdd-7200,ebs-gp3";
const DATA: &str = "1 GiB";

const EXAMPLES: &str = "\
Examples:
  spindle new
  spindle new my.toml --server postgresql --storage hdd-7200,ebs-gp3 --workload tpcc --data 2G --precision quick
  spindle new mine.toml --storage /mnt/ssd,ebs-gp3,my-profile.toml --workload fsync-loop";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct NewArguments {
    /// File to write.
    #[arg(default_value = "spindle.toml")]
    file: PathBuf,
    /// Server: `mariadb`, `postgresql`, `sqlite` and so on, or `mysql-5.6` for one that `spindle server get`
    /// fetches.
    #[arg(long, value_name = "KIND")]
    server: Option<String>,
    /// Storages to compare, separated by commas: profiles and ready-made stacks by their names, or paths of
    /// profiles (.toml), of directories on real disks, or of block devices.
    #[arg(long, value_name = "NAME,NAME")]
    storage: Option<String>,
    /// Load of the server: `tpcc`, `oltp`, `fsync-loop` and so on.
    #[arg(long, value_name = "KIND")]
    workload: Option<String>,
    /// Size of the freshly loaded database.
    #[arg(long, value_name = "SIZE")]
    data: Option<String>,
    /// Number and length of the trials: `quick`, `normal` or `careful`.
    #[arg(long, value_name = "HOW")]
    precision: Option<String>,
    /// Replace the file if it exists.
    #[arg(long)]
    force: bool,
    /// Ask although standard input is not a terminal.
    #[arg(long)]
    ask: bool,
}

/// # Errors
/// A mistake in an option; the file exists.
pub fn run(arguments: &NewArguments) -> Result<()> {
    check_file(&arguments.file, arguments.force)?;
    let stdin = io::stdin();
    let questions = (arguments.ask || stdin.is_terminal())
        .then(|| Questions { input: stdin.lock(), output: io::stderr() });
    let mut answers = Answers { questions, assumed: Vec::new() };
    let draft = answers.draft(arguments)?;
    if !answers.assumed.is_empty() {
        eprintln!("spindle: not given, so assumed: {}", answers.assumed.join(" "));
    }
    let file = &arguments.file;
    let scenario = read(&draft, file)?;
    write(file, &draft.text(), arguments.force)?;
    print(&text::lines(&next(file, &draft, &scenario)))
}

/// The draft as a scenario that passed every check.
fn read(draft: &Draft, file: &Path) -> Result<Scenario, Mistake> {
    let bounds = Bounds { memory_bytes: draft.memory_bytes, trust: Trust::MayRun };
    let name = file.file_stem().map_or("scenario".into(), |stem| stem.to_string_lossy());
    Scenario::parse(&name, &draft.text(), &bounds)
}

fn check_file(file: &Path, force: bool) -> Result<(), Mistake> {
    let mistake = |words: &str| Err(Mistake::new(format!("{} {words}", file.display())));
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    if file.is_dir() {
        return mistake("is a directory; name a file in it");
    }
    if directory.is_some_and(|directory| !directory.is_dir()) {
        return mistake("is in no directory; make it first");
    }
    if file.symlink_metadata().is_ok() && !force {
        return mistake("exists already; name another file, or replace it with --force");
    }
    Ok(())
}

fn write(file: &Path, text: &str, force: bool) -> Result<()> {
    let mut options = OpenOptions::new();
    let options = options.write(true).truncate(true);
    let opened = if force { options.create(true) } else { options.create_new(true) }.open(file);
    let written = opened.and_then(|mut opened| opened.write_all(text.as_bytes()));
    written.with_context(|| format!("writing {}", file.display()))
}

/// Answers from the options, from the questions, or by default.
struct Answers<'a> {
    questions: Option<Questions<StdinLock<'a>, Stderr>>,
    /// Options that would have given the defaults.
    assumed: Vec<String>,
}

impl Answers<'_> {
    /// The given value, the answer, or the default, as `accept` reads it.
    fn answer<T>(
        &mut self,
        (option, given): (&str, Option<&str>),
        question: &str,
        offers: impl FnOnce() -> Vec<Offer>,
        default: &str,
        accept: impl Fn(&str) -> Result<T, Mistake>,
    ) -> Result<T> {
        if let Some(given) = given {
            return Ok(accept(given)?);
        }
        match &mut self.questions {
            Some(questions) => questions.ask(question, &offers(), default, accept),
            None => {
                let default_text = if default.contains(' ') { &default.replace(' ', "") } else { default };
                self.assumed.push(format!("--{option} {default_text}"));
                Ok(accept(default)?)
            }
        }
    }

    fn draft(&mut self, arguments: &NewArguments) -> Result<Draft> {
        // Options are checked before the first question.
        let storage = arguments.storage.as_deref();
        storage.map(offers::storage_list).transpose()?;
        arguments.data.as_deref().map(data_bytes).transpose()?;
        arguments.precision.as_deref().map(precision).transpose()?;
        let workload = arguments.workload.as_deref();
        let server = self.server(arguments.server.as_deref(), workload)?;
        let stacks = self.answer(
            ("storage", storage),
            "Which storages shall be compared? Several are separated by commas; the first is the baseline.\n\
             A real disk is named by the path of a directory on it.",
            offers::storages,
            STORAGE,
            offers::storage_list,
        )?;
        let kinds = server.workloads();
        let default = kinds.first().copied().unwrap_or_default();
        let kind = self.answer(
            ("workload", workload),
            "Which workload?",
            || kinds.iter().map(|kind| workload_offer(&server, kind)).collect(),
            default,
            |kind| server.workload(kind, 1 << 30).map(|_| kind.to_owned()),
        )?;
        let workload = self.sized(&server, &kind, arguments.data.as_deref())?;
        let memory_bytes = provenance::memory_bytes();
        let (version, kind) = (server.version, server.kind);
        let precision_given = arguments.precision.as_deref();
        let draft = |precision| Draft {
            stacks: stacks.clone(),
            server: server.name.clone(),
            kind,
            version: version.clone(),
            workload: workload.clone(),
            precision,
            memory_bytes,
        };
        let precision = self.answer(
            ("precision", precision_given),
            "How precise shall it be?",
            || precisions(draft),
            "quick",
            precision,
        )?;
        Ok(draft(precision))
    }

    fn server(&mut self, given: Option<&str>, workload: Option<&str>) -> Result<ServerChoice> {
        if let Some(given) = given {
            return Ok(ServerChoice::of_name(given)?);
        }
        let offers = offers::servers();
        let is_here = |name: &str| offers.iter().any(|(offer, here)| *here && offer.name == name);
        let known = workload.filter(|kind| WorkloadSpec::facts_of(kind).is_some());
        let default = catalog::default_for(known.as_slice(), is_here)
            .ok_or_else(|| Mistake::of_flag("workload", "no server of this machine runs it"))?;
        let offers = || offers.iter().map(|(offer, _)| offer.clone()).collect();
        self.answer(("server", None), "Which database server?", offers, default, ServerChoice::of_name)
    }

    /// The workload with the data that are wanted, if it can have any size.
    fn sized(
        &mut self,
        server: &ServerChoice,
        kind: &str,
        given: Option<&str>,
    ) -> Result<spindle_load::Written> {
        let example = WorkloadSpec::facts_of(kind).and_then(|facts| facts.example);
        if example.is_none_or(|example| example.size_key.is_none()) {
            if given.is_some() {
                let message = format!("has no meaning for `{kind}`, whose database has a size of its own");
                return Err(Mistake::of_flag("data", message).into());
            }
            return Ok(server.workload(kind, 0)?);
        }
        let has_cache = server.kind.advice.iter().any(|advice| advice.value == Advised::ShareOfData);
        let cache = if has_cache { " The server's cache gets an eighth of it." } else { "" };
        let question = format!("How large shall the database be?{cache}");
        self.answer(("data", given), &question, Vec::new, DATA, |text| {
            server.workload(kind, data_bytes(text)?)
        })
    }
}

fn data_bytes(text: &str) -> Result<u64, Mistake> {
    parse_size_bytes(text).map_err(|words| Mistake::of_flag("data", words))
}

fn precision(text: &str) -> Result<Precision, Mistake> {
    Precision::from_str(text, false).map_err(|_| {
        let names: Vec<String> = Precision::value_variants().iter().map(|known| name_of(*known)).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        Mistake::of_flag("precision", format!("`{text}` is not known{}", near::hint(text, &names)))
    })
}

fn name_of(precision: Precision) -> String {
    precision.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

fn workload_offer(server: &ServerChoice, kind: &str) -> Offer {
    let about = server.workload(kind, 1 << 30).map_or_else(|mistake| mistake.message, |known| known.about);
    Offer { group: "", name: kind.to_owned(), about }
}

/// Each with the time that it would take.
fn precisions(draft: impl Fn(Precision) -> Draft) -> Vec<Offer> {
    let offer = |precision: &Precision| {
        let value = precision.to_possible_value();
        let help = value.and_then(|value| value.get_help().map(ToString::to_string)).unwrap_or_default();
        let scenario = read(&draft(*precision), Path::new("x.toml"));
        let time = scenario.map(|scenario| text::duration(plan(&scenario).estimate.total));
        let time = time.map_or_else(|_| String::new(), |time| format!("about {time}: "));
        Offer { group: "", name: name_of(*precision), about: format!("{time}{help}") }
    };
    Precision::value_variants().iter().map(offer).collect()
}

/// What was written, and the next three steps.
fn next(file: &Path, draft: &Draft, scenario: &Scenario) -> String {
    let plan = plan(scenario);
    let estimate = &plan.estimate;
    let data = draft.workload.spec.data();
    let data = data.map_or_else(String::new, |data| format!(", {} ({})", data.words, text::size(data.bytes)));
    let names: Vec<&str> = draft.stacks.iter().map(|stack: &DraftStack| stack.name.as_str()).collect();
    // Without the means to emulate a disk, a run looks for no server, and `plan` says so.
    let is_possible = examine::emulation_blockers().is_empty();
    let missing = is_possible.then(|| preflight::check(scenario, file).err()).flatten();
    let missing = missing.map_or_else(String::new, |error| format!("  not yet   {error:#}\n"));
    let source = draft.version.clone().map_or(Source::Installed, Source::Version);
    let version = (draft.kind.make)(&source, Trust::MayRun).and_then(|server| server.version().ok());
    let version = version.map_or_else(String::new, |version| format!(": {version}"));
    let (file_name, report) = (file.display(), run::default_directory(scenario).join("report.html"));
    format!(
        "{file_name} is written\n\n  server    {}{version}\n  storage   {}\n  workload  {}{data}\n  time      {} {}: \
         {} trials of {}, and {} to load\n{missing}\nnext:\n  spindle plan {file_name}\n  spindle run {file_name}\n  \
         the report will be {}\n",
        draft.server,
        names.join(", "),
        draft.workload.spec.kind(),
        if scenario.run.once { "at most" } else { "about" },
        text::duration(estimate.total),
        plan.trials.len(),
        text::duration(estimate.per_trial),
        text::duration(estimate.load),
        report.display()
    )
}
