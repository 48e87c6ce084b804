//! Checks of a scenario before any work is done.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use spindle_load::WorkloadSpec;

use super::file::{DurationText, LayoutTable, Measure, ScenarioFile, ServerTable};
use super::{Bounds, Matrix, RunSettings, Scenario, ServerSpec, fit, replication};
use crate::record::StartState;
use crate::server::{SourceKeys, catalog};
use crate::stack::layout::Layout;
use crate::stack::{On, StackSpec, StackTable, built_in_stack};
use crate::volume;
use spindle_base::Mistake;
use spindle_base::near;
use spindle_base::text;

/// A longer table of trials is a mistake.
const TRIALS_MAX: i64 = 1000;
const DURATION_MAX: Duration = Duration::from_secs(24 * 3600);
/// In a shorter window any workload has too few transactions for a meaningful result.
const MEASURE_MIN: Duration = Duration::from_millis(100);

pub(super) fn validate(
    name: &str,
    text: &str,
    mut file: ScenarioFile,
    bounds: &Bounds,
) -> Result<Scenario, Mistake> {
    add_built_in_stacks(&mut file);
    add_default_server(&mut file)?;
    for (table, names) in [
        ("stacks", file.stacks.keys().collect::<Vec<_>>()),
        ("layouts", file.layouts.keys().collect()),
        ("servers", file.servers.keys().collect()),
        ("workloads", file.workloads.keys().collect()),
    ] {
        for name in names {
            check_name(table, name)?;
        }
    }
    let mut stacks = BTreeMap::new();
    for (name, table) in &file.stacks {
        let stack = StackSpec::resolve(name, table, &file.stacks)
            .map_err(|mistake| mistake.under(&format!("stacks.{name}")))?;
        if let Some((key, words)) = volume::refusal(&stack) {
            return Err(Mistake::at(format!("stacks.{name}.{key}"), words));
        }
        stacks.insert(name.clone(), stack);
    }
    let mut servers = BTreeMap::new();
    for (name, table) in &file.servers {
        servers.insert(name.clone(), check_server(name, table, bounds)?);
    }
    for (name, workload) in &file.workloads {
        check_workload(name, workload)?;
    }
    for (name, table) in &file.layouts {
        check_layout(name, table, &file)?;
    }
    let layouts = check_storage(&file, &stacks)?;
    for (name, table) in &file.servers {
        if let (Some(table), Some(spec)) = (&table.replication, servers.get_mut(name)) {
            replication::check(name, table, spec, &file, &stacks)?;
            fit::check_memory(name, spec, bounds)?;
        }
    }
    check_axis("server", &file.matrix.server, "servers", servers.keys())?;
    check_axis("workload", &file.matrix.workload, "workloads", file.workloads.keys())?;
    check_pairs(&file, &servers)?;
    check_placement(&file, &servers, &layouts)?;
    replication::check_drives(&file, &servers, &stacks, &layouts)?;
    check_running(&file, &servers, &stacks)?;
    let scenario = Scenario {
        name: name.to_owned(),
        title: file.title.trim().to_owned(),
        question: file.question.trim().to_owned(),
        text: text.to_owned(),
        stacks,
        layouts,
        servers,
        workloads: file.workloads.clone(),
        matrix: Matrix {
            stack: file.matrix.stack.clone().unwrap_or_default(),
            layout: file.matrix.layout.clone().unwrap_or_default(),
            server: file.matrix.server.clone(),
            workload: file.matrix.workload.clone(),
        },
        run: check_run(&file)?,
    };
    check_windows(&scenario)?;
    fit::check_storage(&scenario)?;
    Ok(scenario)
}

/// Used by a scenario without servers.
fn add_default_server(file: &mut ScenarioFile) -> Result<(), Mistake> {
    if !file.servers.is_empty() || !file.matrix.server.is_empty() {
        return Ok(());
    }
    let workloads: Vec<&str> = file.workloads.values().map(WorkloadSpec::kind).collect();
    let is_here = |name: &str| catalog::by_kind(name).is_some_and(|server| server.version().is_ok());
    let kind = catalog::default_for(&workloads, is_here).ok_or_else(|| {
        Mistake::at("servers", "is missing; no server that is here runs all of the workloads")
    })?;
    file.servers.insert(kind.to_owned(), ServerTable { kind: kind.to_owned(), ..ServerTable::default() });
    file.matrix.server.push(kind.to_owned());
    Ok(())
}

/// Names become file names, axis labels and parts of `hdd/mariadb`.
fn check_name(table: &str, name: &str) -> Result<(), Mistake> {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    if name.is_empty() || name.len() > 40 || !name.chars().all(fits) {
        let message = "a name has 1 to 40 letters, digits, `-`, `_` or `.`";
        return Err(Mistake::at(format!("{table}.{name:?}"), message));
    }
    Ok(())
}

fn check_server(name: &str, table: &ServerTable, bounds: &Bounds) -> Result<ServerSpec, Mistake> {
    let kind = catalog::find(&table.kind).ok_or_else(|| {
        let hint = near::hint(&table.kind, &catalog::names_where(|_| true));
        Mistake::at(format!("servers.{name}.kind"), format!("server `{}` is not known{hint}", table.kind))
    })?;
    let keys = SourceKeys {
        program: table.program.as_deref(),
        version: table.version.as_deref(),
        file: table.file.as_deref(),
        url: table.url.as_deref(),
    };
    let source = catalog::source(kind, &keys)
        .map_err(|(key, words)| Mistake::at(format!("servers.{name}.{key}"), words))?;
    let settings = table.settings.iter().map(|(key, value)| (key.clone(), value.text())).collect();
    let spec =
        ServerSpec { kind: table.kind.clone(), source, settings, replication: None, trust: bounds.trust };
    fit::check_memory_settings(name, &spec, bounds)?;
    Ok(spec)
}

fn check_workload(name: &str, workload: &WorkloadSpec) -> Result<(), Mistake> {
    match workload.complaint() {
        Some((key, message)) => Err(Mistake::at(format!("workloads.{name}.{key}"), message)),
        None => Ok(()),
    }
}

/// Checks every server of the matrix with every workload.
fn check_pairs(file: &ScenarioFile, servers: &BTreeMap<String, ServerSpec>) -> Result<(), Mistake> {
    for server in &file.matrix.server {
        let accepted = servers[server].facts().accepted_workloads();
        for workload in &file.matrix.workload {
            let kind = file.workloads[workload].kind();
            let spec = &servers[server];
            spec.server().check_workload(kind, &spec.settings).map_err(|refusal| {
                let message = format!("`{workload}` is of kind `{kind}`, and server `{server}` {refusal}");
                Mistake::at("matrix.workload", message)
            })?;
            if !accepted.contains(&kind) {
                let accepted = near::list(&accepted);
                let message =
                    format!("`{workload}` is of kind `{kind}`, but server `{server}` runs only {accepted}");
                return Err(Mistake::at("matrix.workload", message));
            }
            if file.workloads[workload].engine().is_some() && !spec.facts().has_storage_engines {
                let message = format!("server `{server}` has no storage engines; leave it out");
                return Err(Mistake::at(format!("workloads.{workload}.engine"), message));
            }
        }
    }
    Ok(())
}

/// Checks the limits of a server that runs already: it is not restarted or reset, and it keeps its data.
fn check_running(
    file: &ScenarioFile,
    servers: &BTreeMap<String, ServerSpec>,
    stacks: &BTreeMap<String, StackSpec>,
) -> Result<(), Mistake> {
    let is_running = |name: &&String| servers[*name].facts().runs_already();
    let Some(server) = file.matrix.server.iter().find(is_running) else { return Ok(()) };
    if file.run.start != StartState::Warm {
        let message = format!("must be \"warm\": server `{server}` runs already");
        return Err(Mistake::at("run.start", message));
    }
    if let Some((name, _)) = stacks.iter().find(|(_, stack)| stack.real().is_none()) {
        let message = format!(
            "is emulated, and server `{server}` is on storage of its own: give the directory of a disk (`path`)"
        );
        return Err(Mistake::at(format!("stacks.{name}"), message));
    }
    let data_sets: BTreeSet<String> =
        file.matrix.workload.iter().map(|name| file.workloads[name].data_set()).collect();
    if data_sets.len() > 1 {
        let message = format!(
            "has workloads with different databases, and server `{server}` has room for one at a time"
        );
        return Err(Mistake::at("matrix.workload", message));
    }
    Ok(())
}

fn check_axis<'a>(
    axis: &str,
    names: &[String],
    table: &str,
    defined: impl Iterator<Item = &'a String>,
) -> Result<(), Mistake> {
    let defined: Vec<&str> = defined.map(String::as_str).collect();
    let key = format!("matrix.{axis}");
    if names.is_empty() {
        return Err(Mistake::at(key, format!("is empty; name at least one of {}", near::list(&defined))));
    }
    let mut seen = BTreeSet::new();
    for name in names {
        if !defined.contains(&name.as_str()) {
            let message = format!("`{name}` is not defined under [{table}]{}", near::hint(name, &defined));
            return Err(Mistake::at(key, message));
        }
        if !seen.insert(name) {
            return Err(Mistake::at(key, format!("`{name}` is named twice")));
        }
    }
    Ok(())
}

/// Adds ready-made stacks and profiles that the matrix or a layout names without a table.
fn add_built_in_stacks(file: &mut ScenarioFile) {
    let in_layouts = file.layouts.values().flat_map(|table| table.named()).map(|(_, stack)| stack.to_owned());
    let of_replicas = file.servers.values().filter_map(|table| table.replication.as_ref());
    let of_replicas = of_replicas.flat_map(|table| table.replicas.clone());
    let of_replicas = of_replicas.filter(|name| !file.layouts.contains_key(name));
    let in_matrix = file.matrix.stack.iter().flatten().cloned();
    let named: Vec<String> = in_matrix.chain(in_layouts).chain(of_replicas).collect();
    for name in named {
        if let Some(table) = built_in_stack(&name).filter(|_| !file.stacks.contains_key(&name)) {
            file.stacks.insert(name, table);
        }
    }
}

/// Checks that the stacks of a layout exist and are separate drives.
fn check_layout(name: &str, table: &LayoutTable, file: &ScenarioFile) -> Result<(), Mistake> {
    let defined: Vec<&str> = file.stacks.keys().map(String::as_str).collect();
    let named = table.named();
    for (class, stack) in &named {
        if !defined.contains(stack) {
            let message = format!("`{stack}` is not defined under [stacks]{}", near::hint(stack, &defined));
            return Err(Mistake::at(format!("layouts.{name}.{}", class.key()), message));
        }
    }
    // Each partition would get its own emulated drive, and the single arm would be in two places at once.
    let drive = |stack: &str| match &file.stacks[stack] {
        StackTable { layer: Some(layer), on: Some(On::One(on)), .. }
            if layer == "partition" && file.stacks.contains_key(on) =>
        {
            Some(on.clone())
        }
        _ => None,
    };
    for (index, (class, stack)) in named.iter().enumerate() {
        for (_, earlier) in named[..index].iter().filter(|(_, earlier)| earlier != stack) {
            let shared = drive(stack);
            if shared.is_some() && (shared == drive(earlier) || shared.as_deref() == Some(earlier))
                || drive(earlier).as_deref() == Some(stack)
            {
                let message = format!(
                    "`{stack}` and `{earlier}` are parts of one drive, which two mounts cannot share yet: \
                     put both classes on one stack"
                );
                return Err(Mistake::at(format!("layouts.{name}.{}", class.key()), message));
            }
        }
    }
    Ok(())
}

/// The storage axis: stacks or layouts.
fn check_storage(file: &ScenarioFile, stacks: &BTreeMap<String, StackSpec>) -> Result<Vec<Layout>, Mistake> {
    match (&file.matrix.stack, &file.matrix.layout) {
        (Some(names), None) => {
            check_axis("stack", names, "stacks", stacks.keys())?;
            Ok(names.iter().map(|name| Layout::plain(name, stacks[name].label())).collect())
        }
        (None, Some(names)) => {
            check_axis("layout", names, "layouts", file.layouts.keys())?;
            Ok(names.iter().map(|name| layout(name, &file.layouts[name])).collect())
        }
        (Some(_), Some(_)) => {
            Err(Mistake::at("matrix.layout", "cannot be there together with `stack`: name one of the two"))
        }
        (None, None) => {
            Err(Mistake::at("matrix.stack", "is missing; name stacks, or layouts with `layout = [...]`"))
        }
    }
}

pub(super) fn layout(name: &str, table: &LayoutTable) -> Layout {
    let label = table.label.as_deref().unwrap_or(name);
    Layout::new(name, label, &table.data, &table.named()[1..])
}

/// Checks that every server of the matrix can separate the classes of files that its layouts separate.
fn check_placement(
    file: &ScenarioFile,
    servers: &BTreeMap<String, ServerSpec>,
    layouts: &[Layout],
) -> Result<(), Mistake> {
    for name in &file.matrix.server {
        let (server, settings) = (servers[name].server(), &servers[name].settings);
        let replication = servers[name].replication.as_ref();
        let of_replicas = replication.into_iter().flat_map(|spec| {
            spec.replicas.iter().map(|layout| (layout, &spec.settings, "a replica of server"))
        });
        let own = layouts.iter().map(|layout| (layout, settings, "server"));
        for (layout, settings, whose) in own.chain(of_replicas) {
            for (class, _) in layout.apart() {
                server.files_of(class, settings).map_err(|refusal| {
                    let key = format!("layouts.{}.{}", layout.name, class.key());
                    Mistake::at(key, format!("{whose} `{name}` {refusal}"))
                })?;
            }
        }
    }
    Ok(())
}

fn check_run(file: &ScenarioFile) -> Result<RunSettings, Mistake> {
    let run = &file.run;
    if !(1..=TRIALS_MAX).contains(&run.trials) {
        let message = format!("{} is out of range; it can be 1 to {TRIALS_MAX}", run.trials);
        return Err(Mistake::at("run.trials", message));
    }
    let seed = u64::try_from(run.seed)
        .map_err(|_| Mistake::at("run.seed", format!("{} is negative; it can be 0 or more", run.seed)))?;
    let bounded = |key: &str, duration: Duration, shortest: Duration| {
        if duration > DURATION_MAX || duration < shortest {
            let (shortest, longest) = (text::duration(shortest), text::duration(DURATION_MAX));
            let message =
                format!("{} is out of range; it can be {shortest} to {longest}", text::duration(duration));
            return Err(Mistake::at(format!("run.{key}"), message));
        }
        Ok(duration)
    };
    let optional = |key: &str, value: Option<DurationText>, allowed: bool| match value {
        Some(_) if !allowed => {
            let start = start_name(run.start);
            Err(Mistake::at(
                format!("run.{key}"),
                format!("has no meaning with start = \"{start}\"; leave it out"),
            ))
        }
        Some(value) => bounded(key, value.0, Duration::ZERO),
        None => Ok(Duration::ZERO),
    };
    let of_kits = || file.matrix.workload.iter().filter_map(|name| file.workloads[name].warm_up()).max();
    let warm_up =
        run.warm_up.or_else(|| of_kits().filter(|_| run.start != StartState::Cold).map(DurationText));
    if run.start != StartState::Cold && warm_up.is_none() {
        let message = format!("is missing; start = \"{}\" needs it", start_name(run.start));
        return Err(Mistake::at("run.warm_up", message));
    }
    let once = run.measure == Measure::Once;
    let (key, measure) = match (run.measure, run.at_most) {
        (Measure::For(_), Some(_)) => {
            let message = "has no meaning unless measure = \"once\"; leave it out";
            return Err(Mistake::at("run.at_most", message.to_owned()));
        }
        (Measure::For(duration), None) => ("measure", duration),
        (Measure::Once, Some(DurationText(duration))) => ("at_most", duration),
        (Measure::Once, None) => {
            let message = "is missing; measure = \"once\" needs it, so that a trial ends on slow storage too";
            return Err(Mistake::at("run.at_most", message.to_owned()));
        }
    };
    if once {
        check_fixed_work(file)?;
    }
    Ok(RunSettings {
        trials: run.trials as u32,
        start: run.start,
        warm_up: optional("warm_up", warm_up, run.start != StartState::Cold)?,
        settle: optional("settle", run.settle, run.start == StartState::WarmFast)?,
        measure: bounded(key, measure, MEASURE_MIN)?,
        once,
        seed,
    })
}

/// Fixed work is done once, and begins with the server.
fn check_fixed_work(file: &ScenarioFile) -> Result<(), Mistake> {
    if file.run.start != StartState::Cold {
        let message = "must be \"cold\" with measure = \"once\": fixed work is done from its beginning";
        return Err(Mistake::at("run.start", message.to_owned()));
    }
    let other = file.matrix.workload.iter().find(|name| !file.workloads[*name].facts().is_fixed_work);
    let Some(name) = other else { return Ok(()) };
    let kind = file.workloads[name].kind();
    let known = near::list(&WorkloadSpec::kinds_that(|facts| facts.is_fixed_work));
    let message = format!(
        "\"once\" needs fixed work, and workload `{name}` of kind `{kind}` goes on for ever; the kinds of fixed work are {known}"
    );
    Err(Mistake::at("run.measure", message))
}

/// Foreign tools run for whole seconds.
fn check_windows(scenario: &Scenario) -> Result<(), Mistake> {
    let measure = scenario.run.measure;
    let foreign = scenario.matrix.workload.iter().find(|name| scenario.workloads[*name].facts().has_tool);
    match foreign.filter(|_| measure.subsec_nanos() > 0) {
        Some(name) => {
            let kind = scenario.workloads[name].kind();
            let message = format!(
                "{} is not a number of whole seconds, and workload `{name}` of kind `{kind}` can measure no other",
                text::duration(measure)
            );
            Err(Mistake::at("run.measure", message))
        }
        None => Ok(()),
    }
}

/// Key in a scenario.
fn start_name(start: StartState) -> &'static str {
    match start {
        StartState::Cold => "cold",
        StartState::Warm => "warm",
        StartState::WarmFast => "warm-fast",
    }
}
