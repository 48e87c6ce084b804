//! The file whose lock its reads share, while a write needs it alone. A write takes no time itself.

use std::collections::VecDeque;

/// What a terminal does with the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    Read,
    Write,
}

/// The lock, by the rules of kernel/locking/rwsem.c.
#[derive(Debug, Default)]
pub(super) struct File {
    /// Reads that have begun and not ended.
    reading: u64,
    line: VecDeque<(Use, usize)>,
}

impl File {
    /// Whether the terminal may read now, until [`File::end_read`]; otherwise it waits in line. A read does not pass
    /// those in line (`rwsem_down_read_slowpath`).
    pub(super) fn read(&mut self, terminal: usize) -> bool {
        if self.line.is_empty() {
            self.reading += 1;
            return true;
        }
        self.line.push_back((Use::Read, terminal));
        false
    }

    /// Whether the terminal has written; otherwise it waits in line.
    pub(super) fn write(&mut self, terminal: usize) -> bool {
        if self.reading > 0 {
            self.line.push_back((Use::Write, terminal));
        }
        self.reading == 0
    }

    /// A read has ended. Those whose turn it is: the writers in front, and then all readers, also those behind
    /// further writers (`rwsem_mark_wake`).
    pub(super) fn end_read(&mut self) -> Vec<(Use, usize)> {
        self.reading -= 1;
        if self.reading > 0 {
            return Vec::new();
        }
        let writers = self.line.iter().take_while(|(using, _)| *using == Use::Write).count();
        let mut next: Vec<(Use, usize)> = self.line.drain(..writers).collect();
        let (readers, later): (Vec<_>, Vec<_>) =
            self.line.drain(..).partition(|(using, _)| *using == Use::Read);
        self.reading = readers.len() as u64;
        self.line = later.into();
        next.extend(readers);
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_waits_for_reads_and_holds_later_ones_back() {
        let mut file = File::default();
        assert!(file.write(0));
        assert_eq!([file.read(1), file.read(2), file.write(3), file.read(4)], [true, true, false, false]);
        assert_eq!(file.end_read(), []);
        assert_eq!(file.end_read(), [(Use::Write, 3), (Use::Read, 4)]);
        assert!(!file.write(5), "the read of 4 goes on");
        assert_eq!(file.end_read(), [(Use::Write, 5)]);
        assert!(file.write(6));
    }

    #[test]
    fn all_readers_in_line_go_together() {
        let mut file = File::default();
        assert!(file.read(1) && !file.write(2) && !file.read(3) && !file.write(4) && !file.read(5));
        assert_eq!(file.end_read(), [(Use::Write, 2), (Use::Read, 3), (Use::Read, 5)]);
        assert_eq!(file.end_read(), []);
        assert_eq!(file.end_read(), [(Use::Write, 4)]);
    }
}
