//! Content hashes, used as names.

use serde::Serialize;
use sha2::{Digest as _, Sha256};

/// The first 16 hexadecimal digits of the SHA-256 of a value's JSON: enough to tell contents apart, short
/// enough for names.
pub fn content_hash(value: &impl Serialize) -> String {
    let json = serde_json::to_vec(value).expect("plain data always becomes JSON");
    Sha256::digest(&json).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}
