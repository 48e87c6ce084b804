//! Statements that write, over several servers: a transaction on each, which all commit if none has failed.
//!
//! There is no second phase: a server that is lost between the first COMMIT and the last keeps nothing of what the others
//! have kept.

use anyhow::{Context, Result};
use mysql::prelude::Queryable;

use super::{Answer, Done, Scatter, answer, not_over_several};
use crate::plan::{Refusal, Write, is_definition, plan_write};
use crate::servers::Session;
use crate::sql::statements::first_word;

/// Before a statement of an open transaction, so that it is undone on all servers if it fails on one.
const SAVEPOINT: &str = "spindle_statement";

/// Whether a statement with this first word begins, ends or marks a transaction.
pub(super) fn is_of_transaction(first: &str) -> bool {
    matches!(first, "BEGIN" | "START" | "COMMIT" | "ROLLBACK" | "SAVEPOINT" | "RELEASE")
}

/// Whether a transaction is open after a statement, if one was or was not before it.
pub(super) fn is_in_transaction_after(text: &str, was: bool) -> bool {
    let has = |word: &str| {
        text.split(|letter: char| !letter.is_ascii_alphabetic()).any(|found| found.eq_ignore_ascii_case(word))
    };
    match first_word(text).as_str() {
        "BEGIN" | "START" => true,
        "COMMIT" | "ROLLBACK" if has("TO") => was,
        "COMMIT" | "ROLLBACK" => has("CHAIN") && !has("NO"),
        // Temporary tables come and go within a transaction.
        first => was && (has("TEMPORARY") || !is_definition(first)),
    }
}

impl Scatter {
    /// Gives each server what it has to do.
    pub(super) fn write(&mut self, session: &Session, text: &str) -> Result<Answer> {
        self.catalog.follow(session)?;
        let mapping = self.cluster.mapping.as_ref().context("there is one server")?;
        let planned = match session.check() {
            Ok(()) => plan_write(text, &self.catalog, mapping, self.cluster.servers.len()),
            Err(refusal) => Err(refusal),
        };
        self.catalog.check()?;
        let write = planned.map_err(|refusal| not_over_several(&refusal))?;
        if write.commits {
            self.is_in_transaction = false;
            self.catalog.forget();
        }
        let (begin, undo, end) = match (self.is_in_transaction, write.commits) {
            (_, true) => (None, None, None),
            (true, false) => (
                Some(format!("SAVEPOINT {SAVEPOINT}")),
                Some(format!("ROLLBACK TO SAVEPOINT {SAVEPOINT}")),
                None,
            ),
            (false, false) => (Some("BEGIN".to_owned()), Some("ROLLBACK".to_owned()), Some("COMMIT")),
        };
        let servers: Vec<usize> = write.texts.iter().map(|(server, _)| *server).collect();
        if let Some(begin) = begin {
            self.each(&servers, &begin)?;
        }
        match self.written(session, &write) {
            Ok(done) => {
                if let Some(end) = end {
                    self.committed(&servers, end)?;
                }
                let fragments = Err(Refusal("it writes".to_owned()));
                Ok(Answer { columns: Vec::new(), rows: Vec::new(), fragments, done })
            }
            Err(error) => {
                for (server, undo) in
                    servers.iter().flat_map(|server| undo.iter().map(move |undo| (server, undo)))
                {
                    // A server that is lost has undone it.
                    let _ = self.homes[*server].query_drop(undo);
                }
                Err(error)
            }
        }
    }

    fn written(&mut self, session: &Session, write: &Write) -> Result<Done> {
        let mut done = Done::default();
        for (server, text) in &write.texts {
            let name = &self.cluster.servers[*server].name;
            let home = &mut self.homes[*server];
            let _running = self.running.add(*server, home)?;
            session.apply(home)?;
            let answered = answer(home, text, Ok(0));
            // The first one's session is everybody's, and its clock goes on, also after an error.
            let clock = home.query_drop("SET SESSION timestamp = DEFAULT");
            let of_server = answered.with_context(|| format!("on {name}"))?.done;
            clock.with_context(|| format!("after a statement on {name}"))?;
            done.affected_rows = match write.are_copies {
                true => of_server.affected_rows,
                false => done.affected_rows + of_server.affected_rows,
            };
            if of_server.last_insert_id != 0 {
                done.last_insert_id = of_server.last_insert_id;
            }
        }
        Ok(done)
    }

    /// A statement for each of these servers.
    fn each(&mut self, servers: &[usize], text: &str) -> Result<()> {
        for server in servers {
            let name = &self.cluster.servers[*server].name;
            self.homes[*server].query_drop(text).with_context(|| format!("{text} on {name}"))?;
        }
        Ok(())
    }

    /// Ends the transaction of each of these servers.
    ///
    /// # Errors
    /// One did not commit; the words say what the others did.
    fn committed(&mut self, servers: &[usize], text: &str) -> Result<()> {
        for (index, server) in servers.iter().enumerate() {
            let names = |some: &[usize]| -> String {
                some.iter()
                    .map(|server| self.cluster.servers[*server].name.as_str())
                    .collect::<Vec<_>>()
                    .join(", ")
            };
            let words = match &servers[..index] {
                [] => format!("committing on {}", names(&servers[index..=index])),
                kept => format!("committing on {}, after {}", names(&servers[index..=index]), names(kept)),
            };
            self.homes[*server].query_drop(text).context(words)?;
        }
        Ok(())
    }

    /// A statement about the transaction, for all servers.
    pub(super) fn transact(&mut self, text: &str) -> Result<Answer> {
        let all: Vec<usize> = (0..self.homes.len()).collect();
        match first_word(text).as_str() {
            "COMMIT" => self.committed(&all, text)?,
            _ => self.each(&all, text)?,
        }
        self.is_in_transaction = is_in_transaction_after(text, self.is_in_transaction);
        let fragments = Err(Refusal("it is about a transaction".to_owned()));
        Ok(Answer { columns: Vec::new(), rows: Vec::new(), fragments, done: Done::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_ends_with_its_last_statement() {
        let check = |text: &str, was: bool, expect: bool| {
            assert_eq!(is_in_transaction_after(text, was), expect, "{text}");
        };
        check("start transaction read only", false, true);
        check("COMMIT", true, false);
        check("COMMIT AND CHAIN", true, true);
        check("ROLLBACK AND NO CHAIN", true, false);
        check("ROLLBACK TO SAVEPOINT a", true, true);
        check("UPDATE t SET a = 1", true, true);
        check("CREATE TABLE t (a INT)", true, false);
        check("DROP TEMPORARY TABLE IF EXISTS t", true, true);
        check("SELECT 1", false, false);
    }
}
