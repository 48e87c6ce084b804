//! Records name the revision that made them, and the binary holds every profile, every price, every published study and the
//! scenarios that repeat it.

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs, io};

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}

/// Writes an array with the name and the text of each TOML file of a directory, by name.
fn list_files(directory: &str, list: &str) -> io::Result<()> {
    let directory = fs::canonicalize(format!("../../{directory}"))?;
    println!("cargo::rerun-if-changed={}", directory.display());
    let mut paths =
        fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort_by(|a, b| a.file_stem().cmp(&b.file_stem()));
    let file =
        |path: &PathBuf| format!("({:?}, include_str!({path:?})),\n", path.file_stem().unwrap_or_default());
    let array: String = paths.iter().map(file).collect();
    fs::write(format!("{}/{list}", env::var("OUT_DIR").unwrap_or_default()), format!("&[\n{array}]"))
}

/// Writes an array with the name of each study that is repeated, the text that says how, how Spindle reads its claims, and its
/// scenarios by name.
fn list_studies() -> io::Result<()> {
    let root = fs::canonicalize("../../studies")?;
    println!("cargo::rerun-if-changed={}", root.display());
    let entries = |directory: &PathBuf| -> io::Result<Vec<PathBuf>> {
        let mut paths: Vec<_> =
            fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
        paths.sort();
        Ok(paths)
    };
    let mut array = String::new();
    for folder in entries(&root)?.into_iter().filter(|path| path.is_dir()) {
        let (claims, prose) = (folder.join("claims.toml"), folder.join("study.md"));
        let is_scenario = |path: &PathBuf| path.extension().is_some_and(|it| it == "toml") && *path != claims;
        let scenarios: String = entries(&folder)?
            .iter()
            .filter(|path| is_scenario(path))
            .map(|path| format!("({:?}, include_str!({path:?})), ", path.file_stem().unwrap_or_default()))
            .collect();
        println!("cargo::rerun-if-changed={}", folder.display());
        array += &format!(
            "({:?}, include_str!({prose:?}), include_str!({claims:?}), &[{scenarios}]),\n",
            folder.file_name().unwrap_or_default()
        );
    }
    fs::write(
        format!("{}/study_folders.rs", env::var("OUT_DIR").unwrap_or_default()),
        format!("&[\n{array}]"),
    )
}

/// Compiles the preload library, whose bytes are part of the binary. It has no dependencies.
fn compile_preload_library() -> io::Result<()> {
    const SOURCE: &str = "../dilate/src";
    println!("cargo::rerun-if-changed={SOURCE}");
    let directory = env::var("OUT_DIR").unwrap_or_default();
    let status = Command::new(env::var("RUSTC").unwrap_or_default())
        .args(["--edition", "2024", "--crate-type", "cdylib", "--crate-name", "spindle_dilate"])
        .args(["-O", "-C", "panic=abort", "-C", "strip=symbols", "--target"])
        .arg(env::var("TARGET").unwrap_or_default())
        .arg(format!("{SOURCE}/lib.rs"))
        .args(["-o", &format!("{directory}/libspindle_dilate.so")])
        .status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("the preload library: {status}"))) }
}

fn main() -> io::Result<()> {
    list_files("profiles", "profiles.rs")?;
    list_files("prices", "prices.rs")?;
    list_files("published/studies", "studies.rs")?;
    list_studies()?;
    compile_preload_library()?;
    println!("cargo::rerun-if-changed=build.rs");
    // The reflog of HEAD grows with every commit and every change of branch.
    if let Some(log) =
        git(&["rev-parse", "--git-path", "logs/HEAD"]).filter(|path| std::path::Path::new(path).exists())
    {
        println!("cargo::rerun-if-changed={log}");
    }
    let revision = git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|| "unknown".to_owned());
    println!("cargo::rustc-env=SPINDLE_GIT_REVISION={revision}");
    Ok(())
}
