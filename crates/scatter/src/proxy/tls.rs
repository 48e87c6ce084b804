//! The certificate with which the proxy shows who it is.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Reads a certificate, with those that lead to its authority behind it, and its key. Both are PEM.
///
/// # Errors
/// A file is not there or has nothing of its kind, or the key is not the certificate's.
pub fn tls(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>> {
    let reading = || format!("reading the certificate {}", certificate.display());
    let chain: Vec<CertificateDer<'_>> = CertificateDer::pem_file_iter(certificate)
        .with_context(reading)?
        .collect::<Result<_, _>>()
        .with_context(reading)?;
    let key =
        PrivateKeyDer::from_pem_file(key).with_context(|| format!("reading the key {}", key.display()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .context("choosing versions of TLS")?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .with_context(|| format!("using the certificate {}", certificate.display()))?;
    Ok(Arc::new(config))
}
