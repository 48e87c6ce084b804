//! No server: a directory on the storage, for workloads that need no database.

use std::path::PathBuf;

use anyhow::Result;
use spindle_load::{Endpoint, Target};

use super::instance::{Instance, Running};
use super::process::own_user::TOOLS;
use super::settings::Refusal;
use super::telemetry::{Engine, Telemetry, Without};
use super::verbs::{Kind, Server};

pub(super) static KIND: Kind =
    Kind { is_default: true, ..Kind::new("files", &[Target::Directory], |_, _| Some(Box::new(Files))) };

#[derive(Debug)]
struct Files;

impl Server for Files {
    fn empty_bytes(&self) -> u64 {
        0
    }

    fn version(&self) -> Result<String> {
        Ok("a directory, no server".to_owned())
    }

    fn check(&self, instance: &Instance) -> Result<(), Refusal> {
        match instance.settings.keys().next() {
            Some(name) => Err(Refusal(format!("setting `{name}`: a directory has no settings; remove it"))),
            None => Ok(()),
        }
    }

    fn start(&self, instance: &Instance) -> Result<Box<dyn Running>> {
        TOOLS.own(&instance.data_directory)?;
        Ok(Box::new(Directory(instance.data_directory.clone())))
    }
}

#[derive(Debug)]
struct Directory(PathBuf);

impl Running for Directory {
    fn endpoint(&self) -> Endpoint {
        Endpoint::Directory { path: self.0.clone() }
    }

    fn telemetry(&self) -> &'static dyn Telemetry {
        &Without(Engine::Files)
    }
}
