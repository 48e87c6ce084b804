//! What the starter of a program relies on.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};

use crate::child::Probe;
use crate::library::{FACTOR, dilated, library, probe};
use crate::{clocks, remains};

fn check(probes: &[Probe]) {
    for (name, _) in probes {
        let output = dilated(&mut probe(name), FACTOR).stdin(Stdio::null()).output().unwrap();
        let (out, errors) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{name}: {out}{errors}");
    }
}

#[test]
fn what_remains_of_a_wait_is_told_in_dilated_time() {
    check(remains::CHECKS);
}

#[test]
fn clocks_of_processors_are_real_and_no_clock_goes_back() {
    check(clocks::CHECKS);
}

/// Runs a program with a mark wanted in a pipe, or in another file under the pipe's number; the lines.
fn marks(command: &mut Command, is_other: bool) -> (u32, String) {
    let (mut reader, writer) = std::io::pipe().unwrap();
    let is = File::from(std::os::fd::OwnedFd::from(writer));
    let of = if is_other { File::open("/").unwrap() } else { is.try_clone().unwrap() };
    let metadata = of.metadata().unwrap();
    let number = is.as_raw_fd();
    // SAFETY: clears the flag that would close the file in the child.
    assert_eq!(unsafe { libc::fcntl(number, libc::F_SETFD, 0) }, 0);
    command.env("SPINDLE_DILATION_MARK", format!("{number} {} {}", metadata.dev(), metadata.ino()));
    let mut child = command.stdout(Stdio::null()).spawn().unwrap();
    assert!(child.wait().unwrap().success());
    drop((is, of));
    let mut lines = String::new();
    reader.read_to_string(&mut lines).unwrap();
    (child.id(), lines)
}

#[test]
fn a_program_under_the_library_leaves_its_mark_before_it_begins() {
    let (process, lines) = marks(dilated(&mut Command::new("true"), 2.5), false);
    assert_eq!(lines, format!("{process} 2.5\n"));
    let (_, lines) = marks(dilated(Command::new("sh").args(["-c", "true; /bin/true; exit"]), 2.5), false);
    assert_eq!(lines.lines().count(), 2, "also each program that it starts: {lines}");
    let (_, lines) = marks(&mut Command::new("true"), false);
    assert_eq!(lines, "", "without the library");
    let (_, lines) = marks(dilated(&mut Command::new("true"), 2.5), true);
    assert_eq!(lines, "", "another file has the number");
}

#[test]
fn a_static_program_leaves_no_mark() {
    let directory = library().parent().unwrap();
    let (source, program) = (directory.join("static.rs"), directory.join("static"));
    File::create(&source).unwrap().write_all(b"fn main() {}").unwrap();
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let built = Command::new(compiler)
        .args(["-C", "target-feature=+crt-static"])
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .output()
        .unwrap();
    // A machine without libc.a cannot build one.
    if built.status.success() {
        let (_, lines) = marks(dilated(&mut Command::new(program), 2.5), false);
        assert_eq!(lines, "");
    }
}

#[test]
fn a_variable_that_cannot_be_read_ends_the_program() {
    for wrong in ["", "0.2 1 1", "65 1 1", "4", "four 1 1"] {
        let output = Command::new("true")
            .env("LD_PRELOAD", library())
            .env("SPINDLE_DILATION", wrong)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{wrong}");
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(
            told.starts_with("SPINDLE_DILATION is not ") && told.ends_with(&format!(": {wrong}\n")),
            "{told}"
        );
    }
    let status = Command::new("true").env("LD_PRELOAD", library()).status().unwrap();
    assert!(status.success(), "without the variable, everything passes through");
}
