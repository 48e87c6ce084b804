//! Where databases differ in words.

/// The words of one family of databases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// MariaDB, MySQL, Percona Server.
    Mysql,
    Sqlite,
}

impl Dialect {
    /// Whether UPDATE has RETURNING; otherwise `LAST_INSERT_ID(expression)` takes its place.
    pub fn has_returning(self) -> bool {
        match self {
            Dialect::Mysql => false,
            Dialect::Sqlite => true,
        }
    }

    /// Whether one UPDATE can change two tables.
    pub fn updates_several_tables(self) -> bool {
        self == Dialect::Mysql
    }

    /// A table as MySQL would write it, in its default engine, one byte per letter.
    pub fn create_table(self, create: &str) -> String {
        match self {
            Dialect::Mysql => {
                format!("{create} ENGINE=InnoDB DEFAULT CHARACTER SET latin1 COLLATE latin1_bin")
            }
            Dialect::Sqlite => create.to_owned(),
        }
    }

    /// A column with a number for every row, which the database gives to rows that come without one.
    pub fn numbered_key(self, column: &str) -> String {
        match self {
            Dialect::Mysql => format!("{column} INTEGER NOT NULL AUTO_INCREMENT PRIMARY KEY"),
            Dialect::Sqlite => format!("{column} INTEGER PRIMARY KEY"),
        }
    }

    /// What makes such a column go on after rows that came with numbers; `None` where it does so by itself.
    pub fn go_on_numbering(self, _table: &str, _column: &str) -> Option<String> {
        None
    }

    /// An amount of money as an exact number of cents.
    pub fn as_cents(self, amount: &str) -> String {
        match self {
            Dialect::Mysql => format!("CAST({amount} * 100 AS SIGNED)"),
            // Its decimals are floating-point numbers.
            Dialect::Sqlite => format!("CAST(ROUND({amount} * 100) AS INTEGER)"),
        }
    }

    /// A parameter of text put before a column.
    pub fn before(self, column: &str) -> String {
        match self {
            Dialect::Mysql => format!("CONCAT(?, {column})"),
            Dialect::Sqlite => format!("? || {column}"),
        }
    }

    /// What locks the rows of a SELECT; nothing where a writing transaction has the whole database.
    pub fn for_update(self) -> &'static str {
        match self {
            Dialect::Mysql => " FOR UPDATE",
            Dialect::Sqlite => "",
        }
    }
}
