//! The page in a real browser: it draws, makes no request, fits a telephone, and can be read in dark mode and
//! without JavaScript.

use crate::report_support::{browser::*, *};
use serde_json::json;
use spindle_lab::report::{Format, render};

/// Names of charts that are there but empty.
const EMPTY_CHARTS: &str = "
    return [...document.querySelectorAll('.chart')].filter(chart => {
        if (chart.closest('details:not([open])')) return false;
        const drawing = chart.querySelector('svg');
        if (!drawing || drawing.clientWidth < 100 || drawing.clientHeight < 60) return true;
        // Grid lines and labels alone are no drawing: at least one path must have the colour of data.
        const style = getComputedStyle(document.documentElement);
        const colours = [0, 1, 2, 3, 4, 5, 6].map(i => '--series-' + i)
            .concat(['read', 'commit', 'locks', 'other'].map(cause => '--cause-' + cause))
            .map(name => style.getPropertyValue(name).trim());
        return ![...drawing.querySelectorAll('path')].some(path =>
            (colours.includes(path.getAttribute('fill')) || colours.includes(path.getAttribute('stroke')))
            && path.getBBox().width + path.getBBox().height > 3);
    }).map(chart => chart.id);";

/// Texts whose contrast with their background is below 4.5 (WCAG 2.2, 1.4.3), text inside the drawings
/// included.
const FAINT_TEXTS: &str = "
    const numbers = colour => (colour.match(/[\\d.]+/g) || []).map(Number);
    const luminance = colour => {
        const [red, green, blue] = colour.map(value => value / 255)
            .map(value => value <= 0.04045 ? value / 12.92 : Math.pow((value + 0.055) / 1.055, 2.4));
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    };
    const contrast = (one, other) => {
        const [high, low] = [luminance(one), luminance(other)].sort((a, b) => b - a);
        return (high + 0.05) / (low + 0.05);
    };
    const behind = element => {
        for (let at = element; at; at = at.parentElement) {
            const colour = numbers(getComputedStyle(at).backgroundColor);
            if (colour.length === 3 || colour[3] > 0) return colour.slice(0, 3);
        }
        return [255, 255, 255];
    };
    document.querySelectorAll('details').forEach(details => { details.open = true; });
    const faint = new Set();
    const causes = [...document.querySelectorAll('.legend [class*=cause-]')]
        .map(element => numbers(getComputedStyle(element).backgroundColor).slice(0, 3));
    const walker = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
    let seen = 0;
    while (walker.nextNode()) {
        const element = walker.currentNode.parentElement;
        if (!walker.currentNode.textContent.trim() || element.closest('style, noscript')) continue;
        const style = getComputedStyle(element);
        const drawn = element.closest('svg');
        seen += 1;
        const colour = numbers(drawn ? style.fill : style.color).slice(0, 3);
        // Labels inside the bars of causes have a sibling behind them, which may be any of the causes.
        const inside = drawn && element.closest('#chart-bottlenecks') && colour.join() === '255,255,255';
        const ratio = Math.min(...(inside ? causes : [behind(element)]).map(other => contrast(colour, other)));
        if (ratio < 4.5) faint.add(element.tagName + ' ' + element.className + ' ' + ratio.toFixed(2));
    }
    return {seen, faint: [...faint]};";

/// Lines of text that are printed over each other in a chart with names of cells.
const OVERLAPS: &str = "
    return ['throughput', 'bottlenecks'].flatMap(name => {
        const texts = [...document.querySelectorAll('#chart-' + name + ' text')]
            .filter(text => text.textContent.trim())
            .map(text => ({ text: text.textContent, box: text.getBoundingClientRect() }));
        // Boxes of glyphs are higher than the letters.
        const apart = (one, other) => one.right <= other.left || other.right <= one.left
            || one.bottom - 4 <= other.top || other.bottom - 4 <= one.top;
        return texts.flatMap((one, index) => texts.slice(index + 1)
            .filter(other => !apart(one.box, other.box))
            .map(other => name + ': ' + one.text + ' / ' + other.text));
    });";

const SIDEWAYS: &str = "return document.documentElement.scrollWidth - document.documentElement.clientWidth;";

/// A browser zooms out until a page that is too wide fits, so that both widths count.
const PAGE_WIDTHS: &str = "return [innerWidth, document.documentElement.scrollWidth];";

/// Names of rows stay where they are while the rest of a table is scrolled.
const WIDE_HEADS: &str = "
    const isScrolled = box => box.scrollWidth > box.clientWidth;
    return [...document.querySelectorAll('tbody th')]
        .filter(head => isScrolled(head.closest('.scroll')) && head.getBoundingClientRect().width > innerWidth / 2)
        .map(head => head.textContent);";

/// Tables with columns outside the screen that do not say so.
const HIDDEN_COLUMNS: &str = "
    return [...document.querySelectorAll('.scroll')]
        .filter(box => box.scrollWidth > box.clientWidth + 1)
        .filter(box => !getComputedStyle(box, '::before').content.includes('scroll sideways'))
        .map(box => box.getAttribute('aria-label'));";

const FOLDED: &str = "
    const table = document.querySelector('#cells');
    return table.scrollWidth <= innerWidth && [...table.querySelectorAll('td')].every(field => field.dataset.name);";

const BACKGROUND: &str = "return getComputedStyle(document.body).backgroundColor;";

fn check_charts(browser: &Browser<'_>, at_least: usize) {
    browser.wait_until("return document.documentElement.classList.contains('complete');");
    let charts = browser.run("return document.querySelectorAll('.chart').length;");
    assert!(charts.as_u64().expect("a count") as usize >= at_least, "{charts} charts");
    assert_eq!(browser.run(EMPTY_CHARTS), json!([]), "empty charts");
}

/// Presses the buttons below two charts, and keeps the files that they give.
const EXPORT: &str = "
    window.files = [];
    HTMLAnchorElement.prototype.click = function () { window.files.push([this.download, this.href]); };
    ['throughput', 'detail-0-0'].forEach(name =>
        document.getElementById('chart-' + name).parentElement.querySelectorAll('.export button')
            .forEach(button => button.click()));
    return null;";

/// Titles and names of lines stand beside a chart on the page, and inside a file.
fn check_export(browser: &Browser<'_>) {
    browser
        .wait_until("return document.querySelectorAll('#chart-detail-0-0 ~ .export button').length === 2;");
    browser.run(EXPORT);
    browser.wait_until("return window.files.length >= 4;");
    let files = browser.run("return window.files;");
    let files: Vec<(String, String)> = serde_json::from_value(files).expect("pairs of texts");
    let file = |name: &str| {
        let found = files.iter().find(|(file, _)| file == name);
        &found.unwrap_or_else(|| panic!("no {name} among {} files", files.len())).1
    };
    for (name, words) in
        [("throughput", vec!["Throughput"]), ("detail-0-0", vec!["Checkpoint%20age", "log%20capacity"])]
    {
        let vector = file(&format!("spindle-{name}.svg"));
        assert!(vector.starts_with("data:image/svg+xml") && vector.contains("%3Cpath"), "{name}");
        assert!(words.iter().all(|word| vector.contains(word)), "{name} lacks one of {words:?}");
        let bitmap = file(&format!("spindle-{name}.png"));
        assert!(bitmap.starts_with("data:image/png") && bitmap.len() > 10_000, "{name}: {}", bitmap.len());
    }
}

fn check_contrast(browser: &Browser<'_>) {
    let answer = browser.run(FAINT_TEXTS);
    assert!(answer["seen"].as_u64().expect("a count") > 50, "{answer}");
    assert_eq!(answer["faint"], json!([]), "texts with too little contrast");
}

fn check_silence(browser: &Browser<'_>) {
    let complaints = browser.log("browser");
    assert!(complaints.is_empty(), "the console says {complaints:?}");
    let mut requests = Vec::new();
    for entry in browser.log("performance") {
        let message: serde_json::Value =
            serde_json::from_str(entry["message"].as_str().expect("text")).expect("JSON");
        let message = &message["message"];
        // The browser's own start page makes requests too; only what our document asks for counts.
        let ours =
            message["params"]["documentURL"].as_str().is_some_and(|address| address.starts_with("file://"));
        if message["method"] == "Network.requestWillBeSent" && ours {
            requests.push(message["params"]["request"]["url"].as_str().unwrap_or_default().to_owned());
        }
    }
    assert!(!requests.is_empty(), "the log of requests must at least have the page itself");
    requests.retain(|address| !address.starts_with("file://") && !address.starts_with("data:"));
    assert_eq!(requests, Vec::<String>::new(), "the page asked for something");
}

#[test]
fn the_page_works_in_a_browser() {
    let Some(driver) = Driver::start() else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let page = |name: &str, records: &str| {
        let path = directory.path().join(name);
        let html = render(&crate::report_support::records(records), Format::Html, false).expect("a page");
        std::fs::write(&path, html).expect("written");
        path
    };
    let full = page("full.html", &quickstart());

    let desktop = driver.open(1280);
    desktop.dark(false);
    desktop.load(&full);
    check_charts(&desktop, 13);
    desktop.picture("desktop", 1500);
    check_contrast(&desktop);
    check_charts(&desktop, 13);
    check_export(&desktop);
    assert_eq!(desktop.run(SIDEWAYS), json!(0));
    let light = desktop.run(BACKGROUND);
    let ink = "document.querySelector('#chart-throughput text').getAttribute('fill')";
    let light_ink = desktop.run(&format!("return {ink};"));
    desktop.dark(true);
    desktop.wait_until("return matchMedia('(prefers-color-scheme: dark)').matches;");
    assert_ne!(desktop.run(BACKGROUND), light, "dark mode changes the background");
    // The charts follow, a moment later: the page draws them again when it is told of the change.
    desktop.wait_until(&format!("return {ink} !== {light_ink};"));
    check_charts(&desktop, 13);
    check_contrast(&desktop);
    desktop.picture("dark", 1500);
    check_silence(&desktop);
    desktop.dark(false);
    for (name, records) in shapes() {
        desktop.load(&page(&format!("{name}.html"), &records));
        if crate::report_support::records(&records).trials.iter().any(|trial| trial.error.is_none()) {
            check_charts(&desktop, 4);
        }
        check_contrast(&desktop);
        desktop.picture(name, 2500);
        check_silence(&desktop);
    }

    let labelled = page("labelled.html", &long_labels());
    desktop.load(&labelled);
    assert_eq!(desktop.run(OVERLAPS), json!([]), "names over names");
    desktop.picture("labelled", 1500);

    let telephone = desktop;
    telephone.telephone(390);
    telephone.load(&labelled);
    assert_eq!(telephone.run(OVERLAPS), json!([]), "names over names on a telephone");
    telephone.picture("telephone-labelled", 2400);
    telephone.load(&full);
    check_charts(&telephone, 13);
    telephone.run("document.querySelectorAll('details').forEach(details => { details.open = true; });");
    assert_eq!(
        telephone.run("return innerWidth;"),
        json!(390),
        "nothing makes the page wider than the screen"
    );
    assert_eq!(telephone.run(SIDEWAYS), json!(0));
    // The table of results becomes a list, and wide tables say that they go on.
    assert_eq!(telephone.run(HIDDEN_COLUMNS), json!([]), "wide tables without a word about it");
    assert_eq!(telephone.run(FOLDED), json!(true), "the table of results fits");
    telephone.picture("telephone", 2400);
    telephone.dark(true);
    telephone.wait_until("return matchMedia('(prefers-color-scheme: dark)').matches;");
    telephone.picture("telephone-dark", 2400);
    telephone.dark(false);
    check_silence(&telephone);

    // The smallest that people have, with every table and with names that cannot be broken at a blank.
    telephone.telephone(360);
    let tables = [("list", list()), ("replicated", replicated()), ("long-names", long_names())];
    for (name, records) in shapes().into_iter().chain(tables) {
        telephone.load(&page(&format!("{name}.html"), &records));
        telephone.run("document.querySelectorAll('details').forEach(details => { details.open = true; });");
        assert_eq!(telephone.run(PAGE_WIDTHS), json!([360, 360]), "{name} is wider than the screen");
        assert_eq!(
            telephone.run(WIDE_HEADS),
            json!([]),
            "{name}: what stays in view leaves no room for the rest"
        );
        telephone.picture(&format!("telephone-{name}"), 2400);
    }

    let plain = telephone;
    plain.disable_javascript();
    plain.load(&full);
    let text = plain.run("return document.querySelector('main').innerText;");
    let text = text.as_str().expect("text");
    assert!(
        text.contains("the iodrive gives at least 1.53 times that, but there the cores decide")
            && text.contains("The charts need JavaScript"),
        "{text}"
    );
    let shown = "return document.querySelector('#cells').getBoundingClientRect().height > 80
        && [...document.querySelectorAll('.chart')].every(chart => chart.getBoundingClientRect().height === 0);";
    assert_eq!(plain.run(shown), json!(true), "the table is there, and no empty frames");
    plain.picture("plain", 2400);
}
