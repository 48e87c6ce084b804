//! Flavour and version of a MySQL program, and the features of that version.
//!
//! A [`Since`] is the first version with a feature. Sources are the reference manuals (dev.mysql.com/doc,
//! mariadb.com/kb) and, for 5.5.9, 5.6.24, 9.7.4 and 10.11, the servers themselves.

use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flavour {
    MariaDb,
    MySql,
    Percona,
}

/// Major, minor, patch.
type Version = (u16, u16, u16);

/// The first version with a feature.
#[derive(Debug, Clone, Copy)]
pub(super) struct Since {
    mariadb: Version,
    /// Percona Server has MySQL's version numbers.
    mysql: Version,
}

const NEVER: Version = (u16::MAX, 0, 0);

/// `--initialize-insecure` makes the system tables.
pub(super) const INITIALIZE: Since = Since { mariadb: NEVER, mysql: (5, 7, 6) };
/// `--validate-config` reads all settings and ends. `--help` ignores unknown settings from 8.0 on.
pub(super) const VALIDATE_CONFIG: Since = Since { mariadb: NEVER, mysql: (8, 0, 16) };
/// `ON` and `OFF` are values of a switch; earlier versions ignore them.
pub(super) const WORDS_FOR_SWITCHES: Since = Since { mariadb: (5, 5, 0), mysql: (5, 6, 0) };
/// `innodb_buffer_pool_dump_at_shutdown`.
pub(super) const DUMP_OF_THE_POOL: Since = Since { mariadb: (10, 0, 0), mysql: (5, 6, 3) };
/// `innodb_temp_data_file_path`.
pub(super) const TEMPORARY_TABLESPACE: Since = Since { mariadb: (10, 2, 2), mysql: (5, 7, 1) };
/// `innodb_temp_tablespaces_dir`.
pub(super) const TEMPORARY_TABLESPACES: Since = Since { mariadb: NEVER, mysql: (8, 0, 13) };
/// `innodb_doublewrite_dir`.
pub(super) const DOUBLEWRITE_FILES: Since = Since { mariadb: NEVER, mysql: (8, 0, 20) };
/// `innodb_undo_tablespaces`.
const UNDO_TABLESPACES: Since = Since { mariadb: (10, 0, 0), mysql: (5, 6, 3) };
/// A single undo tablespace counts as none.
const UNDO_FROM_TWO: Since = Since { mariadb: (10, 2, 0), mysql: NEVER };
/// Undo tablespaces under any settings.
const UNDO_ALWAYS: Since = Since { mariadb: NEVER, mysql: (8, 0, 0) };
/// One redo file instead of several.
const ONE_REDO_FILE: Since = Since { mariadb: (10, 5, 0), mysql: NEVER };
const REDO_DIRECTORY: Since = Since { mariadb: NEVER, mysql: (8, 0, 30) };
/// The binary log is on by default.
pub(super) const BINLOG_BY_DEFAULT: Since = Since { mariadb: NEVER, mysql: (8, 0, 0) };
/// A binary log needs `server_id`, which has a default from 8.0.
pub(super) const NEEDS_SERVER_ID: Since = Since { mariadb: NEVER, mysql: (5, 7, 3) };
/// `secure_file_priv = NULL`. In packages the default is a directory that need not exist.
pub(super) const NO_FILES: Since = Since { mariadb: NEVER, mysql: (5, 7, 6) };
/// Options of mariadb-install-db for a root without a password and no database `test`.
pub(super) const INSTALL_OPTIONS: Since = Since { mariadb: (10, 4, 3), mysql: NEVER };

/// Writes of the redo log begin a block of the page cache with a whole one (`innodb_log_write_ahead_size`).
pub(super) const WRITE_AHEAD: Since = Since { mariadb: (10, 2, 2), mysql: (5, 7, 4) };

/// MariaDB's global transaction identifiers.
pub(super) const GTID: Since = Since { mariadb: (10, 0, 2), mysql: NEVER };
/// Accounts are in `mysql.global_priv`, and `mysql.user` is a view of it.
pub(super) const GLOBAL_PRIVILEGES: Since = Since { mariadb: (10, 4, 1), mysql: NEVER };
/// Semi-synchronous replication without a plugin.
pub(super) const SEMI_SYNC: Since = Since { mariadb: (10, 3, 3), mysql: NEVER };

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Release {
    pub(super) flavour: Flavour,
    pub(super) version: Version,
    /// As the server prints it, for example `10.11.6-MariaDB`.
    number: String,
}

/// Undo tablespaces that keep the undo logs out of the system tablespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Undo {
    Never,
    /// From this value of `innodb_undo_tablespaces` on.
    From(u32),
    Always,
}

impl Release {
    /// Parses the output of `--version`, for example
    /// `/usr/sbin/mariadbd  Ver 10.11.6-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)`.
    pub(super) fn parse(text: &str) -> Option<Release> {
        let (_, rest) = text.split_once("Ver ")?;
        let number = rest.split_whitespace().next()?;
        let flavour = match rest {
            _ if rest.contains("MariaDB") => Flavour::MariaDb,
            _ if rest.contains("Percona") => Flavour::Percona,
            _ => Flavour::MySql,
        };
        let mut digits = number.split(|letter: char| !letter.is_ascii_digit()).map(str::parse);
        let mut next = || digits.next()?.ok();
        Some(Release { flavour, version: (next()?, next()?, next()?), number: number.to_owned() })
    }

    /// The newest known release, assumed for a server that cannot be asked here.
    pub(super) fn newest(flavour: Flavour) -> Release {
        let (version, number) = match flavour {
            Flavour::MariaDb => ((10, 11, 0), "10.11"),
            Flavour::MySql | Flavour::Percona => ((9, 7, 0), "9.7"),
        };
        Release { flavour, version, number: number.to_owned() }
    }

    pub(super) fn can(&self, since: Since) -> bool {
        match self.flavour {
            Flavour::MariaDb => self.version >= since.mariadb,
            Flavour::MySql | Flavour::Percona => self.version >= since.mysql,
        }
    }

    pub(super) fn undo(&self) -> Undo {
        match self {
            _ if self.can(UNDO_ALWAYS) => Undo::Always,
            _ if self.can(UNDO_FROM_TWO) => Undo::From(2),
            _ if self.can(UNDO_TABLESPACES) => Undo::From(1),
            _ => Undo::Never,
        }
    }

    pub(super) fn redo_files(&self) -> &'static str {
        match self {
            _ if self.can(REDO_DIRECTORY) => "#innodb_redo",
            _ if self.can(ONE_REDO_FILE) => "ib_logfile0",
            _ => "ib_logfile0 and so on",
        }
    }
}

/// The form in records.
impl fmt::Display for Release {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.flavour {
            // MariaDB's version number includes the name.
            Flavour::MariaDb => formatter.write_str(&self.number),
            Flavour::MySql => write!(formatter, "MySQL {}", self.number),
            Flavour::Percona => write!(formatter, "Percona Server {}", self.number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, flavour: Flavour, expect: &str) {
        let release = Release::parse(text).unwrap();
        assert_eq!((release.flavour, release.to_string().as_str()), (flavour, expect));
    }

    #[test]
    fn every_flavour_says_what_it_is() {
        check(
            "/usr/sbin/mariadbd  Ver 10.11.6-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)",
            Flavour::MariaDb,
            "10.11.6-MariaDB-0+deb12u1",
        );
        check("mysqld  Ver 5.5.9 for Linux on x86_64 (Source distribution)", Flavour::MySql, "MySQL 5.5.9");
        check(
            "/usr/sbin/mysqld  Ver 8.0.35-27 for Linux on x86_64 (Percona Server (GPL), Release 27, Revision 2f8eeab2)",
            Flavour::Percona,
            "Percona Server 8.0.35-27",
        );
        assert_eq!(Release::parse("mysqld: error while loading shared libraries"), None);
    }

    #[test]
    fn undo_logs_are_apart_where_the_version_can() {
        let undo = |number: &str| Release::parse(&format!("Ver {number} for Linux")).unwrap().undo();
        assert_eq!(undo("5.5.9"), Undo::Never);
        assert_eq!(undo("5.6.24"), Undo::From(1));
        assert_eq!(undo("8.0.35"), Undo::Always);
        assert_eq!(undo("5.5.68-MariaDB"), Undo::Never);
        assert_eq!(undo("10.11.6-MariaDB"), Undo::From(2));
    }
}
