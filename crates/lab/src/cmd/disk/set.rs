//! `--set KEY=VALUE`: parameters of a profile or a stack for one command.

use clap::Args;

#[derive(Debug, Clone, Default, Args)]
pub(super) struct Set {
    /// Set a parameter of the profile or stack, for example --set flush_commit="20 ms"; repeatable. `spindle
    /// disk show NAME` shows the keys.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse)]
    set: Vec<(String, toml::Value)>,
}

impl Set {
    /// The keys of a stack table. The last value of a key counts.
    pub(super) fn table(&self) -> toml::Table {
        self.set.iter().cloned().collect()
    }
}

/// The value is TOML, or a text without its quotes.
fn parse(text: &str) -> Result<(String, toml::Value), String> {
    let (key, value) = text.split_once('=').ok_or("write KEY=VALUE, for example flush_commit=\"20 ms\"")?;
    let (key, value) = (key.trim(), value.trim());
    if key.is_empty() || value.is_empty() {
        return Err("write KEY=VALUE, for example flush_commit=\"20 ms\"".to_owned());
    }
    let parsed = value.parse::<toml::Value>();
    Ok((key.to_owned(), parsed.unwrap_or_else(|_| value.into())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_toml_or_a_text_without_quotes() {
        let check = |text: &str, expect: toml::Value| assert_eq!(parse(text).unwrap().1, expect, "{text}");
        check("flush_commit=20 ms", "20 ms".into());
        check("flush_commit = \"20 ms\"", "20 ms".into());
        check("write_cache=off", "off".into());
        check("read_retries=0.5 %", "0.5 %".into());
        check("channels=10", 10.into());
        check("flush_blocks_queue=true", true.into());
        check("missing_members=[1]", toml::Value::Array(vec![1.into()]));
    }

    #[test]
    fn a_key_without_a_value_is_refused() {
        for text in ["flush_commit", "flush_commit=", "=20 ms"] {
            assert_eq!(parse(text).unwrap_err(), "write KEY=VALUE, for example flush_commit=\"20 ms\"");
        }
    }
}
