//! No server: a directory on the storage, for workloads that need no database.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use spindle_load::{Endpoint, Target, WorkloadSpec};

use super::instance::{Instance, Running};
use super::process::own_user::TOOLS;
use super::settings::Refusal;
use super::verbs::{Kind, Server};

pub(super) static KIND: Kind = Kind { is_default: true, ..Kind::new("files", |_, _| Some(Box::new(Files))) };

#[derive(Debug)]
struct Files;

impl Server for Files {
    fn kind(&self) -> &'static Kind {
        &KIND
    }

    fn accepted_workloads(&self) -> Vec<&'static str> {
        WorkloadSpec::kinds_on(&[Target::Directory])
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

    fn prepare(&self, _: &Instance) -> Result<()> {
        Ok(())
    }

    fn start(&self, instance: &Instance) -> Result<Box<dyn Running>> {
        TOOLS.own(&instance.data_directory)?;
        Ok(Box::new(Directory(instance.data_directory.clone())))
    }
}

#[derive(Debug)]
struct Directory(PathBuf);

impl Running for Directory {
    fn wait_ready(&mut self, _: Duration) -> Result<()> {
        Ok(())
    }

    fn check_alive(&mut self, _: Duration) -> Result<()> {
        Ok(())
    }

    fn endpoint(&self) -> Endpoint {
        Endpoint::Directory { path: self.0.clone() }
    }

    fn process_id(&self) -> u32 {
        0
    }

    fn settings(&mut self, _: &[String]) -> Result<BTreeMap<String, String>> {
        Ok(BTreeMap::new())
    }

    fn counters(&mut self) -> Result<BTreeMap<String, f64>> {
        Ok(BTreeMap::new())
    }

    fn stop(&mut self, _: Duration) -> Result<()> {
        Ok(())
    }

    fn crash(&mut self) -> Result<()> {
        Ok(())
    }
}
