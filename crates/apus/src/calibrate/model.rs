//! The scenario of a cluster, and its simulation.

use std::path::Path;

use apus_scenario::{Options, Simulation, Source};
use apus_sim::host_model::EngineCosts;
use apus_sim::summary::Summary;
use apus_units::{Bytes, Rate, Span};

use crate::failure::Failure;
use crate::library;

/// Properties of the cluster that are given, not measured.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    /// The algorithm of the measurement, as a table.
    pub(super) algorithm: String,
    pub(super) rate: Rate,
    pub(super) payload: Bytes,
    pub(super) hosts: u32,
}

/// Parameters that a calibration finds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Model {
    /// Delay of a link; a path has two links.
    pub(super) delay: Span,
    pub(super) jitter: Span,
    /// One turn of an engine's loop.
    pub(super) round: Span,
    /// Factor on the other costs of [`EngineCosts::T1_QUIET`].
    pub(super) scale: f64,
    /// Time to copy 1 KiB at the receiver, if the calibration finds it separately from the factor.
    pub(super) copy: Option<Span>,
}

impl Model {
    /// Returns a cost of [`EngineCosts::T1_QUIET`] times the factor.
    pub(super) fn cost(&self, cost: Span) -> Span {
        cost.mul_f64(self.scale)
    }
}

/// Duration of a scenario, and its warm-up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    duration: &'static str,
    warmup: &'static str,
}

/// For the simulations of a calibration.
const SHORT: Times = Times { duration: "20ms", warmup: "5ms" };
/// Times of the scenario that is written. Rationale: real processes need milliseconds until their caches, windows and
/// cores have settled (`apus emulate`).
pub(super) const LONG: Times = Times { duration: "1s", warmup: "200ms" };

/// Packets that a host passes to its NIC at once, which is a batch of the engine: the transport over UDP sends bursts.
/// deviation: no source for other hosts.
const BURST: u64 = 32;

/// Wire bytes of headers, and of an acknowledgement: defaults of scenarios.
pub(super) const HEADER: u64 = 64;
pub(super) const CONTROL: u64 = 84;

/// Returns a workload of writes from host 0 to host 1.
pub(super) fn writes(size: u64, outstanding: u32, flows: u32) -> String {
    let flow = "[[workload.flow]]\nfrom = 0\nto = 1\n".repeat(flows as usize);
    format!(
        "[[workload]]\nkind = \"flows\"\nsize = \"{size}B\"\noutstanding = {outstanding}\n{flow}"
    )
}

/// Returns a workload of round trips between hosts 0 and 1.
pub(super) fn round_trips(size: u64) -> String {
    format!(
        "[[workload]]\nkind = \"partition-aggregate\"\nmaster = 0\nworkers = [1]\nrequest = \"{size}B\"\n\
         answer = \"{size}B\"\n"
    )
}

impl Setting {
    /// Checks that a scenario accepts these values.
    pub(super) fn check(&self) -> Result<(), Failure> {
        if self.rate.as_bps() < 1_000_000 {
            return Err(Failure::Input(format!("--rate {}: must be at least 1Mbps", self.rate)));
        }
        if !(64..=65_000).contains(&self.payload.get()) {
            return Err(Failure::Input(format!(
                "--payload {}: must be from 64B to 65000B",
                self.payload
            )));
        }
        Ok(())
    }

    /// Returns the scenario of a model with a workload.
    pub(super) fn scenario(&self, model: &Model, times: Times, workload: &str) -> String {
        let Self { algorithm, rate, payload, hosts } = self;
        let Model { delay, jitter, round, .. } = model;
        let Times { duration, warmup } = times;
        let burst = rate.serialization_time(Bytes::new(BURST * (payload.get() + HEADER)));
        let costs = EngineCosts::T1_QUIET;
        format!(
            "duration = \"{duration}\"\nwarmup = \"{warmup}\"\nalgorithm = {algorithm}\n\n\
             [packets]\npayload = \"{payload}\"\nheader = \"{HEADER}B\"\ncontrol = \"{CONTROL}B\"\n\n\
             [topology]\nkind = \"star\"\nhosts = {hosts}\nrate = \"{rate}\"\ndelay = \"{delay}\"\nbuffer = \"4MB\"\n\n\
             [host]\nmodel = \"t1-quiet\"\njitter = \"{jitter}\"\nnic_backlog = \"{burst}\"\n\n\
             [host.engine]\nround = \"{round}\"\nreceive_packet = \"{}\"\nreceive_op = \"{}\"\nreceive_ack = \"{}\"\n\
             send_ack = \"{}\"\nsend_packet = \"{}\"\nsend_op = \"{}\"\ncopy_kib = \"{}\"\n\n{workload}",
            model.cost(costs.receive_packet),
            model.cost(costs.receive_op),
            model.cost(costs.receive_ack),
            model.cost(costs.send_ack),
            model.cost(costs.send_packet),
            model.cost(costs.send_op),
            model.copy.unwrap_or_else(|| model.cost(costs.copy_kib)),
        )
    }

    /// Simulates a model with a workload.
    pub(super) fn simulate(&self, model: &Model, workload: &str) -> Result<Summary, Failure> {
        let text = Self { hosts: 2, ..self.clone() }.scenario(model, SHORT, workload);
        let source = Source { name: "calibration".to_owned(), text };
        let read = library::read(&source, Path::new(""), &Options::default());
        let scenario = read.map_err(|error| Failure::Input(error.to_string()))?;
        let run = scenario.runs.first().ok_or_else(|| Failure::Run("no run".to_owned()))?;
        let plan = run.setup.plan().map_err(|error| Failure::Run(error.to_string()))?;
        let simulation =
            Simulation::of(plan, 1).map_err(|error| Failure::Run(error.to_string()))?;
        simulation.run("calibration", &mut |_| {}).map_err(|error| Failure::Run(error.to_string()))
    }
}
