//! Cells with more trials than the others.

use super::*;
use crate::scenario::plan::plan;

#[track_caller]
fn with_more(table: &str) -> String {
    format!("{GOOD}[[more_trials]]\n{table}\n")
}

#[test]
fn only_the_named_cells_have_further_trials() {
    let scenario = parsed(&with_more("cells = [\"iodrive\"]\ntrials = 5"));
    let (few, more) = (plan(&parsed(GOOD)), plan(&scenario));
    let further = &more.trials[few.trials.len()..];
    assert_eq!(more.trials[..few.trials.len()], few.trials);
    let further: Vec<_> =
        further.iter().map(|planned| (more.cells[planned.cell_index].name.as_str(), planned.block)).collect();
    assert_eq!(further, [("iodrive", 4), ("iodrive", 5)]);
    let trials: Vec<_> = more.cells.iter().map(|cell| cell.trials).collect();
    assert_eq!(trials, [None, Some(5)]);
    // A run that has the others is extended.
    assert_eq!(scenario.hash(), parsed(GOOD).hash());
}

#[test]
fn a_table_that_gives_no_cell_more_trials_is_refused() {
    let check = |table: &str, expect: &str| {
        let error = Scenario::parse("test", &with_more(table), &BOUNDS).unwrap_err();
        assert_eq!(error.to_string(), expect);
    };
    check(
        "cells = [\"iodriv\"]\ntrials = 5",
        "more_trials[0].cells: the matrix has no `iodriv`; did you mean `iodrive`?",
    );
    check("cells = [\"hdd\", \"hdd\"]\ntrials = 5", "more_trials[0].cells: `hdd` is named twice");
    check("cells = [\"hdd\"]\ntrials = 3", "more_trials[0].trials: must be more than the 3 of `[run]`");
    check(
        "cells = [\"hdd\"]\ntrials = 1001",
        "more_trials[0].trials: 1001 is out of range; it can be 2 to 1000",
    );
    let until = with_more("cells = [\"hdd\"]\ntrials = 5").replace("trials = 3\n", "");
    assert_eq!(
        Scenario::parse("test", &until, &BOUNDS).unwrap_err().to_string(),
        "more_trials[0].trials: has a meaning with `trials` in `[run]` only"
    );
}
