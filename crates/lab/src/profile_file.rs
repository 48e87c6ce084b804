//! STAND-IN until the real module is merged.
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::record::StackHead;
use crate::units;

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct StackTable {
    pub profile: String,
    pub size: Option<String>,
    #[serde(default = "xfs")]
    pub file_system: String,
    pub stroke: Option<String>,
    pub label: Option<String>,
}

fn xfs() -> String {
    "xfs".to_owned()
}

#[derive(Debug, Clone, Serialize)]
pub struct StackSpec {
    head: StackHead,
    label: String,
}

impl StackSpec {
    pub fn resolve(
        name: &str,
        table: &StackTable,
        _: &BTreeMap<String, StackTable>,
    ) -> Result<StackSpec, (String, String)> {
        let size = table.size.as_deref().unwrap_or("20 GB");
        let size_bytes = units::parse_size_bytes(size).map_err(|message| ("size".to_owned(), message))?;
        let head = StackHead {
            name: name.to_owned(),
            summary: format!("{} (stand-in)", table.profile),
            size_bytes,
            file_system: table.file_system.clone(),
            assumptions: Vec::new(),
        };
        let label = table.label.clone().unwrap_or_else(|| name.to_owned());
        Ok(StackSpec { head, label })
    }

    pub fn head(&self) -> &StackHead {
        &self.head
    }

    pub fn label(&self) -> &str {
        &self.label
    }

    pub fn hash(&self) -> String {
        crate::scenario::content_hash(self)
    }
}
