//! Reads a records file, and refuses one that it would misread.

mod doubts;

use std::fmt::Display;
use std::path::{Path, PathBuf};

use itertools::Itertools as _;
use spindle_base::{Mistake, near};

use super::records_file::{FILE_NAME, RESULTS, encode};
use super::{FORMAT, Header, Line, Trial, Warning, masking};

/// Number of runs in a message.
const RUNS_MOST: usize = 4;

/// A parsed records file.
#[derive(Debug, Clone)]
pub struct Records {
    pub header: Header,
    pub trials: Vec<Trial>,
    /// Notes for the reader of the report about the file itself, as sentences.
    pub notes: Vec<String>,
}

impl Records {
    /// The file that a run of this version would have written: of today's format, and without the warnings
    /// that follow from a measurement.
    pub fn text(&self) -> String {
        let header = Header { format: FORMAT, ..self.header.clone() };
        let trials = self.trials.iter().cloned().map(|mut trial| {
            trial.warnings.retain(|warning| !warning.is_of_few_events());
            Line::Trial(trial)
        });
        std::iter::once(Line::Header(header)).chain(trials).map(encode).collect()
    }

    /// What a trial of this cell took on the clock so far. `None` without one.
    pub fn mean_real_s(&self, cell: &str) -> Option<f64> {
        let trials = self.trials.iter().filter(|trial| trial.cell == cell);
        let times: Vec<f64> = trials.map(Trial::real_s).filter(|time_s| *time_s > 0.0).collect();
        spindle_stats::mean(&times)
    }
}

/// The records file: the path itself, or the file in the directory of a run.
pub fn records_path(path: &Path) -> PathBuf {
    if path.is_dir() { path.join(FILE_NAME) } else { path.to_owned() }
}

/// Reads a file, or the one in the directory of a run. The mistake names the file, the line and the remedy.
pub fn read(path: &Path) -> Result<Records, Mistake> {
    let given = path;
    let path = records_path(given);
    if given.is_dir() && !path.exists() {
        let words = format!("{}: holds no {FILE_NAME}; name the directory of one run", given.display());
        return Err(Mistake::new(words));
    }
    let file = path.display();
    let bytes = std::fs::read(&path).map_err(|error| {
        let is_missing = error.kind() == std::io::ErrorKind::NotFound;
        let reason =
            if is_missing { missing(Path::new(RESULTS)) } else { format!("cannot be read: {error}") };
        Mistake::new(format!("{file}: {reason}"))
    })?;
    parse(&String::from_utf8_lossy(&bytes), file)
}

/// The reason for a run that is not there, with the runs that are, the last ones first.
fn missing(results: &Path) -> String {
    let entries = std::fs::read_dir(results).into_iter().flatten().flatten().map(|entry| entry.path());
    let changed = |run: &PathBuf| std::fs::metadata(run.join(FILE_NAME)).and_then(|of| of.modified()).ok();
    let mut runs: Vec<_> = entries.filter_map(|run| Some((changed(&run)?, run))).collect();
    runs.sort_by(|a, b| b.cmp(a));
    let runs: Vec<String> = runs.iter().map(|(_, run)| run.display().to_string()).take(RUNS_MOST).collect();
    let runs: Vec<&str> = runs.iter().map(String::as_str).collect();
    let none = || format!("`spindle run` puts the directory of each run into {}", results.display());
    let where_they_are =
        if runs.is_empty() { none() } else { format!("the last runs here: {}", near::list(&runs)) };
    format!("does not exist; {where_they_are}")
}

/// Parses records. `file` is used in messages only.
pub fn parse(text: &str, file: impl Display) -> Result<Records, Mistake> {
    let mut records = parse_unmasked(text, file)?;
    records.notes.extend(doubts::examine(&records.header, &mut records.trials));
    // Earlier versions stored passwords.
    masking::mask_header(&mut records.header);
    records.trials.iter_mut().for_each(masking::mask_trial);
    for trial in &mut records.trials {
        let Some(measurement) = &trial.measurement else { continue };
        let cpu_count = records.header.cpu_count();
        trial.warnings =
            trial.warnings.drain(..).flat_map(|it| it.with_own_share(measurement, cpu_count)).collect();
        trial.warnings.extend(Warning::derived(measurement));
    }
    Ok(records)
}

pub(super) fn parse_unmasked(text: &str, file: impl Display) -> Result<Records, Mistake> {
    let refused = |line: usize, words: String| Mistake::new(format!("{file}:{line}: {words}"));
    let malformed = |line: usize, reason: &dyn Display| {
        refused(line, format!("not a record ({reason}); is this a records file of `spindle run`?"))
    };
    let lines: Vec<&str> = text.lines().collect();
    let mut numbered = lines.iter().zip(1..).filter(|(line, _)| !line.trim().is_empty());
    let Some((first, line)) = numbered.next() else {
        let words = "is empty; a records file starts with a header line, as `spindle run` writes it";
        return Err(Mistake::new(format!("{file}: {words}")));
    };
    // Checks the format before the structure, because a new format changes the structure.
    let format = Line::format_of(first).map_err(|error| malformed(line, &error))?;
    if format > u64::from(FORMAT) {
        return Err(Mistake::new(format!(
            "{file}: format {format}, but this spindle reads formats up to {FORMAT}; use the spindle that wrote it, or run again"
        )));
    }
    let header = match Line::parse(first, format) {
        Ok(Line::Header(header)) if format > 0 => header,
        Err(reason) if format > 0 => return Err(malformed(line, &reason)),
        _ => return Err(malformed(line, &"the first line is no header")),
    };
    if let Some(twice) = header.cells.iter().map(|cell| &cell.name).duplicates().next() {
        let words = format!("two cells are called `{twice}`, so nobody knows whose trials are whose");
        return Err(refused(line, words));
    }
    let mut records = Records { header, trials: Vec::new(), notes: Vec::new() };
    for (content, line) in numbered {
        match Line::parse(content, format) {
            Ok(Line::Trial(trial)) => {
                if !records.header.cells.iter().any(|cell| cell.name == trial.cell) {
                    let words = format!(
                        "trial of cell `{}`, which the header does not list; do not join files of different scenarios",
                        trial.cell
                    );
                    return Err(refused(line, words));
                }
                records.trials.push(trial);
            }
            Ok(Line::Header(again)) => {
                if again.provenance.scenario_hash != records.header.provenance.scenario_hash {
                    let words =
                        "a second header with another scenario; do not join files of different scenarios";
                    return Err(refused(line, words.to_owned()));
                }
            }
            // A run that was killed during a write leaves an incomplete last line. Only that line is lost.
            // After a crash of the machine, zeros can stand in the place of what was not written.
            Err(reason)
                if line == lines.len()
                    && !text.ends_with('\n')
                    && (reason.is_eof() || content.ends_with('\0')) =>
            {
                records.notes.push("The last line of the records is incomplete and was left out.".to_owned());
            }
            Err(reason) => return Err(malformed(line, &reason)),
        }
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_is_not_there_is_told_with_those_that_are() {
        let results = tempfile::tempdir().unwrap();
        let place = results.path().display().to_string();
        assert_eq!(
            missing(results.path()),
            format!("does not exist; `spindle run` puts the directory of each run into {place}")
        );
        std::fs::create_dir_all(results.path().join("a-run")).unwrap();
        std::fs::create_dir_all(results.path().join("no-run")).unwrap();
        std::fs::write(results.path().join("a-run").join(FILE_NAME), "").unwrap();
        assert_eq!(missing(results.path()), format!("does not exist; the last runs here: `{place}/a-run`"));
    }
}
