//! Ownership of an unpacked server. An archive carries the users and modes of its author. Its program is
//! started as root before it becomes another user, so nobody else may change it.

use std::fs::{self, Metadata, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown};
use std::path::{Component, Path};

use anyhow::{Context, Result, bail};
use rustix::process::{getegid, geteuid};

/// Others' right to write, and setuid and setgid.
const UNWANTED: u32 = 0o6022;

/// Gives the whole tree to us: everybody can read it, nobody else can write it.
///
/// # Errors
/// It has a link that leads out of it, or something other than a directory, file or link.
pub(super) fn secure(root: &Path) -> Result<()> {
    walk(root, 0, &mut |path, depth, found| {
        lchown(path, Some(geteuid().as_raw()), Some(getegid().as_raw()))
            .with_context(|| format!("taking {} over", path.display()))?;
        if found.is_symlink() {
            let target = fs::read_link(path).with_context(|| format!("reading {}", path.display()))?;
            if leaves(&target, depth) {
                bail!("{} is a link out of the package, to {}", path.display(), target.display());
            }
            return Ok(());
        }
        if !found.is_dir() && !found.is_file() {
            bail!("{} is neither directory, file nor link", path.display());
        }
        let mode = if found.is_dir() || found.mode() & 0o100 != 0 { 0o755 } else { 0o644 };
        fs::set_permissions(path, Permissions::from_mode(mode))
            .with_context(|| format!("setting the mode of {}", path.display()))
    })
}

/// The fault of the first entry that another user may change; `None` if the whole tree is in the state that
/// [`secure`] leaves.
pub(super) fn complaint(root: &Path) -> Option<String> {
    walk(root, 0, &mut |path, _, found| {
        let us = geteuid().as_raw();
        if ![0, us].contains(&found.uid()) {
            bail!("{} belongs to user {}", path.display(), found.uid());
        }
        if !found.is_symlink() && found.mode() & UNWANTED != 0 {
            bail!("{} has the mode {:o}", path.display(), found.mode() & 0o7777);
        }
        Ok(())
    })
    .err()
    .map(|error| format!("{error:#}"))
}

/// Visits everything from the root on, with its depth below the root. Links are not followed.
fn walk(
    path: &Path,
    depth: usize,
    visit: &mut dyn FnMut(&Path, usize, &Metadata) -> Result<()>,
) -> Result<()> {
    let found = fs::symlink_metadata(path).with_context(|| format!("looking at {}", path.display()))?;
    visit(path, depth, &found)?;
    if found.is_dir() {
        for entry in fs::read_dir(path).with_context(|| format!("reading {}", path.display()))? {
            walk(&entry?.path(), depth + 1, visit)?;
        }
    }
    Ok(())
}

/// Whether a link at that depth leads above the root. Its steps upwards must come first: behind the name of
/// another link they would start somewhere else.
fn leaves(target: &Path, depth: usize) -> bool {
    let mut parts = target.components();
    let upwards = parts.by_ref().take_while(|part| *part == Component::ParentDir).count();
    let goes_on = target
        .components()
        .skip(upwards)
        .any(|part| !matches!(part, Component::Normal(_) | Component::CurDir));
    upwards >= depth.max(1) || goes_on
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{chown, symlink};

    use super::*;

    #[test]
    fn a_link_may_lead_anywhere_inside() {
        let check =
            |target: &str, depth, expect| assert_eq!(leaves(Path::new(target), depth), expect, "{target}");
        check("mysqld", 1, false);
        check("./mysqld", 1, false);
        check("../share/english", 2, false);
        check("..", 2, false);
        check("..", 1, true);
        check("../../etc", 2, true);
        check("/etc", 5, true);
        check("share/../../..", 5, true);
    }

    #[test]
    fn unpacked_files_become_ours_and_nobody_else_may_write_them() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("server");
        let [program, text, outside] =
            [root.join("bin/mysqld"), root.join("bin/text"), directory.path().join("outside")];
        fs::create_dir_all(root.join("bin")).unwrap();
        for (path, mode) in [(&program, 0o4777), (&text, 0o666), (&outside, 0o600)] {
            fs::write(path, "").unwrap();
            if geteuid().is_root() {
                chown(path, Some(1_000), Some(1_000)).unwrap();
            }
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        }
        symlink("mysqld", root.join("bin/link")).unwrap();
        assert!(complaint(&root).is_some());
        secure(&root).unwrap();
        assert_eq!(complaint(&root), None);
        let found = |path: &Path| {
            let found = fs::metadata(path).unwrap();
            (found.uid() == geteuid().as_raw(), found.mode() & 0o7777)
        };
        assert_eq!(
            [found(&root), found(&program), found(&text)],
            [(true, 0o755), (true, 0o755), (true, 0o644)]
        );

        symlink("../../outside", root.join("bin/planted")).unwrap();
        let error = secure(&root).unwrap_err().to_string();
        assert!(error.contains("planted is a link out of the package"), "{error}");
        assert_eq!(found(&outside).1, 0o600, "it was followed");
    }
}
