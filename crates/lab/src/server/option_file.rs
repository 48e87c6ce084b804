//! Reads a `my.cnf` or a `cubrid.conf` as settings of a scenario.
//!
//! Syntax: "Using Option Files" of MySQL's reference manual, and MariaDB's "Configuring MariaDB with Option
//! Files"; "Scope of Server Configuration" of CUBRID's manual. Groups are read in the order of the file. As
//! in the server, the last value of a repeated setting counts.

use std::fmt;

use super::mysql::objection;

/// Groups that servers read; others (`[client]`, `[mysqldump]`) are for other programs. Groups such as
/// `[mysqld-8.0]` are for one version.
const GROUPS: [&str; 6] = ["mysqld", "mariadbd", "mariadb", "server", "mysqld_safe", "galera"];
/// Group of a wrapper around the server, whose settings are not the server's.
const WRAPPER: &str = "mysqld_safe";

/// CUBRID's groups: of all databases, of the processes to start, and the prefix of the groups of one
/// database.
const CUBRID_COMMON: &str = "common";
const CUBRID_SERVICE: &str = "service";
const CUBRID_DATABASE: char = '@';
/// Settings for CUBRID's port and files.
const CUBRID_OWN: [&str; 2] = ["cubrid_port_id", "error_log"];

/// Values of switches in these files.
const ON: [&str; 5] = ["1", "on", "yes", "true", "y"];
const OFF: [&str; 5] = ["0", "off", "no", "false", "n"];

/// The family of servers that the file is for, recognized by its groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Family {
    #[default]
    Mysql,
    Cubrid,
}

impl Family {
    fn of(text: &str) -> Family {
        let is_cubrids =
            |name: &str| [CUBRID_COMMON, CUBRID_SERVICE].contains(&name) || name.starts_with(CUBRID_DATABASE);
        if text.lines().filter_map(group).any(is_cubrids) { Family::Cubrid } else { Family::Mysql }
    }

    /// The first lines of the table of such a server in a scenario.
    pub fn kind_lines(self) -> &'static str {
        match self {
            Family::Mysql => "kind = \"mariadb\"",
            Family::Cubrid => {
                "kind = \"adapter\"\nfile = \"cubrid.toml\" # to be written: see docs/adapters.md"
            }
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OptionFile {
    pub family: Family,
    /// By plain name, in the order of the file.
    pub settings: Vec<(String, String)>,
    /// Omitted settings, with the reason.
    pub dropped: Vec<String>,
}

/// A line that cannot be converted, by its number.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct Misfit {
    pub line: usize,
    pub message: String,
}

/// # Errors
/// `!include`, or a line that does not belong in an option file.
pub fn parse(text: &str) -> Result<OptionFile, Misfit> {
    let mut file = OptionFile { family: Family::of(text), ..OptionFile::default() };
    let mut group: Option<String> = None;
    for (index, line) in text.lines().enumerate() {
        let misfit = |message: String| Misfit { line: index + 1, message };
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(directive) = line.strip_prefix('!') {
            return Err(misfit(format!(
                "`!{directive}` names other files, which are not followed: give them one by one, or print them all with \
                 `my_print_defaults --mysqld`"
            )));
        }
        if line.starts_with('[') {
            let name = self::group(line);
            group = Some(
                name.map(str::to_ascii_lowercase)
                    .ok_or_else(|| misfit(format!("`{line}` is not a group: the bracket is not closed")))?,
            );
            continue;
        }
        let Some(group) = &group else {
            return Err(misfit(format!("`{line}` stands before the first group, such as [mysqld]")));
        };
        file.take(group, line);
    }
    Ok(file)
}

/// The name of a group, from its line.
fn group(line: &str) -> Option<&str> {
    line.trim().strip_prefix('[')?.split_once(']').map(|(name, _)| name.trim())
}

impl OptionFile {
    fn take(&mut self, group: &str, line: &str) {
        let (name, value) = match line.split_once('=') {
            Some((name, value)) => (name.trim(), Some(value_of(value))),
            None => (value_of_name(line), None),
        };
        let name = name.replace('-', "_").to_ascii_lowercase();
        if self.family == Family::Cubrid {
            return self.take_cubrids(group, name, value);
        }
        let base = group.split('-').next().unwrap_or(group);
        // `skip_name_resolve` and `skip_log_bin` are names of their own, or switch `name_resolve` off. The
        // server knows both forms.
        let reason = match objection(&name) {
            _ if !GROUPS.contains(&base) => return,
            _ if base == WRAPPER => format!("of [{group}], a wrapper around the server"),
            _ if group != base => format!("of [{group}], which is for one version only"),
            _ if name == "log_bin" && value.as_deref().is_some_and(|value| !is_switch(value)) => {
                self.set(name.clone(), "ON".to_owned());
                "its path; the log is on, and a layout decides its location".to_owned()
            }
            Some(objection) if objection.ends_with("remove it") => {
                "a server of a run is private, so Spindle decides this one".to_owned()
            }
            Some(objection) => objection,
            None => return self.set(name, value.unwrap_or_else(|| "ON".to_owned())),
        };
        self.dropped.push(format!("{name}: {reason}"));
    }

    fn take_cubrids(&mut self, group: &str, name: String, value: Option<String>) {
        let reason = match group {
            CUBRID_SERVICE => format!("of [{group}], which lists what `cubrid service` starts"),
            _ if group.starts_with(CUBRID_DATABASE) => {
                format!("of [{group}], which is for one database only")
            }
            _ if CUBRID_OWN.contains(&name.as_str()) => {
                "a server of a run is private, so its adapter decides this one".to_owned()
            }
            CUBRID_COMMON => return self.set(name, value.unwrap_or_else(|| "yes".to_owned())),
            _ => return,
        };
        self.dropped.push(format!("{name}: {reason}"));
    }

    /// Warnings for a comparison with another server: the settings by which an acknowledged commit may be
    /// lost.
    fn durability(&self) -> Vec<String> {
        let value = |name: &str| {
            let found = self.settings.iter().find(|(setting, _)| setting == name);
            found.map(|(_, value)| value.to_ascii_lowercase())
        };
        let is_one_of =
            |name: &str, values: &[&str]| value(name).is_some_and(|value| values.contains(&value.as_str()));
        let has_binlog = value("log_bin").is_some() && !is_one_of("log_bin", &OFF);
        let remarks = [
            (
                is_one_of("innodb_flush_log_at_trx_commit", &["0"]),
                "innodb_flush_log_at_trx_commit = 0: the last second of commits is lost with the process",
            ),
            (
                is_one_of("innodb_flush_log_at_trx_commit", &["2"]),
                "innodb_flush_log_at_trx_commit = 2: the last second of commits is lost with the power",
            ),
            (
                is_one_of("skip_innodb_doublewrite", &ON) || is_one_of("innodb_doublewrite", &OFF),
                "innodb_doublewrite is off: a page that a power cut tears is lost",
            ),
            (
                has_binlog && is_one_of("sync_binlog", &["0"]),
                "sync_binlog = 0: commits are missing from the binary log after a power cut",
            ),
            (
                is_one_of("async_commit", &ON),
                "async_commit = yes: commits are answered before they are in the log on the storage",
            ),
        ];
        remarks.into_iter().filter(|(applies, _)| *applies).map(|(_, words)| words.to_owned()).collect()
    }

    /// The last value counts.
    fn set(&mut self, name: String, value: String) {
        if let Some(index) = self.settings.iter().position(|(earlier, _)| *earlier == name) {
            let (_, earlier) = self.settings.remove(index);
            if earlier != value {
                self.dropped.push(format!("{name} = {earlier}: a later line says {value}"));
            }
        }
        self.settings.push((name, value));
    }
}

/// The `settings` table of a server, in the syntax of a scenario.
impl fmt::Display for OptionFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for dropped in &self.dropped {
            writeln!(formatter, "# left out: {dropped}")?;
        }
        for remark in self.durability() {
            writeln!(formatter, "# durability: {remark}")?;
        }
        for (name, value) in &self.settings {
            writeln!(formatter, "{name} = {}", toml_value(value))?;
        }
        Ok(())
    }
}

fn toml_value(value: &str) -> String {
    match value.parse::<i64>() {
        // A leading zero or plus would be lost.
        Ok(number) if number.to_string() == value => value.to_owned(),
        _ => toml::Value::String(value.to_owned()).to_string(),
    }
}

fn is_switch(value: &str) -> bool {
    ["0", "1", "on", "off", "true", "false", ""].contains(&value.to_ascii_lowercase().as_str())
}

fn value_of_name(line: &str) -> &str {
    line.split('#').next().unwrap_or(line).trim()
}

/// Without a comment, quotes and escapes.
fn value_of(text: &str) -> String {
    let text = text.trim();
    for quote in ['\'', '"'] {
        if let Some((quoted, _)) = text.strip_prefix(quote).and_then(|rest| rest.split_once(quote)) {
            return unescaped(quoted);
        }
    }
    unescaped(text.split('#').next().unwrap_or(text).trim())
}

fn unescaped(text: &str) -> String {
    let mut result = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        result.push(match letter {
            '\\' => match letters.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some('s') => ' ',
                other => other.unwrap_or('\\'),
            },
            _ => letter,
        });
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &str) {
        assert_eq!(parse(text).unwrap().to_string(), expect);
    }

    #[test]
    fn settings_of_the_server_become_a_table() {
        check(
            "# main\n[client]\nport = 3306\n[mysqld]\ninnodb-buffer-pool-size = 128M # small\n\
             innodb_flush_log_at_trx_commit=2\nskip-name-resolve\nsql_mode='A,B'\n",
            "# durability: innodb_flush_log_at_trx_commit = 2: the last second of commits is lost with the power\n\
             innodb_buffer_pool_size = \"128M\"\ninnodb_flush_log_at_trx_commit = 2\nskip_name_resolve = \"ON\"\n\
             sql_mode = \"A,B\"\n",
        );
    }

    #[test]
    fn settings_that_spindle_decides_are_left_out_with_the_reason() {
        check(
            "[mysqld]\ndatadir=/var/lib/mysql\nmax_connections=200\nlog-bin = /var/log/mysql/bin\n[mysqld_safe]\nnice=0\n",
            "# left out: datadir: a server of a run is private, so Spindle decides this one\n\
             # left out: log_bin: its path; the log is on, and a layout decides its location\n\
             # left out: nice: of [mysqld_safe], a wrapper around the server\n\
             max_connections = 200\nlog_bin = \"ON\"\n",
        );
    }

    #[test]
    fn a_binary_log_that_is_off_loses_nothing() {
        check("[mysqld]\nlog_bin=OFF\nsync_binlog=0\n", "log_bin = \"OFF\"\nsync_binlog = 0\n");
        check(
            "[mysqld]\nlog_bin\nsync_binlog=0\n",
            "# durability: sync_binlog = 0: commits are missing from the binary log after a power cut\n\
             log_bin = \"ON\"\nsync_binlog = 0\n",
        );
    }

    #[test]
    fn of_two_values_the_later_counts() {
        check(
            "[mysqld]\nkey_buffer_size=8M\n[mariadb]\nkey-buffer-size=16M\n",
            "# left out: key_buffer_size = 8M: a later line says 16M\nkey_buffer_size = \"16M\"\n",
        );
    }

    #[test]
    fn cubrids_file_is_known_by_its_groups() {
        check(
            "[service]\nservice=server,broker\n[common]\n# pages\ndata_buffer_pages=250000\nsort_buffer_pages = 16\n\
             cubrid_port_id=1523\nasync_commit=yes\nmax_clients=50\nmax_clients=100\n[@demodb]\nmax_clients=10\n",
            "# left out: service: of [service], which lists what `cubrid service` starts\n\
             # left out: cubrid_port_id: a server of a run is private, so its adapter decides this one\n\
             # left out: max_clients = 50: a later line says 100\n\
             # left out: max_clients: of [@demodb], which is for one database only\n\
             # durability: async_commit = yes: commits are answered before they are in the log on the storage\n\
             data_buffer_pages = 250000\nsort_buffer_pages = 16\nasync_commit = \"yes\"\nmax_clients = 100\n",
        );
    }

    #[test]
    fn other_files_are_refused_by_their_line() {
        let error = parse("[mysqld]\n!includedir /etc/mysql/conf.d/\n").unwrap_err().to_string();
        assert!(error.starts_with("line 2: `!includedir /etc/mysql/conf.d/` names other files"), "{error}");
        let error = parse("port = 1\n").unwrap_err().to_string();
        assert_eq!(error, "line 1: `port = 1` stands before the first group, such as [mysqld]");
    }
}
