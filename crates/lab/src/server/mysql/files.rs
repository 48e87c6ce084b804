//! Locations of a server's classes of files, and the options that move a class to a directory of its own.
//!
//! * data: `datadir`, with everything that is not moved.
//! * redo: `ib_logfile0` and so on, or `#innodb_redo`, by `innodb_log_group_home_dir`.
//! * doublewrite: MySQL from 8.0.20 has separate files for it (`innodb_doublewrite_dir`). Elsewhere the
//!   doublewrite buffer is a part of the system tablespace, so this moves `ibdata1`
//!   (`innodb_data_file_path`). That file also has the change buffer, and the undo logs unless they have
//!   tablespaces of their own.
//! * undo: `undo001` (from MySQL 8.0 `undo_001`) and so on, by `innodb_undo_directory`. Only with
//!   `innodb_undo_tablespaces`, which MySQL 5.5 lacks and 8.0 always has.
//! * binlog: `log_bin`. Only if the settings turn it on (in MySQL 8.0, do not turn it off); otherwise the
//!   layouts of a scenario would not do the same work.
//! * temp: `tmpdir`, and `ibtmp1` by `innodb_temp_data_file_path` in versions that have it.
//!
//! InnoDB prepends `innodb_data_home_dir` to the paths of `ibdata1` and `ibtmp1` even when they are absolute.
//! It is set to empty when either is moved.

use std::path::{Path, PathBuf};

use super::release::{self, Release, Undo};
use super::settings::size_bytes;
use crate::record::FileClass;
use crate::server::instance::Instance;
use crate::server::settings::{Refusal, Settings, plain_name, setting};

const DATA_FILE_PATH: &str = "innodb_data_file_path";
const TEMP_FILE_PATH: &str = "innodb_temp_data_file_path";
pub(super) const LOG_BIN: &str = "log_bin";
/// Two names of the same switch.
const NO_BINLOG: [&str; 2] = ["skip_log_bin", "disable_log_bin"];
const SERVER_ID: &str = "server_id";
pub(super) const BINLOG: &str = "binlog";

/// The servers' defaults.
const DATA_FILES: &str = "ibdata1:12M:autoextend";
const TEMP_FILES: &str = "ibtmp1:12M:autoextend";

pub(super) fn is_off(value: &str) -> bool {
    ["off", "0", "false"].contains(&value.to_ascii_lowercase().as_str())
}

/// See [`crate::server::Server::files_of`].
pub(super) fn files_of(release: &Release, class: FileClass, settings: &Settings) -> Result<String, Refusal> {
    let undo_apart = undo_is_apart(release, settings);
    let files = match class {
        FileClass::Data => "tables and indexes",
        FileClass::Redo => release.redo_files(),
        FileClass::Doublewrite if release.can(release::DOUBLEWRITE_FILES) => "#ib_16384_0.dblwr and so on",
        FileClass::Doublewrite if undo_apart => {
            "ibdata1, the system tablespace, which has the doublewrite buffer"
        }
        FileClass::Doublewrite => {
            "ibdata1, the system tablespace, which has the doublewrite buffer and the undo logs"
        }
        FileClass::Undo if release.undo() == Undo::Always => "undo_001 and undo_002",
        FileClass::Undo if undo_apart => "undo001 and so on",
        FileClass::Undo => return Err(Refusal(no_undo_apart(release))),
        FileClass::Binlog if binlog_is_on(release, settings)? => "binlog.000001 and so on",
        FileClass::Binlog => {
            return Err(Refusal(
                "writes no binary log: turn it on with `log_bin = true` among the server's settings"
                    .to_owned(),
            ));
        }
        FileClass::Temp if release.can(release::TEMPORARY_TABLESPACE) => "tmpdir and ibtmp1",
        FileClass::Temp => "tmpdir",
    };
    Ok(files.to_owned())
}

fn undo_is_apart(release: &Release, settings: &Settings) -> bool {
    let wanted = setting(settings, "innodb_undo_tablespaces").and_then(|text| text.parse::<u32>().ok());
    match release.undo() {
        Undo::Never => false,
        Undo::From(least) => wanted.is_some_and(|count| count >= least),
        Undo::Always => true,
    }
}

fn no_undo_apart(release: &Release) -> String {
    match release.undo() {
        Undo::From(least) => format!(
            "keeps its undo logs inside the system tablespace unless `innodb_undo_tablespaces` is at least {least}: \
             set it among the server's settings"
        ),
        _ => format!(
            "is {release}, which keeps its undo logs inside the system tablespace; the class `doublewrite` moves that"
        ),
    }
}

/// Whether the binary log is on. To the server `log_bin` may be a path, but Spindle decides the path.
fn binlog_is_on(release: &Release, settings: &Settings) -> Result<bool, Refusal> {
    let is_on = |name| setting(settings, name).is_some_and(|value| !is_off(value));
    if NO_BINLOG.into_iter().any(is_on) {
        return Ok(false);
    }
    match setting(settings, LOG_BIN).map(str::to_ascii_lowercase).as_deref() {
        None => Ok(release.can(release::BINLOG_BY_DEFAULT)),
        Some(value) if is_off(value) => Ok(false),
        Some("on" | "1" | "true" | "") => Ok(true),
        Some(_) => Err(Refusal(
            "has a setting `log_bin` that is neither true nor false: Spindle decides the path of the binary log".to_owned(),
        )),
    }
}

/// # Errors
/// A binary log with a path.
pub(super) fn check(release: &Release, settings: &Settings) -> Result<(), Refusal> {
    binlog_is_on(release, settings).map_err(|refusal| Refusal(format!("the server {refusal}"))).map(drop)
}

/// Size of the redo log by the settings; `None` if they leave it to the server. `file_count` is the server's
/// default number of files.
pub(in crate::server) fn redo_bytes(settings: &Settings, file_count: u64) -> Option<u64> {
    if let Some(capacity) = setting(settings, "innodb_redo_log_capacity") {
        return size_bytes(capacity);
    }
    let file_bytes = size_bytes(setting(settings, "innodb_log_file_size")?)?;
    let count = setting(settings, "innodb_log_files_in_group").and_then(|text| text.parse().ok());
    file_bytes.checked_mul(count.unwrap_or(file_count))
}

/// The redo log of a version that reads a block of it before it writes a part of that.
pub(super) fn circular_files(release: &Release, instance: &Instance) -> Vec<PathBuf> {
    if release.can(release::WRITE_AHEAD) {
        return Vec::new();
    }
    let count = setting(&instance.settings, "innodb_log_files_in_group").and_then(|text| text.parse().ok());
    let directory = instance.class_directories.get(&FileClass::Redo).unwrap_or(&instance.data_directory);
    (0..count.unwrap_or(2_u32)).map(|number| directory.join(format!("ib_logfile{number}"))).collect()
}

/// Directory of a statement's small temporary files, and of `ibtmp1` if it is moved.
pub(super) fn temporary_directory(instance: &Instance) -> PathBuf {
    let with_the_data = || instance.data_directory.with_file_name("temp");
    instance.class_directories.get(&FileClass::Temp).cloned().unwrap_or_else(with_the_data)
}

/// Directory of the binary log, whose files are named [`BINLOG`] and a number.
pub(super) fn binlog_directory(instance: &Instance) -> &Path {
    instance.class_directories.get(&FileClass::Binlog).unwrap_or(&instance.data_directory)
}

/// The options that place every class according to the instance. They include the settings that are not
/// [`is_plain`].
pub(super) fn options(release: &Release, instance: &Instance) -> Vec<(&'static str, String)> {
    let settings = &instance.settings;
    let directory = |class| instance.class_directories.get(&class);
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let mut options = vec![("tmpdir", text(&temporary_directory(instance)))];
    options.extend(directory(FileClass::Redo).map(|path| ("innodb_log_group_home_dir", text(path))));
    options.extend(directory(FileClass::Undo).map(|path| ("innodb_undo_directory", text(path))));
    if binlog_is_on(release, settings) == Ok(true) {
        options.push((LOG_BIN, text(&binlog_directory(instance).join(BINLOG))));
        if release.can(release::NEEDS_SERVER_ID) && setting(settings, SERVER_ID).is_none() {
            options.push((SERVER_ID, "1".to_owned()));
        }
    } else if release.can(release::BINLOG_BY_DEFAULT) {
        options.push(("skip_log_bin", "1".to_owned()));
    }
    let has_files_for_doublewrite = release.can(release::DOUBLEWRITE_FILES);
    let doublewrite = directory(FileClass::Doublewrite);
    let system = doublewrite.filter(|_| !has_files_for_doublewrite);
    options.extend(
        doublewrite.filter(|_| has_files_for_doublewrite).map(|path| ("innodb_doublewrite_dir", text(path))),
    );
    let temporary = directory(FileClass::Temp).filter(|_| release.can(release::TEMPORARY_TABLESPACE));
    if let Some(directory) = temporary.filter(|_| release.can(release::TEMPORARY_TABLESPACES)) {
        options.push(("innodb_temp_tablespaces_dir", text(directory)));
    }
    if system.is_some() || temporary.is_some() {
        options.push(("innodb_data_home_dir", String::new()));
    }
    let mut place = |name, default, directory: Option<&PathBuf>| {
        let files = setting(settings, name).unwrap_or(default);
        match directory {
            Some(directory) => options.push((name, absolute(files, directory))),
            None => options.extend(setting(settings, name).map(|files| (name, files.to_owned()))),
        }
    };
    place(DATA_FILE_PATH, DATA_FILES, system);
    place(TEMP_FILE_PATH, TEMP_FILES, temporary);
    options
}

/// Whether a setting is passed to the server unchanged; the others are in [`options`].
pub(super) fn is_plain(name: &str) -> bool {
    ![DATA_FILE_PATH, TEMP_FILE_PATH, LOG_BIN].contains(&plain_name(name).as_str())
}

/// Adds a directory to each name of `name:size:attributes;...`.
fn absolute(files: &str, directory: &Path) -> String {
    let files: Vec<String> =
        files.split(';').map(|file| directory.join(file.trim()).to_string_lossy().into_owned()).collect();
    files.join(";")
}

#[cfg(test)]
mod tests {
    use super::super::release::Flavour;
    use super::*;

    fn mariadb() -> Release {
        Release::newest(Flavour::MariaDb)
    }

    fn mysql(number: &str) -> Release {
        Release::parse(&format!("mysqld  Ver {number} for Linux on x86_64 (MySQL Community Server)")).unwrap()
    }

    fn settings(pairs: &[(&str, &str)]) -> Settings {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn instance(classes: &[FileClass], pairs: &[(&str, &str)]) -> Instance {
        let directories = classes.iter().map(|class| (*class, Path::new("/mnt").join(class.key()))).collect();
        Instance {
            data_directory: "/mnt/data/data".into(),
            class_directories: directories,
            runtime_directory: "/run/trial".into(),
            settings: settings(pairs),
            environment: Vec::new(),
            control_group: None,
            changing: Vec::new(),
        }
    }

    #[track_caller]
    fn check_options(classes: &[FileClass], pairs: &[(&str, &str)], expect: &[&str]) {
        check_options_of(&mariadb(), classes, pairs, expect);
    }

    #[track_caller]
    fn check_options_of(release: &Release, classes: &[FileClass], pairs: &[(&str, &str)], expect: &[&str]) {
        let options = options(release, &instance(classes, pairs));
        let found: Vec<String> = options.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(found, expect);
    }

    #[test]
    fn without_a_layout_everything_lies_with_the_data() {
        check_options(&[], &[], &["tmpdir=/mnt/data/temp"]);
        check_options(&[], &[("log-bin", "ON")], &["tmpdir=/mnt/data/temp", "log_bin=/mnt/data/data/binlog"]);
    }

    #[test]
    fn logs_are_moved_by_their_directories() {
        check_options(
            &[FileClass::Redo, FileClass::Binlog],
            &[("log_bin", "ON")],
            &["tmpdir=/mnt/data/temp", "innodb_log_group_home_dir=/mnt/redo", "log_bin=/mnt/binlog/binlog"],
        );
    }

    #[test]
    fn the_system_tablespace_takes_its_own_shape_along() {
        check_options(
            &[FileClass::Doublewrite, FileClass::Temp],
            &[("innodb_data_file_path", "ibdata1:1G;ibdata2:12M:autoextend")],
            &[
                "tmpdir=/mnt/temp",
                "innodb_data_home_dir=",
                "innodb_data_file_path=/mnt/doublewrite/ibdata1:1G;/mnt/doublewrite/ibdata2:12M:autoextend",
                "innodb_temp_data_file_path=/mnt/temp/ibtmp1:12M:autoextend",
            ],
        );
    }

    #[test]
    fn a_redo_log_is_as_large_as_all_its_files() {
        let check = |file_count, pairs: &[(&str, &str)], expect| {
            assert_eq!(redo_bytes(&settings(pairs), file_count), expect, "{pairs:?}");
        };
        check(1, &[], None);
        check(1, &[("innodb-log-file-size", "1G")], Some(1 << 30));
        check(2, &[("innodb_log_file_size", "1G")], Some(2 << 30));
        check(2, &[("innodb_log_file_size", "1M"), ("innodb_log_files_in_group", "4")], Some(4 << 20));
        check(2, &[("innodb_redo_log_capacity", "8G"), ("innodb_log_file_size", "1G")], Some(8 << 30));
    }

    #[test]
    fn impossible_places_of_files_are_refused() {
        let refused = |class, pairs: &[(&str, &str)]| {
            files_of(&mariadb(), class, &settings(pairs)).unwrap_err().to_string()
        };
        assert!(refused(FileClass::Undo, &[]).contains("`innodb_undo_tablespaces` is at least 2"));
        assert!(refused(FileClass::Undo, &[("innodb-undo-tablespaces", "1")]).contains("at least 2"));
        assert!(refused(FileClass::Binlog, &[("log_bin", "OFF")]).contains("`log_bin = true`"));
        assert!(refused(FileClass::Binlog, &[("log_bin", "/tmp/x")]).contains("neither true nor false"));
    }

    #[test]
    fn a_record_says_what_moves_with_the_doublewrite_buffer() {
        let files =
            |pairs: &[(&str, &str)]| files_of(&mariadb(), FileClass::Doublewrite, &settings(pairs)).unwrap();
        assert!(files(&[]).ends_with("and the undo logs"));
        assert!(!files(&[("innodb_undo_tablespaces", "3")]).contains("undo"));
    }

    #[test]
    fn old_versions_are_asked_for_what_they_have() {
        let all = [FileClass::Redo, FileClass::Doublewrite, FileClass::Temp];
        check_options_of(
            &mysql("5.5.9"),
            &all,
            &[],
            &[
                "tmpdir=/mnt/temp",
                "innodb_log_group_home_dir=/mnt/redo",
                "innodb_data_home_dir=",
                "innodb_data_file_path=/mnt/doublewrite/ibdata1:12M:autoextend",
            ],
        );
        let undo = files_of(&mysql("5.5.9"), FileClass::Undo, &settings(&[("innodb_undo_tablespaces", "3")]));
        assert!(
            undo.unwrap_err().to_string().starts_with("is MySQL 5.5.9, which keeps its undo logs inside")
        );
        let undo =
            files_of(&mysql("5.6.24"), FileClass::Undo, &settings(&[("innodb_undo_tablespaces", "1")]));
        assert_eq!(undo.unwrap(), "undo001 and so on");
    }

    #[test]
    fn new_versions_have_a_binary_log_unless_told_otherwise_and_files_for_the_doublewrite_buffer() {
        check_options_of(
            &mysql("8.4.0"),
            &[FileClass::Doublewrite],
            &[],
            &[
                "tmpdir=/mnt/data/temp",
                "log_bin=/mnt/data/data/binlog",
                "server_id=1",
                "innodb_doublewrite_dir=/mnt/doublewrite",
            ],
        );
        let off = [("log-bin", "OFF")];
        let options = ["tmpdir=/mnt/data/temp", "skip_log_bin=1"];
        check_options_of(&mysql("8.4.0"), &[], &off, &options);
        check_options_of(&mysql("8.4.0"), &[], &[("disable-log-bin", "ON")], &options);
    }
}
