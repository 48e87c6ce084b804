//! Published studies, repeated: each is a folder of scenarios whose cells name the study's rows.
//!
//! Belongs here: running the scenarios of a folder within a budget, and what their records say about the claims.
//! What a claim is, and when it is confirmed, is in [`crate::claims`].

mod against;
mod answer;
mod page;
mod repeat;
mod smoke;
mod summary;

pub use against::Against;
pub use answer::Answer;
pub use page::page;
pub use repeat::{RepeatOptions, repeat};
pub use summary::{Counts, Summary};

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::claims::Folder;
use crate::record::Trial;
use crate::report::{self, Records};

/// Where the results of a scenario of a study lie.
fn directory_of(output: &Path, folder: &Folder, scenario: &str) -> PathBuf {
    output.join(folder.study).join(scenario)
}

/// How long the trials took on the clock, if the scenario was run.
pub fn took(output: &Path, folder: &Folder, scenario: &str) -> Option<Duration> {
    report::read(&directory_of(output, folder, scenario)).ok().as_ref().map(time_of)
}

fn time_of(records: &Records) -> Duration {
    Duration::from_secs_f64(records.trials.iter().map(Trial::real_s).sum())
}

#[cfg(test)]
mod tests {
    use crate::claims::folders;
    use crate::scenario::{Bounds, Scenario};
    use crate::server::Trust;

    #[test]
    fn every_scenario_of_a_study_names_its_rows_or_is_told_in_its_prose() {
        let bounds = Bounds { memory_bytes: 16 << 30, trust: Trust::ReadOnly };
        for folder in folders() {
            for (name, text) in folder.scenarios {
                let scenario = Scenario::parse(name, text, &bounds);
                let scenario =
                    scenario.unwrap_or_else(|mistake| panic!("{}, {name}: {mistake}", folder.study));
                let is_told = folder.prose.contains(&format!("`{name}`"));
                assert!(is_told || !scenario.published.is_empty(), "{name}");
                assert!(scenario.published.iter().all(|tag| tag.study == folder.study), "{name}");
            }
        }
    }

    #[test]
    fn a_row_is_of_one_scenario() {
        for folder in folders() {
            let mut rows = Vec::new();
            for (name, text) in folder.scenarios {
                for tag in super::answer::tags(text) {
                    let row = (tag.table, tag.row, tag.column);
                    assert!(!rows.contains(&row), "{}, {name}: {row:?}", folder.study);
                    rows.push(row);
                }
            }
        }
    }
}
