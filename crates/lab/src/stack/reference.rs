//! The reference page of all parameters, from the fields' declarations: `docs/parameters.md`.

use spindle_model::parameter::Step;
use spindle_model::{Declared as _, Field, Kind, Layer, Parameters, Style, Value};

use super::profile::About;
use super::profile::endurance::Endurance;
use super::resolve::pool::PoolKeys;

const HEAD: &str = "# Parameters of devices and layers

`spindle docs parameters` prints this page from the declarations that read the files. A profile (`profiles/*.toml`) gives a
device its parameters, each with a source or an assumption; a stack table (`[stacks.NAME]`) gives a layer its own, and a
device other values. `spindle disk show NAME` shows what a profile or a stack has, and why.
";

/// The page in Markdown.
pub fn page() -> String {
    let mut text = HEAD.to_owned();
    text.push_str("\n## Devices\n");
    for kind in Parameters::KINDS {
        let fields = Parameters::fields_of(kind).expect("a kind has fields");
        section(&mut text, &format!("`kind = \"{kind}\"`"), &fields);
    }
    text.push_str("\n## Profiles\n\nBesides `kind`, `summary` and `[parameters]`, a profile may have:\n");
    section(&mut text, "Every kind of device", &About::fields());
    section(&mut text, "`[endurance]`, of a flash drive", &Endurance::fields());
    text.push_str("\n## Layers\n\nEvery layer has `on`, the name of the stack that it is on.\n");
    for kind in Layer::kinds() {
        let also = kind.names[1..].iter().map(|name| format!(", also `\"{name}\"`")).collect::<String>();
        let mut fields = kind.fields_below();
        fields.extend(kind.fields.clone());
        section(&mut text, &format!("`layer = \"{}\"`{also}", kind.names[0]), &fields);
    }
    text.push_str("\n## Pools\n");
    section(&mut text, "`file_system = \"zfs\"`", &PoolKeys::fields());
    text
}

fn section(text: &mut String, title: &str, fields: &[Field]) {
    text.push_str(&format!("\n### {title}\n\n"));
    if fields.is_empty() {
        text.push_str("No parameters.\n");
        return;
    }
    text.push_str("| key | value | unless given | what it is |\n|---|---|---|---|\n");
    for field in fields {
        let doc = match field.of_table {
            Some((key, _)) => format!("{} In stack tables: `{key}`.", field.doc),
            None => field.doc.clone(),
        };
        let (value, absent) = (value(field).replace('|', "\\|"), absent(field));
        text.push_str(&format!("| `{}` | {value} | {absent} | {} |\n", field.key, doc.trim()));
    }
}

fn value(field: &Field) -> String {
    let words = field.words.iter().chain(field.names.iter().map(|(name, _)| name));
    let words: Vec<String> = words.map(|word| format!("`{word}`")).collect();
    let kind = match field.kind {
        Kind::Choice => return words.join(", "),
        Kind::List => {
            let columns: Vec<&str> = field.columns.iter().map(|kind| name(*kind)).collect();
            return format!("list of {}", columns.join(" and "));
        }
        kind => name(kind),
    };
    let text = |number: u64| field.written(&Value::Number(number), Style::Shortest).to_string();
    let bounds = match (field.least, field.most) {
        (0, u64::MAX) => String::new(),
        (least, u64::MAX) => format!(", {} or more", text(least)),
        (least, most) => format!(", {} to {}", text(least), text(most)),
    };
    let step = match field.step {
        Step::Any => String::new(),
        Step::PowerOfTwo => ", a power of two".to_owned(),
        Step::MultipleOf(step) => format!(", a multiple of {}", text(step)),
        Step::OneOf(known) => {
            format!(": {}", known.iter().map(|number| text(*number)).collect::<Vec<_>>().join(", "))
        }
    };
    let words = if words.is_empty() { String::new() } else { format!(", or {}", words.join(", ")) };
    format!("{kind}{bounds}{step}{words}")
}

fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Size => "size",
        Kind::Duration => "duration",
        Kind::Rate => "rate",
        Kind::Rotation => "rotation",
        Kind::Percent => "percent",
        Kind::Share => "share",
        Kind::Count => "count",
        Kind::PerSecond => "count per second",
        Kind::Switch => "`true` or `false`",
        Kind::Name => "name of a stack",
        Kind::Choice | Kind::List | Kind::Group => "",
    }
}

fn absent(field: &Field) -> String {
    let Some(default) = &field.default else {
        return if field.may_be_absent { "none" } else { "must be given" }.to_owned();
    };
    let default = field.written(default, Style::Shortest);
    match field.assumption {
        Some(why) => format!("{default} [assumption: {why}]"),
        None => default.to_string(),
    }
}
