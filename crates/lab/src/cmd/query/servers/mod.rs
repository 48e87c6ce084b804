//! The servers of a query, by the options that all of its commands share.

mod config;
mod ini;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use spindle_base::Mistake;
use spindle_load::Endpoint;
use spindle_load::sql::describe;
use spindle_load::sql::mysql::options;
use spindle_scatter::mapping::Mapping;
use spindle_scatter::servers::Server;
use spindle_scatter::shards::Cluster;

use crate::server::endpoint;

#[derive(Debug, Args)]
pub(super) struct ServersArguments {
    /// The server, MariaDB or MySQL, and the database: `mysql://user:password@host:port/database` or
    /// `socket:/path`; several are shards. A URL without a password takes it from the environment variable MYSQL_PWD.
    #[arg(long, value_name = "URL", value_delimiter = ',', value_parser = endpoint::parse_to_query)]
    server: Vec<Endpoint>,
    /// Column by which the tables of several servers are sharded, each value on one of them by its hash.
    #[arg(long, value_name = "NAME", requires = "server")]
    column: Option<String>,
    /// TOML file of shards: servers, the column by which tables are sharded, and where each value is.
    #[arg(long, value_name = "FILE", conflicts_with = "server")]
    config: Option<PathBuf>,
    /// Shards as the ini file of Shard-Query has them.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["server", "config"])]
    ini: Option<PathBuf>,
}

/// What a file says of shards.
#[derive(Debug, PartialEq)]
struct ShardsFile {
    /// Names and addresses.
    shards: Vec<(String, Endpoint)>,
    mapping: Mapping,
    /// For people.
    notices: Vec<String>,
}

impl ServersArguments {
    /// The servers, to which nobody has connected yet.
    pub(super) fn cluster(&self) -> Result<Cluster> {
        if !self.server.is_empty() {
            return self.of_urls();
        }
        let read = match (&self.config, &self.ini) {
            (Some(path), _) => read(path, config::parse)?,
            (_, Some(path)) => read(path, ini::parse)?,
            _ => {
                return Err(
                    Mistake::new("name the servers: --server URL, --config FILE or --ini FILE").into()
                );
            }
        };
        read.notices.iter().for_each(|notice| eprintln!("{notice}"));
        let named = |(name, endpoint): &(String, Endpoint)| {
            server(format!("{name} ({})", describe(endpoint)), endpoint)
        };
        let servers = read.shards.iter().map(named).collect::<Result<_>>()?;
        Ok(Cluster { servers, mapping: Some(read.mapping) })
    }

    fn of_urls(&self) -> Result<Cluster> {
        let of = |endpoint: &Endpoint| server(describe(endpoint), endpoint);
        let servers = self.server.iter().map(of).collect::<Result<Vec<_>>>()?;
        let mapping =
            self.column.as_ref().map(|column| Mapping { column: column.clone(), ..Mapping::default() });
        match (servers.len() > 1, &mapping) {
            (true, None) => {
                let words = "several servers are shards: name the column by which their tables are sharded";
                Err(Mistake::of_flag("column", words).into())
            }
            (false, Some(_)) => Err(Mistake::of_flag("column", "one server has all rows").into()),
            _ => Ok(Cluster { servers, mapping }),
        }
    }
}

fn read(path: &Path, parse: impl Fn(&str) -> Result<ShardsFile, Mistake>) -> Result<ShardsFile> {
    let text =
        fs::read_to_string(path).map_err(|error| Mistake::new(error.to_string()).in_file(path.display()))?;
    Ok(parse(&text).map_err(|mistake| mistake.in_file(path.display()))?)
}

fn server(name: String, endpoint: &Endpoint) -> Result<Server> {
    Ok(Server { name, options: options(endpoint, true)?.into() })
}
