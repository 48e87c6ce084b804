//! Layouts: the volume mount of each class of database file.
//!
//! A layout names a stack per class. Classes with the same stack share a mount; classes without a name are on
//! the data's mount. A stack alone is a layout with nothing but data.

use std::collections::BTreeMap;

use serde::Serialize;

use super::StackSpec;
use crate::record::{FileClass, ZfsHead};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Layout {
    pub name: String,
    /// Name in reports.
    #[serde(skip)]
    pub label: String,
    /// The data's first.
    pub mounts: Vec<LayoutMount>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LayoutMount {
    /// Classes named in the layout; never empty. The data's mount has every class that no mount names.
    pub classes: Vec<FileClass>,
    /// Name of the stack in the scenario.
    pub stack: String,
}

impl Layout {
    /// `others` are the named classes besides the data, in any order.
    pub fn new(name: &str, label: &str, data: &str, others: &[(FileClass, &str)]) -> Layout {
        let mut mounts = vec![LayoutMount { classes: vec![FileClass::Data], stack: data.to_owned() }];
        let mut others = others.to_vec();
        others.sort_unstable();
        for (class, stack) in others {
            match mounts.iter_mut().find(|mount| mount.stack == stack) {
                Some(mount) => mount.classes.push(class),
                None => mounts.push(LayoutMount { classes: vec![class], stack: stack.to_owned() }),
            }
        }
        Layout { name: name.to_owned(), label: label.to_owned(), mounts }
    }

    /// Everything on one stack.
    pub fn plain(stack: &str, label: &str) -> Layout {
        Layout::new(stack, label, stack, &[])
    }

    /// Index of a class's mount.
    pub fn mount_of(&self, class: FileClass) -> usize {
        self.mounts.iter().position(|mount| mount.classes.contains(&class)).unwrap_or(0)
    }

    /// The stack of a class, by its name in the scenario.
    pub fn stack_of(&self, class: FileClass) -> &str {
        &self.mounts[self.mount_of(class)].stack
    }

    /// Equal for layouts whose loaded databases are interchangeable.
    pub fn recipes<'a>(&'a self, stacks: &'a BTreeMap<String, StackSpec>) -> Vec<MountRecipe<'a>> {
        let recipe = |mount: &'a LayoutMount| {
            let head = stacks[&mount.stack].head();
            let form = match head.real {
                true => Form::Files,
                false => Form::Image {
                    file_system: &head.file_system,
                    mkfs_options: &head.mkfs_options,
                    mount_options: &head.mount_options,
                    size_bytes: head.size_bytes,
                    zfs: head.zfs.as_ref().map(ZfsHead::shape),
                },
            };
            MountRecipe { classes: &mount.classes, form }
        };
        self.mounts.iter().map(recipe).collect()
    }

    /// Classes apart from the data, with their stacks.
    pub fn apart(&self) -> impl Iterator<Item = (FileClass, &str)> {
        let mounts = self.mounts.iter().skip(1);
        mounts.flat_map(|mount| mount.classes.iter().map(|class| (*class, mount.stack.as_str())))
    }
}

/// Everything that shapes the part of a loaded database on one mount. The hash of a snapshot includes it.
#[derive(Debug, Serialize)]
pub struct MountRecipe<'a> {
    pub classes: &'a [FileClass],
    /// The form in which the part is stored.
    pub form: Form<'a>,
}

#[derive(Debug, Serialize)]
pub enum Form<'a> {
    /// Image of an emulated disk.
    Image {
        file_system: &'a str,
        mkfs_options: &'a [String],
        mount_options: &'a [String],
        size_bytes: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        zfs: Option<[Option<u64>; 3]>,
    },
    /// Files copied from a real disk; they fit on any disk.
    Files,
}

impl LayoutMount {
    /// Unique among the mounts of a layout; part of the names of directories and disks.
    pub fn key(&self) -> &'static str {
        self.classes[0].key()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_of_one_stack_share_a_mount() {
        let layout = Layout::new(
            "split",
            "",
            "card",
            &[(FileClass::Binlog, "raid"), (FileClass::Temp, "card"), (FileClass::Redo, "raid")],
        );
        let mounts: Vec<(&str, &str)> =
            layout.mounts.iter().map(|mount| (mount.key(), mount.stack.as_str())).collect();
        assert_eq!(mounts, [("data", "card"), ("redo", "raid")]);
        assert_eq!(layout.mounts[1].classes, [FileClass::Redo, FileClass::Binlog]);
    }

    #[test]
    fn classes_without_a_name_are_on_the_mount_of_the_data() {
        let layout = Layout::new("split", "", "card", &[(FileClass::Redo, "raid")]);
        assert_eq!((layout.stack_of(FileClass::Undo), layout.stack_of(FileClass::Redo)), ("card", "raid"));
        assert_eq!(layout.apart().collect::<Vec<_>>(), [(FileClass::Redo, "raid")]);
        assert_eq!(Layout::plain("card", "").apart().count(), 0);
    }

    #[test]
    fn keys_of_classes_are_those_in_records() {
        for class in FileClass::ALL {
            assert_eq!(serde_json::to_value(class).unwrap(), class.key());
        }
    }
}
