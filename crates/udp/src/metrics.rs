//! The counters of engines as metrics for Prometheus.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::connection_metrics;
use crate::driver::WeakDriver;
use crate::mailbox::{Command, Mailbox};
use crate::prometheus::{Kind, Page};
use crate::report::Report;
use crate::stats::{Histogram, Stats};

/// Maximum time for which a page waits for the report of an engine. deviation: no source; far enough below Prometheus's
/// scrape timeout of 10 s that the page is complete in time even if 9 engines do not answer.
const REPORT_TIMEOUT: Duration = Duration::from_secs(1);

/// The counters of the engines of a host, and of their connections and peers; see [`Host::metrics`](crate::Host::metrics).
#[derive(Clone)]
pub struct Metrics {
    engines: Vec<(Arc<Mailbox>, WeakDriver)>,
}

/// Name, help text, and field of a metric.
type Row<T> = (&'static str, &'static str, fn(&Stats) -> &T);

const COUNTERS: [Row<AtomicU64>; 12] = [
    ("apus_datagrams_received_total", "Datagrams received.", |s| &s.datagrams_received),
    ("apus_datagrams_sent_total", "Datagrams sent.", |s| &s.datagrams_sent),
    ("apus_receive_calls_total", "System calls that received.", |s| &s.receive_calls),
    ("apus_send_calls_total", "System calls that sent.", |s| &s.send_calls),
    ("apus_departures_total", "Bursts whose departure the kernel or the NIC reported.", |s| {
        &s.departures
    }),
    (
        "apus_capture_failures_total",
        "Datagrams that could not be captured; the first one ends the capture.",
        |s| &s.capture_failures,
    ),
    ("apus_send_failures_total", "Datagrams that the kernel refused.", |s| &s.send_failures),
    (
        "apus_payload_received_bytes_total",
        "Payload bytes received for the first time (goodput).",
        |s| &s.payload_received,
    ),
    ("apus_payload_sent_bytes_total", "Payload bytes sent, including retransmissions.", |s| {
        &s.payload_sent
    }),
    ("apus_ops_total", "Ops ended.", |s| &s.ops),
    ("apus_atomics_executed_total", "Atomic ops of peers executed on regions of this host.", |s| {
        &s.atomics_executed
    }),
    ("apus_sleeps_total", "Number of sleeps of the engine.", |s| &s.sleeps),
];

const DELAYS: [Row<Histogram>; 3] = [
    ("apus_end_to_end_rtt_seconds", "t6 - t1 of acknowledged packets (Swift, Fig. 2).", |s| {
        &s.end_to_end_rtt
    }),
    (
        "apus_fabric_rtt_seconds",
        "NIC to NIC: end-to-end RTT minus endpoint delay (Swift, section 3.3).",
        |s| &s.fabric_rtt,
    ),
    (
        "apus_endpoint_delay_seconds",
        "Time in both hosts' receive queues and engines (Swift, section 3.3).",
        |s| &s.endpoint_delay,
    ),
];

const QUANTILES: [(&str, f64); 4] = [("0.5", 0.5), ("0.9", 0.9), ("0.99", 0.99), ("0.999", 0.999)];

impl Metrics {
    pub(crate) fn new(engines: Vec<(Arc<Mailbox>, WeakDriver)>) -> Self {
        Self { engines }
    }

    /// Requests a report from each engine. An entry is `None` if its engine does not answer.
    fn reports(&self) -> Vec<Option<Report>> {
        let ask = |(mailbox, driver): &(Arc<Mailbox>, WeakDriver)| {
            let (reply, report) = oneshot::channel();
            mailbox.post(Command::Report { reply });
            driver.step_inline();
            report
        };
        let asked: Vec<_> = self.engines.iter().map(ask).collect();
        asked.into_iter().map(|report| report.recv_timeout(REPORT_TIMEOUT).ok()).collect()
    }

    /// Returns the current page of metrics. Waits for the next step of each engine, at most one second per engine. If an engine
    /// does not answer, its connections and peers are missing from the page (`apus_engine_report`).
    #[must_use]
    pub fn page(&self) -> String {
        let reports = self.reports();
        let engines = self.engines.iter().enumerate();
        let engines: Vec<(String, &Stats)> =
            engines.map(|(n, (mailbox, _))| (n.to_string(), &mailbox.status.stats)).collect();
        let mut page = Page::new();
        for (name, help, of) in COUNTERS {
            page.metric(name, Kind::Counter, help);
            for (engine, stats) in &engines {
                let value = of(stats).load(Ordering::Relaxed) as f64;
                page.sample(&[("engine", engine)], value);
            }
        }
        page.metric("apus_engine_info", Kind::Gauge, "1; the address of the engine's socket.");
        for (engine, (mailbox, _)) in self.engines.iter().enumerate() {
            let (engine, address) = (engine.to_string(), mailbox.status.address.to_string());
            page.sample(&[("engine", &engine), ("address", &address)], 1.0);
        }
        page.metric("apus_connections", Kind::Gauge, "Open connections.");
        for (engine, stats) in &engines {
            let open = stats.connections.load(Ordering::Relaxed) as f64;
            page.sample(&[("engine", engine)], open);
        }
        let help = "Events of the session layer: handshakes, packets, and drops by reason.";
        page.metric("apus_session_events_total", Kind::Counter, help);
        for (engine, stats) in &engines {
            for (event, value) in stats.sessions.iter() {
                page.sample(&[("engine", engine), ("event", event)], value as f64);
            }
        }
        for (name, help, of) in DELAYS {
            page.metric(name, Kind::Summary, help);
            for (engine, stats) in &engines {
                delays(&mut page, engine, of(stats));
            }
        }
        connection_metrics::write(&mut page, &reports);
        page.finish()
    }
}

fn delays(page: &mut Page, engine: &str, histogram: &Histogram) {
    for (name, share) in QUANTILES {
        let value = histogram.quantile_us(share).map_or(f64::NAN, |us| us / 1e6);
        page.sample(&[("engine", engine), ("quantile", name)], value);
    }
    page.sum(&[("engine", engine)], histogram.sum_seconds());
    page.count(&[("engine", engine)], histogram.count() as f64);
}
