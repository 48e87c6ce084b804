//! Questions on a terminal: a numbered list, a default in brackets, one line as the answer.

use std::io::{BufRead, Write};

use anyhow::Result;
use spindle_base::{Mistake, text};

/// An entry of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Offer {
    /// Heading of the neighbours that share it; empty for none.
    pub group: &'static str,
    pub name: String,
    pub about: String,
}

/// Questions go to `output`, answers come from `input`, a line each. At the end of the input every further
/// answer is the default.
#[derive(Debug)]
pub(super) struct Questions<R, W> {
    pub input: R,
    pub output: W,
}

impl<R: BufRead, W: Write> Questions<R, W> {
    /// Asks until the answer is accepted. An answer may have numbers of the list in place of names, separated
    /// by commas.
    ///
    /// # Errors
    /// The default is refused, or a stream fails.
    pub(super) fn ask<T>(
        &mut self,
        question: &str,
        offers: &[Offer],
        default: &str,
        accept: impl Fn(&str) -> Result<T, Mistake>,
    ) -> Result<T> {
        write!(self.output, "\n{question}\n{}", list(offers))?;
        loop {
            write!(self.output, "[{default}]: ")?;
            self.output.flush()?;
            let mut line = String::new();
            let is_end = self.input.read_line(&mut line)? == 0;
            if is_end {
                writeln!(self.output)?;
            }
            let answer = named(line.trim(), offers, default).and_then(|answer| accept(&answer));
            match (answer, is_end) {
                (Err(mistake), false) => writeln!(self.output, "{}", text::one_line(&mistake.message))?,
                (answer, _) => return Ok(answer?),
            }
        }
    }
}

/// Columns of a description. With the name before it, a line fits a terminal.
const ABOUT_MOST: usize = 90;

/// The words that fit.
fn shortened(text: &str) -> String {
    if text.chars().count() <= ABOUT_MOST {
        return text.to_owned();
    }
    let cut: String = text.chars().take(ABOUT_MOST - 3).collect();
    let whole = cut.rsplit_once(' ').map_or(cut.as_str(), |(whole, _)| whole);
    format!("{}...", whole.trim_end_matches([',', ':', '.']))
}

fn list(offers: &[Offer]) -> String {
    let width = offers.iter().map(|offer| offer.name.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    let mut group = "";
    for (offer, number) in offers.iter().zip(1..) {
        if offer.group != group {
            group = offer.group;
            text.push_str(&format!("{group}\n"));
        }
        let about = shortened(&text::one_line(&offer.about));
        let line = format!("{number:>4}  {:width$}  {about}", offer.name);
        text.push_str(&format!("{}\n", line.trim_end()));
    }
    text
}

/// The answer with names in place of numbers. An empty answer is the default.
///
/// # Errors
/// A number that is not in the list.
fn named(answer: &str, offers: &[Offer], default: &str) -> Result<String, Mistake> {
    if answer.is_empty() || offers.is_empty() {
        return Ok(if answer.is_empty() { default } else { answer }.to_owned());
    }
    let name = |part: &str| {
        let Ok(number) = part.trim().parse::<usize>() else { return Ok(part.trim().to_owned()) };
        let offer = number.checked_sub(1).and_then(|index| offers.get(index));
        offer
            .map(|offer| offer.name.clone())
            .ok_or_else(|| Mistake::new(format!("{number} is not in the list; it has 1 to {}", offers.len())))
    };
    Ok(answer.split(',').map(name).collect::<Result<Vec<_>, _>>()?.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(group: &'static str, name: &str, about: &str) -> Offer {
        Offer { group, name: name.to_owned(), about: about.to_owned() }
    }

    #[test]
    fn neighbours_of_a_group_have_one_heading() {
        let offers = [offer("New", "a", "x"), offer("New", "b", "y"), offer("Old", "long", "")];
        assert_eq!(list(&offers), "New\n   1  a     x\n   2  b     y\nOld\n   3  long\n");
    }

    #[track_caller]
    fn check(input: &str, expect: &str, screen: &str) {
        let offers = [("mariadb", "here"), ("sqlite", "built in")];
        let offers = offers.map(|(name, about)| offer("", name, about));
        let mut questions = Questions { input: input.as_bytes(), output: Vec::new() };
        let accept = |answer: &str| match answer.split(',').find(|name| name.starts_with("my")) {
            Some(name) => Err(Mistake::new(format!("`{name}` is not known"))),
            None => Ok(answer.to_owned()),
        };
        assert_eq!(questions.ask("Which?", &offers, "sqlite", accept).unwrap(), expect);
        let shown = String::from_utf8(questions.output).unwrap();
        assert_eq!(shown, format!("\nWhich?\n   1  mariadb  here\n   2  sqlite   built in\n{screen}"));
    }

    #[test]
    fn enter_takes_the_default() {
        check("\n", "sqlite", "[sqlite]: ");
    }

    #[test]
    fn numbers_stand_for_names_and_may_be_several() {
        check("2, 1\n", "sqlite,mariadb", "[sqlite]: ");
        check("mariadb\n", "mariadb", "[sqlite]: ");
    }

    #[test]
    fn a_refused_answer_is_asked_again() {
        check("myqsl\n1\n", "mariadb", "[sqlite]: `myqsl` is not known\n[sqlite]: ");
        let refusal = "3 is not in the list; it has 1 to 2";
        check("3\n1\n", "mariadb", &format!("[sqlite]: {refusal}\n[sqlite]: "));
    }

    #[test]
    fn a_long_description_is_cut_at_a_word() {
        assert_eq!(shortened("short"), "short");
        let text = shortened(&"words, ".repeat(30));
        assert!(text.ends_with("words...") && text.chars().count() <= ABOUT_MOST, "{text}");
    }

    #[test]
    fn the_end_of_the_input_is_an_empty_answer() {
        check("", "sqlite", "[sqlite]: \n");
    }
}
