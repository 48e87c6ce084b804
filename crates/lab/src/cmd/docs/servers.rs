//! The page of all kinds of servers.

use std::path::PathBuf;

use super::{quoted, table};
use crate::record::FileClass;
use crate::server::package::PACKAGES;
use crate::server::{Advised, Kind, Program, Server, Settings, Source, SourceForm, Trust, catalog};
use spindle_base::text;

const HEAD: &str = "# Kinds of servers

`spindle docs servers` prints this page from the declarations of the servers (`[servers.NAME]`, `kind = \"...\"`).
[servers.md](servers.md) explains them, `spindle server list` shows what this machine has. A scenario without a
server gets the first of the defaults below that is here and runs its workloads.
";

/// The page in Markdown.
pub(super) fn page() -> String {
    let mut text = HEAD.to_owned() + "\n";
    let kinds: Vec<&Kind> = catalog::KINDS.iter().copied().filter(|kind| !kind.is_for_tests).collect();
    let heads = ["kind", "keys", "default", "engines", "replicas", "workloads"];
    text.push_str(&table(heads, kinds.iter().map(|kind| row(kind))));
    // Servers of one family have the same list of settings, which is printed once.
    let mut printed: Vec<(&str, String)> = Vec::new();
    for kind in kinds {
        text.push_str(&format!("\n## `kind = \"{}\"`\n", kind.name));
        let server = newest(kind);
        let own = server.as_deref().map_or_else(String::new, settings);
        let same = printed.iter().find(|(_, earlier)| *earlier == own && !own.is_empty());
        let as_before = same.map(|(name, _)| format!("Special settings: those of `{name}`.\n"));
        let sections = [
            programs(kind),
            packages(kind),
            advice(kind),
            server.as_deref().map_or_else(String::new, classes),
            as_before.unwrap_or_else(|| own.clone()),
        ];
        let sections: Vec<String> = sections.into_iter().filter(|section| !section.is_empty()).collect();
        match sections.as_slice() {
            [] => text.push_str("\nNo programs, settings or files are known of it.\n"),
            sections => text.push_str(&format!("\n{}", sections.join("\n"))),
        }
        printed.push((kind.name, own));
    }
    text
}

/// The newest release that is known, whatever this machine has. A path that is not run stands for it.
fn newest(kind: &Kind) -> Option<Box<dyn Server>> {
    (kind.make)(&Source::Program(PathBuf::from("/")), Trust::ReadOnly)
}

fn row(kind: &Kind) -> [String; 6] {
    let has_versions = PACKAGES.iter().any(|package| package.kind == kind.name);
    let keys: &[&str] = match kind.source {
        SourceForm::Installed => &["settings"],
        SourceForm::Program if has_versions => &["program", "version", "settings"],
        SourceForm::Program => &["program", "settings"],
        SourceForm::File => &["file", "settings"],
        SourceForm::Url => &["url"],
    };
    let memory = kind.starts_processes.then_some("memory");
    let yes = |holds: bool| if holds { "yes" } else { "-" }.to_owned();
    let has_replicas = newest(kind).is_some_and(|server| server.replication().is_some());
    [
        format!("`{}`", kind.name),
        quoted(keys.iter().copied().chain(memory)),
        yes(kind.is_default),
        yes(kind.has_storage_engines),
        yes(has_replicas),
        quoted(kind.accepted_workloads()),
    ]
}

fn programs(kind: &Kind) -> String {
    let row = |program: &Program| {
        let package = program.package.map_or_else(|| "-".to_owned(), |package| format!("`{package}`"));
        [format!("`{}`", program.name), package, program.purpose.to_owned()]
    };
    let programs: Vec<[String; 3]> = kind.program.iter().chain(kind.tools).map(row).collect();
    let how = kind.how_to_get.map_or_else(String::new, |how| format!("Not installed by a package: {how}.\n"));
    match programs.as_slice() {
        [] => how,
        _ => table(["program", "Debian's package", "purpose"], programs) + &how,
    }
}

fn packages(kind: &Kind) -> String {
    let of_kind = PACKAGES.iter().filter(|package| package.kind == kind.name);
    let rows: Vec<[String; 4]> = of_kind
        .map(|package| {
            let get = format!("`spindle server get {}`", package.name());
            let version = format!("`version = \"{}\"`", package.version);
            [version, package.release.clone(), get, text::size(package.download_bytes)]
        })
        .collect();
    if rows.is_empty() { String::new() } else { table(["fetched", "release", "command", "download"], rows) }
}

fn advice(kind: &Kind) -> String {
    let rows = kind.advice.iter().map(|advice| {
        let value = match advice.value {
            Advised::Value(value) => format!("`{value}`"),
            Advised::ShareOfData => "a share of the data".to_owned(),
        };
        [format!("`{}`", advice.name), value, advice.why.to_owned()]
    });
    match kind.advice {
        [] => String::new(),
        _ => table(["setting of `spindle new`", "value", "why"], rows),
    }
}

/// The classes of files that a layout can place. Some need a setting.
fn classes(server: &dyn Server) -> String {
    let files = |class: FileClass| server.files_of(class, &Settings::new());
    let classes = || FileClass::ALL.into_iter().filter(|class| *class != FileClass::Data);
    if classes().all(|class| files(class).is_err()) {
        return "A layout cannot place any of its files apart from the data.\n".to_owned();
    }
    let row = |class: FileClass| {
        let files = files(class).unwrap_or_else(|refusal| format!("none: the server {refusal}"));
        [format!("`{}`", class.key()), files]
    };
    table(["class of a layout", "files of the newest release, with no settings"], classes().map(row))
}

fn settings(server: &dyn Server) -> String {
    let memory: Vec<String> =
        server.memory_settings().iter().map(|setting| setting.name.to_owned()).collect();
    let reserve = (!memory.is_empty()).then_some(("reserve memory, at most what the machine has", memory));
    let all = reserve.into_iter().chain(server.special_settings());
    let rows: Vec<[String; 2]> = all.map(|(why, names)| [why.to_owned(), quoted(names)]).collect();
    if rows.is_empty() { String::new() } else { table(["settings that", "names"], rows) }
}
