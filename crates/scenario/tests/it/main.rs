//! Scenarios: reading, errors and runs.

#[path = "../support/mod.rs"]
mod support;

mod builder;
mod bursts_and_marks;
mod chakra_groups;
mod chakra_nodes;
mod checks;
mod closed_forms;
mod clusters;
mod drain;
mod expresspass;
mod failures;
mod faults;
mod format;
mod groups;
mod handshake;
mod htsim_results;
mod import;
mod infragraph;
mod job_files;
mod jobs;
mod live;
mod loggops;
mod lone_flow;
mod nic;
mod offered;
mod properties;
mod quick;
mod rccc;
mod reading;
mod record;
mod replay;
mod reroute;
mod routing;
mod samples;
mod schedulers;
mod servers;
mod service;
mod stream;
mod trace_flows;
mod trimming;
mod workloads;
