//! The command `apus`.

// Results go to standard output and messages to standard error: that is what a command is for.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod batch;
mod bench;
mod chart;
mod compare;
mod emulate;
mod explain;
mod failure;
mod input;
mod interrupt;
mod key;
mod library;
mod list;
mod memory;
mod output;
mod progress;
mod real;
mod replay;
mod report;
mod reproduce;
mod results;
mod run;
mod schema;
mod store;
mod svg;
mod sweep;
mod tables;
mod text;
mod tune;
mod written;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use failure::Failure;
use mimalloc::MiMalloc;

/// It asks the kernel for huge pages, which the C library's does not: flows, packets and ports of a large
/// network are touched in no order that the processor's table of pages could hold (docs/dev/performance-notes.md).
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Datacenter congestion control that one can simulate and ship.
#[derive(Parser)]
#[command(version)]
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
    Replay(replay::Replay),
    List(list::List),
    Explain(explain::Explain),
    Schema(schema::Schema),
    Bench(bench::Bench),
    Serve(real::serve::Serve),
    Ping(real::ping::Ping),
    Perf(real::perf::Perf),
    Key(key::Key),
    Emulate(emulate::Emulate),
    #[command(hide = true)]
    EmulateInside(emulate::inside::Inside),
    #[command(hide = true)]
    EmulateHost(emulate::host::Agent),
}

impl Command {
    fn execute(&self) -> Result<(), Failure> {
        match self {
            Self::Run(command) => command.execute(),
            Self::Reproduce(command) => command.execute(),
            Self::Sweep(command) => command.execute(),
            Self::Tune(command) => command.execute(),
            Self::Compare(command) => command.execute(),
            Self::Replay(command) => command.execute(),
            Self::List(command) => command.execute(),
            Self::Explain(command) => command.execute(),
            Self::Schema(command) => command.execute(),
            Self::Bench(command) => command.execute(),
            Self::Serve(command) => command.execute(),
            Self::Ping(command) => command.execute(),
            Self::Perf(command) => command.execute(),
            Self::Key(command) => command.execute(),
            Self::Emulate(command) => command.execute(),
            Self::EmulateInside(command) => command.execute(),
            Self::EmulateHost(command) => command.execute(),
        }
    }
}

fn main() -> ExitCode {
    match Arguments::parse().command.execute() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
