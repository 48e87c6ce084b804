//! Changes of a stack's parts while it works, such as a battery that fails.
//!
//! A change reaches the first part that has such a thing, from the top of the stack; a layer on several stacks
//! asks them in their order. A part that cannot change so says why.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use crate::parameter::Invalid;

/// Whether the change found its part; the error is why that part cannot change so.
pub type Changed = Result<bool, Invalid>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The battery of a controller's write cache.
    Battery { is_good: bool },
    /// A member of an array, counted from 0, dies.
    MemberFails(usize),
    /// A new drive of the same kind takes the place of a member that died, and is rebuilt.
    MemberIsReplaced(usize),
    /// The link between the two sides of a replicated device.
    Link { is_up: bool },
}

impl Change {
    /// What has it, for a sentence about a stack without one.
    pub fn part(&self) -> &'static str {
        match self {
            Change::Battery { .. } => "a controller's cache with a battery",
            Change::MemberFails(_) | Change::MemberIsReplaced(_) => "an array with members",
            Change::Link { .. } => "a replicated device with a link",
        }
    }
}

/// `battery fails`, `member 2 is replaced`: members count from 1.
impl Display for Change {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Change::Battery { is_good: false } => formatter.write_str("battery fails"),
            Change::Battery { is_good: true } => formatter.write_str("battery is replaced"),
            Change::MemberFails(index) => write!(formatter, "member {} fails", index + 1),
            Change::MemberIsReplaced(index) => write!(formatter, "member {} is replaced", index + 1),
            Change::Link { is_up: false } => formatter.write_str("link breaks"),
            Change::Link { is_up: true } => formatter.write_str("link is restored"),
        }
    }
}

impl FromStr for Change {
    type Err = String;

    fn from_str(text: &str) -> Result<Change, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let member = |number: &str| number.parse().ok().and_then(|number: usize| number.checked_sub(1));
        let change = match words.as_slice() {
            ["battery", "fails"] => Some(Change::Battery { is_good: false }),
            ["battery", "is", "replaced"] => Some(Change::Battery { is_good: true }),
            ["member", number, "fails"] => member(number).map(Change::MemberFails),
            ["member", number, "is", "replaced"] => member(number).map(Change::MemberIsReplaced),
            ["link", "breaks"] => Some(Change::Link { is_up: false }),
            ["link", "is", "restored"] => Some(Change::Link { is_up: true }),
            _ => None,
        };
        change.ok_or_else(|| format!("`{text}` is not a change of a stack"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_read_as_it_is_written() {
        let changes = [false, true].map(|is_good| Change::Battery { is_good });
        let members = [Change::MemberFails(0), Change::MemberIsReplaced(11)];
        let links = [false, true].map(|is_up| Change::Link { is_up });
        for change in changes.into_iter().chain(members).chain(links) {
            assert_eq!(change.to_string().parse(), Ok(change));
        }
        assert_eq!(Change::MemberFails(0).to_string(), "member 1 fails");
        for text in ["", "member 0 fails", "member x fails", "battery"] {
            assert!(text.parse::<Change>().is_err(), "{text}");
        }
    }
}
