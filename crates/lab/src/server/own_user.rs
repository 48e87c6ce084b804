//! The user that a private server runs as.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use rustix::process::geteuid;

use crate::child::die_with_parent;

/// User and group of a server, which no account has: in systemd's range for dynamic users (61184 to 65519), which packages leave alone.
/// Without root everything is done as who we are.
#[derive(Debug, Clone, Copy)]
pub(super) struct OwnUser(pub(super) u32);

impl OwnUser {
    /// Makes the directory, gives it to the user, and closes it to everybody else.
    ///
    /// # Errors
    /// The user cannot walk to it; names the directory in its way.
    pub(super) fn own(self, directory: &Path) -> Result<()> {
        fs::create_dir_all(directory).with_context(|| format!("making {}", directory.display()))?;
        fs::set_permissions(directory, fs::Permissions::from_mode(0o700))
            .with_context(|| format!("closing {} to other users", directory.display()))?;
        self.give(directory)?;
        self.check_way(directory)
    }

    pub(super) fn give(self, path: &Path) -> Result<()> {
        if !geteuid().is_root() {
            return Ok(());
        }
        chown(path, Some(self.0), Some(self.0))
            .with_context(|| format!("giving {} to user {}", path.display(), self.0))
    }

    /// A server's own message does not say where it stumbles.
    pub(super) fn check_way(self, directory: &Path) -> Result<()> {
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

    /// As this user, and never longer than we live.
    pub(super) fn run(self, command: &mut Command) -> &mut Command {
        if geteuid().is_root() {
            command.uid(self.0).gid(self.0);
        }
        // After the change of user, which clears the request to die with the parent.
        die_with_parent(command)
    }

    /// As [`OwnUser::run`], for a program that starts others: they are alone in a process namespace, which ends with the
    /// first of them, and that one ends with us. Without root the program alone ends with us.
    pub(super) fn command_with_all_children(self, program: &Path) -> Command {
        self.command_in_namespaces(&[], &[], program)
    }

    /// As [`OwnUser::command_with_all_children`], in more namespaces (options of unshare(1)); `before` is a command that does something in
    /// them as root, and then what its further arguments say.
    pub(super) fn command_in_namespaces(
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
