//! The reservation about a load that was not steady when it was measured.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spindle_base::text;

use crate::record::Settling;

/// A settling whose time was over before the load was steady.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct NeverSettled {
    /// In dilated time.
    pub after_s: f64,
    /// The series that still moved.
    pub moving: Vec<String>,
}

impl NeverSettled {
    /// `None` for a settling that succeeded.
    pub fn of(settling: &Settling) -> Option<NeverSettled> {
        let Settling { is_steady, needed_s, last_to_settle, .. } = settling;
        (!is_steady).then(|| NeverSettled { after_s: *needed_s, moving: last_to_settle.clone() })
    }
}

/// The fact and the remedy. A drift of zero is one within the bound.
pub(super) fn not_steady(drift: f64, never_settled: Option<&NeverSettled>) -> String {
    let drifted = format!("throughput drifted by {:.0} % within the measured window", drift * 100.0);
    let Some(NeverSettled { after_s, moving }) = never_settled else {
        let drifted = drifted.replacen('t', "T", 1);
        return format!(
            "{drifted}: lengthen the warm-up, or let it end by itself with `settle = \"until steady\"`."
        );
    };
    let after = text::duration(Duration::from_secs(after_s.round() as u64));
    let moving = match moving.as_slice() {
        [] => String::new(),
        moving => format!(" (still moving: {})", moving.join(", ")),
    };
    let drifted = if drift == 0.0 { String::new() } else { format!(", and {drifted}") };
    format!(
        "The load had not become steady after {after} of settling{moving}{drifted}: the figure is of a state that was \
         still changing. Raise `settle_at_most`."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_sentence_tells_of_the_settling_and_of_the_window() {
        let never = NeverSettled { after_s: 300.2, moving: vec!["dirty_pages".to_owned()] };
        insta::assert_snapshot!(not_steady(-0.21, None), @r#"Throughput drifted by -21 % within the measured window: lengthen the warm-up, or let it end by itself with `settle = "until steady"`."#);
        insta::assert_snapshot!(not_steady(0.0, Some(&never)), @"The load had not become steady after 5 min of settling (still moving: dirty_pages): the figure is of a state that was still changing. Raise `settle_at_most`.");
        insta::assert_snapshot!(not_steady(0.3, Some(&never)), @"The load had not become steady after 5 min of settling (still moving: dirty_pages), and throughput drifted by 30 % within the measured window: the figure is of a state that was still changing. Raise `settle_at_most`.");
    }
}
