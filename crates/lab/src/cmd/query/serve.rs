//! `spindle query serve`: a server of MySQL's protocol whose queries are answered in fragments.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use serde::Deserialize;
use spindle_base::Mistake;
use spindle_base::explain::read_toml;
use spindle_scatter::proxy::{Plugin, Proxy, Settings, User, Users, tls};

use super::fragments::FragmentsArguments;
use super::servers::ServersArguments;
use crate::cmd::output;
use crate::host::interrupt::Interrupt;

/// The password of `--user`.
const PASSWORD: &str = "SPINDLE_PROXY_PASSWORD";

#[derive(Debug, Args)]
pub(super) struct ServeArguments {
    #[command(flatten)]
    servers: ServersArguments,
    /// Address to listen on; port 0 takes a free port.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:33306")]
    listen: SocketAddr,
    /// The user that may connect, whose password is in the environment variable SPINDLE_PROXY_PASSWORD.
    #[arg(long, value_name = "NAME", conflicts_with = "users")]
    user: Option<String>,
    /// TOML file of the users that may connect.
    #[arg(long, value_name = "FILE")]
    users: Option<PathBuf>,
    /// PEM file of the certificate for TLS.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_certificate: Option<PathBuf>,
    /// PEM file of the certificate's key.
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    tls_key: Option<PathBuf>,
    /// Send statements that write.
    #[arg(long)]
    writable: bool,
    #[command(flatten)]
    fragments: FragmentsArguments,
    /// Clients at a time.
    #[arg(long, value_name = "NUMBER", default_value_t = 128, value_parser = clap::value_parser!(u16).range(1..))]
    clients: u16,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct UsersFile {
    users: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    #[serde(default)]
    password: String,
    plugin: Option<PluginName>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
enum PluginName {
    #[serde(rename = "mysql_native_password")]
    Native,
    #[serde(rename = "caching_sha2_password")]
    CachingSha2,
}

pub(super) fn run(arguments: &ServeArguments) -> Result<()> {
    let users = users(arguments)?;
    check_address(arguments.listen, &users)?;
    let tls = match (&arguments.tls_certificate, &arguments.tls_key) {
        (Some(certificate), Some(key)) => Some(
            tls(certificate, key)
                .map_err(|error| Mistake::of_flag("tls_certificate", format!("{error:#}")))?,
        ),
        _ => None,
    };
    let settings = Settings {
        cluster: arguments.servers.cluster()?,
        options: arguments.fragments.options(),
        users,
        tls,
        is_writable: arguments.writable,
        clients_most: arguments.clients.into(),
    };
    let interrupt = Interrupt::listen()?;
    let proxy = Proxy::bind(arguments.listen, settings)?;
    output::print(&format!("listening on {}\n", proxy.address()?))?;
    proxy.run(|| interrupt.is_set())
}

fn users(arguments: &ServeArguments) -> Result<Users, Mistake> {
    if let Some(path) = &arguments.users {
        return read(path);
    }
    let password = match std::env::var(PASSWORD) {
        Ok(password) => password,
        Err(std::env::VarError::NotPresent) => String::new(),
        Err(_) => return Err(Mistake::new(format!("{PASSWORD} is not UTF-8"))),
    };
    match &arguments.user {
        Some(name) => Ok(Users(vec![User { name: name.clone(), password, plugin: None }])),
        None if password.is_empty() => Ok(Users::default()),
        None => Err(Mistake::of_flag("user", format!("is missing: {PASSWORD} is the password of a user"))),
    }
}

fn read(path: &Path) -> Result<Users, Mistake> {
    let text = fs::read_to_string(path).map_err(|error| Mistake::new(error.to_string()));
    text.and_then(|text| parse(&text)).map_err(|mistake| mistake.in_file(path.display()))
}

fn parse(text: &str) -> Result<Users, Mistake> {
    let file: UsersFile = read_toml(text)?;
    if file.users.is_empty() {
        return Err(Mistake::at("users", "has no user; write [[users]] with a name and a password"));
    }
    let mut users: Vec<User> = Vec::new();
    for (index, entry) in file.users.into_iter().enumerate() {
        if users.iter().any(|user| user.name == entry.name) {
            let words = format!("`{}` is there already", entry.name);
            return Err(Mistake::at(format!("users[{index}].name"), words));
        }
        let plugin = entry.plugin.map(|name| match name {
            PluginName::Native => Plugin::Native,
            PluginName::CachingSha2 => Plugin::CachingSha2,
        });
        users.push(User { name: entry.name, password: entry.password, plugin });
    }
    Ok(Users(users))
}

/// Other machines must prove who they are.
fn check_address(address: SocketAddr, users: &Users) -> Result<(), Mistake> {
    if address.ip().is_loopback() || users.have_passwords() {
        return Ok(());
    }
    let words = format!(
        "{address} can be reached from other machines, where every user needs a password: name a --user and set \
         {PASSWORD}, or give all --users passwords"
    );
    Err(Mistake::of_flag("listen", words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_have_names_passwords_and_plugins() {
        let users = parse(
            "[[users]]\nname = \"a\"\npassword = \"x\"\n[[users]]\nname = \"b\"\nplugin = \"caching_sha2_password\"\n",
        )
        .unwrap();
        assert_eq!(users.0[0].password, "x");
        assert_eq!(users.0[1].plugin, Some(Plugin::CachingSha2));
        assert!(!users.have_passwords());
    }

    #[test]
    fn a_file_of_users_without_sense_is_refused() {
        let check = |text: &str, expect: &str| assert_eq!(parse(text).unwrap_err().to_string(), expect);
        check("users = []", "users: has no user; write [[users]] with a name and a password");
        check("[[users]]\nname = \"a\"\n[[users]]\nname = \"a\"", "users[1].name: `a` is there already");
    }

    #[test]
    fn other_machines_need_passwords() {
        let user = |password: &str| {
            Users(vec![User { name: "a".to_owned(), password: password.to_owned(), plugin: None }])
        };
        let check = |address: &str, users: &Users| check_address(address.parse().unwrap(), users).is_ok();
        assert!(check("127.0.0.1:1", &Users::default()) && check("[::1]:1", &user("")));
        assert!(!check("0.0.0.0:1", &Users::default()) && !check("0.0.0.0:1", &user("")));
        assert!(check("0.0.0.0:1", &user("x")));
    }
}
