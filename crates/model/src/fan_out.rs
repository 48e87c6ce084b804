//! What layers share that turn a host's request into requests to devices below.

use crate::device::Fate;
use crate::request::{Completion, Outcome, RequestId};

/// The fate of a part of a write, from the fate of the whole.
pub(crate) fn part_of(fate: Fate, skipped_bytes: u64, size_bytes: u64) -> Fate {
    match fate {
        Fate::Torn { kept_bytes } if kept_bytes >= skipped_bytes + size_bytes => Fate::Kept,
        Fate::Torn { kept_bytes } if kept_bytes <= skipped_bytes => Fate::Lost,
        Fate::Torn { kept_bytes } => Fate::Torn { kept_bytes: kept_bytes - skipped_bytes },
        Fate::Kept | Fate::Lost => fate,
    }
}

/// Finished requests of which the host is to see a failure; almost always none.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    ids: Vec<RequestId>,
}

impl Failures {
    pub(crate) fn add(&mut self, id: RequestId) {
        self.ids.push(id);
    }

    pub(crate) fn mark(&mut self, completion: Completion) -> Completion {
        let Some(place) = self.ids.iter().position(|&id| id == completion.id) else { return completion };
        self.ids.swap_remove(place);
        Completion { outcome: Outcome::Failure, ..completion }
    }

    pub(crate) fn reset(&mut self) {
        self.ids.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_torn_write_is_kept_torn_or_lost() {
        let torn = Fate::Torn { kept_bytes: 1_024 };
        assert_eq!(part_of(torn, 0, 1_024), Fate::Kept);
        assert_eq!(part_of(torn, 512, 1_024), Fate::Torn { kept_bytes: 512 });
        assert_eq!(part_of(torn, 1_024, 512), Fate::Lost);
        assert_eq!(part_of(Fate::Kept, 1_024, 512), Fate::Kept);
    }
}
