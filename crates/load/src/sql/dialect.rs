//! Differences between the SQL of the databases.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A storage engine of MariaDB or MySQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    Innodb,
    Myisam,
    Aria,
    /// RocksDB as MariaDB and Percona Server have it.
    Myrocks,
}

impl Engine {
    /// The name for `ENGINE=`.
    pub fn name(self) -> &'static str {
        match self {
            Engine::Innodb => "InnoDB",
            Engine::Myisam => "MyISAM",
            Engine::Aria => "Aria",
            Engine::Myrocks => "ROCKSDB",
        }
    }
}

/// The SQL of one family of databases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// MariaDB, MySQL, Percona Server.
    Mysql,
    Postgres,
    Sqlite,
}

impl Dialect {
    /// True if UPDATE has RETURNING; otherwise `LAST_INSERT_ID(expression)` replaces it.
    pub fn has_returning(self) -> bool {
        self != Dialect::Mysql
    }

    /// True if one UPDATE can change two tables.
    pub fn updates_several_tables(self) -> bool {
        self == Dialect::Mysql
    }

    /// True if foreign keys can be added to an existing table. SQLite declares them with the table only.
    pub fn adds_foreign_keys(self) -> bool {
        self != Dialect::Sqlite
    }

    /// Query that the server answers after a second of its own clock; `None` without a server.
    pub fn sleep_for_a_second(self) -> Option<&'static str> {
        match self {
            Dialect::Mysql => Some("SELECT SLEEP(1)"),
            Dialect::Postgres => Some("SELECT pg_sleep(1)"),
            Dialect::Sqlite => None,
        }
    }

    /// Statement before foreign keys on rows that are known to be valid. Without it InnoDB copies the table
    /// for each key, to check the rows.
    pub fn trust_rows(self) -> Option<&'static str> {
        match self {
            Dialect::Mysql => Some("SET SESSION foreign_key_checks = 0"),
            Dialect::Postgres | Dialect::Sqlite => None,
        }
    }

    /// Hint after a table's name: rows are found, and locked, by the primary key. MariaDB's optimizer prefers
    /// an index on a part of the key, whose entries lead to other rows too.
    pub fn by_primary_key(self) -> &'static str {
        match self {
            Dialect::Mysql => " FORCE INDEX (PRIMARY)",
            Dialect::Postgres | Dialect::Sqlite => "",
        }
    }

    /// True if a locking SELECT with LIMIT 1 may return nothing although rows exist. It waited for a row that
    /// was deleted meanwhile, and does not look for another (READ COMMITTED).
    pub fn may_overlook_rows(self) -> bool {
        self == Dialect::Postgres
    }

    /// Query for the default engine if it has no transactions; `None` for databases whose engines all have
    /// them.
    pub fn engine_without_transactions(self) -> Option<&'static str> {
        match self {
            Dialect::Mysql => Some(
                "SELECT engine FROM information_schema.engines WHERE support = 'DEFAULT' AND transactions <> 'YES'",
            ),
            Dialect::Postgres | Dialect::Sqlite => None,
        }
    }

    /// Translates a CREATE TABLE of MySQL: the database's default engine, one byte per letter.
    pub fn create_table(self, create: &str) -> String {
        self.create_table_in(create, None)
    }

    /// As [`Dialect::create_table`], with this engine; `None`: the server's default.
    pub fn create_table_in(self, create: &str, engine: Option<Engine>) -> String {
        match self {
            Dialect::Mysql => {
                let engine = engine.map_or(String::new(), |engine| format!(" ENGINE={}", engine.name()));
                format!("{create}{engine} DEFAULT CHARACTER SET latin1 COLLATE latin1_bin")
            }
            // The smallest types with the same range.
            Dialect::Postgres => create
                .replace("SMALLINT UNSIGNED", "INTEGER")
                .replace("TINYINT", "SMALLINT")
                .replace("DATETIME", "TIMESTAMP"),
            Dialect::Sqlite => create.to_owned(),
        }
    }

    /// A key column that the database numbers in rows without a value for it.
    pub fn numbered_key(self, column: &str) -> String {
        match self {
            Dialect::Mysql => format!("{column} INTEGER NOT NULL AUTO_INCREMENT PRIMARY KEY"),
            Dialect::Postgres => format!("{column} SERIAL PRIMARY KEY"),
            Dialect::Sqlite => format!("{column} INTEGER PRIMARY KEY"),
        }
    }

    /// Statement that continues the numbering after rows with explicit numbers; `None` if the database does
    /// so by itself.
    pub fn go_on_numbering(self, table: &str, column: &str) -> Option<String> {
        match self {
            Dialect::Postgres => Some(format!(
                "SELECT setval(pg_get_serial_sequence('{table}', '{column}'), (SELECT MAX({column}) FROM {table}))"
            )),
            Dialect::Mysql | Dialect::Sqlite => None,
        }
    }

    /// Statement for a table after its rows and indexes are complete; `None` if none is needed.
    pub fn after_load(self, table: &str) -> Option<String> {
        match self {
            // Without it the first reader of a row would mark it as committed, which writes its page, and the
            // planner would have no statistics.
            Dialect::Postgres => Some(format!("VACUUM (FREEZE, ANALYZE) {table}")),
            Dialect::Mysql | Dialect::Sqlite => None,
        }
    }

    /// Converts an amount of money to an exact number of cents.
    pub fn as_cents(self, amount: &str) -> String {
        match self {
            Dialect::Mysql => format!("CAST({amount} * 100 AS SIGNED)"),
            Dialect::Postgres => format!("CAST({amount} * 100 AS BIGINT)"),
            // SQLite's decimals are floating-point numbers.
            Dialect::Sqlite => format!("CAST(ROUND({amount} * 100) AS INTEGER)"),
        }
    }

    /// A parameter of integer type, where the context does not give the type.
    pub fn integer(self) -> &'static str {
        match self {
            Dialect::Postgres => "CAST(? AS BIGINT)",
            Dialect::Mysql | Dialect::Sqlite => "?",
        }
    }

    /// A text parameter concatenated before a column.
    pub fn before(self, column: &str) -> String {
        match self {
            Dialect::Mysql => format!("CONCAT(?, {column})"),
            Dialect::Postgres | Dialect::Sqlite => format!("? || {column}"),
        }
    }

    /// Suffix that locks the rows of a SELECT; empty if a writing transaction locks the whole database.
    pub fn for_update(self) -> &'static str {
        match self {
            Dialect::Mysql | Dialect::Postgres => " FOR UPDATE",
            Dialect::Sqlite => "",
        }
    }
}
