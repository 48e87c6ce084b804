//! What the arm could do next, oldest first: the scheduler looks at the first so many, the others wait behind them.
//!
//! Where each of them lies is kept apart from what it is, so that choosing among them reads one small array.

use std::collections::VecDeque;

use super::geometry::{Geometry, Head, Target};

#[derive(Debug)]
pub(super) struct Window<T> {
    size: usize,
    targets: Vec<Target>,
    items: Vec<T>,
    beyond: VecDeque<(Target, T)>,
}

impl<T> Window<T> {
    pub(super) fn new(size: u64) -> Window<T> {
        let size = size as usize;
        Window {
            size,
            targets: Vec::with_capacity(size + 1),
            items: Vec::with_capacity(size + 1),
            beyond: VecDeque::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.items.len() + self.beyond.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(super) fn oldest(&self) -> Option<&T> {
        self.items.first()
    }

    pub(super) fn get(&self, index: usize) -> &T {
        &self.items[index]
    }

    pub(super) fn push(&mut self, target: Target, item: T) {
        if self.items.len() < self.size {
            self.targets.push(target);
            self.items.push(item);
        } else {
            self.beyond.push_back((target, item));
        }
    }

    /// In front of all others: what is left of something that was taken out.
    pub(super) fn push_front(&mut self, target: Target, item: T) {
        self.targets.insert(0, target);
        self.items.insert(0, item);
        if self.items.len() > self.size
            && let (Some(target), Some(item)) = (self.targets.pop(), self.items.pop())
        {
            self.beyond.push_front((target, item));
        }
    }

    /// Takes one out; the one that comes into view for it is returned, to be told.
    pub(super) fn remove(&mut self, index: usize) -> (T, Option<&mut T>) {
        self.targets.remove(index);
        let removed = self.items.remove(index);
        let Some((target, item)) = self.beyond.pop_front() else { return (removed, None) };
        self.targets.push(target);
        self.items.push(item);
        (removed, self.items.last_mut())
    }

    pub(super) fn clear(&mut self) {
        self.targets.clear();
        self.items.clear();
        self.beyond.clear();
    }

    /// The one in view that the head reaches soonest, and after how many nanoseconds.
    pub(super) fn nearest(&self, geometry: &Geometry, phase_ns: u32, head: Head) -> Option<(usize, u32)> {
        geometry.nearest(phase_ns, head, &self.targets)
    }
}
