//! The user that a private server runs as.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown, lchown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, bail};
use rustix::fs::OFlags;
use rustix::process::geteuid;

use super::{QUESTION_PATIENCE, output_within};
use crate::server::instance::Instance;
use spindle_base::child::{RunAs, die_with_parent};

/// User and group of a server without an account. The number is in systemd's range for dynamic users (61184
/// to 65519), which packages do not use. Without root, everything runs as the present user.
#[derive(Debug, Clone, Copy)]
pub(in crate::server) struct OwnUser(pub(in crate::server) u32);

/// User of the foreign tools that are the clients of a server. Its group may pass through a server's runtime
/// directory to the socket.
pub(in crate::server) const TOOLS: OwnUser = OwnUser(61_420);

/// Path of root's files for a server. They are outside the directory of the server's user, who could replace
/// them by links.
pub(in crate::server) fn beside(runtime_directory: &Path, name: &str) -> PathBuf {
    let mut file_name = runtime_directory.file_name().unwrap_or_default().to_owned();
    file_name.push(format!(".{name}"));
    runtime_directory.with_file_name(file_name)
}

/// Creates a new file for us alone, replacing any file of that name. A link is replaced, never followed.
pub(in crate::server) fn new_file(path: &Path) -> Result<File> {
    let make = || {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        OpenOptions::new().read(true).append(true).create_new(true).mode(0o600).open(path)
    };
    make().with_context(|| format!("making {}", path.display()))
}

impl OwnUser {
    /// Makes the directory, gives it to the user, and closes it to all others.
    ///
    /// # Errors
    /// It is a link. The user cannot reach it; names the directory in its way.
    pub(in crate::server) fn own(self, directory: &Path) -> Result<()> {
        self.own_with_group(directory, self.0, 0o700)
    }

    /// Gives the user all directories of an instance, and one for temporary files. Foreign tools can pass
    /// through the runtime directory.
    pub(in crate::server) fn own_instance(
        self,
        instance: &Instance,
        temporary: Option<PathBuf>,
    ) -> Result<()> {
        let directories = [&instance.data_directory].into_iter().chain(instance.class_directories.values());
        directories.chain(&temporary).try_for_each(|directory| self.own(directory))?;
        self.own_with_group(&instance.runtime_directory, TOOLS.0, 0o710)
    }

    fn own_with_group(self, directory: &Path, group: u32, mode: u32) -> Result<()> {
        fs::create_dir_all(directory).with_context(|| format!("making {}", directory.display()))?;
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW;
        let opened = OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(directory);
        let opened =
            opened.with_context(|| format!("{} is not a directory of its own", directory.display()))?;
        opened
            .set_permissions(fs::Permissions::from_mode(mode))
            .with_context(|| format!("closing {} to other users", directory.display()))?;
        self.give(&opened, group)
            .with_context(|| format!("giving {} to user {}", directory.display(), self.0))?;
        self.check_way(directory)
    }

    /// Writes a new file that only this user can read.
    pub(in crate::server) fn write(self, path: &Path, content: &[u8]) -> Result<()> {
        let mut file = new_file(path)?;
        file.write_all(content)
            .and_then(|()| self.give(&file, self.0))
            .with_context(|| format!("writing {}", path.display()))
    }

    fn give(self, opened: &File, group: u32) -> io::Result<()> {
        if geteuid().is_root() { fchown(opened, Some(self.0), Some(group)) } else { Ok(()) }
    }

    /// Gives the user a directory and its content, all of it made by us alone. The directory goes last.
    pub(in crate::server) fn give_all(self, directory: &Path) -> Result<()> {
        if !geteuid().is_root() {
            return Ok(());
        }
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            match entry.file_type()?.is_dir() {
                true => self.give_all(&entry.path())?,
                false => lchown(entry.path(), Some(self.0), Some(self.0))?,
            }
        }
        Ok(lchown(directory, Some(self.0), Some(self.0))?)
    }

    /// Checks that the user can reach the directory. A server's own message does not name the obstacle.
    pub(in crate::server) fn check_way(self, directory: &Path) -> Result<()> {
        if !geteuid().is_root() {
            return Ok(());
        }
        let directory =
            directory.canonicalize().with_context(|| format!("looking at {}", directory.display()))?;
        for ancestor in directory.ancestors().skip(1) {
            let metadata =
                fs::metadata(ancestor).with_context(|| format!("looking at {}", ancestor.display()))?;
            if metadata.mode() & 0o001 == 0 && metadata.uid() != self.0 {
                bail!(
                    "the server runs as user {}, which may not enter {}; use another directory, \
                     or allow it with `chmod o+x`",
                    self.0,
                    ancestor.display()
                );
            }
        }
        Ok(())
    }

    /// Runs the command as this user; it dies with us.
    pub(in crate::server) fn run(self, command: &mut Command) -> &mut Command {
        // After the change of user, which clears the request to die with the parent.
        die_with_parent(RunAs::User(self.0).apply(command))
    }

    /// Runs a program that only reports something, as this user.
    pub(in crate::server) fn ask(self, command: &mut Command) -> Result<Output> {
        let program = command.get_program().to_string_lossy().into_owned();
        let command = self.run(command.current_dir("/").stdin(Stdio::null()));
        output_within(command, QUESTION_PATIENCE).with_context(|| format!("asking {program}"))
    }

    /// Like [`OwnUser::run`], for a program that starts others. They are alone in a process namespace, which
    /// ends with its first process, and that one dies with us. Without root, only the program dies with us.
    pub(in crate::server) fn command_with_all_children(self, program: &Path) -> Command {
        self.command_in_namespaces(&[], &[], program)
    }

    /// Like [`OwnUser::command_with_all_children`], in further namespaces (options of unshare(1)). `before`
    /// is a command that runs in them as root, and then runs its further arguments.
    pub(in crate::server) fn command_in_namespaces(
        self,
        namespaces: &[&str],
        before: &[&std::ffi::OsStr],
        program: &Path,
    ) -> Command {
        if !geteuid().is_root() {
            let mut command = Command::new(program);
            die_with_parent(&mut command);
            return command;
        }
        let user = self.0.to_string();
        let mut command = Command::new("unshare");
        command
            .args(namespaces)
            .args(["--pid", "--fork", "--kill-child", "--"])
            .args(before)
            .args(["setpriv", "--clear-groups", "--pdeathsig", "KILL"])
            .args(["--reuid", &user, "--regid", &user, "--"])
            .arg(program);
        die_with_parent(&mut command);
        command
    }
}
