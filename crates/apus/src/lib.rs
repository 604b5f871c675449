//! The command `apus` as a library, so that other programs can add their own algorithms to it.
//!
//! ```no_run
//! # use apus::foreign;
//! # type Mine = apus_algorithms::constant::Constant;
//! fn main() -> std::process::ExitCode {
//!     apus::main_with([foreign::<Mine>()])
//! }
//! ```
//!
//! The program then has every command of `apus`, and accepts `Mine` as the name of an algorithm.

// Results go to standard output and messages to standard error, so printing is the purpose of this crate.
#![allow(clippy::print_stdout, clippy::print_stderr)]

pub use apus_cc::{ForeignAlgorithm, ForeignBalancer, foreign, foreign_balancer};

#[cfg(feature = "real")]
mod agent;
pub mod api;
mod batch;
#[cfg(unix)]
mod bench;
mod bundle;
mod calibrate;
mod chart;
mod closer;
mod compare;
mod convert;
mod diff;
#[cfg(feature = "real")]
mod emulate;
mod explain;
mod failure;
mod input;
mod interrupt;
mod job;
#[cfg(feature = "real")]
mod key;
mod library;
mod list;
#[cfg(feature = "live")]
mod live;
mod memory;
mod open;
mod output;
mod paired;
mod program;
mod progress;
#[cfg(feature = "real")]
mod real;
mod replay;
mod report;
mod reproduce;
mod results;
mod run;
mod schedule;
mod schema;
mod spread;
mod store;
mod svg;
mod sweep;
mod tables;
mod text;
mod traces;
mod tune;
mod validate;
mod whatif;
#[cfg(feature = "worlds")]
mod worlds;
mod written;

use std::process::ExitCode;
use std::sync::{PoisonError, RwLock};

use apus_algorithms::Registry;
use apus_cc::SettingError;
use clap::{Parser, Subcommand};
use failure::Failure;

/// This allocator requests huge pages, unlike the allocator of the C library. Flows, packets and ports of a large
/// network are accessed in random order, and small pages would cause many TLB misses (docs/dev/performance-notes.md).
#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Datacenter congestion control that you can simulate and deploy.
#[derive(Parser)]
#[command(version = program::BUILD)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(run::Run),
    Reproduce(reproduce::Reproduce),
    Sweep(sweep::Sweep),
    Tune(tune::Tune),
    Compare(compare::Compare),
    #[command(name = "whatif")]
    WhatIf(whatif::WhatIf),
    Replay(replay::Replay),
    Validate(validate::Validate),
    Diff(diff::Diff),
    Convert(convert::Convert),
    Report(report::ReportCommand),
    Job(job::Job),
    Calibrate(calibrate::Calibrate),
    Rerun(bundle::rerun::Rerun),
    List(list::List),
    Explain(explain::Explain),
    Schema(schema::Schema),
    #[cfg(unix)]
    Bench(bench::Bench),
    #[cfg(feature = "real")]
    Serve(real::serve::Serve),
    #[cfg(feature = "real")]
    Ping(real::ping::Ping),
    #[cfg(feature = "real")]
    Perf(real::perf::Perf),
    #[cfg(feature = "real")]
    Switch(real::switch::SwitchCommand),
    #[cfg(feature = "real")]
    Key(key::Key),
    #[cfg(feature = "worlds")]
    Worlds(worlds::Worlds),
    #[cfg(feature = "real")]
    Emulate(emulate::Emulate),
    #[cfg(feature = "real")]
    #[command(hide = true)]
    EmulateInside(emulate::inside::Inside),
    #[cfg(feature = "real")]
    #[command(hide = true)]
    EmulateHost(emulate::host::Agent),
    #[cfg(feature = "real")]
    #[command(hide = true)]
    BenchUdpEnd(real::bench::end::End),
}

impl Command {
    fn execute(&self) -> Result<(), Failure> {
        match self {
            Self::Run(command) => command.execute(),
            Self::Reproduce(command) => command.execute(),
            Self::Sweep(command) => command.execute(),
            Self::Tune(command) => command.execute(),
            Self::Compare(command) => command.execute(),
            Self::WhatIf(command) => command.execute(),
            Self::Replay(command) => command.execute(),
            Self::Validate(command) => command.execute(),
            Self::Diff(command) => command.execute(),
            Self::Convert(command) => command.execute(),
            Self::Report(command) => command.execute(),
            Self::Job(command) => command.execute(),
            Self::Calibrate(command) => command.execute(),
            Self::Rerun(command) => command.execute(),
            Self::List(command) => command.execute(),
            Self::Explain(command) => command.execute(),
            Self::Schema(command) => command.execute(),
            #[cfg(unix)]
            Self::Bench(command) => command.execute(),
            #[cfg(feature = "real")]
            Self::Serve(command) => command.execute(),
            #[cfg(feature = "real")]
            Self::Ping(command) => command.execute(),
            #[cfg(feature = "real")]
            Self::Perf(command) => command.execute(),
            #[cfg(feature = "real")]
            Self::Switch(command) => command.execute(),
            #[cfg(feature = "real")]
            Self::Key(command) => command.execute(),
            #[cfg(feature = "worlds")]
            Self::Worlds(command) => command.execute(),
            #[cfg(feature = "real")]
            Self::Emulate(command) => command.execute(),
            #[cfg(feature = "real")]
            Self::EmulateInside(command) => command.execute(),
            #[cfg(feature = "real")]
            Self::EmulateHost(command) => command.execute(),
            #[cfg(feature = "real")]
            Self::BenchUdpEnd(command) => command.execute(),
        }
    }
}

/// The algorithms that this process knows.
static REGISTRY: RwLock<Registry> = RwLock::new(Registry::BUILT_IN);

pub(crate) fn registry() -> Registry {
    *REGISTRY.read().unwrap_or_else(PoisonError::into_inner)
}

/// Adds an algorithm to those that this process knows ([`Registry::and`]).
pub(crate) fn register(algorithm: &'static dyn ForeignAlgorithm) -> Result<(), SettingError> {
    let mut registry = REGISTRY.write().unwrap_or_else(PoisonError::into_inner);
    *registry = registry.and(algorithm)?;
    Ok(())
}

/// Runs the command that the process's arguments name, with `algorithms` in addition to the built-in ones.
///
/// Reports two algorithms with the same name, or an invalid layout of fields ([`Registry::with`]), as errors of the
/// input.
#[must_use]
pub fn main_with(algorithms: impl IntoIterator<Item = &'static dyn ForeignAlgorithm>) -> ExitCode {
    main_with_balancers(algorithms, [])
}

/// Runs the command like [`main_with`], also with path policies, which scenarios name in `routing.balancer`.
///
/// Reports two policies with the same name ([`Registry::with_balancers`]) as an error of the input.
#[must_use]
pub fn main_with_balancers(
    algorithms: impl IntoIterator<Item = &'static dyn ForeignAlgorithm>,
    balancers: impl IntoIterator<Item = &'static dyn ForeignBalancer>,
) -> ExitCode {
    // Called once per process; the algorithms stay until it ends.
    let algorithms: Vec<_> = algorithms.into_iter().collect();
    let balancers: Vec<_> = balancers.into_iter().collect();
    let registry = Registry::with(algorithms.leak())
        .and_then(|registry| registry.with_balancers(balancers.leak()));
    let done = match registry {
        Ok(registry) => {
            *REGISTRY.write().unwrap_or_else(PoisonError::into_inner) = registry;
            Arguments::parse().command.execute()
        }
        Err(error) => Err(Failure::Input(error.to_string())),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
