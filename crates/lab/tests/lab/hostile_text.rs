//! Text of others: every output shows a title, a label, a server's name or a file name as text. No output has
//! a password.

use crate::in_check_all;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use pulldown_cmark::{Event, Options, Parser, Tag};
use serde_json::{Value, json};
use spindle_base::text;
use spindle_lab::record::records_file::{self, RecordsFile, Resume};
use spindle_lab::record::{Header, Trial};
use spindle_lab::report::{Format, View, render};

use crate::report_support::browser::Driver;
use crate::report_support::{CARD, DISK, FLASH, fail, file, list, records, replicated, tests, with_header};
use crate::run_mock::{Bench, GOOD, scenario};

const HOSTILE: [&str; 94] = [
    "<script>window.hostile = 1</script>",
    "</script><script>window.hostile = 1</script>",
    "</SCRIPT ><script>window.hostile=1//",
    "<ScRiPt>window.hostile=1</sCrIpT>",
    "<script src=data:,window.hostile=1></script>",
    "<!--<script>window.hostile=1",
    "--><script>window.hostile=1</script>",
    "<![CDATA[<script>window.hostile=1</script>]]>",
    "<img src=x onerror=window.hostile=1>",
    "<img src=\"x\" onerror=\"window.hostile=1\">",
    "<svg onload=window.hostile=1>",
    "<svg><script>window.hostile=1</script></svg>",
    "<svg><animate onbegin=window.hostile=1 attributeName=x dur=1s>",
    "<math><mtext></table><img src=x onerror=window.hostile=1>",
    "<body onload=window.hostile=1>",
    "<iframe srcdoc=\"<script>parent.hostile=1</script>\">",
    "<iframe src=javascript:parent.hostile=1>",
    "<object data=javascript:window.hostile=1>",
    "<embed src=javascript:window.hostile=1>",
    "<link rel=stylesheet href=https://example.org/x.css>",
    "<meta http-equiv=refresh content=\"0;url=https://example.org\">",
    "<base href=https://example.org/>",
    "<form action=https://example.org><input name=x></form>",
    "<details open ontoggle=window.hostile=1>",
    "<video><source onerror=window.hostile=1></video>",
    "<input autofocus onfocus=window.hostile=1>",
    "<a href=\"javascript:window.hostile=1\">click</a>",
    "<style>*{display:none}</style>",
    "</style><script>window.hostile=1</script>",
    "</title><script>window.hostile=1</script>",
    "</textarea><script>window.hostile=1</script>",
    "</pre></main><h1>another</h1>",
    "</td></tr></table><h1>another</h1>",
    "<noscript><p title=\"</noscript><img src=x onerror=window.hostile=1>\">",
    "<plaintext>",
    "<x onclick=window.hostile=1>",
    "\" onmouseover=\"window.hostile=1",
    "' onmouseover='window.hostile=1",
    "\"><img src=x onerror=window.hostile=1>",
    "'><img src=x onerror=window.hostile=1>",
    "`onmouseover=window.hostile=1`",
    "\"/><svg/onload=window.hostile=1>",
    "&lt;script&gt;window.hostile=1&lt;/script&gt;",
    "&#60;script&#62;window.hostile=1&#60;/script&#62;",
    "&quot; onload=&quot;window.hostile=1",
    "&amp;&nbsp;&bogus;&#0;&#x110000;",
    "{{ 7 * 7 }}",
    "{% for x in range(10) %}x{% endfor %}",
    "{# comment #}",
    "{{ view.header|safe }}",
    "${window.hostile=1}",
    "<%= 7 * 7 %>",
    "#{7*7}",
    "\\u003cscript\\u003ewindow.hostile=1\\u003c/script\\u003e",
    "\\x3cscript\\x3ewindow.hostile=1",
    "\"};window.hostile=1;//",
    "']};window.hostile=1;/*",
    "\\\"};window.hostile=1;//",
    "\\",
    "\\\\\"",
    "\u{2028}window.hostile=1\u{2029}",
    "__proto__",
    "constructor",
    "javascript:window.hostile=1",
    "data:text/html,<script>window.hostile=1</script>",
    "https://example.org/x",
    "www.example.org/x",
    "[click](https://example.org)",
    "[click](javascript:window.hostile=1)",
    "![picture](https://example.org/x.png)",
    "[one]: https://example.org",
    "<https://example.org>",
    "a | b | c",
    "`code` and ``more``",
    "```",
    "# Heading",
    "**bold** __bold__ ~~gone~~",
    "1. item",
    "=HYPERLINK(\"https://example.org\",\"x\")",
    "+1+cmd|' /C calc'!A0",
    "-2+3+cmd|' /C calc'!A0",
    "@SUM(1+1)*cmd|' /C calc'!A0",
    "\t=1+1",
    "\r=1+1",
    "a\"b,c;d",
    "one\nline\r\nand another",
    "nul\0byte",
    "\u{1b}]0;title\u{7}",
    "\u{1b}[2J\u{1b}[31mred\u{1b}[0m",
    "\u{9b}31m\u{9d}0;x\u{9c}\u{85}",
    "\u{8}\u{8}\u{7f}\u{c}\u{b}",
    "\u{202e}cod.exe\u{202c}",
    "\u{2066}x\u{2067}y\u{2068}z\u{2069}\u{200f}\u{61c}",
    "\u{feff}née 中文 🦀 e\u{301}\u{301}\u{301}",
];

/// Fields that are not free text: one of a fixed set of words, a number or a time. The lines of a chart are
/// names of series in the same record.
const FIXED: [&str; 10] =
    ["line", "lines", "histogram", "start", "kind", "mode", "wait_point", "classes", "shares", "phases_s"];

/// Puts the text before or behind every other text of a line of records, and behind the names of settings.
fn plant(value: &mut Value, key: &str, hostile: &str) {
    match value {
        // A field of a spreadsheet is a formula by its beginning.
        Value::String(text)
            if ["server_version", "error", "detail", "name"].contains(&key)
                && hostile.starts_with(['=', '+', '-', '@']) =>
        {
            *text = format!("{hostile}{text}");
        }
        Value::String(text) => text.push_str(hostile),
        Value::Array(values) => values.iter_mut().for_each(|value| plant(value, key, hostile)),
        Value::Object(fields) => {
            if key == "settings" {
                *fields =
                    std::mem::take(fields).into_iter().map(|(name, value)| (name + hostile, value)).collect();
            }
            for (key, value) in fields.iter_mut().filter(|(key, _)| !FIXED.contains(&key.as_str())) {
                plant(value, key, hostile);
            }
        }
        _ => {}
    }
}

/// Warnings are told apart by the name of their only field or by themselves.
fn planted(text: &str, hostile: &str) -> String {
    let line = |line: &str| {
        let mut line: Value = serde_json::from_str(line).unwrap();
        let warnings = line.as_object_mut().unwrap().remove("warnings");
        // The cell's name begins in the same way everywhere.
        let cell = line["cell"].as_str().map(|cell| start_of_name(cell, hostile));
        plant(&mut line, "", hostile);
        if let Some(cell) = cell {
            line["cell"] = cell.into();
        }
        if let Some(warnings) = warnings {
            line["warnings"] = warnings;
        }
        line.to_string() + "\n"
    };
    text.lines().map(line).collect()
}

fn start_of_name(cell: &str, hostile: &str) -> String {
    match hostile.starts_with(['=', '+', '-', '@']) {
        true => format!("{hostile}{cell}"),
        false => format!("{cell}{hostile}"),
    }
}

fn failing() -> String {
    file(&[DISK, FLASH, CARD], 2, |trial, shape| {
        if shape.name == FLASH.name {
            fail(trial, "the server said: no");
        }
        if let Some(measurement) = &mut trial.measurement {
            let is_card = shape.name == CARD.name;
            measurement.verification[0].passed = !is_card || trial.trial == 1;
        }
    })
}

#[track_caller]
fn check_text(page: &str, hostile: &str) {
    let acts = |line: &&str| line.chars().any(text::acts);
    assert_eq!(page.lines().find(acts), None, "{hostile:?}");
}

/// Everything in a page but its text.
fn elements(page: &str) -> Vec<String> {
    let kind = |event: Event<'_>| match event {
        Event::Text(_) | Event::SoftBreak | Event::End(_) => None,
        Event::Code(_) => Some("code".to_owned()),
        Event::Start(Tag::Heading { level, .. }) => Some(format!("heading {level}")),
        Event::Start(Tag::Link { .. }) => Some("link".to_owned()),
        Event::Html(_) | Event::InlineHtml(_) => Some("HTML".to_owned()),
        other => Some(format!("{other:?}")),
    };
    Parser::new_ext(page, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH).filter_map(kind).collect()
}

/// RFC 4180.
fn fields(row: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let (mut is_quoted, mut characters) = (false, row.chars().peekable());
    while let Some(one) = characters.next() {
        match one {
            '"' if is_quoted && characters.peek() == Some(&'"') => {
                characters.next();
                fields.last_mut().unwrap().push('"');
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => fields.push(String::new()),
            _ => fields.last_mut().unwrap().push(one),
        }
    }
    fields
}

/// Labels that differ from the names, as those with planted text do.
fn labelled(records: &str) -> String {
    with_header(records, |header| {
        header.cells.iter_mut().for_each(|cell| cell.label = format!("label of {}", cell.name));
    })
}

#[test]
fn every_format_shows_hostile_text_as_text() {
    let Some(records_of_all_kinds) = in_check_all(|| Some([failing(), list(), replicated(), tests()])) else {
        return;
    };
    for harmless in records_of_all_kinds.map(|records| labelled(&records)) {
        let of = |text: &str| {
            let view = View::new(&records(text));
            [Format::Md, Format::Csv, Format::Json, Format::Text, Format::Diskstats]
                .map(|format| view.lay_out(format, false).unwrap())
        };
        let [markdown, csv, ..] = of(&harmless);
        let markdown = elements(&markdown);
        let columns = fields(csv.lines().next().unwrap()).len();
        for hostile in HOSTILE {
            let pages = of(&planted(&harmless, hostile));
            pages.iter().for_each(|page| check_text(page, hostile));
            let [shown, shown_csv, shown_json, ..] = &pages;
            assert_eq!(elements(shown), markdown, "{hostile:?}");
            // In code no address is a link.
            let bare = shown.split("Printed by `").next().unwrap().replace("\\://", "");
            assert!(!bare.contains("://") && !bare.contains("www."), "{hostile:?} is a link: {shown}");
            assert_eq!(shown_csv.lines().count(), csv.lines().count(), "{hostile:?}");
            for row in shown_csv.lines().map(fields) {
                assert_eq!(row.len(), columns, "{hostile:?}");
                let is_formula = |field: &&String| {
                    field.trim_start().starts_with(['=', '+', '-', '@']) && field.parse::<f64>().is_err()
                };
                assert_eq!(row.iter().find(is_formula), None, "{hostile:?}");
            }
            let shown: Value = serde_json::from_str(shown_json).unwrap();
            let title = shown["header"]["scenario"]["title"].as_str().unwrap();
            assert!(title.contains(hostile), "JSON has the title as it is: {title:?}");
        }
    }
}

/// The page's elements with the names of their attributes, and the elements that could run a script; of a
/// drawing only the latter.
const STRUCTURE: &str = "
    const runs = [...document.querySelectorAll('*')].filter(element =>
        ['A', 'IFRAME', 'OBJECT', 'EMBED', 'FORM', 'INPUT', 'FOREIGNOBJECT', 'IMAGE', 'IMG'].includes(element.tagName.toUpperCase())
        || [...element.attributes].some(attribute => attribute.name.startsWith('on')));
    const page = [...document.querySelectorAll('*')].filter(element => !element.closest('.chart > *'));
    const shape = element => element.tagName + ' ' + [...element.attributes].map(attribute => attribute.name).sort().join(',');
    return [page.map(shape), document.scripts.length, runs.map(shape), typeof window.hostile];";

#[test]
fn hostile_text_adds_nothing_to_the_page_and_runs_nowhere() {
    let Some(driver) = in_check_all(Driver::start) else { return };
    let directory = tempfile::tempdir().unwrap();
    let browser = driver.open(1280);
    let harmless = file(&[DISK, FLASH], 1, |trial, shape| {
        if let Some(measurement) = &mut trial.measurement {
            measurement.verification[0].passed = shape.name != FLASH.name;
        }
    });
    let harmless = labelled(&harmless);
    let structure = |text: &str, hostile: &str| {
        let path = directory.path().join("page.html");
        let page = render(&records(text), Format::Html, false).unwrap();
        let acts = page.chars().find(|one| !"\n\t".contains(*one) && text::acts(*one));
        assert_eq!(acts, None, "{hostile:?}");
        fs::write(&path, page).unwrap();
        browser.load(&path);
        browser.wait_until("return document.documentElement.classList.contains('complete');");
        browser.run(STRUCTURE)
    };
    let expect = structure(&harmless, "");
    assert!(expect[0].as_array().unwrap().len() > 100, "{expect}");
    assert_eq!((&expect[2], &expect[3]), (&json!([]), &json!("undefined")));
    for hostile in HOSTILE {
        let found = structure(&planted(&harmless, hostile), hostile);
        let elements = |page: &Value| page[0].as_array().unwrap().clone();
        let mut pairs = elements(&found).into_iter().zip(elements(&expect)).enumerate();
        assert_eq!(pairs.find(|(_, (found, expect))| found != expect), None, "{hostile:?}");
        assert_eq!(found, expect, "{hostile:?}");
    }
}

fn spindle(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spindle"));
    command.args(arguments).current_dir(directory).output().unwrap()
}

#[track_caller]
fn told(output: &Output, exit_code: i32) -> String {
    let told = String::from_utf8([output.stdout.clone(), output.stderr.clone()].concat()).unwrap();
    assert_eq!(output.status.code(), Some(exit_code), "{told}");
    told
}

/// In a TOML string.
const BELL: &str = "\\u001b]0;owned\\u0007\\u009b31m\\u202e\\nanother line";

#[test]
fn a_hostile_scenario_does_not_reach_the_terminal() {
    let text = scenario(1, GOOD, "100 ms")
        .replace("title = \"Test\"", &format!("title = \"Test{BELL}\""))
        .replace("question = \"Does", &format!("question = \"{BELL}Does"));
    let bench = Bench::new(&text);
    let directory = bench.path("");
    for arguments in [
        ["plan", "test.toml"].as_slice(),
        &["plan", "test.toml", "--json"],
        &["run", "test.toml", "--output", "results"],
    ] {
        let told = told(&spindle(&directory, arguments), 0);
        check_text(&told, BELL);
        assert!(told.contains("Test\\u{1b}]0;owned") || told.contains("Test\\u001b]0;owned"), "{told}");
    }
    let plan = told(&spindle(&directory, &["plan", "test.toml"]), 0);
    assert!(plan.lines().next().unwrap().ends_with("another line"), "a title has one line: {plan}");
}

#[test]
fn a_hostile_name_in_a_mistake_does_not_reach_the_terminal() {
    let directory = tempfile::tempdir().unwrap();
    let name = "no\u{1b}]0;owned\u{7}\u{9b}31m\u{202e}\nsuch";
    for arguments in [
        ["plan", name].as_slice(),
        &["report", name],
        &["compare", name],
        &[name],
        &["plan", "x", name],
        &["load", "tpcc", "--server", name],
        &["report", "x", "--format", name],
    ] {
        let told = told(&spindle(directory.path(), arguments), 2);
        check_text(&told, name);
        // clap leaves the rest out by itself.
        assert!(told.contains("\\u{9b}31m\\u{202e}"), "{arguments:?}: {told}");
    }
    fs::write(directory.path().join("bad.jsonl"), format!("{{\"{name}\": 1}}")).unwrap();
    check_text(&told(&spindle(directory.path(), &["report", "bad.jsonl"]), 2), name);
}

const SECRET: &str = "s3cret";

fn head() -> (Header, Trial) {
    let mut records = records(&failing());
    (records.header, records.trials.remove(0))
}

#[test]
fn a_password_in_a_url_is_in_no_record_and_no_report() {
    let (mut header, mut trial) = head();
    let url = format!("mysql://root:{SECRET}@127.0.0.1:1/x");
    header.scenario.text = format!("[servers.mine]\nkind = \"running\"\nurl = \"{url}\"\n");
    fail(&mut trial, &format!("connecting to {url}: refused"));
    let directory = tempfile::tempdir().unwrap();
    let results = directory.path().join("results");
    let (mut file, ..) = RecordsFile::open(&results, &header, Resume::default()).unwrap();
    file.append(&trial).unwrap();
    drop(file);
    let kept = fs::read_to_string(results.join(records_file::FILE_NAME)).unwrap();
    assert!(!kept.contains(SECRET) && kept.contains("mysql://root:***@127.0.0.1:1/x"), "{kept}");

    // A record of an earlier version.
    let line = |line: Value, kind: &str| {
        let Value::Object(mut fields) = line else { panic!("a record is an object") };
        fields.insert("line".to_owned(), kind.into());
        Value::Object(fields).to_string() + "\n"
    };
    let old = line(json!(header), "header") + &line(json!(trial), "trial");
    assert!(old.contains(SECRET));
    for format in [Format::Html, Format::Md, Format::Csv, Format::Json, Format::Text, Format::Diskstats] {
        let page = render(&records(&old), format, false).unwrap();
        assert!(!page.contains(SECRET), "{format:?}");
    }
    fs::write(results.join(records_file::FILE_NAME), &old).unwrap();
    drop(RecordsFile::open(&results, &header, Resume::default()).unwrap());
    let kept = fs::read_to_string(results.join(records_file::FILE_NAME)).unwrap();
    assert!(!kept.contains(SECRET), "a resumed run hides it in earlier records: {kept}");
}

#[test]
fn a_password_in_a_url_is_in_no_message() {
    let directory = tempfile::tempdir().unwrap();
    let check = |arguments: &[&str], exit_code: i32| {
        let told = told(&spindle(directory.path(), arguments), exit_code);
        assert!(!told.contains(SECRET), "{arguments:?}: {told}");
    };
    for url in [
        format!("mysql://root:{SECRET}@127.0.0.1:1/x"),
        format!("postgresql://root:{SECRET}@127.0.0.1:1/x"),
        format!("postgresql://127.0.0.1:1/x?user=root&password={SECRET}"),
    ] {
        let text = format!(
            "title = \"Test\"\nquestion = \"?\"\n[stacks.a]\npath = {:?}\n[servers.mine]\nkind = \"running\"\nurl = \"{url}\"\n\
             [workloads.tpcc]\nkind = \"tpcc\"\nwarehouses = 1\nterminals = 1\n\
             [matrix]\nstack = [\"a\"]\nserver = [\"mine\"]\nworkload = [\"tpcc\"]\n\
             [run]\ntrials = 1\nstart = \"warm\"\nwarm_up = \"10 ms\"\nmeasure = \"100 ms\"\nseed = 3\n",
            directory.path()
        );
        fs::write(directory.path().join("x.toml"), text).unwrap();
        check(&["run", "x.toml"], 1);
        check(&["load", "tpcc", "--server", &url, "--warehouses", "1"], 1);
    }
    for url in [
        format!("mysqll://root:{SECRET}@host"),
        format!("mysql://root:{SECRET}@host:port"),
        format!("mysql://root:a/{SECRET} b@host"),
    ] {
        check(&["load", "tpcc", "--server", &url, "--warehouses", "1"], 2);
        check(&["plan", &url], 2);
    }
}
