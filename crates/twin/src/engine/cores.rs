//! The processor: bursts of terminals on a number of cores, in the order in which they come.

use std::collections::VecDeque;

#[derive(Debug)]
pub(super) struct Cores {
    free: u64,
    waiting: VecDeque<(usize, u64)>,
    /// Sum over cores.
    pub(super) busy_ns: u64,
}

impl Cores {
    pub(super) fn new(count: u64) -> Cores {
        Cores { free: count, waiting: VecDeque::new(), busy_ns: 0 }
    }

    /// A burst of a terminal; `Some(nanoseconds)` if it begins now.
    pub(super) fn begin(&mut self, terminal: usize, burst_ns: u64) -> Option<u64> {
        if self.free == 0 {
            self.waiting.push_back((terminal, burst_ns));
            return None;
        }
        self.free -= 1;
        self.busy_ns += burst_ns;
        Some(burst_ns)
    }

    /// A burst is over. The terminal that has its core now, and the length of its burst.
    pub(super) fn end(&mut self) -> Option<(usize, u64)> {
        let next = self.waiting.pop_front();
        match next {
            Some((_, burst_ns)) => self.busy_ns += burst_ns,
            None => self.free += 1,
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_third_burst_waits_for_one_of_two_cores() {
        let mut cores = Cores::new(2);
        assert_eq!([0, 1, 2].map(|terminal| cores.begin(terminal, 10)), [Some(10), Some(10), None]);
        assert_eq!(cores.end(), Some((2, 10)));
        assert_eq!([cores.end(), cores.end()], [None, None]);
        assert_eq!(cores.busy_ns, 30);
    }
}
