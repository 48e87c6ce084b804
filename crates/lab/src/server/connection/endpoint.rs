//! Parses the user's name of a server that clients connect to.

use std::collections::BTreeMap;

use spindle_load::Endpoint;
use spindle_load::sql::postgres;

/// A password that is not in a URL comes from the environment variables of the databases' own clients:
/// everybody can read a command line, and a scenario is kept with the records.
///
/// # Errors
/// The text has none of the forms, which the sentence names.
pub fn parse(text: &str) -> Result<Endpoint, String> {
    parse_with(text, "spindle")
}

/// As [`parse`], for who looks at a whole server and uses no table: the database is one that every server has,
/// unless a URL of PostgreSQL names another one.
pub fn parse_to_observe(text: &str) -> Result<Endpoint, String> {
    let mut endpoint = parse_with(text, postgres::MAINTENANCE_DATABASE)?;
    if let Endpoint::MysqlSocket { database, .. } | Endpoint::MysqlTcp { database, .. } = &mut endpoint {
        "information_schema".clone_into(database);
    }
    Ok(endpoint)
}

/// As [`parse`], for queries: a server that speaks MySQL's protocol, and no database unless the URL names one.
pub fn parse_to_query(text: &str) -> Result<Endpoint, String> {
    let endpoint = parse_with(text, "")?;
    match endpoint {
        Endpoint::MysqlSocket { .. } | Endpoint::MysqlTcp { .. } => Ok(endpoint),
        _ => Err("is no MariaDB and no MySQL".to_owned()),
    }
}

fn parse_with(text: &str, default_database: &str) -> Result<Endpoint, String> {
    let mut endpoint = parse_text(text, default_database)?;
    let (password, variable) = match &mut endpoint {
        Endpoint::MysqlTcp { password, .. } => (password, "MYSQL_PWD"),
        Endpoint::PostgresTcp { password, .. } => (password, "PGPASSWORD"),
        _ => return Ok(endpoint),
    };
    if password.is_empty() {
        *password = std::env::var(variable).unwrap_or_default();
    }
    Ok(endpoint)
}

fn parse_text(text: &str, default_database: &str) -> Result<Endpoint, String> {
    if text.starts_with("postgres://") || text.starts_with("postgresql://") {
        return postgres::parse_url(text, default_database);
    }
    let database = default_database.to_owned();
    match text.split_once(':') {
        Some(("mysql", rest)) if rest.starts_with("//") => {}
        Some((form @ ("socket" | "sqlite" | "postgres"), "")) => {
            return Err(format!("the path after `{form}:` is missing"));
        }
        Some(("socket", path)) => {
            return Ok(Endpoint::MysqlSocket { path: path.into(), user: "root".to_owned(), database });
        }
        Some(("sqlite", path)) => {
            return Ok(Endpoint::Sqlite { path: path.into(), pragmas: BTreeMap::new() });
        }
        Some(("postgres", directory)) => {
            let (port, user) = (postgres::DEFAULT_PORT, "postgres".to_owned());
            return Ok(Endpoint::PostgresSocket { directory: directory.into(), port, user, database });
        }
        _ => {
            let forms = "`socket:/path`, `mysql://user:password@host:port/database`, `postgres:/directory`, \
                         `postgresql://user:password@host:port/database` or `sqlite:/path`";
            return Err(format!("write {forms}"));
        }
    }
    let options = mysql::Opts::from_url(text).map_err(|error| error.to_string())?;
    Ok(Endpoint::MysqlTcp {
        host: options.get_ip_or_hostname().into_owned(),
        port: options.get_tcp_port(),
        user: options.get_user().unwrap_or("root").to_owned(),
        password: options.get_pass().unwrap_or_default().to_owned(),
        database: options.get_db_name().unwrap_or(default_database).to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_named_by_socket_or_url() {
        assert_eq!(
            parse("socket:/run/db").unwrap(),
            Endpoint::MysqlSocket { path: "/run/db".into(), user: "root".into(), database: "spindle".into() }
        );
        assert_eq!(
            parse("mysql://me:p%40ss@db.example:3307/shop").unwrap(),
            Endpoint::MysqlTcp {
                host: "db.example".into(),
                port: 3307,
                user: "me".into(),
                password: "p@ss".into(),
                database: "shop".into()
            }
        );
        assert_eq!(
            parse("sqlite:/tmp/shop.db").unwrap(),
            Endpoint::Sqlite { path: "/tmp/shop.db".into(), pragmas: BTreeMap::new() }
        );
        assert_eq!(
            parse("postgres:/run/postgresql").unwrap(),
            Endpoint::PostgresSocket {
                directory: "/run/postgresql".into(),
                port: 5432,
                user: "postgres".into(),
                database: "spindle".into()
            }
        );
        assert_eq!(
            parse("postgresql://me@db.example").unwrap(),
            Endpoint::PostgresTcp {
                host: "db.example".into(),
                port: 5432,
                user: "me".into(),
                password: String::new(),
                database: "spindle".into()
            }
        );
        let database = |url: &str| match parse_to_observe(url).unwrap() {
            Endpoint::MysqlTcp { database, .. }
            | Endpoint::MysqlSocket { database, .. }
            | Endpoint::PostgresTcp { database, .. } => database,
            other => panic!("{other:?}"),
        };
        assert_eq!(database("mysql://me@db.example/shop"), "information_schema");
        assert_eq!(database("socket:/run/db"), "information_schema");
        assert_eq!(database("postgresql://me@db.example"), "postgres");
        assert_eq!(database("postgresql://me@db.example/shop"), "shop");
        assert!(parse("postgres:").is_err());
        assert!(parse("/run/db").is_err());
        assert!(parse("socket:").is_err());
    }
}
