//! The drives of a stack with their profiles, so that they can be counted and priced.

use std::iter;

use spindle_model::{Parameters, StackSpec as Tree};

use super::StackSpec;
use crate::stack::explained::{DeviceFacts, Explained};

/// Equal drives of a stack.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drives<'a> {
    pub facts: &'a DeviceFacts,
    /// Those of the profile, with the changes of the stack's table.
    pub parameters: &'a Parameters,
    /// Size of each that the stack uses.
    pub size_bytes: u64,
    pub count: u64,
}

impl Drives<'_> {
    fn are_like(&self, other: &Drives<'_>) -> bool {
        (self.facts, self.parameters, self.size_bytes) == (other.facts, other.parameters, other.size_bytes)
    }
}

impl StackSpec {
    /// All drives in the order of the stack, those of a pool's log and cache last. A real disk has none.
    pub fn drives(&self) -> Vec<Drives<'_>> {
        let mut drives = Vec::new();
        add_all(&self.explained, &self.tree, &mut drives);
        if let Some(pool) = self.pool() {
            for (_, stack) in pool.devices() {
                stack.drives().into_iter().for_each(|more| add(more, &mut drives));
            }
        }
        drives
    }
}

fn add_all<'a>(explained: &'a Explained, tree: &'a Tree, drives: &mut Vec<Drives<'a>>) {
    match (tree, &explained.device) {
        (Tree::Device(parameters), Some(facts)) => {
            add(Drives { facts, parameters, size_bytes: explained.size_bytes, count: 1 }, drives);
        }
        (Tree::Device(_), None) => {}
        (Tree::Layer(_, branches), _) => {
            // The explanation has equal neighbours once, with their number.
            let each = explained.below.iter().flat_map(|below| iter::repeat_n(&below.stack, below.count));
            for (explained, branch) in each.zip(branches) {
                add_all(explained, &branch.stack, drives);
            }
        }
    }
}

fn add<'a>(more: Drives<'a>, drives: &mut Vec<Drives<'a>>) {
    match drives.iter_mut().find(|known| known.are_like(&more)) {
        Some(known) => known.count += more.count,
        None => drives.push(more),
    }
}
