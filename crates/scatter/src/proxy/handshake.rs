//! How a client and the proxy get to know each other: the greeting, TLS, and the proof of a password.

use std::net::IpAddr;
use std::sync::Arc;

use mysql_common::constants::{CapabilityFlags, StatusFlags};
use mysql_common::io::ParseBuf;
use mysql_common::packets::{AuthSwitchRequest, HandshakePacket, HandshakeResponse};
use mysql_common::proto::MySerialize;
use rustls::ServerConfig;

use super::backend::Wishes;
use super::fault::{Broken, Fault};
use super::users::{Plugin, Users};
use super::wire::Packets;

/// What the proxy can do. It has no several statements or results in one command and no files of the client.
const CAPABILITIES: CapabilityFlags = CapabilityFlags::CLIENT_LONG_PASSWORD
    .union(CapabilityFlags::CLIENT_LONG_FLAG)
    .union(CapabilityFlags::CLIENT_CONNECT_WITH_DB)
    .union(CapabilityFlags::CLIENT_PROTOCOL_41)
    .union(CapabilityFlags::CLIENT_TRANSACTIONS)
    .union(CapabilityFlags::CLIENT_SECURE_CONNECTION)
    .union(CapabilityFlags::CLIENT_PLUGIN_AUTH)
    .union(CapabilityFlags::CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA)
    .union(CapabilityFlags::CLIENT_CONNECT_ATTRS)
    .union(CapabilityFlags::CLIENT_DEPRECATE_EOF);
/// utf8mb4_general_ci.
const COLLATION: u8 = 45;
/// The packet in which a client asks for TLS has nothing else.
const TLS_REQUEST_BYTES: usize = 32;

/// Random bytes that a proof of a password must contain. None is zero, because clients take zero for their end.
pub(super) type Nonce = [u8; 20];

/// What the proxy says of itself.
#[derive(Debug)]
pub(super) struct Greeting<'a> {
    pub(super) version: &'a str,
    pub(super) id: u32,
    pub(super) tls: Option<&'a Arc<ServerConfig>>,
}

/// What a client said of itself, whether true or not.
#[derive(Debug)]
pub(super) struct Claim {
    pub(super) capabilities: CapabilityFlags,
    pub(super) user: String,
    plugin: Option<Plugin>,
    proof: Vec<u8>,
    pub(super) wishes: Wishes,
}

pub(super) fn nonce() -> Result<Nonce, Broken> {
    let mut bytes = Nonce::default();
    getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
    Ok(bytes.map(|byte| byte % 94 + 33))
}

/// Greets a client and hears who it is.
pub(super) fn greet(packets: &mut Packets, greeting: &Greeting<'_>, nonce: &Nonce) -> Result<Claim, Broken> {
    let mut offered = CAPABILITIES;
    offered.set(CapabilityFlags::CLIENT_SSL, greeting.tls.is_some());
    let mut rest = nonce[8..].to_vec();
    rest.push(0);
    let first = nonce[..8].try_into().expect("a nonce has 20 bytes");
    let packet = HandshakePacket::new(
        10,
        greeting.version.as_bytes(),
        greeting.id,
        first,
        Some(rest),
        offered,
        COLLATION,
        StatusFlags::SERVER_STATUS_AUTOCOMMIT,
        Some(Plugin::Native.name().as_bytes()),
    );
    let mut payload = Vec::new();
    packet.serialize(&mut payload);
    packets.put(&payload)?;
    packets.send()?;
    let mut answer = packets.read()?.ok_or_else(Broken::left)?;
    if let (Some(tls), true) = (greeting.tls, answer.len() == TLS_REQUEST_BYTES) {
        packets.secure(Arc::clone(tls))?;
        answer = packets.read()?.ok_or_else(Broken::left)?;
    }
    let response: HandshakeResponse<'_> = ParseBuf(&answer).parse(()).map_err(|_| Broken::bad_handshake())?;
    let capabilities = response.capabilities() & offered;
    if !capabilities.contains(CapabilityFlags::CLIENT_PROTOCOL_41 | CapabilityFlags::CLIENT_SECURE_CONNECTION)
    {
        return Err(Broken::bad_handshake());
    }
    let plugin = match response.auth_plugin() {
        Some(plugin) => Plugin::of(plugin),
        None => Some(Plugin::Native),
    };
    Ok(Claim {
        capabilities,
        user: String::from_utf8_lossy(response.user()).into_owned(),
        plugin,
        proof: response.scramble_buf().to_vec(),
        wishes: Wishes {
            database: database(response.db_name().unwrap_or_default()),
            collation: response.collation().into(),
        },
    })
}

/// The claim of a client that is known already, after the command's byte.
pub(super) fn change_user(payload: &[u8], capabilities: CapabilityFlags) -> Result<Claim, Broken> {
    let mut rest = ParseBuf(payload);
    let user = String::from_utf8_lossy(rest.eat_null_str()).into_owned();
    let proof = rest.checked_eat_u8_str().ok_or_else(Fault::malformed)?.to_vec();
    let database = database(rest.eat_null_str());
    let collation = rest.checked_eat_u16_le().unwrap_or(COLLATION.into());
    let plugin = match rest.eat_null_str() {
        b"" => Some(Plugin::Native),
        name => Plugin::of(&mysql_common::packets::AuthPlugin::from_bytes(name)),
    };
    Ok(Claim { capabilities, user, plugin, proof, wishes: Wishes { database, collation } })
}

fn database(name: &[u8]) -> Option<String> {
    (!name.is_empty()).then(|| String::from_utf8_lossy(name).into_owned())
}

/// Checks a claim. A client whose first proof is none may be asked for another one once: it may have meant another plugin or
/// another nonce.
///
/// # Errors
/// 1045, with nothing about what was wrong.
pub(super) fn authenticate(
    packets: &mut Packets,
    users: &Users,
    claim: &Claim,
    first_nonce: &Nonce,
    host: Option<IpAddr>,
) -> Result<(), Broken> {
    let wanted = users.plugin_of(&claim.user);
    let plugin = wanted.or(claim.plugin).unwrap_or(Plugin::Native);
    let is_plugin_right = claim.plugin == Some(plugin);
    let mut proof = claim.proof.clone();
    let mut is_admitted = is_plugin_right && users.admits(&claim.user, plugin, first_nonce, &proof);
    if !is_admitted && claim.capabilities.contains(CapabilityFlags::CLIENT_PLUGIN_AUTH) {
        let nonce = nonce()?;
        let data = [&nonce[..], &[0]].concat();
        let mut payload = Vec::new();
        AuthSwitchRequest::new(plugin.name().as_bytes(), data).serialize(&mut payload);
        packets.put(&payload)?;
        packets.send()?;
        proof = packets.read()?.ok_or_else(Broken::left)?;
        is_admitted = users.admits(&claim.user, plugin, &nonce, &proof);
    }
    if !is_admitted {
        let host = host.map_or_else(|| "unknown".to_owned(), |host| host.to_string());
        let using = if proof.iter().all(|byte| *byte == 0) { "NO" } else { "YES" };
        let words = format!("Access denied for user '{}'@'{host}' (using password: {using})", claim.user);
        return Err(Fault::new(1045, b"28000", words).into());
    }
    if plugin == Plugin::CachingSha2 && proof.len() > 1 {
        // The fast path was enough.
        packets.put(&[1, 3])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_is_printable_and_never_the_same() {
        let one = nonce().unwrap();
        assert!(one.iter().all(u8::is_ascii_graphic));
        assert_ne!(one, nonce().unwrap());
    }

    #[test]
    fn a_change_of_user_has_a_name_a_proof_and_a_database() {
        let payload = b"me\0\x02abdb\0\x2d\0caching_sha2_password\0";
        let claim = change_user(payload, CapabilityFlags::empty()).unwrap();
        assert_eq!((claim.user.as_str(), claim.proof.as_slice()), ("me", &b"ab"[..]));
        assert_eq!(claim.wishes.database.as_deref(), Some("db"));
        assert_eq!((claim.wishes.collation, claim.plugin), (45, Some(Plugin::CachingSha2)));
        assert!(change_user(b"me\0\x09ab", CapabilityFlags::empty()).is_err());
    }
}
