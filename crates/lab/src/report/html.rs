//! One self-contained page: it loads nothing from the network, and without JavaScript only the charts are
//! missing.

use anyhow::Context as _;
use minijinja::{AutoEscape, Environment, Value, context, escape_formatter};

use super::{
    View, format,
    view::{PANEL_TITLES, PROBABILITIES},
};

const TEMPLATE: &str = include_str!("template.html");
const STYLE: &str = include_str!("report.css");
const SCRIPT: &str = include_str!("report.js");
/// Apache ECharts 6.1.0, see `vendor/README.md`.
pub(crate) const ECHARTS: &str = include_str!("vendor/echarts.common.min.js");

pub(super) fn page(view: &View) -> anyhow::Result<String> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_formatter(|output, state, value| match value.as_str() {
        Some(text) if !value.is_safe() => {
            escape_formatter(output, state, &Value::from(spindle_base::text::lines(text)))
        }
        _ => escape_formatter(output, state, value),
    });
    environment.set_undefined_behavior(minijinja::UndefinedBehavior::Chainable);
    environment.add_filter("number", |value: Value| optional(&value, format::number));
    environment.add_filter("percent", |value: Value| optional(&value, format::percent));
    // Keeps a number and its unit on one line.
    environment.add_filter("glued", |text: String| text.replace(" %", "\u{a0}%"));
    environment.add_filter("count", format::count);
    environment.add_filter("bytes", format::bytes);
    environment.add_template("report", TEMPLATE).context("parsing the report's template")?;
    let data = script_safe(&serde_json::to_string(&view.charts)?);
    let question = view.header.scenario.question.split("\n\n");
    let paragraphs: Vec<String> =
        question.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()).collect();
    let probabilities: Vec<String> =
        PROBABILITIES.iter().map(|p| format!("{} %", (p * 1e6).round() / 1e4)).collect();
    environment
        .get_template("report")
        .and_then(|template| {
            template.render(context! {
                view => Value::from(minijinja::value::Serde(view)),
                paragraphs,
                probabilities,
                panels => PANEL_TITLES,
                data => Value::from_safe_string(data),
                style => Value::from_safe_string(STYLE.to_owned()),
                script => Value::from_safe_string(SCRIPT.to_owned()),
                echarts => Value::from_safe_string(ECHARTS.to_owned()),
            })
        })
        .context("laying out the report")
}

/// A dash without a number.
fn optional(value: &Value, format: impl Fn(f64) -> String) -> String {
    f64::try_from(value.clone()).map_or_else(|_| "–".to_owned(), format)
}

/// JSON inside a script element must not contain `</script` or `<!--`. JSON itself never needs a bare `<`.
fn script_safe(json: &str) -> String {
    spindle_base::text::json_escaped(&json.replace('<', "\\u003c"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_cannot_close_its_script_element() {
        let safe = script_safe(r#"{"name":"</script><!--"}"#);
        assert!(!safe.contains('<'));
        let value: serde_json::Value = serde_json::from_str(&safe).unwrap();
        assert_eq!(value["name"], "</script><!--");
    }

    #[test]
    fn the_vendored_library_can_stand_inside_a_script_element() {
        for text in [ECHARTS, SCRIPT] {
            assert!(!text.contains("</script") && !text.contains("<!--"));
        }
    }
}
