//! Files as LOAD DATA reads them: their records and the places of these. It knows no table and no server.

mod plain;
mod records;
mod scan;

use std::fmt::{self, Display, Formatter};
use std::fs::{self, File};
use std::io::{self, Read, Seek as _, SeekFrom};
use std::path::PathBuf;

use anyhow::{Context, Result};
use spindle_base::Mistake;

pub use records::Position;
pub(in crate::load) use records::{Record, Records};
pub(in crate::load) use scan::Scanner;

use super::Request;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    File(PathBuf),
    Standard,
}

impl Display for Input {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Input::File(path) => write!(formatter, "{}", path.display()),
            Input::Standard => formatter.write_str("standard input"),
        }
    }
}

impl Input {
    /// In bytes, 0 where it is not known.
    pub(in crate::load) fn size(&self) -> Result<u64, Mistake> {
        let Input::File(path) = self else { return Ok(0) };
        match fs::metadata(path) {
            Ok(found) if found.is_dir() => Err(Mistake::new(format!("{self} is a directory"))),
            Ok(found) => Ok(found.len()),
            Err(error) => Err(Mistake::new(format!("{self}: {error}"))),
        }
    }

    /// From a byte on.
    pub(in crate::load) fn open(&self, byte: u64) -> Result<Box<dyn Read>> {
        let opening = || format!("opening {self}");
        match self {
            Input::Standard => {
                let mut input = io::stdin().lock();
                io::copy(&mut (&mut input).take(byte), &mut io::sink()).with_context(opening)?;
                Ok(Box::new(input))
            }
            Input::File(path) => {
                let mut file = File::open(path).with_context(opening)?;
                if byte > 0 {
                    file.seek(SeekFrom::Start(byte)).with_context(opening)?;
                }
                Ok(Box::new(file))
            }
        }
    }

    /// Looks at the first line. A pipe gives its bytes once: its first line is looked at on the way.
    pub(in crate::load) fn check(&self, request: &Request) -> Result<()> {
        match self {
            Input::File(path) if path.is_file() => {
                let format = &request.format;
                let scanner = Scanner::new(format, None);
                let mut records = Records::new(self.open(0)?, scanner, &format.line_end, Position::default());
                self.check_line_end(request, &mut records)
            }
            _ => Ok(()),
        }
    }

    pub(in crate::load) fn check_line_end<R: Read>(
        &self,
        request: &Request,
        records: &mut Records<R>,
    ) -> Result<()> {
        let is_expected = request.is_line_end_given || request.format.line_end != b"\n";
        if !is_expected && records.has_carriage_returns()? {
            let words =
                format!("the lines of {self} end with a carriage return: say '\\r\\n', or '\\n' to keep it");
            return Err(Mistake::of_flag("lines_terminated_by", words).into());
        }
        Ok(())
    }
}
