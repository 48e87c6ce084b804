//! The database servers under test, each behind the same verbs and facts. A server's names of settings,
//! counters and files stay in here. Code of a kind knows no scenario, no trial, no report, and no other kind;
//! [`catalog`] lists the kinds.

#[macro_use]
pub mod catalog;
mod connection;
mod instance;
pub mod option_file;
pub mod package;
mod process;
pub mod replication;
mod settings;
mod source;
pub mod telemetry;
mod verbs;

macro_rules! modules {
    ($($module:ident: $($kind:ident),+;)+) => {
        $(mod $module;)+
    };
}

for_each_server!(modules);

use spindle_base::child::RunAs;

pub use catalog::{by_kind, by_source};
pub use connection::endpoint;
pub use foreign::Observed;
pub(crate) use foreign::paging_of;
#[cfg(test)]
pub(crate) use foreign::{production_of, telemetry_of};
pub use instance::{Instance, Running};
pub use settings::{Advice, Advised, MemorySetting, Refusal, Reserved, Settings, plain_name, reserved};
pub use source::{Source, SourceForm, SourceKeys, Trust};
pub use verbs::{Kind, Program, Server};

/// The user that runs the foreign tools which a scenario names as the clients of a server.
pub(crate) const FOREIGN_TOOLS: RunAs = RunAs::User(process::own_user::TOOLS.0);
