//! Where MariaDB keeps which class of file, and the options that move a class to a directory of its own.
//!
//! * data: `datadir`, with everything that is not moved.
//! * redo: `ib_logfile0`, by `innodb_log_group_home_dir`.
//! * doublewrite: the doublewrite buffer is a part of the system tablespace, so this moves `ibdata1` (`innodb_data_file_path`), which also
//!   has the change buffer, and the undo logs unless they have tablespaces of their own.
//! * undo: `undo001` and so on, by `innodb_undo_directory`; only with `innodb_undo_tablespaces` of at least 2 (10.11 has none by default).
//! * binlog: `log_bin`; only when the settings turn it on, or the layouts of a scenario would not do the same work.
//! * temp: `tmpdir`, and `ibtmp1` by `innodb_temp_data_file_path`.
//!
//! InnoDB puts `innodb_data_home_dir` in front of the paths of `ibdata1` and `ibtmp1` even when they are absolute, so it is made empty where either
//! is moved.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{Instance, Refusal};
use crate::layout::FileClass;

const DATA_FILE_PATH: &str = "innodb_data_file_path";
const TEMP_FILE_PATH: &str = "innodb_temp_data_file_path";
const LOG_BIN: &str = "log_bin";

/// The server's defaults (10.11).
const DATA_FILES: &str = "ibdata1:12M:autoextend";
const TEMP_FILES: &str = "ibtmp1:12M:autoextend";

/// Settings by which a layout could be undone.
pub(super) const PLACING_SETTINGS: [&str; 6] = [
    "innodb_undo_directory",
    "innodb_data_home_dir",
    "innodb_log_group_home_dir",
    "log_bin_index",
    "tmpdir",
    "innodb_tmpdir",
];

/// As the server compares names of options.
pub(super) fn plain_name(name: &str) -> String {
    name.replace('-', "_").to_ascii_lowercase()
}

fn setting<'a>(settings: &'a BTreeMap<String, String>, name: &str) -> Option<&'a str> {
    settings.iter().find(|(key, _)| plain_name(key) == name).map(|(_, value)| value.as_str())
}

/// See [`super::Server::files_of`].
pub(super) fn files_of(class: FileClass, settings: &BTreeMap<String, String>) -> Result<String, Refusal> {
    let undo_apart = setting(settings, "innodb_undo_tablespaces")
        .and_then(|text| text.parse::<u32>().ok())
        .is_some_and(|count| count >= 2);
    let files = match class {
        FileClass::Data => "tables and indexes",
        FileClass::Redo => "ib_logfile0",
        FileClass::Doublewrite if undo_apart => {
            "ibdata1, the system tablespace, which has the doublewrite buffer"
        }
        FileClass::Doublewrite => {
            "ibdata1, the system tablespace, which has the doublewrite buffer and the undo logs"
        }
        FileClass::Undo if undo_apart => "undo001 and so on",
        FileClass::Undo => {
            return Err(Refusal(
                "keeps its undo logs inside the system tablespace unless `innodb_undo_tablespaces` is at least 2: \
                 set it among the server's settings"
                    .to_owned(),
            ));
        }
        FileClass::Binlog if binlog_is_on(settings)? => "binlog.000001 and so on",
        FileClass::Binlog => {
            return Err(Refusal(
                "writes no binary log: turn it on with `log_bin = true` among the server's settings"
                    .to_owned(),
            ));
        }
        FileClass::Temp => "tmpdir and ibtmp1",
    };
    Ok(files.to_owned())
}

/// `log_bin` is a path to the server, but the path is ours.
fn binlog_is_on(settings: &BTreeMap<String, String>) -> Result<bool, Refusal> {
    match setting(settings, LOG_BIN).map(str::to_ascii_lowercase).as_deref() {
        None | Some("off" | "0" | "false") => Ok(false),
        Some("on" | "1" | "true" | "") => Ok(true),
        Some(_) => Err(Refusal(
            "has a setting `log_bin` that is neither true nor false: Spindle decides the path of the binary log".to_owned(),
        )),
    }
}

/// # Errors
/// A setting that would move files away from where the layout has them.
pub(super) fn check(settings: &BTreeMap<String, String>) -> Result<(), Refusal> {
    if let Some(name) = settings.keys().find(|name| PLACING_SETTINGS.contains(&plain_name(name).as_str())) {
        return Err(Refusal(format!("setting `{name}`: where files lie is for a layout to say; remove it")));
    }
    binlog_is_on(settings).map_err(|refusal| Refusal(format!("the server {refusal}"))).map(drop)
}

/// Small files that a statement needs, and its `ibtmp1` where that is moved.
pub(super) fn temporary_directory(instance: &Instance) -> PathBuf {
    let with_the_data = || instance.data_directory.with_file_name("temp");
    instance.class_directories.get(&FileClass::Temp).cloned().unwrap_or_else(with_the_data)
}

/// Every directory that the server writes to, the data's first.
pub(super) fn directories(instance: &Instance) -> Vec<PathBuf> {
    let mut directories = vec![instance.data_directory.clone()];
    directories.extend(instance.class_directories.values().cloned());
    if !instance.class_directories.contains_key(&FileClass::Temp) {
        directories.push(temporary_directory(instance));
    }
    directories
}

/// The options that put every class where the instance wants it; those of the settings that are not [`is_plain`] are in them.
pub(super) fn options(instance: &Instance) -> Vec<(&'static str, String)> {
    let settings = &instance.settings;
    let directory = |class| instance.class_directories.get(&class);
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let mut options = vec![("tmpdir", text(&temporary_directory(instance)))];
    options.extend(directory(FileClass::Redo).map(|path| ("innodb_log_group_home_dir", text(path))));
    options.extend(directory(FileClass::Undo).map(|path| ("innodb_undo_directory", text(path))));
    if binlog_is_on(settings) == Ok(true) {
        let directory = directory(FileClass::Binlog).unwrap_or(&instance.data_directory);
        options.push((LOG_BIN, text(&directory.join("binlog"))));
    }
    let (system, temporary) = (directory(FileClass::Doublewrite), directory(FileClass::Temp));
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

/// Whether a setting goes to the server as it was written; the others are in [`options`].
pub(super) fn is_plain(name: &str) -> bool {
    ![DATA_FILE_PATH, TEMP_FILE_PATH, LOG_BIN].contains(&plain_name(name).as_str())
}

/// `name:size:attributes;...` with a directory before each name.
fn absolute(files: &str, directory: &Path) -> String {
    let files: Vec<String> =
        files.split(';').map(|file| directory.join(file.trim()).to_string_lossy().into_owned()).collect();
    files.join(";")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn instance(classes: &[FileClass], pairs: &[(&str, &str)]) -> Instance {
        let directories = classes.iter().map(|class| (*class, Path::new("/mnt").join(class.key()))).collect();
        Instance {
            data_directory: "/mnt/data/data".into(),
            class_directories: directories,
            runtime_directory: "/run/trial".into(),
            settings: settings(pairs),
        }
    }

    #[track_caller]
    fn check_options(classes: &[FileClass], pairs: &[(&str, &str)], expect: &[&str]) {
        let options = options(&instance(classes, pairs));
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
    fn what_the_server_cannot_do_is_refused() {
        let refused = |class, pairs: &[(&str, &str)]| files_of(class, &settings(pairs)).unwrap_err().0;
        assert!(refused(FileClass::Undo, &[]).contains("`innodb_undo_tablespaces` is at least 2"));
        assert!(refused(FileClass::Undo, &[("innodb-undo-tablespaces", "1")]).contains("at least 2"));
        assert!(refused(FileClass::Binlog, &[("log_bin", "OFF")]).contains("`log_bin = true`"));
        assert!(refused(FileClass::Binlog, &[("log_bin", "/tmp/x")]).contains("neither true nor false"));
        assert!(check(&settings(&[("innodb-undo-directory", "/x")])).is_err());
    }

    #[test]
    fn a_record_says_what_moves_with_the_doublewrite_buffer() {
        let files = |pairs: &[(&str, &str)]| files_of(FileClass::Doublewrite, &settings(pairs)).unwrap();
        assert!(files(&[]).ends_with("and the undo logs"));
        assert!(!files(&[("innodb_undo_tablespaces", "3")]).contains("undo"));
    }
}
