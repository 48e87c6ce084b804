//! One self-contained page: it loads nothing from the network, and without JavaScript only the charts are
//! missing.

use anyhow::Context as _;
use minijinja::{Environment, Value, context, escape_formatter};
use serde::{Deserialize as _, Serialize};

use super::{View, format, view::PROBABILITIES};
use crate::record::SeriesUnit;

/// Causes that not every record has.
const MORE_CAUSES: [&str; 4] = ["file-locks", "storage", "work", "queue"];
const TEMPLATE: &str = include_str!("template.html");
/// The begin of every page, with what a page may load: nothing, and scripts of its own only if it sets `scripts`.
const HEAD: &str = include_str!("head.html");
/// Of every page: the report's, and the pages beside it.
pub(crate) const STYLE: &str = include_str!("report.css");
const SCRIPT: &str = include_str!("report.js");
/// Apache ECharts 6.1.0, see `vendor/README.md`.
const ECHARTS: &str = include_str!("vendor/echarts.common.min.js");

pub(super) fn page(view: &View) -> anyhow::Result<String> {
    let question = view.header.scenario.question.split("\n\n").map(str::trim);
    let percent = |probability: f64| format!("{}\u{a0}%", (probability * 1e6).round() / 1e4);
    let has = |cause: &&str| {
        let mut bottlenecks = view.cells.iter().filter_map(|cell| cell.bottleneck.as_ref());
        bottlenecks.any(|bottleneck| bottleneck.shares.contains_key(*cause))
    };
    let content = context! {
        more_causes => MORE_CAUSES.into_iter().filter(has).collect::<Vec<_>>(),
        view => Value::from(minijinja::value::Serde(view)),
        paragraphs => question.filter(|text| !text.is_empty()).map(str::to_owned).collect::<Vec<_>>(),
        probabilities => PROBABILITIES.map(percent),
        panels => view.charts.panels(),
        data => script_safe(&view.charts)?,
        style => Value::from_safe_string(STYLE.to_owned()),
        script => Value::from_safe_string(SCRIPT.to_owned()),
    };
    filled(TEMPLATE, content).context("laying out the report")
}

/// Fills in a template for a page that has [`ECHARTS`] as `echarts` and may include `head.html`. Foreign text is escaped.
pub(crate) fn filled(template: &str, content: Value) -> anyhow::Result<String> {
    let mut environment = Environment::new();
    environment.set_formatter(|output, state, value| match value.as_str() {
        Some(text) if !value.is_safe() => {
            escape_formatter(output, state, &Value::from(spindle_base::text::lines(text)))
        }
        _ => escape_formatter(output, state, value),
    });
    environment.set_undefined_behavior(minijinja::UndefinedBehavior::Chainable);
    environment.add_filter("number", |value: Value| optional(&value, format::number));
    environment.add_filter("percent", |value: Value| optional(&value, format::percent));
    environment.add_filter("of_unit", |value: Value, unit: Value| {
        let unit = SeriesUnit::deserialize(unit)?;
        Ok::<String, minijinja::Error>(optional(&value, |value| format::of_unit(value, unit)))
    });
    environment.add_filter("margin", format::margin);
    // Keeps a number and its unit on one line.
    environment.add_filter("glued", |text: String| text.replace(" %", "\u{a0}%"));
    environment.add_filter("quoted", |text: String| quoted(&text));
    environment.add_filter("count", format::count);
    environment.add_filter("bytes", format::bytes);
    let echarts = Value::from_safe_string(ECHARTS.to_owned());
    environment.add_template("head.html", HEAD)?;
    // The name tells the template engine to escape for HTML.
    Ok(environment.render_named_str("page.html", template, context! { echarts, ..content })?)
}

/// Names, keys and settings stand between backticks in sentences of every format; on the page they are
/// quoted. Quotes are text, so no text of a scenario changes the page's elements.
fn quoted(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    if parts.len().is_multiple_of(2) {
        return text.to_owned();
    }
    let part = |(index, part): (usize, &&str)| match index % 2 {
        0 => (*part).to_owned(),
        _ => format!("‘{part}’"),
    };
    parts.iter().enumerate().map(part).collect()
}

/// A dash without a number.
fn optional(value: &Value, format: impl Fn(f64) -> String) -> String {
    f64::try_from(value.clone()).map_or_else(|_| "–".to_owned(), format)
}

/// JSON inside a script element must not contain `</script` or `<!--`. JSON itself never needs a bare `<`.
pub(crate) fn script_safe(data: &impl Serialize) -> serde_json::Result<Value> {
    let json = serde_json::to_string(data)?.replace('<', "\\u003c");
    Ok(Value::from_safe_string(spindle_base::text::json_escaped(&json)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_cannot_close_its_script_element() {
        let safe = script_safe(&serde_json::json!({ "name": "</script><!--" })).unwrap().to_string();
        assert!(!safe.contains('<'));
        let value: serde_json::Value = serde_json::from_str(&safe).unwrap();
        assert_eq!(value["name"], "</script><!--");
    }

    #[test]
    fn what_stands_between_backticks_is_quoted() {
        let check = |text: &str, expect: &str| assert_eq!(quoted(text), expect);
        check("the disk is `hdd`; the card is `x`", "the disk is ‘hdd’; the card is ‘x’");
        check("a lone ` stays", "a lone ` stays");
    }

    #[test]
    fn the_vendored_library_can_stand_inside_a_script_element() {
        for text in [ECHARTS, SCRIPT] {
            assert!(!text.contains("</script") && !text.contains("<!--"));
        }
    }
}
