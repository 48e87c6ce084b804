//! Who may connect, and the proof of a password that never travels.

use std::fmt::{self, Debug, Formatter};

use mysql_common::packets::AuthPlugin;
use mysql_common::scramble::{scramble_native, scramble_sha256};

/// A way to prove a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plugin {
    /// `mysql_native_password`.
    Native,
    /// `caching_sha2_password`. The proxy knows the password, so its fast path is enough.
    CachingSha2,
}

impl Plugin {
    pub fn name(self) -> &'static str {
        match self {
            Plugin::Native => "mysql_native_password",
            Plugin::CachingSha2 => "caching_sha2_password",
        }
    }

    pub(super) fn of(plugin: &AuthPlugin<'_>) -> Option<Plugin> {
        match plugin {
            AuthPlugin::MysqlNativePassword => Some(Plugin::Native),
            AuthPlugin::CachingSha2Password => Some(Plugin::CachingSha2),
            _ => None,
        }
    }

    /// What proves a password to someone who sent these random bytes; `None` for the empty password.
    fn proof(self, nonce: &[u8], password: &str) -> Option<Vec<u8>> {
        match self {
            Plugin::Native => scramble_native(nonce, password.as_bytes()).map(Vec::from),
            Plugin::CachingSha2 => scramble_sha256(nonce, password.as_bytes()).map(Vec::from),
        }
    }
}

#[derive(Clone)]
pub struct User {
    pub name: String,
    pub password: String,
    /// The only one that is accepted; `None` accepts that of the client.
    pub plugin: Option<Plugin>,
}

impl Debug for User {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("User").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Without any, everybody is let in who has no password.
#[derive(Debug, Clone, Default)]
pub struct Users(pub Vec<User>);

impl Users {
    /// Whether nobody is let in without a password.
    pub fn have_passwords(&self) -> bool {
        !self.0.is_empty() && self.0.iter().all(|user| !user.password.is_empty())
    }

    pub(super) fn plugin_of(&self, name: &str) -> Option<Plugin> {
        self.find(name).and_then(|user| user.plugin)
    }

    fn find(&self, name: &str) -> Option<&User> {
        self.0.iter().find(|user| user.name == name)
    }

    /// Whether `proof` proves that a client is this user.
    pub(super) fn admits(&self, name: &str, plugin: Plugin, nonce: &[u8], proof: &[u8]) -> bool {
        let password = match self.find(name) {
            Some(user) => user.password.as_str(),
            None if self.0.is_empty() => "",
            None => return false,
        };
        match plugin.proof(nonce, password) {
            // Some clients end the empty password with its zero.
            None => matches!(proof, [] | [0]),
            Some(expected) => is_equal(&expected, proof),
        }
    }
}

/// In a time that does not depend on the bytes.
fn is_equal(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |sum, (one, other)| sum | (one ^ other)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn users() -> Users {
        let user = |name: &str, password: &str| User {
            name: name.to_owned(),
            password: password.to_owned(),
            plugin: None,
        };
        Users(vec![user("a", "secret"), user("b", "")])
    }

    #[test]
    fn a_user_is_admitted_by_the_proof_of_the_password() {
        let nonce = [7; 20];
        for plugin in [Plugin::Native, Plugin::CachingSha2] {
            let right = plugin.proof(&nonce, "secret").unwrap();
            let wrong = plugin.proof(&nonce, "Secret").unwrap();
            assert!(users().admits("a", plugin, &nonce, &right));
            assert!(!users().admits("a", plugin, &nonce, &wrong));
            assert!(!users().admits("a", plugin, &[8; 20], &right));
            assert!(!users().admits("a", plugin, &nonce, &[]));
            assert!(users().admits("b", plugin, &nonce, &[]));
            assert!(!users().admits("c", plugin, &nonce, &[]));
            assert!(Users::default().admits("c", plugin, &nonce, &[]));
        }
    }

    #[test]
    fn a_password_is_not_shown() {
        assert!(!format!("{:?}", users()).contains("secret"));
        assert!(!users().have_passwords() && !Users::default().have_passwords());
        assert!(Users(users().0[..1].to_vec()).have_passwords());
    }
}
