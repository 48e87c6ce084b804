//! The view at several sizes.

use insta::assert_snapshot;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use spindle_base::dilation::Dilation;

use super::*;
use crate::watch::line::phase_words;
use crate::watch::state::Phase;
use crate::watch::tests::{NOW_MS, example};

fn drawn(state: &State, now_ms: u64, paint: Paint, [width, height]: [u16; 2]) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, &Shown { state, now_ms, paint })).unwrap();
    terminal.backend().buffer().clone()
}

/// The characters of the screen.
fn screen(state: &State, size: [u16; 2]) -> String {
    text_of(&drawn(state, NOW_MS, Paint::Plain, size))
}

fn text_of(buffer: &Buffer) -> String {
    let rows = buffer.content().chunks(usize::from(buffer.area.width));
    let row = |cells: &[ratatui::buffer::Cell]| {
        cells.iter().map(ratatui::buffer::Cell::symbol).collect::<String>().trim_end().to_owned()
    };
    rows.map(row).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_common_terminal() {
    assert_snapshot!(screen(&example(40), [80, 24]), @r"
    Would an SSD help this database?
    ██████████░░░░░░░░░░░░░░░░░░░░ 4 of 12 trials, about 12 min 30 s left
    hdd/mariadb, trial 2: measure, 34 s of 1 min
     transactions/s: 130 ───────────────────  latency, ms: p50 8.47, p99 62.1 • ────
    301 │                ⣠  ⢀⡀               144 │
        │           ⢀⠔⠢⠤⠋ ⠑⠔⠁⠱⡀ ⣀                │           •••••••••• •
        │         ⠒⠤⠊         ⠈⠉ ⢣  ⡀            │        ••••         •••  •
        │                         ⠉⠉⠘⡄ ⢀⡀  ⢀     │                        •••• ••  •
        │                            ⠈⠉⠁⠘⢄⡠⠃     │                           •• •••
        │                                        │
    0   │                                    0   │        ⠐⠒⠒⠊⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠒⠒⠒⠒⠢⠒⠢⠤⠤⠔
        └───────────────────────────────────     └──────────────────────────────────
    -60 s                                now -60 s                               now
    storage     reads/s     ms writes/s     ms flushes/s     ms   MB/s  queue
    data on hdd    78.6   5.31     39.3   1.77      7.86   10.6   1.93   2.10
    redo on ssd    26.2  0.131     13.1 0.0437      2.62  0.262  0.645   2.10
    4 cores: 31 % busy; server 18 %, clients 4.0 %, emulator 3.0 %, others 6.0 %
    server: checkpoint age 28.1 MiB, dirty pages 786, fsyncs 20.3/s
    bottleneck so far: read latency
    78 % of the terminals' time went into 4080 reads of 8.10 ms each from `hdd`; the
    4 cores were 31 % busy. Storage that reads at once can give at most 4.5 times.
    last: ssd/mariadb, trial 1: 4711 new-order transactions per minute, limited by
    CPU
    q leaves, and the run goes on
    ");
}

#[test]
fn a_large_terminal() {
    assert_snapshot!(screen(&example(200), [120, 40]), @r"
    Would an SSD help this database?
    █████████████░░░░░░░░░░░░░░░░░░░░░░░░░░░ 4 of 12 trials, about 12 min 30 s left
    hdd/mariadb, trial 2: measure, 34 s of 1 min
     transactions/s: 120 ───────────────────────────────────────  latency, ms: p50 7.82, p99 57.4 • ────────────────────────
    302  │                                                       144  │
         │                                                            │
         │   ⣴              ⣦⢀             ⡆⢀            ⢰⡄⢀          │   •              •             •             ••
         │   ⣿⢸⡇            ⣿⢸⡆           ⢠⢻⢸⡄           ⢸⢱⣼          │   •••           •••            •••           •••
         │ ⢰⣆⠇⡿⡇          ⢸⣼⠸⡜⡇          ⣼⢸⢸⡇⡇          ⣷⡎⢸⡏⡆         │  ••••          ••••          •••••          ••••
         │ ⢸⢻ ⠁⢱⢀         ⢸⢿ ⠁⡇⡀         ⡟⡼ ⠁⡇⡀         ⡿⡇⠈ ⡇⡀        │  ••••          •••••         •• ••          ••••
         │ ⢸   ⠸⡜⡄        ⡎   ⢸⣿         ⡇   ⢣⢧        ⢰⠁   ⣷⡇        │ ••  ••         ••  ••        ••  ••         ••  ••
         │⣀⡇    ⠁⡇       ⡀⡇   ⠈ ⡇       ⣰⠁   ⠈⢸       ⢀⢸    ⠈⢸        │ •    ••       ••   ••        •   ••       ••    ••
         │⠸⡇     ⡇      ⢰⢿      ⡇      ⢸⢿     ⢸       ⢸⡿     ⢸        │••     •      ••     •       ••     •      ••     •
         │       ⡇⡀     ⢸       ⡇⡀     ⢸      ⠸⡀⡀     ⡸      ⢸⢀       │ •     ••     ••     •       ••     ••     ••     ••
         │       ⢸⢷     ⢸       ⢳⢇     ⡜       ⡷⡇     ⡇      ⠈⡞⡄      │       ••     •       •      •      ••     •      ••
         │        ⢸    ⣠⡎        ⢸    ⣄⡇        ⢱   ⢀⡄⡇        ⡇      │        •    ••        •   ••       ••    ••       •
         │        ⢸    ⡿⡇        ⢸⢀   ⣿⡇        ⢸   ⢸⢸⠇        ⡇      │        •    ••        ••  ••        •    ••        •
         │        ⠈⣾⡇⢠ ⡇         ⢸⢸⡆⣀⢠⠃         ⢸⡸⡀⡄⢸          ⢇      │        •••••          •••••         •• ••          •
         │         ⠏⡇⢸⣷⠁          ⠇⡇⡏⣾          ⠈⠇⡇⣿⡎          ⠘      │         ••••          •••••          ••••          •
         │          ⢱⡎⢿            ⢇⠇⡿            ⣷⠹⡇                 │          •••           ••••           •••
         │          ⠈⠇             ⠘              ⠹                   │          •              •             •
         │                                                            │
         │                                                            │
         │                                                            │
         │                                                            │   ⣀              ⡀             ⣀              ⡀
         │                                                            │⢤⡜⠓⠉⠊⠱⠶⡀⡀     ⢠⣠⠛⠊⠘⠋⠦⢢⢀      ⣤⡜⠓⠉⠊⠱⠔⡄⡀     ⢀⢄⠎⠚⠘⠋⠦⢢⢀
         │                                                            │       ⠉⠑⠴⢆⡴⡴⠑⠃       ⠁⠣⠲⡠⢢⡜⠚       ⠈⠙⠴⢆⡴⡴⠑⠃       ⠁⠣
    0    │                                                       0    │
         └──────────────────────────────────────────────────────      └─────────────────────────────────────────────────────
    -205 s                                                   now -205 s                                                  now
    storage     reads/s     ms writes/s     ms flushes/s     ms   MB/s  queue
    data on hdd     109   7.33     54.3   2.44      10.9   14.7   2.67   2.90
    redo on ssd    36.2  0.181     18.1 0.0603      3.62  0.362  0.891   2.90
    4 cores: 31 % busy; server 18 %, clients 4.0 %, emulator 3.0 %, others 6.0 %
    server: checkpoint age 38.8 MiB, dirty pages 1,086, fsyncs 28.1/s
    bottleneck so far: read latency
    78 % of the terminals' time went into 4080 reads of 8.10 ms each from `hdd`; the 4 cores were 31 % busy. Storage that
    reads at once can give at most 4.5 times.
    last: ssd/mariadb, trial 1: 4711 new-order transactions per minute, limited by CPU
    q leaves, and the run goes on
    ");
}

#[test]
fn a_small_terminal() {
    assert_snapshot!(screen(&example(40), [40, 12]), @r"
    Would an SSD help this database?
    4 of 12 trials, about 12 min 30 s left
    hdd/mariadb, trial 2: measure, 34 s of …
     transactions/s: 130
    ▆▇▇▆▆▆▇▇█▇▇▆▇▇▇▇▆▆▆▆▆▆▅▄▄▅▅▄▄▃▃▃▄▃▃▂▂▃▃▃
     latency, ms: p50 8.47, p99 62.1 •
    ▆▇▇▆▆▆▇▇█▇▇▆▇▇▇▇▆▆▆▆▆▆▅▄▄▅▅▄▄▃▃▃▄▃▃▂▂▃▃▃
    storage  reads/s     ms writes/s     ms
    data        78.6   5.31     39.3   1.77
    redo        26.2  0.131     13.1 0.0437
    4 cores: 31 % busy; server 18 %, client…
    bottleneck so far: read latency
    ");
}

fn loading() -> State {
    let mut state = example(1);
    state.trial = None;
    state.standing.activity = "loading the database, 34 %".to_owned();
    state.standing.last_result = None;
    state
}

#[test]
fn a_run_that_loads_its_database_has_no_charts() {
    assert_snapshot!(screen(&loading(), [80, 24]), @r"
    Would an SSD help this database?
    ██████████░░░░░░░░░░░░░░░░░░░░ 4 of 12 trials, about 12 min 30 s left
    loading the database, 34 %




















    q leaves, and the run goes on
    ");
}

/// A warm-up: only the clients have figures.
fn warming_up() -> State {
    let mut state = example(0);
    let trial = state.trial.as_mut().unwrap();
    trial.phase.name = "warm-up".to_owned();
    trial.dilation = Dilation::new(4.0).unwrap();
    (trial.cpu, trial.bottleneck) = (None, None);
    trial.series.server.clear();
    state
}

#[test]
fn a_phase_that_may_end_earlier_says_so() {
    let mut trial = warming_up().trial.unwrap();
    trial.phase = Phase { name: "settle".to_owned(), is_bound: true, ..trial.phase };
    assert_eq!(phase_words(&trial, NOW_MS), "settle, 8 s of at most 1 min in time dilated 4 times");
}

#[test]
fn a_warm_up_in_dilated_time() {
    assert_snapshot!(screen(&warming_up(), [80, 16]), @r"
    Would an SSD help this database?
    ██████████░░░░░░░░░░░░░░░░░░░░ 4 of 12 trials, about 12 min 30 s left
    hdd/mariadb, trial 2: warm-up, 8 s of 1 min in time dilated 4 times
     transactions/s: 204 ───────────────────  latency, ms: p50 13.3, p99 97.4 • ────
    224 │                                ⣀⡀⢠ 107 │
        │                                 ⠈⠁     │                               •••
        │                                        │
        │                                        │
        │                                        │
        │                                        │
    0   │                                    0   │                               ⠉⠉⠉
        └───────────────────────────────────     └──────────────────────────────────
    -60 s                                now -60 s                               now
    last: ssd/mariadb, trial 1: 4711 new-order transactions per minute, limited by
    CPU
    q leaves, and the run goes on
    ");
}

#[test]
fn silence_in_a_window_is_told() {
    let foot = |state: &State, later_ms: u64| {
        let text = text_of(&drawn(state, NOW_MS + later_ms, Paint::Plain, [80, 24]));
        text.lines().last().unwrap_or_default().to_owned()
    };
    let leaves = "q leaves, and the run goes on";
    assert_eq!(foot(&example(40), 4_000), leaves);
    assert_eq!(foot(&example(40), 9_000), "the run has been silent for 9 s");
    // A dilated second takes four.
    assert_eq!(foot(&warming_up(), 9_000), leaves);
    assert_eq!(foot(&loading(), 60_000), leaves);
}

#[test]
fn without_colours_nothing_is_lost() {
    let [coloured, plain] =
        [Paint::Coloured, Paint::Plain].map(|paint| drawn(&example(40), NOW_MS, paint, [80, 24]));
    let colours = |buffer: &Buffer| buffer.content().iter().filter(|cell| cell.fg != Color::Reset).count();
    assert!(colours(&coloured) > 100);
    assert_eq!(colours(&plain), 0);
    assert_eq!(text_of(&coloured), text_of(&plain));
}

#[test]
fn every_size_can_be_drawn() {
    for state in [example(40), example(1), warming_up(), loading(), State::default()] {
        for size in [[1, 1], [3, 2], [10, 5], [19, 7], [59, 8], [60, 9], [300, 100]] {
            assert_eq!(drawn(&state, NOW_MS, Paint::Coloured, size).area.width, size[0]);
        }
    }
}
