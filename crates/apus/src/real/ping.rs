//! `apus ping`: round trips of small messages, divided into fabric and endpoint delays.

use std::sync::Arc;
use std::time::{Duration, Instant};

use apus_udp::Bytes;
use clap::Args;
use serde::Serialize;

use super::latency::{Delays, Latency};
use super::round_trips::{self, RoundTrips};
use super::{Common, Peer, Towards, any, duration, filled, greeting};
use crate::failure::Failure;
use crate::interrupt::{self, Silence};
use crate::output::{print, to_json};

/// Longest pause before the command checks for an interrupt.
const CHECK_EVERY: Duration = Duration::from_millis(20);

/// Measure round trips of messages to an `apus serve`.
#[derive(Args)]
pub struct Ping {
    /// Server, as HOST or HOST:PORT.
    peer: String,
    #[command(flatten)]
    towards: Towards,
    #[command(flatten)]
    common: Common,
    /// Number of messages.
    #[arg(long, default_value_t = 1000)]
    count: u32,
    /// Size of each message, in bytes.
    #[arg(long, default_value_t = 64)]
    size: usize,
    /// Interval between messages; without it, each message follows the previous answer. A message is never sent before the
    /// previous answer: an answer that takes longer than the interval delays the next message, and this delay is not measured.
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
        let bytes = Bytes::from(filled("--size", self.size, 0x61)?);
        let peer = Peer::find(&self.peer)?;
        let host = Arc::new(self.common.host(&[any(&peer.addresses)])?);
        let _metrics = self.common.metrics(&host)?;
        let connection = peer.connect(&host, 1, &self.towards)?;
        let peer = connection.peer();
        greeting(&connection)?;
        for stats in host.stats() {
            stats.fabric_rtt.clear();
            stats.endpoint_delay.clear();
        }
        let watch = interrupt::watch(Silence(None))?;
        let RoundTrips { times_us, open_us, mut failure } = round_trips::repeat(
            |ended| {
                if interrupt::interrupted(&watch) {
                    return Err(Failure::Interrupted("interrupted".to_owned()));
                }
                Ok(ended < self.count as usize)
            },
            || {
                let answer = round_trips::exchange(&connection, bytes.clone());
                answer.map(drop).map_err(|why| format!("{peer}: {why}"))
            },
            |duration| {
                let pause = self.interval.and_then(|interval| interval.checked_sub(duration));
                let until = Instant::now() + pause.unwrap_or_default();
                while !interrupt::interrupted(&watch) {
                    let left = until.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        break;
                    }
                    std::thread::sleep(left.min(CHECK_EVERY));
                }
            },
        );
        if let Some(failure) = failure.take_if(|_| times_us.is_empty()) {
            return Err(failure);
        }
        let results = Results {
            count: times_us.len(),
            size: self.size,
            // A message without an answer counts as unfinished.
            latency: Latency::new(times_us, open_us.as_slice()),
            partial: failure.as_ref().map(Failure::to_string),
            delays: Delays::of(&host),
        };
        if failure.is_none() {
            connection.close();
        }
        self.say(&results)?;
        failure.map_or(Ok(()), Err)
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
