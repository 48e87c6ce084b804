//! Candidates for the next work of the arm, oldest first. The scheduler sees a limited number of them; the
//! others wait behind.

use std::collections::VecDeque;

use super::geometry::{Geometry, Head, Target};

#[derive(Debug)]
pub(super) struct Window<T> {
    size: usize,
    in_view: Vec<(Target, T)>,
    beyond: VecDeque<(Target, T)>,
}

impl<T> Window<T> {
    pub(super) fn new(size: u64) -> Window<T> {
        let size = size as usize;
        Window { size, in_view: Vec::with_capacity(size + 1), beyond: VecDeque::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.in_view.len() + self.beyond.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.in_view.is_empty()
    }

    pub(super) fn oldest(&self) -> Option<&T> {
        self.in_view.first().map(|(_, item)| item)
    }

    pub(super) fn get(&self, index: usize) -> &T {
        &self.in_view[index].1
    }

    pub(super) fn push(&mut self, target: Target, item: T) {
        if self.in_view.len() < self.size {
            self.in_view.push((target, item));
        } else {
            self.beyond.push_back((target, item));
        }
    }

    /// Puts an item in front of all others: the rest of an item that was taken out.
    pub(super) fn push_front(&mut self, target: Target, item: T) {
        self.in_view.insert(0, (target, item));
        if self.in_view.len() > self.size
            && let Some(last) = self.in_view.pop()
        {
            self.beyond.push_front(last);
        }
    }

    /// Removes an item. Returns it and the item that comes into view in its place, which must be notified.
    pub(super) fn remove(&mut self, index: usize) -> (T, Option<&mut T>) {
        let (_, removed) = self.in_view.remove(index);
        let Some(next) = self.beyond.pop_front() else { return (removed, None) };
        self.in_view.push(next);
        (removed, self.in_view.last_mut().map(|(_, item)| item))
    }

    pub(super) fn clear(&mut self) {
        self.in_view.clear();
        self.beyond.clear();
    }

    /// The item in view that the head reaches soonest, and the time to reach it in nanoseconds. The oldest of
    /// equals.
    pub(super) fn nearest(&self, geometry: &Geometry, phase_ns: u32, head: Head) -> Option<(usize, u32)> {
        // Time and index are packed into one number, so that the minimum is found without a branch.
        let mut best = u64::MAX;
        for (index, (target, _)) in (0..).zip(&self.in_view) {
            best = best.min(u64::from(geometry.positioning_ns(phase_ns, head, target)) << 32 | index);
        }
        (best != u64::MAX).then_some((best as u32 as usize, (best >> 32) as u32))
    }
}
