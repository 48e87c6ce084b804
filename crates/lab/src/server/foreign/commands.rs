//! The adapter file: the commands that run a server. See docs/adapters.md.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::server::connection::endpoint;
use crate::server::settings::Settings;

/// Placeholder argument of `start`, replaced by the settings.
pub(super) const SETTINGS: &str = "{settings}";

/// The adapter file. Commands are programs with their arguments, without a shell. `{data}` and `{runtime}` in
/// them are directories.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Commands {
    /// Prints the version as one line.
    pub(super) version: Vec<String>,
    /// Makes an empty database in `{data}`.
    pub(super) prepare: Vec<String>,
    /// Stays in the foreground while the server runs.
    pub(super) start: Vec<String>,
    /// Succeeds when the server answers. Without it, the URL is tried.
    #[serde(default)]
    pub(super) ready: Vec<String>,
    /// Requests a clean shutdown, which ends `start`. Without it, `start` gets a SIGTERM.
    #[serde(default)]
    pub(super) stop: Vec<String>,
    /// URL for clients, in the form of `spindle load --server`.
    pub(super) url: String,
    /// The form of a setting in `{settings}` of `start`, with `{name}` and `{value}`. Without it, there are
    /// no settings.
    #[serde(default)]
    pub(super) setting: Option<String>,
    /// Settings for loading the database, in addition to the scenario's.
    #[serde(default)]
    pub(super) load_settings: Settings,
}

impl Commands {
    /// # Errors
    /// The file cannot be read, or is not an adapter: a sentence that begins with its path.
    pub fn read(path: &Path) -> Result<Commands, String> {
        let at = |words: String| format!("{}: {words}", path.display());
        let text = std::fs::read_to_string(path).map_err(|error| at(error.to_string()))?;
        let commands: Commands =
            toml::from_str(&text).map_err(|error| at(error.message().replace('\n', " ")))?;
        commands.check().map_err(at)?;
        Ok(commands)
    }

    pub(super) fn check(&self) -> Result<(), String> {
        let required = [("version", &self.version), ("prepare", &self.prepare), ("start", &self.start)];
        if let Some((key, _)) = required.iter().find(|(_, command)| command.is_empty()) {
            return Err(format!("{key}: is empty; name a program and its arguments"));
        }
        let has_place = self.start.iter().any(|argument| argument == SETTINGS);
        if has_place != self.setting.is_some() {
            let words =
                "belong together: the first is the form of a setting, the second the place of all settings";
            return Err(format!("setting: `setting` and an argument `{SETTINGS}` of `start` {words}"));
        }
        endpoint::parse(&self.url.replace("{runtime}", "/run").replace("{data}", "/data"))
            .map(drop)
            .map_err(|words| format!("url: {words}"))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::server::foreign) const GOOD: &str = "version = [\"a\"]\nprepare = [\"b\", \"{data}\"]\nstart = [\"c\", \"{settings}\"]\n\
                        url = \"socket:{runtime}/s\"\nsetting = \"--{name}={value}\"\n";

    #[track_caller]
    fn check(from: &str, to: &str, expect: &str) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a.toml");
        std::fs::write(&file, GOOD.replacen(from, to, 1)).unwrap();
        let words = Commands::read(&file).unwrap_err();
        assert!(words.contains(expect), "{words}");
    }

    #[test]
    fn an_invalid_adapter_is_refused_with_its_key() {
        check("url = \"socket:{runtime}/s\"", "url = \"here\"", "url: write `socket:/path`");
        check("start = [\"c\", \"{settings}\"]", "start = [\"c\"]", "setting: `setting` and an argument");
        check("version = [\"a\"]", "version = []", "version: is empty");
        check("setting =", "settings =", "unknown field `settings`");
        check("prepare = [\"b\", \"{data}\"]\n", "", "missing field `prepare`");
    }
}
