//! `apus perf`: throughput and op rates.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use apus_algorithms::AlgorithmConfig;
use apus_cc::Origin;
use apus_sim::Watch;
use apus_sim::columns::gbps;
use apus_sim::distribution::jain;
use apus_udp::{Bytes, Connection, RegionKey, Request};
use apus_units::Span;
use clap::{Args, ValueEnum};
use indicatif::ProgressBar;
use serde::Serialize;

use super::closed_loop::{ClosedLoop, Ops, Outcome, Wait};
use super::latency::{Delays, Latency};
use super::record::{Record, Recorded};
use super::spread::SourcePorts;
use super::{Common, Peer, Towards, any, duration, filled, greeting};
use crate::failure::Failure;
use crate::interrupt::{self, Silence};
use crate::output::{OutputDir, print, to_json};
use crate::tables::TableFormat;

/// The ops to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// One-sided write to the servers.
    Write,
    /// One-sided read from the servers; with several servers, an incast to this host.
    Read,
    /// Atomic op that adds 1 to the first word of the region of each server.
    FetchAdd,
}

impl Kind {
    /// Returns the name that tables use.
    const fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Read => "read",
            Self::FetchAdd => "fetch-add",
        }
    }
}

/// Measure throughput and op rates against one `apus serve` or several.
#[derive(Args)]
pub struct Perf {
    /// Servers, each as HOST or HOST:PORT.
    #[arg(required = true)]
    peers: Vec<String>,
    #[command(flatten)]
    towards: Towards,
    #[command(flatten)]
    common: Common,
    /// Kind of op.
    #[arg(long, value_enum, default_value = "write")]
    op: Kind,
    /// Size of each write or read, in bytes [default: 1048576].
    #[arg(long)]
    size: Option<usize>,
    /// Number of flows per server.
    #[arg(long, default_value_t = 1)]
    flows: u32,
    /// Number of outstanding ops per flow.
    #[arg(long, default_value_t = 4)]
    outstanding: usize,
    /// Duration of the measurement.
    #[arg(long, default_value = "5s", value_parser = duration)]
    duration: Duration,
    /// Maximum time to wait for outstanding ops after the measurement.
    #[arg(long, default_value = "1s", value_parser = duration)]
    drain: Duration,
    /// Write the tables of ops, flows and samples to DIR, as the simulator does.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    tables: TableFormat,
    /// Interval between samples.
    #[arg(long, default_value = "10ms", value_parser = duration, requires = "out")]
    interval: Duration,
    /// Print the results as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Results {
    /// Measured ops: their kind and size, the flows per server, and the outstanding ops per flow.
    op: &'static str,
    size: usize,
    flows: u32,
    outstanding: usize,
    /// Payload of a full data packet to the servers, the smallest if they differ; `null` if a connection has ended.
    packet_bytes: Option<u64>,
    /// Algorithm of this side's flows.
    algorithm: Option<Algorithm>,
    seconds: f64,
    ops: u64,
    ops_per_second: f64,
    goodput_gbps: f64,
    /// Latency of ops from their submission until this command receives their completions, including ops that ended in
    /// the drain.
    #[serde(flatten)]
    latency: Latency,
    /// Jain's index of the flows' ops.
    jain: f64,
    /// Reason why the measurement ended early, if it did.
    partial: Option<String>,
    #[serde(flatten)]
    delays: Delays,
    /// The source ports of each connection, with `--balancer`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    source_ports: Vec<SourcePorts>,
}

/// An algorithm, with the parameters that differ from its own defaults.
#[derive(Serialize)]
struct Algorithm {
    name: &'static str,
    profile: &'static str,
    parameters: BTreeMap<&'static str, String>,
}

impl Algorithm {
    fn of(config: &AlgorithmConfig) -> Self {
        let given = config.parameters().iter().filter(|one| matches!(one.origin, Origin::Set));
        let parameters = given.map(|one| (one.name, one.value.clone())).collect();
        Self { name: config.info().name, profile: config.profile(), parameters }
    }
}

/// Bytes of a write or read.
const DEFAULT_SIZE: usize = 1 << 20;

/// Maximum number of outstanding ops over all flows. deviation: no source; far more than any host carries; they need
/// about 100 MB.
const MOST_UNDER_WAY: u64 = 1 << 20;

/// Longest wait for a completion before the command checks for an interrupt.
const CHECK_EVERY: Duration = Duration::from_millis(10);

/// Ops of a measurement, and their recorded results.
struct Measured<'a> {
    command: &'a Perf,
    servers: &'a [(Connection, RegionKey)],
    payload: Bytes,
    watch: &'a Watch,
    /// Latencies, microseconds.
    latencies: Vec<f64>,
    record: Option<Record<'a>>,
    bar: ProgressBar,
    shown: Duration,
}

impl Ops for Measured<'_> {
    fn request(&mut self, flow: usize, _: u64) -> Request {
        let (_, region) = &self.servers[flow / self.command.flows as usize];
        match self.command.op {
            Kind::Write => Request::write(*region, 0, self.payload.clone()),
            Kind::Read => Request::read(*region, 0, self.command.size()),
            Kind::FetchAdd => Request::fetch_add(*region, 0, 1),
        }
    }

    /// If an op ends in the drain, its latency counts but its bytes do not.
    fn on_end(&mut self, flow: usize, elapsed: Duration, latency: Duration, in_time: bool) {
        let latency = Span::from_ns(latency.as_nanos() as u64);
        self.latencies.push(latency.as_secs_f64() * 1e6);
        if let Some(record) = &mut self.record {
            record.on_op(flow, elapsed, latency);
            if in_time {
                record.on_delivered(flow, self.command.size());
            }
        }
    }

    fn check(&mut self, elapsed: Duration, in_time: bool) -> Result<(), Failure> {
        if interrupt::interrupted(self.watch) {
            return Err(Failure::Interrupted("interrupted".to_owned()));
        }
        if !in_time {
            return Ok(());
        }
        if let Some(record) = &mut self.record {
            record.sample()?;
        }
        if elapsed - self.shown > Duration::from_millis(200) {
            self.shown = elapsed;
            self.bar.set_position(elapsed.as_millis() as u64);
            let bytes = self.latencies.len() as u64 * self.command.size() as u64;
            self.bar.set_message(format!("{:.2} Gb/s", gbps(bytes, elapsed.as_secs_f64())));
        }
        Ok(())
    }
}

/// A measurement that has ended.
struct Finished {
    results: Results,
    /// The failure of a measurement that ended early.
    early: Option<Failure>,
    /// Whether the results were stored.
    stored: Result<(), Failure>,
}

impl Perf {
    /// Returns the number of bytes that an op moves.
    fn size(&self) -> usize {
        match self.op {
            Kind::Write | Kind::Read => self.size.unwrap_or(DEFAULT_SIZE),
            Kind::FetchAdd => 8,
        }
    }

    /// Runs the command.
    pub fn execute(&self) -> Result<(), Failure> {
        if self.outstanding == 0 || self.flows == 0 {
            return Err(Failure::Input("--outstanding and --flows must be at least 1".to_owned()));
        }
        if let (Kind::FetchAdd, Some(size)) = (self.op, self.size) {
            let what =
                format!("--size {size}: --op fetch-add moves words of 8 bytes; remove --size");
            return Err(Failure::Input(what));
        }
        // Memory for every outstanding op is reserved at the start.
        let under_way = (self.peers.len() as u64)
            .checked_mul(self.flows.into())
            .and_then(|flows| flows.checked_mul(self.outstanding as u64));
        if under_way.is_none_or(|ops| ops > MOST_UNDER_WAY) {
            return Err(Failure::Input(format!(
                "--outstanding {} with --flows {}: at most {MOST_UNDER_WAY} ops may be outstanding over all servers",
                self.outstanding, self.flows
            )));
        }
        let peers = self.peers.iter().map(|p| Peer::find(p)).collect::<Result<Vec<_>, _>>()?;
        // Before a long measurement, check that its results can be written.
        let dir = self.out.as_deref().map(OutputDir::renew).transpose().map_err(Failure::Input)?;
        let dir = dir.map(|dir| dir.with_tables(self.tables.format));
        let addresses: Vec<_> = peers.iter().flat_map(|peer| peer.addresses.clone()).collect();
        let mut algorithm = None;
        let host = self.common.host_with(&[any(&addresses)], |config| {
            algorithm = Some(Algorithm::of(&config.algorithm));
            Ok(())
        })?;
        let host = Arc::new(host);
        let _metrics = self.common.metrics(&host)?;
        let mut servers = Vec::new();
        for peer in peers {
            let connection = peer.connect(&host, self.flows, &self.towards)?;
            let (region, length) = greeting(&connection)?;
            if self.size() as u64 > length {
                return Err(Failure::Input(format!(
                    "--size {} is more than the {length} B of {peer}'s region; \
                     give `apus serve` a larger --region",
                    self.size(),
                    peer = connection.peer()
                )));
            }
            servers.push((connection, region));
        }
        let watch = interrupt::watch(Silence(None))?;
        let Finished { results, early, stored } =
            self.measure((&host, algorithm), &servers, dir.as_ref(), &watch)?;
        if early.is_none() {
            for (connection, _) in &servers {
                connection.close();
            }
        }
        let problems = [stored.err(), self.say(&results).err()].into_iter().flatten();
        let all = problems.fold(early, |first, why| match first {
            Some(first) => Some(first.and(&why.to_string())),
            None => Some(why),
        });
        all.map_or(Ok(()), Err)
    }

    fn say(&self, results: &Results) -> Result<(), Failure> {
        if self.json {
            return print(&(to_json(results)? + "\n"));
        }
        let partial = results.partial.as_ref().map(|why| format!("partial results: {why}\n"));
        print(&format!(
            "{}{} ops in {:.2} s: {:.0} per second, goodput {:.3} Gb/s, Jain {:.3}\n\
             op:         {}{}{}",
            partial.unwrap_or_default(),
            results.ops,
            results.seconds,
            results.ops_per_second,
            results.goodput_gbps,
            results.jain,
            results.latency.text(),
            results.delays.text(),
            results.source_ports.iter().map(SourcePorts::text).collect::<String>(),
        ))
    }

    /// Measures until the time is over, the user interrupts, or an op fails; then lets the ops submitted in time end.
    /// Returns the results so far.
    fn measure(
        &self,
        (host, algorithm): (&apus_udp::Host, Option<Algorithm>),
        servers: &[(Connection, RegionKey)],
        dir: Option<&OutputDir>,
        watch: &Watch,
    ) -> Result<Finished, Failure> {
        let flows = self.flows as usize;
        let all = servers.len() * flows;
        let flow = |index: usize| (&servers[index / flows].0, index % flows);
        let pause = if dir.is_some() { CHECK_EVERY.min(self.interval) } else { CHECK_EVERY };
        let load = ClosedLoop {
            host,
            flows: (0..all).map(flow).collect(),
            outstanding: self.outstanding,
            duration: self.duration,
            drain: self.drain,
            wait: Wait::Block(pause),
        };
        let mut ops = Measured {
            command: self,
            servers,
            payload: Bytes::from(filled("--size", self.size(), 0x61)?),
            watch,
            latencies: Vec::new(),
            record: None,
            bar: ProgressBar::new(self.duration.as_millis() as u64),
            shown: Duration::ZERO,
        };
        let outcome = load.run(&mut ops, |ops, from| {
            let recorded = |index| {
                let (connection, flow) = flow(index);
                Recorded { connection, flow }
            };
            ops.record = dir.is_some().then(|| {
                let flows = (0..all).map(recorded).collect();
                Record::new(flows, self.common.algorithm(), from, self.interval)
            });
        })?;
        let Measured { latencies, record, bar, .. } = ops;
        bar.finish_and_clear();
        let Outcome { seconds, ops: per_flow, unfinished, mut failure } = outcome;
        let stored = match (&record, dir) {
            (Some(record), Some(dir)) => {
                record.write(dir, self.op.name(), self.size(), seconds, &unfinished)
            }
            _ => Ok(()),
        };
        let ops: u64 = per_flow.iter().sum();
        if ops == 0 && failure.is_none() {
            let what =
                "no op ended in the time given; give a longer --duration or a smaller --size";
            failure = Some(Failure::Run(what.to_owned()));
        }
        let ages: Vec<f64> =
            unfinished.iter().map(|(_, at)| at.elapsed().as_secs_f64() * 1e6).collect();
        let partial = failure.as_ref().map(Failure::to_string);
        let results = Results {
            op: self.op.name(),
            size: self.size(),
            flows: self.flows,
            outstanding: self.outstanding,
            packet_bytes: packet_bytes(servers),
            algorithm,
            seconds,
            ops,
            ops_per_second: ops as f64 / seconds,
            goodput_gbps: gbps(ops * self.size() as u64, seconds),
            latency: Latency::new(latencies, &ages),
            jain: jain(&per_flow.iter().map(|&ops| ops as f64).collect::<Vec<_>>()),
            partial,
            delays: Delays::of(host),
            source_ports: servers.iter().filter_map(|(c, _)| SourcePorts::of(c)).collect(),
        };
        Ok(Finished { results, early: failure, stored })
    }
}

/// Returns the payload of a full data packet to these servers, the smallest if they differ; `None` if a connection has
/// ended.
fn packet_bytes(servers: &[(Connection, RegionKey)]) -> Option<u64> {
    let payloads = servers.iter().map(|(connection, _)| Some(connection.paths().ok()?.payload));
    payloads.collect::<Option<Vec<u64>>>()?.into_iter().min()
}
