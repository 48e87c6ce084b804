//! Reads a records file, and refuses one that it would misread.

use std::path::Path;

use crate::record::masking;
use crate::record::{FORMAT, Header, Line, Trial};

/// A parsed records file.
#[derive(Debug, Clone)]
pub struct Records {
    pub header: Header,
    pub trials: Vec<Trial>,
    /// Notes for the reader of the report about the file itself, as sentences.
    pub notes: Vec<String>,
}

/// Mistakes of the user. Each names the file, the line and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("{file}: cannot be read: {source}")]
    Unreadable { file: String, source: std::io::Error },
    #[error("{file}: is empty; a records file starts with a header line, as `spindle run` writes it")]
    Empty { file: String },
    #[error("{file}:{line}: not a record ({reason}); is this a records file of `spindle run`?")]
    Malformed { file: String, line: usize, reason: String },
    #[error(
        "{file}: format {found}, but this spindle reads formats up to {FORMAT}; use the spindle that wrote it, or run again"
    )]
    Format { file: String, found: u64 },
    #[error(
        "{file}:{line}: trial of cell `{cell}`, which the header does not list; do not join files of different scenarios"
    )]
    UnknownCell { file: String, line: usize, cell: String },
    #[error("{file}:{line}: a second header with another scenario; do not join files of different scenarios")]
    SecondScenario { file: String, line: usize },
}

pub fn read(path: &Path) -> Result<Records, ReadError> {
    let file = path.display().to_string();
    let bytes = std::fs::read(path).map_err(|source| ReadError::Unreadable { file: file.clone(), source })?;
    parse(&String::from_utf8_lossy(&bytes), &file)
}

/// Parses records. `file` is used in messages only.
pub fn parse(text: &str, file: &str) -> Result<Records, ReadError> {
    let file = file.to_owned();
    let lines: Vec<&str> = text.lines().collect();
    let mut numbered = lines.iter().zip(1..).filter(|(line, _)| !line.trim().is_empty());
    let Some((first, line)) = numbered.next() else {
        return Err(ReadError::Empty { file });
    };
    let malformed = |line: usize, reason: String| ReadError::Malformed { file: file.clone(), line, reason };
    // Checks the format before the structure, because a new format changes the structure.
    let format = Line::format_of(first).map_err(|error| malformed(line, error.to_string()))?;
    if format == 0 {
        return Err(malformed(line, "the first line is no header".to_owned()));
    }
    if format > u64::from(FORMAT) {
        return Err(ReadError::Format { file, found: format });
    }
    let mut header = match Line::parse(first, format) {
        Ok(Line::Header(header)) => header,
        Ok(Line::Trial(_)) => return Err(malformed(line, "the first line is no header".to_owned())),
        Err(reason) => return Err(malformed(line, reason.to_string())),
    };
    // Earlier versions stored passwords.
    masking::mask_header(&mut header);
    let mut records = Records { header, trials: Vec::new(), notes: Vec::new() };
    for (content, line) in numbered {
        match Line::parse(content, format) {
            Ok(Line::Trial(mut trial)) => {
                masking::mask_trial(&mut trial);
                if !records.header.cells.iter().any(|cell| cell.name == trial.cell) {
                    return Err(ReadError::UnknownCell { file, line, cell: trial.cell });
                }
                records.trials.push(trial);
            }
            Ok(Line::Header(again)) => {
                if again.provenance.scenario_hash != records.header.provenance.scenario_hash {
                    return Err(ReadError::SecondScenario { file, line });
                }
            }
            // A run that was killed during a write leaves an incomplete last line. Only that line is lost.
            Err(reason) if line == lines.len() && !text.ends_with('\n') && reason.is_eof() => {
                records.notes.push("The last line of the records is incomplete and was left out.".to_owned());
            }
            Err(reason) => return Err(malformed(line, reason.to_string())),
        }
    }
    Ok(records)
}
