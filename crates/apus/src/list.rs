//! `apus list`: names for the command line and for scenarios.

use std::path::Path;

use crate::registry;
use apus_cc::AlgorithmInfo;
use apus_scenario::{Options, PRESETS, TOPOLOGIES, WORKLOADS};
use apus_sim::columns::unit_of;
use apus_sim::results::{METRICS, SCOPED};
use clap::{Args, ValueEnum};

use crate::failure::Failure;
use crate::library;
use crate::output::print;
use crate::text::columns;

/// List names for the command line and for scenarios.
#[derive(Args)]
pub struct List {
    /// Kind of names.
    what: What,
}

#[derive(Clone, Copy, ValueEnum)]
enum What {
    /// Built-in scenarios.
    Scenarios,
    /// Built-in scenarios that reproduce publications, which `apus reproduce --all` runs.
    Experiments,
    /// Algorithms and their profiles.
    Algorithms,
    /// Path policies of hosts and switches, and their profiles.
    Policies,
    /// Kinds of topology, and named clusters.
    Topologies,
    /// Kinds of workload.
    Workloads,
    /// Metrics that checks can name, with their units.
    Metrics,
}

impl List {
    /// Runs the command.
    pub fn execute(&self) -> Result<(), Failure> {
        let pair = |a: &str, b: &str| vec![a.to_owned(), b.to_owned()];
        let rows = match self.what {
            What::Scenarios => library::names().map(scenario).collect(),
            What::Experiments => library::experiments().map(scenario).collect(),
            What::Algorithms => registry().algorithms().map(rules).collect(),
            What::Policies => registry().balancers().map(rules).collect(),
            What::Topologies => {
                let kinds = TOPOLOGIES.iter().map(|kind| pair(kind.name, kind.doc));
                kinds.chain(PRESETS.iter().map(|named| pair(named.name, named.doc))).collect()
            }
            What::Workloads => WORKLOADS.iter().map(|kind| pair(kind.name, kind.doc)).collect(),
            What::Metrics => {
                let all = METRICS.iter().chain(SCOPED.iter());
                all.map(|name| pair(name, unit_of(name))).collect::<Vec<_>>()
            }
        };
        print(&columns(&rows, ""))
    }
}

/// Returns the row of an algorithm or a path policy.
fn rules(info: &AlgorithmInfo) -> Vec<String> {
    let profiles: Vec<_> = info.profiles.iter().map(|profile| profile.name).collect();
    let profiles = format!("profiles: {}", profiles.join(", "));
    vec![info.name.to_owned(), info.source.to_owned(), profiles, info.summary.to_owned()]
}

fn scenario(name: &str) -> Vec<String> {
    let source = library::find(name);
    let read = source.and_then(|s| library::read(&s, Path::new(""), &Options::default()).ok());
    let (source, title) = read.map_or((None, None), |read| (read.source, read.title));
    vec![name.to_owned(), source.unwrap_or_default(), title.unwrap_or_default()]
}
