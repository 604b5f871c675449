//! `apus perf`: throughput and op rates.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use apus_sim::Watch;
use apus_sim::columns::gbps;
use apus_sim::distribution::jain;
use apus_udp::{Bytes, Completion, Connection, RegionKey, Request, async_channel};
use apus_units::Span;
use clap::{Args, ValueEnum};
use indicatif::ProgressBar;
use serde::Serialize;

use super::latency::{Delays, Latency};
use super::record::{Record, Recorded};
use super::{Common, address, any, duration, greeting};
use crate::failure::Failure;
use crate::interrupt::{self, Silence};
use crate::output::{OutputDir, print, to_json};

/// The ops to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// One-sided, to the servers.
    Write,
    /// One-sided, from the servers: with several servers, an incast into this host.
    Read,
}

/// Measure throughput and op rates against one `apus serve` or several.
#[derive(Args)]
pub struct Perf {
    /// HOST or HOST:PORT of the servers.
    #[arg(required = true)]
    peers: Vec<String>,
    #[command(flatten)]
    common: Common,
    /// What to do.
    #[arg(long, value_enum, default_value = "write")]
    op: Kind,
    /// Bytes of each op.
    #[arg(long, default_value_t = 1 << 20)]
    size: usize,
    /// Flows per server.
    #[arg(long, default_value_t = 1)]
    flows: u32,
    /// Ops under way per flow.
    #[arg(long, default_value_t = 4)]
    outstanding: usize,
    /// How long.
    #[arg(long, default_value = "5s", value_parser = duration)]
    duration: Duration,
    /// How long ops that were submitted in this time may take to end after it.
    #[arg(long, default_value = "1s", value_parser = duration)]
    drain: Duration,
    /// Write the tables of ops, flows and samples, as the simulator does, into this directory.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Time from one sample to the next.
    #[arg(long, default_value = "10ms", value_parser = duration, requires = "out")]
    interval: Duration,
    /// Print the results as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Results {
    seconds: f64,
    ops: u64,
    ops_per_second: f64,
    goodput_gbps: f64,
    /// Of ops, from their submission until this command has their ends; those that ended in the drain included.
    #[serde(flatten)]
    latency: Latency,
    /// Jain's index of the flows' ops.
    jain: f64,
    /// Why the measurement ended before its time, if it did.
    partial: Option<String>,
    #[serde(flatten)]
    delays: Delays,
}

/// How long the command waits for the end of an op before it looks for an interrupt.
const CHECK_EVERY: Duration = Duration::from_millis(10);

/// Returns the next completion, if one comes within `pause`.
fn next_end(
    host: &apus_udp::Host,
    ends: &async_channel::Receiver<Completion>,
    pause: Duration,
) -> Option<Completion> {
    let end = ends.try_recv().ok();
    end.or_else(|| host.block_on(ends.recv(), Some(pause))?.ok())
}

impl Perf {
    /// Runs the command.
    pub fn execute(&self) -> Result<(), Failure> {
        if self.outstanding == 0 || self.flows == 0 {
            return Err(Failure::Input("--outstanding and --flows must be at least 1".to_owned()));
        }
        let peers = self.peers.iter().map(|p| address(p)).collect::<Result<Vec<_>, _>>()?;
        // Shows before a long measurement that its results can be written.
        let dir = self.out.as_deref().map(OutputDir::open).transpose().map_err(Failure::Input)?;
        let host = self.common.host(&[any(&peers)])?;
        let _metrics = self.common.metrics(&host)?;
        let mut servers = Vec::new();
        for peer in peers {
            let connection = host
                .connect_with(peer, &vec![0; self.flows as usize], None)
                .map_err(|e| Failure::Run(format!("{peer}: {e}")))?;
            let (region, length) = greeting(&connection)?;
            if self.size as u64 > length {
                return Err(Failure::Input(format!(
                    "--size {} is more than the {length} B of {peer}'s region; \
                     give `apus serve` a larger --region",
                    self.size
                )));
            }
            servers.push((connection, region));
        }
        let watch = interrupt::watch(Silence(None))?;
        let (results, early) = self.measure(&host, &servers, dir.as_ref(), &watch)?;
        if early.is_none() {
            for (connection, _) in &servers {
                connection.close();
            }
        }
        self.say(&results)?;
        early.map_or(Ok(()), Err)
    }

    fn say(&self, results: &Results) -> Result<(), Failure> {
        if self.json {
            return print(&(to_json(results)? + "\n"));
        }
        let partial = results.partial.as_ref().map(|why| format!("partial results: {why}\n"));
        print(&format!(
            "{}{} ops in {:.2} s: {:.0} per second, goodput {:.3} Gb/s, Jain {:.3}\n\
             op:         {}{}",
            partial.unwrap_or_default(),
            results.ops,
            results.seconds,
            results.ops_per_second,
            results.goodput_gbps,
            results.jain,
            results.latency.text(),
            results.delays.text(),
        ))
    }

    /// Measures until the time is over, somebody interrupts, or an op fails, and lets ops that were submitted in time
    /// end: what there is by then, and how the command ends if that was too early.
    fn measure(
        &self,
        host: &apus_udp::Host,
        servers: &[(Connection, RegionKey)],
        dir: Option<&OutputDir>,
        watch: &Watch,
    ) -> Result<(Results, Option<Failure>), Failure> {
        let flows = self.flows as usize;
        let all = servers.len() * flows;
        let (queue, ends) = async_channel::bounded(all * self.outstanding);
        let payload = Bytes::from(vec![0x61; self.size]);
        // An op is named by its slot: its flow, and its place among the flow's outstanding ops.
        let submit = |slot: usize| {
            let index = slot / self.outstanding;
            let (connection, region) = &servers[index / flows];
            let request = match self.op {
                Kind::Write => Request::write(*region, 0, payload.clone()),
                Kind::Read => Request::read(*region, 0, self.size),
            };
            connection
                .submit_queued(index % flows, request, &queue, slot as u64)
                .map_err(|error| Failure::Run(error.to_string()))
        };
        for place in 0..self.outstanding {
            for index in 0..all {
                submit(index * self.outstanding + place)?;
            }
        }
        let mut submitted = vec![Some(Instant::now()); all * self.outstanding];
        let (from, mut shown) = (Instant::now(), Instant::now());
        let recorded = (0..all)
            .map(|index| Recorded { connection: &servers[index / flows].0, flow: index % flows });
        let mut record = dir
            .is_some()
            .then(|| Record::new(recorded.collect(), self.common.algorithm(), from, self.interval));
        let bar = ProgressBar::new(self.duration.as_millis() as u64);
        let mut per_flow = vec![0u64; all];
        let mut latencies = Vec::new();
        // Length of the measurement, once it is over and the drain has begun.
        let mut measured = None;
        let pause = if dir.is_some() { CHECK_EVERY.min(self.interval) } else { CHECK_EVERY };
        let mut failure = None;
        loop {
            let elapsed = from.elapsed();
            if measured.is_none() && elapsed >= self.duration {
                measured = Some(elapsed);
            }
            if let Some(measured) = measured
                && (submitted.iter().all(Option::is_none) || elapsed - measured >= self.drain)
            {
                break;
            }
            if interrupt::interrupted(watch) {
                failure = Some(Failure::Interrupted("interrupted".to_owned()));
                break;
            }
            if measured.is_none()
                && let Some(Err(error)) = record.as_mut().map(Record::sample)
            {
                failure = Some(error);
                break;
            }
            let Some(end) = next_end(host, &ends, pause) else { continue };
            let slot = end.user as usize;
            let index = slot / self.outstanding;
            if let Err(error) = end.result {
                let (connection, _) = &servers[index / flows];
                failure = Some(Failure::Run(format!("{}: {error}", connection.peer())));
                break;
            }
            let latency = submitted[slot].take().map_or(Duration::ZERO, |at| at.elapsed());
            let latency = Span::from_ns(latency.as_nanos() as u64);
            latencies.push(latency.as_secs_f64() * 1e6);
            if let Some(record) = &mut record {
                record.on_op(index, latency);
            }
            // Of an op that ends in the drain the latency counts, but not the bytes.
            if measured.is_some() {
                continue;
            }
            per_flow[index] += 1;
            if let Some(record) = &mut record {
                record.on_delivered(index, self.size);
            }
            let at = Instant::now();
            if let Err(error) = submit(slot) {
                failure = Some(error);
                break;
            }
            submitted[slot] = Some(at);
            if shown.elapsed() > Duration::from_millis(200) {
                shown = Instant::now();
                bar.set_position(from.elapsed().as_millis() as u64);
                let bytes = latencies.len() as u64 * self.size as u64;
                let rate = gbps(bytes, from.elapsed().as_secs_f64());
                bar.set_message(format!("{rate:.2} Gb/s"));
            }
        }
        bar.finish_and_clear();
        let seconds = measured.unwrap_or_else(|| from.elapsed()).as_secs_f64();
        let unfinished: Vec<(usize, Instant)> = submitted
            .iter()
            .enumerate()
            .filter_map(|(slot, at)| Some((slot / self.outstanding, (*at)?)))
            .collect();
        if let (Some(record), Some(dir)) = (&record, dir) {
            let kind = if self.op == Kind::Write { "write" } else { "read" };
            record.write(dir, kind, self.size, seconds, &unfinished)?;
        }
        let ops: u64 = per_flow.iter().sum();
        if ops == 0 && failure.is_none() {
            let what =
                "no op ended in the time given; give a longer --duration or a smaller --size";
            failure = Some(Failure::Run(what.to_owned()));
        }
        let ages: Vec<f64> =
            unfinished.iter().map(|(_, at)| at.elapsed().as_secs_f64() * 1e6).collect();
        let partial = failure.as_ref().map(|failure| match failure {
            Failure::Input(why) | Failure::Run(why) | Failure::Interrupted(why) => why.clone(),
            Failure::Checks => String::new(),
        });
        let results = Results {
            seconds,
            ops,
            ops_per_second: ops as f64 / seconds,
            goodput_gbps: gbps(ops * self.size as u64, seconds),
            latency: Latency::new(latencies, &ages),
            jain: jain(&per_flow.iter().map(|&ops| ops as f64).collect::<Vec<_>>()),
            partial,
            delays: Delays::of(host),
        };
        Ok((results, failure))
    }
}
