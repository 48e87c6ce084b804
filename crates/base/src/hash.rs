//! Names for contents.

use serde::Serialize;
use sha2::{Digest as _, Sha256};

/// SHA-256 of the JSON of a value, in hexadecimal, 16 digits: enough to tell contents apart, short enough for
/// names.
pub fn content_hash(value: &impl Serialize) -> String {
    let json = serde_json::to_vec(value).expect("plain data always becomes JSON");
    Sha256::digest(&json).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}
