//! `apus ping`: round trips of small messages, with separate fabric and endpoint parts.

use std::time::{Duration, Instant};

use apus_udp::Request;
use clap::Args;
use serde::Serialize;

use super::latency::{Delays, Latency};
use super::{Common, address, any, duration, greeting};
use crate::failure::Failure;
use crate::interrupt::{self, Silence};
use crate::output::{print, to_json};

/// Measure round trips of messages to an `apus serve`.
#[derive(Args)]
pub struct Ping {
    /// HOST or HOST:PORT of the server.
    peer: String,
    #[command(flatten)]
    common: Common,
    /// Number of messages.
    #[arg(long, default_value_t = 1000)]
    count: u32,
    /// Bytes of each message.
    #[arg(long, default_value_t = 64)]
    size: usize,
    /// Interval between messages; without it, each follows the previous answer.
    #[arg(long, value_parser = duration)]
    interval: Option<Duration>,
    /// Print the results as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Results {
    count: usize,
    size: usize,
    #[serde(flatten)]
    latency: Latency,
    /// Reason for an early end of the measurement.
    partial: Option<String>,
    #[serde(flatten)]
    delays: Delays,
}

impl Ping {
    /// Runs the command.
    pub fn execute(&self) -> Result<(), Failure> {
        if self.count == 0 {
            return Err(Failure::Input("--count must be at least 1".to_owned()));
        }
        let peer = address(&self.peer)?;
        let host = self.common.host(&[any(&[peer])])?;
        let _metrics = self.common.metrics(&host)?;
        let connection = host.connect(peer).map_err(|e| Failure::Run(e.to_string()))?;
        greeting(&connection)?;
        for stats in host.stats() {
            stats.fabric_rtt.clear();
            stats.endpoint_delay.clear();
        }
        let bytes = vec![0x61; self.size];
        let mut times = Vec::with_capacity(self.count as usize);
        let watch = interrupt::watch(Silence(None))?;
        let mut failure = None;
        // Age of a message without an answer.
        let mut open = Vec::new();
        for _ in 0..self.count {
            if interrupt::interrupted(&watch) {
                failure = Some((Failure::Interrupted as fn(_) -> _, "interrupted".to_owned()));
                break;
            }
            let from = Instant::now();
            let request = Request::message(bytes.clone());
            let sent = connection.submit(request).map_err(|error| error.to_string());
            let answered =
                sent.and_then(|_| connection.receive().map_err(|end| end.to_string()).map(drop));
            if let Err(why) = answered {
                open.push(from.elapsed().as_secs_f64() * 1e6);
                failure = Some((Failure::Run, format!("{peer}: {why}")));
                break;
            }
            times.push(from.elapsed().as_secs_f64() * 1e6);
            if let Some(pause) = self.interval.and_then(|i| i.checked_sub(from.elapsed())) {
                std::thread::sleep(pause);
            }
        }
        if let Some((failure, why)) = failure.take_if(|_| times.is_empty()) {
            return Err(failure(why));
        }
        let results = Results {
            count: times.len(),
            size: self.size,
            latency: Latency::new(times, &open),
            partial: failure.as_ref().map(|(_, why)| why.clone()),
            delays: Delays::of(&host),
        };
        if failure.is_none() {
            connection.close();
        }
        self.say(&results)?;
        failure.map_or(Ok(()), |(failure, why)| Err(failure(why)))
    }

    fn say(&self, results: &Results) -> Result<(), Failure> {
        if self.json {
            return print(&(to_json(results)? + "\n"));
        }
        let partial = results.partial.as_ref().map(|why| format!("partial results: {why}\n"));
        print(&format!(
            "{}{} round trips of {} B\n\
             round trip: {}{}",
            partial.unwrap_or_default(),
            results.count,
            results.size,
            results.latency.text(),
            results.delays.text(),
        ))
    }
}
