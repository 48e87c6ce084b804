//! Converts records of formats 1 and 2 to format 3.
//!
//! Format 2 kept the data's mount in fields of the cell and of the measurement, and further mounts in
//! `other_mounts`. Format 1 had no further mounts.

use serde_json::{Map, Value, json};

/// Fields of [`super::StorageSeries`] that `series` of a measurement had for the data.
const STORAGE_SERIES: [&str; 9] = [
    "read_iops",
    "write_iops",
    "flushes_per_s",
    "read_mb_per_s",
    "write_mb_per_s",
    "queue_depth",
    "read_latency_ms",
    "write_latency_ms",
    "flush_latency_ms",
];

/// Converts a header or a trial. A value of any other shape stays as it is, and serde refuses it.
pub(super) fn converted(mut line: Value) -> Value {
    if let Some(Value::Array(cells)) = line.get_mut("cells") {
        cells.iter_mut().for_each(convert_cell);
    }
    if let Some(Value::Object(measurement)) = line.get_mut("measurement") {
        convert_measurement(measurement);
    }
    line
}

fn convert_cell(cell: &mut Value) {
    let Value::Object(cell) = cell else { return };
    convert_mounts(cell);
    if let Some(Value::Array(replicas)) =
        cell.get_mut("replication").and_then(|replication| replication.get_mut("replicas"))
    {
        replicas.iter_mut().filter_map(Value::as_object_mut).for_each(convert_mounts);
    }
}

/// Converts the mounts of a cell or a replica.
fn convert_mounts(server: &mut Map<String, Value>) {
    if let Some(stack) = server.remove("stack") {
        let data = json!({ "classes": ["data"], "files": "", "stack": stack });
        put_first(server, data);
    }
}

fn put_first(holder: &mut Map<String, Value>, data: Value) {
    let mut mounts = vec![data];
    if let Some(Value::Array(others)) = holder.remove("other_mounts") {
        mounts.extend(others);
    }
    holder.insert("mounts".to_owned(), Value::Array(mounts));
}

fn convert_measurement(measurement: &mut Map<String, Value>) {
    let mut data = Map::new();
    for key in ["emulator", "host", "devices"] {
        data.extend(measurement.remove(key).map(|value| (key.to_owned(), value)));
    }
    let mut series = Map::new();
    if let Some(Value::Object(all)) = measurement.get_mut("series") {
        series.extend(STORAGE_SERIES.iter().filter_map(|key| all.remove_entry(*key)));
    }
    data.insert("series".to_owned(), Value::Object(series));
    put_first(measurement, Value::Object(data));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_become_one_list_with_the_datas_first() {
        let header = json!({ "cells": [{
            "name": "split",
            "stack": { "name": "ssd" },
            "other_mounts": [{ "classes": ["redo"], "files": "log", "stack": { "name": "hdd" } }],
            "replication": { "replicas": [{ "layout": "hdd", "stack": { "name": "hdd" } }] },
        }]});
        let cell = &converted(header)["cells"][0];
        assert_eq!(cell["mounts"][0]["stack"]["name"], "ssd");
        assert_eq!(cell["mounts"][1]["files"], "log");
        assert_eq!(cell["replication"]["replicas"][0]["mounts"][0]["stack"]["name"], "hdd");
        assert!(cell.get("stack").is_none() && cell.get("other_mounts").is_none());
    }

    #[test]
    fn what_the_datas_storage_did_moves_into_its_mount() {
        let trial = json!({ "measurement": {
            "emulator": null,
            "host": { "reads": 1 },
            "series": { "transactions_per_s": [1.0], "read_iops": [2.0], "queue_depth": [3.0] },
            "other_mounts": [{ "host": { "reads": 4 } }],
        }});
        let measurement = &converted(trial)["measurement"];
        assert_eq!(measurement["series"], json!({ "transactions_per_s": [1.0] }));
        let data = &measurement["mounts"][0];
        assert_eq!(data["series"], json!({ "read_iops": [2.0], "queue_depth": [3.0] }));
        assert_eq!(
            (&data["host"]["reads"], &measurement["mounts"][1]["host"]["reads"]),
            (&json!(1), &json!(4))
        );
    }
}
