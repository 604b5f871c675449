//! `apus ping`: round trips of small messages, with fabric and endpoint parts apart.

use std::time::{Duration, Instant};

use apus_udp::Request;
use clap::Args;
use serde::Serialize;

use super::{Common, address, any, duration, greeting};
use crate::failure::Failure;
use crate::interrupt::{self, Silence};
use crate::output::{print, to_json};

/// Measures round trips of messages to an `apus serve`.
#[derive(Args)]
pub struct Ping {
    /// HOST or HOST:PORT of the server.
    peer: String,
    #[command(flatten)]
    common: Common,
    /// Messages.
    #[arg(long, default_value_t = 1000)]
    count: u32,
    /// Bytes of each.
    #[arg(long, default_value_t = 64)]
    size: usize,
    /// Time from one to the next; without it, each follows the answer to the one before.
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
    min_us: f64,
    p50_us: f64,
    p90_us: f64,
    p99_us: f64,
    max_us: f64,
    /// Why the measurement ended before its time, if it did.
    partial: Option<String>,
    /// Of acknowledged packets, as Swift divides the delay (§3.3); within 1/64.
    fabric_p50_us: Option<f64>,
    fabric_p99_us: Option<f64>,
    endpoint_p50_us: Option<f64>,
    endpoint_p99_us: Option<f64>,
}

impl Ping {
    /// Does it.
    pub fn execute(&self) -> Result<(), Failure> {
        if self.count == 0 {
            return Err(Failure::Input("--count must be at least 1".to_owned()));
        }
        let peer = address(&self.peer)?;
        let host = self.common.host(any(peer))?;
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
        times.sort_by(f64::total_cmp);
        let of = |share: f64| times[((times.len() as f64 * share) as usize).min(times.len() - 1)];
        let stats = host.stats().next();
        let fabric = |share| stats.and_then(|s| s.fabric_rtt.quantile_us(share));
        let endpoint = |share| stats.and_then(|s| s.endpoint_delay.quantile_us(share));
        let results = Results {
            count: times.len(),
            size: self.size,
            min_us: times[0],
            p50_us: of(0.5),
            p90_us: of(0.9),
            p99_us: of(0.99),
            max_us: times[times.len() - 1],
            partial: failure.as_ref().map(|(_, why)| why.clone()),
            fabric_p50_us: fabric(0.5),
            fabric_p99_us: fabric(0.99),
            endpoint_p50_us: endpoint(0.5),
            endpoint_p99_us: endpoint(0.99),
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
        let part = |value: Option<f64>| value.map_or("-".to_owned(), |v| format!("{v:.1}"));
        print(&format!(
            "{}{} round trips of {} B\n\
             round trip: min {:.1}, p50 {:.1}, p90 {:.1}, p99 {:.1}, max {:.1} us\n\
             fabric:     p50 {}, p99 {} us\n\
             endpoint:   p50 {}, p99 {} us\n",
            partial.unwrap_or_default(),
            results.count,
            results.size,
            results.min_us,
            results.p50_us,
            results.p90_us,
            results.p99_us,
            results.max_us,
            part(results.fabric_p50_us),
            part(results.fabric_p99_us),
            part(results.endpoint_p50_us),
            part(results.endpoint_p99_us),
        ))
    }
}
