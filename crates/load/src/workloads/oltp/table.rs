//! The tables `sbtest1`, `sbtest2`, ... and their rows.

use std::io::{self, Write};

use super::distribution::Rows;
use crate::sql::Dialect;
use spindle_base::random::Random;

pub(super) fn name(table: u32) -> String {
    format!("sbtest{table}")
}

pub(super) fn create(dialect: Dialect, table: u32) -> String {
    let id = dialect.numbered_key("id");
    dialect.create_table(&format!(
        "CREATE TABLE {} ({id}, k INTEGER DEFAULT '0' NOT NULL, c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL)",
        name(table)
    ))
}

pub(super) fn create_index(table: u32) -> String {
    format!("CREATE INDEX k_{table} ON {}(k)", name(table))
}

/// 119 characters that compress poorly.
pub(super) fn c(random: &mut Random) -> String {
    groups(random, 10)
}

/// 59 characters.
pub(super) fn pad(random: &mut Random) -> String {
    groups(random, 5)
}

/// Groups of eleven digits with dashes between them.
fn groups(random: &mut Random, count: usize) -> String {
    let mut text = String::with_capacity(12 * count);
    for group in 0..count {
        if group > 0 {
            text.push('-');
        }
        // One draw for all digits of a group: 10^11 numbers from 64 bits leave no relevant bias.
        let mut digits = random.next_u64() % 100_000_000_000;
        for _ in 0..11 {
            text.push(char::from(b'0' + (digits % 10) as u8));
            digits /= 10;
        }
    }
    text
}

/// Writes rows `first` to `last` of a table of `row_count`, in the format of LOAD DATA and COPY.
pub(super) fn write_rows(
    seed: u64,
    table: u32,
    (first, last): (u32, u32),
    drawn: Rows,
    output: &mut dyn Write,
    count: &mut dyn FnMut(),
) -> io::Result<()> {
    let mut random = Random::seeded(&[seed, table.into(), first.into()]);
    for id in first..=last {
        let k = drawn.draw(&mut random);
        writeln!(output, "{id}\t{k}\t{}\t{}", c(&mut random), pad(&mut random))?;
        count();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_those_of_the_tool_in_shape() {
        let mut random = Random::seeded(&[1]);
        for (text, length) in [(c(&mut random), 119), (pad(&mut random), 59)] {
            assert_eq!(text.len(), length);
            assert!(
                text.split('-')
                    .all(|group| group.len() == 11 && group.bytes().all(|byte| byte.is_ascii_digit())),
                "{text}"
            );
        }
    }
}
