//! The list of server kinds. Nothing else lists them: kinds differ by facts of [`Kind`] and by verbs.

use spindle_base::near;

use super::connection::endpoint;
use super::foreign::commands::Commands;
use super::package;
use super::source::{Source, SourceForm, SourceKeys, Trust};
use super::verbs::{Kind, Server};

/// Each line is a module of this folder with its kinds. A scenario without a server gets the first suitable
/// default in this order.
macro_rules! for_each_server {
    ($apply:ident) => {
        $apply! {
            mysql: MARIADB, MYSQL;
            postgres: KIND;
            sqlite: KIND;
            files: KIND;
            mock: KIND;
            foreign: ADAPTER, RUNNING;
        }
    };
}

macro_rules! kinds {
    ($($module:ident: $($kind:ident),+;)+) => {
        &[$($(&super::$module::$kind,)+)+]
    };
}

pub static KINDS: &[&Kind] = for_each_server!(kinds);

pub fn find(name: &str) -> Option<&'static Kind> {
    KINDS.iter().copied().find(|kind| kind.name == name)
}

/// Names of the kinds for which `holds` is true, in alphabetical order.
pub fn names_where(holds: impl Fn(&Kind) -> bool) -> Vec<&'static str> {
    let mut names: Vec<&str> = KINDS.iter().filter(|kind| holds(kind)).map(|kind| kind.name).collect();
    names.sort_unstable();
    names
}

pub fn by_kind(name: &str) -> Option<Box<dyn Server>> {
    by_source(name, &Source::Installed)
}

pub fn by_source(name: &str, source: &Source) -> Option<Box<dyn Server>> {
    (find(name)?.make)(source, Trust::MayRun)
}

/// The default kind for these workloads: the first available one that runs all of them. Kinds without a
/// server program are always available.
pub fn default_for(workloads: &[&str], is_here: impl Fn(&str) -> bool) -> Option<&'static str> {
    let runs_all = |kind: &Kind| {
        let accepted = kind.accepted_workloads();
        workloads.iter().all(|workload| accepted.contains(workload))
    };
    let fits = |kind: &&&Kind| kind.is_default && runs_all(kind) && is_here(kind.name);
    KINDS.iter().find(fits).map(|kind| kind.name)
}

/// The source that a scenario names for a server of this kind.
///
/// # Errors
/// The key, and the fault of its value as the end of a sentence.
pub fn source(kind: &Kind, keys: &SourceKeys<'_>) -> Result<Source, (&'static str, String)> {
    let (file, url) = (("file", SourceForm::File), ("url", SourceForm::Url));
    check_place(kind, file, keys.file.is_some(), "name the file of the adapter")?;
    check_place(kind, url, keys.url.is_some(), "name the server's address")?;
    match *keys {
        SourceKeys { program: Some(_), version: Some(_), .. } => {
            Err(("version", "cannot be there together with `program`: name one of the two".to_owned()))
        }
        SourceKeys { program: Some(program), .. } if !program.is_absolute() => {
            Err(("program", format!("{} is not an absolute path", program.display())))
        }
        SourceKeys { program: Some(program), .. } => {
            check_program(kind, "program").map(|()| Source::Program(program.to_owned()))
        }
        SourceKeys { version: Some(version), .. } => {
            check_program(kind, "version")?;
            check_version(kind, version).map(|()| Source::Version(version.to_owned()))
        }
        SourceKeys { file: Some(file), .. } => {
            Commands::read(file).map(|read| Source::Adapter(Box::new(read))).map_err(|words| ("file", words))
        }
        SourceKeys { url: Some(url), .. } => {
            endpoint::parse(url).map(|_| Source::Url(url.to_owned())).map_err(|words| ("url", words))
        }
        _ => Ok(Source::Installed),
    }
}

/// Checks that a key is present exactly for the kinds whose source has its form.
fn check_place(
    kind: &Kind,
    (key, form): (&'static str, SourceForm),
    is_there: bool,
    advice: &str,
) -> Result<(), (&'static str, String)> {
    match (is_there, kind.source == form) {
        (false, true) => Err((key, format!("is missing; {advice}"))),
        (true, false) => {
            let names = names_where(|kind| kind.source == form).join("\", \"");
            Err((key, format!("belongs to kind = \"{names}\"")))
        }
        _ => Ok(()),
    }
}

fn check_program(kind: &Kind, key: &'static str) -> Result<(), (&'static str, String)> {
    if kind.source == SourceForm::Program {
        return Ok(());
    }
    let kinds = near::list(&names_where(|kind| kind.source == SourceForm::Program));
    Err((key, format!("has no meaning for kind = \"{}\"; servers that have it are {kinds}", kind.name)))
}

fn check_version(kind: &Kind, version: &str) -> Result<(), (&'static str, String)> {
    if package::find(kind.name, version).is_some() {
        return Ok(());
    }
    let of_kind = package::PACKAGES.iter().filter(|package| package.kind == kind.name);
    let known: Vec<&str> = of_kind.map(|package| package.version.as_str()).collect();
    let known = match known.as_slice() {
        [] => "none of this kind is fetched: install it, or name its program with `program`".to_owned(),
        known => format!("there is {}", near::list(known)),
    };
    Err(("version", format!("`{version}` is not known; {known}")))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::server::Advised;

    #[test]
    fn sqlite_is_there_when_no_server_is() {
        let check = |workloads: &[&str], here: &[&str], expect| {
            assert_eq!(default_for(workloads, |name| here.contains(&name)), expect);
        };
        let built_in = ["sqlite", "files", "mock"];
        check(&["tpcc", "oltp"], &["mariadb", "postgresql", "sqlite"], Some("mariadb"));
        check(&["tpcc", "oltp"], &["postgresql", "sqlite"], Some("postgresql"));
        check(&["tpcc", "oltp"], &built_in, Some("sqlite"));
        check(&["mysqlslap"], &built_in, None);
        check(&["fileio"], &built_in, Some("files"));
        check(&["fileio", "tpcc"], &built_in, None);
        check(&["mock"], &built_in, Some("mock"));
    }

    #[test]
    fn every_kind_is_found_by_its_name_alone() {
        for &kind in KINDS {
            assert!(std::ptr::eq(find(kind.name).unwrap(), kind), "{} is there twice", kind.name);
            let needs_more = [SourceForm::File, SourceForm::Url].contains(&kind.source);
            assert!(by_kind(kind.name).is_some() || needs_more, "{}", kind.name);
        }
        assert!(by_kind("oracle").is_none());
    }

    #[test]
    fn memory_of_a_new_scenario_is_a_setting_that_reserves_memory() {
        for kind in KINDS {
            for advice in kind.advice.iter().filter(|advice| advice.value == Advised::ShareOfData) {
                let settings = by_kind(kind.name).unwrap().memory_settings();
                let setting = settings.iter().find(|setting| setting.name == advice.name).unwrap();
                assert_eq!((setting.bytes)(&setting.written(100 << 20)), Some(100 << 20), "{}", kind.name);
                assert_eq!((setting.bytes)(&setting.written(1)), Some(1 << 20), "{}", kind.name);
            }
        }
    }

    #[test]
    fn a_source_of_a_form_that_the_kind_does_not_have_is_refused_with_its_key() {
        let refused = |name: &str, keys: SourceKeys<'_>| source(find(name).unwrap(), &keys).unwrap_err();
        let url = SourceKeys { url: Some("socket:/x"), ..SourceKeys::default() };
        assert_eq!(refused("sqlite", url), ("url", "belongs to kind = \"running\"".to_owned()));
        assert_eq!(refused("adapter", SourceKeys::default()).0, "file");
        let both = SourceKeys { program: Some(Path::new("/x")), ..url };
        assert!(
            refused("running", both)
                .1
                .contains("servers that have it are `mariadb`, `mysql` and `postgresql`")
        );
        assert_eq!(source(find("running").unwrap(), &url), Ok(Source::Url("socket:/x".to_owned())));
    }
}
