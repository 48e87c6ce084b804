//! The storage of a scenario: its stacks, and the layouts of the cells.

use std::collections::BTreeMap;

use itertools::Itertools as _;
use spindle_base::Mistake;

use super::file::{LayoutTable, ScenarioFile};
use super::{Scenario, names};
use crate::record::FileClass;
use crate::stack::layout::Layout;
use crate::stack::{On, StackSpec, StackTable, built_in_stack};
use crate::volume;

/// Adds ready-made stacks and profiles that the matrix or a layout names without a table.
pub(super) fn add_built_in(file: &mut ScenarioFile) {
    let in_layouts = file.layouts.values().flat_map(|table| table.named()).map(|(_, stack)| stack.to_owned());
    let of_replicas = file.servers.values().filter_map(|table| table.replication.as_ref());
    let of_replicas = of_replicas.flat_map(|table| table.replicas.clone());
    let of_replicas = of_replicas.filter(|name| !file.layouts.contains_key(name));
    let in_matrix = file.matrix.stack.clone().into_iter();
    let named: Vec<String> = in_matrix.chain(in_layouts).chain(of_replicas).collect();
    for name in named {
        if let Some(table) = built_in_stack(&name).filter(|_| !file.stacks.contains_key(&name)) {
            file.stacks.insert(name, table);
        }
    }
}

/// Every stack table, resolved; the mistakes of all tables are told at once. Those without a size have the
/// usual one.
pub(super) fn stacks(
    tables: &BTreeMap<String, StackTable>,
    usual_bytes: Option<u64>,
) -> Result<BTreeMap<String, StackSpec>, Mistake> {
    let resolve = |(name, table): (&String, &StackTable)| {
        let stack = StackSpec::resolve_with(name, table, tables, usual_bytes)?;
        match volume::refusal(&stack) {
            Some((key, words)) => Err(Mistake::at(key, words)),
            None => Ok((name.clone(), stack)),
        }
    };
    let resolve = |entry| resolve(entry).map_err(|mistake| mistake.under(&format!("stacks.{}", entry.0)));
    let (stacks, mistakes): (BTreeMap<_, _>, Vec<_>) = tables.iter().map(resolve).partition_result();
    Mistake::all(mistakes).map_or(Ok(stacks), Err)
}

/// The storage of the cells: the stacks or the layouts of the matrix.
pub(super) fn layouts(
    file: &ScenarioFile,
    stacks: &BTreeMap<String, StackSpec>,
) -> Result<Vec<Layout>, Mistake> {
    for (name, table) in &file.layouts {
        check_layout(name, table, &file.stacks)?;
    }
    match (file.matrix.stack.as_slice(), file.matrix.layout.as_slice()) {
        ([], []) => {
            Err(Mistake::at("matrix.stack", "is missing; name stacks, or layouts with `layout = [...]`"))
        }
        (names, []) => {
            names::check_axis("stack", names, "stacks", stacks)?;
            Ok(names.iter().map(|name| Layout::plain(name, stacks[name].label())).collect())
        }
        ([], names) => {
            names::check_axis("layout", names, "layouts", &file.layouts)?;
            Ok(names.iter().map(|name| file.layouts[name].layout(name)).collect())
        }
        _ => Err(Mistake::at("matrix.layout", "cannot be there together with `stack`: name one of the two")),
    }
}

/// Checks that the stacks of a layout exist and are separate drives.
fn check_layout(
    name: &str,
    table: &LayoutTable,
    stacks: &BTreeMap<String, StackTable>,
) -> Result<(), Mistake> {
    let named = table.named();
    let mistake =
        |class: &FileClass, words: String| Mistake::at(format!("layouts.{name}.{}", class.key()), words);
    for (class, stack) in &named {
        names::find(stack, "stacks", stacks).map_err(|words| mistake(class, words))?;
    }
    // Each partition would get its own emulated drive, and the single arm would be in two places at once.
    let drive = |stack: &str| match &stacks[stack] {
        StackTable { layer: Some(layer), on: Some(On::One(on)), .. }
            if layer == "partition" && stacks.contains_key(on) =>
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
                return Err(mistake(class, message));
            }
        }
    }
    Ok(())
}

/// Checks that every server of the matrix can separate the classes of files that its layouts separate.
pub(super) fn check_placement(scenario: &Scenario) -> Result<(), Mistake> {
    for name in &scenario.matrix.server {
        let spec = &scenario.servers[name];
        let server = spec.server();
        let of_replicas = spec.replication.iter().flat_map(|spec| {
            spec.replicas.iter().map(|layout| (layout, &spec.settings, "a replica of server"))
        });
        let own = scenario.layouts.iter().map(|layout| (layout, &spec.settings, "server"));
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
