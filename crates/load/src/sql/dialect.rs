//! Where databases differ in words.

use serde::{Deserialize, Serialize};

/// A storage engine of MariaDB or MySQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    Innodb,
    Myisam,
    Aria,
    /// RocksDB as MariaDB and Percona Server have it.
    Myrocks,
}

impl Engine {
    /// As `ENGINE=` wants it.
    pub fn name(self) -> &'static str {
        match self {
            Engine::Innodb => "InnoDB",
            Engine::Myisam => "MyISAM",
            Engine::Aria => "Aria",
            Engine::Myrocks => "ROCKSDB",
        }
    }
}

/// The words of one family of databases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// MariaDB, MySQL, Percona Server.
    Mysql,
    Postgres,
    Sqlite,
}

impl Dialect {
    /// Whether UPDATE has RETURNING; otherwise `LAST_INSERT_ID(expression)` takes its place.
    pub fn has_returning(self) -> bool {
        self != Dialect::Mysql
    }

    /// Whether one UPDATE can change two tables.
    pub fn updates_several_tables(self) -> bool {
        self == Dialect::Mysql
    }

    /// Whether a table that is there can get foreign keys; SQLite declares them with the table or not at all.
    pub fn adds_foreign_keys(self) -> bool {
        self != Dialect::Sqlite
    }

    /// Comes before foreign keys of rows that are known to be right: InnoDB would copy the table for each, to
    /// check them.
    pub fn trust_rows(self) -> Option<&'static str> {
        match self {
            Dialect::Mysql => Some("SET SESSION foreign_key_checks = 0"),
            Dialect::Postgres | Dialect::Sqlite => None,
        }
    }

    /// After a table's name: rows are found, and locked, by the primary key. MariaDB's optimizer prefers an
    /// index on a part of the key, whose entries belong to rows that nobody asked for.
    pub fn by_primary_key(self) -> &'static str {
        match self {
            Dialect::Mysql => " FORCE INDEX (PRIMARY)",
            Dialect::Postgres | Dialect::Sqlite => "",
        }
    }

    /// Whether a locking SELECT with LIMIT 1 may return nothing although there are rows: it waited for one
    /// that was deleted meanwhile, and looks for no other (READ COMMITTED).
    pub fn may_overlook_rows(self) -> bool {
        self == Dialect::Postgres
    }

    /// Asks for the engine that makes tables here unless it has transactions; `None` where every engine has
    /// them.
    pub fn engine_without_transactions(self) -> Option<&'static str> {
        match self {
            Dialect::Mysql => Some(
                "SELECT engine FROM information_schema.engines WHERE support = 'DEFAULT' AND transactions <> 'YES'",
            ),
            Dialect::Postgres | Dialect::Sqlite => None,
        }
    }

    /// A table as MySQL would write it, in the database's default engine, one byte per letter.
    pub fn create_table(self, create: &str) -> String {
        self.create_table_in(create, None)
    }

    /// The same in an engine; without one in the server's default.
    pub fn create_table_in(self, create: &str, engine: Option<Engine>) -> String {
        match self {
            Dialect::Mysql => {
                let engine = engine.map_or(String::new(), |engine| format!(" ENGINE={}", engine.name()));
                format!("{create}{engine} DEFAULT CHARACTER SET latin1 COLLATE latin1_bin")
            }
            // The smallest types that hold the same numbers.
            Dialect::Postgres => create
                .replace("SMALLINT UNSIGNED", "INTEGER")
                .replace("TINYINT", "SMALLINT")
                .replace("DATETIME", "TIMESTAMP"),
            Dialect::Sqlite => create.to_owned(),
        }
    }

    /// A column with a number for every row, which the database gives to rows that come without one.
    pub fn numbered_key(self, column: &str) -> String {
        match self {
            Dialect::Mysql => format!("{column} INTEGER NOT NULL AUTO_INCREMENT PRIMARY KEY"),
            Dialect::Postgres => format!("{column} SERIAL PRIMARY KEY"),
            Dialect::Sqlite => format!("{column} INTEGER PRIMARY KEY"),
        }
    }

    /// What makes such a column go on after rows that came with numbers; `None` where it does so by itself.
    pub fn go_on_numbering(self, table: &str, column: &str) -> Option<String> {
        match self {
            Dialect::Postgres => Some(format!(
                "SELECT setval(pg_get_serial_sequence('{table}', '{column}'), (SELECT MAX({column}) FROM {table}))"
            )),
            Dialect::Mysql | Dialect::Sqlite => None,
        }
    }

    /// What to do with a table once its rows and indexes are there; `None` where there is nothing to do.
    pub fn after_load(self, table: &str) -> Option<String> {
        match self {
            // Otherwise whoever reads a row first would mark it as committed, which writes its page, and the
            // planner would guess.
            Dialect::Postgres => Some(format!("VACUUM (FREEZE, ANALYZE) {table}")),
            Dialect::Mysql | Dialect::Sqlite => None,
        }
    }

    /// An amount of money as an exact number of cents.
    pub fn as_cents(self, amount: &str) -> String {
        match self {
            Dialect::Mysql => format!("CAST({amount} * 100 AS SIGNED)"),
            Dialect::Postgres => format!("CAST({amount} * 100 AS BIGINT)"),
            // Its decimals are floating-point numbers.
            Dialect::Sqlite => format!("CAST(ROUND({amount} * 100) AS INTEGER)"),
        }
    }

    /// A parameter that is a whole number, where nothing beside it says so.
    pub fn integer(self) -> &'static str {
        match self {
            Dialect::Postgres => "CAST(? AS BIGINT)",
            Dialect::Mysql | Dialect::Sqlite => "?",
        }
    }

    /// A parameter of text put before a column.
    pub fn before(self, column: &str) -> String {
        match self {
            Dialect::Mysql => format!("CONCAT(?, {column})"),
            Dialect::Postgres | Dialect::Sqlite => format!("? || {column}"),
        }
    }

    /// What locks the rows of a SELECT; nothing where a writing transaction has the whole database.
    pub fn for_update(self) -> &'static str {
        match self {
            Dialect::Mysql | Dialect::Postgres => " FOR UPDATE",
            Dialect::Sqlite => "",
        }
    }
}
