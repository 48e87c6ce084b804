mod drives;
mod endurance;
mod overrides;
mod pools;
mod profiles;
mod tables;
mod whole;

use super::*;

fn check_stack(text: &str, name: &str, expect: &str) {
    let resolved = StackFile::parse("s.toml", text).and_then(|file| file.resolve("s.toml", name));
    assert_eq!(resolved.map(|_| "accepted".to_owned()).unwrap_or_else(|error| error.to_string()), expect);
}
