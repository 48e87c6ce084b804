//! The page of a large run: its size, and how long a browser takes to open it.

use std::path::Path;

use serde_json::json;
use spindle_lab::record::{HostSeries, OperationSeries};
use spindle_lab::report::{self, Format, render};
use spindle_stats::random::Random;

use crate::in_check_all;
use crate::report_support::browser::{Browser, Driver};
use crate::report_support::{CARD, DISK, FLASH, Shape, file_of, records};

const CELLS: usize = 60;
const TRIALS: u32 = 3;
const SECONDS: usize = 600;
const BYTES_MOST: usize = 8_000_000;

/// Every series that a record can have, with noise that no compression removes.
fn large_run() -> String {
    let leak = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
    let shape = |index: usize| {
        let shape = [DISK, FLASH, CARD][index % 3];
        let factor = 1.0 + 0.01 * index as f64;
        Shape {
            name: leak(format!("{}-{index}", shape.name)),
            per_minute: shape.per_minute * factor,
            ..shape
        }
    };
    let shapes: Vec<Shape> = (0..CELLS).map(shape).collect();
    file_of(&shapes, TRIALS, SECONDS, |trial, _| {
        let mut random = Random::new(u64::from(trial.trial) ^ trial.provenance.seed);
        let measurement = trial.measurement.as_mut().expect("measured");
        measurement.mounts[0].host_series = kernel(&mut random);
    })
}

fn kernel(random: &mut Random) -> HostSeries {
    let mut counts = |level: f64| -> Vec<u64> {
        (0..SECONDS).map(|_| (level * (1.0 + 0.2 * random.normal())).max(0.0) as u64).collect()
    };
    let mut operation = |level: f64, ms: f64| {
        let count = counts(level);
        OperationSeries {
            merged: counts(level / 3.0),
            bytes: count.iter().map(|count| count << 14).collect(),
            time_ms: count.iter().map(|count| (*count as f64 * ms).round()).collect(),
            count,
        }
    };
    HostSeries {
        elapsed_s: vec![1.000_123; SECONDS],
        read: operation(3000.0, 0.4),
        write: operation(900.0, 0.7),
        discard: operation(2.0, 3.0),
        flush: operation(120.0, 1.1),
        in_flight: counts(4.0),
        busy_ms: vec![990.0; SECONDS],
        queue_ms: counts(2000.0).into_iter().map(|ms| ms as f64).collect(),
    }
}

/// Milliseconds until the browser reported the page as loaded, and until the last chart was drawn.
fn opened_ms(browser: &Browser<'_>, page: &Path) -> [f64; 2] {
    browser.load(page);
    browser.wait_until("return document.documentElement.classList.contains('complete');");
    let times = "return [performance.getEntriesByType('navigation')[0].loadEventEnd, performance.now()];";
    serde_json::from_value(browser.run(times)).expect("two numbers")
}

#[test]
fn the_page_of_sixty_cells_is_small_and_opens() {
    let Some(driver) = in_check_all(Driver::start) else { return };
    let text = large_run();
    let html = render(&records(&text), Format::Html, false).expect("a page");
    println!(
        "{CELLS} cells, {TRIALS} trials, {SECONDS} s: records {} bytes, page {} bytes",
        text.len(),
        html.len()
    );
    assert!(html.len() < BYTES_MOST, "the page has {} bytes", html.len());

    let directory = tempfile::tempdir().expect("a directory");
    let page = directory.path().join("large.html");
    std::fs::write(&page, html).expect("written");
    let committed = directory.path().join("quickstart.html");
    let quickstart = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../records/quickstart");
    let quickstart = report::read(&quickstart).expect("committed records");
    std::fs::write(&committed, render(&quickstart, Format::Html, false).expect("a page")).expect("written");
    let browser = driver.open(1280);
    // Alternating, so that a load of the machine hits both.
    for _ in 0..3 {
        let [large, small] = [&page, &committed].map(|page| opened_ms(&browser, page));
        let words =
            |[loaded, drawn]: [f64; 2]| format!("loaded after {loaded:.0} ms, drawn after {drawn:.0} ms");
        println!("large: {}; records/quickstart: {}", words(large), words(small));
    }
    browser.load(&page);
    let folded = "document.querySelectorAll('details.counters').length";
    assert_eq!(browser.run(&format!("return {folded};")), json!(CELLS));
    // What is folded is drawn when it is opened.
    let drawn = "return document.querySelectorAll('details.counters .export').length;";
    assert_eq!(browser.run(drawn), json!(0));
    browser.run("document.querySelector('details.counters').open = true; return null;");
    browser.wait_until(
        "return document.documentElement.classList.contains('complete') \
                        && document.querySelectorAll('details.counters .export').length > 10;",
    );
    browser.picture("large", 4000);
}
