//! Counters of calls, which can be read at any time.

use std::sync::atomic::{AtomicU64, Ordering};

use apus_udp::Histogram;
use apus_udp::prometheus::{Kind, Page};

use crate::client::Answer;
use crate::error::{CallError, Executed};

/// Adds one to a counter.
pub(crate) fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// Counters of a client since it connected.
#[derive(Default)]
#[non_exhaustive]
pub struct ClientMetrics {
    /// Calls begun, except those that this client refused.
    pub started: AtomicU64,
    /// Calls that were answered.
    pub answered: AtomicU64,
    /// Calls whose handler failed, panicked, or gave no answer or too long an answer.
    pub failed: AtomicU64,
    /// Calls that failed and did not run.
    pub not_run: AtomicU64,
    /// Calls that failed and may have run.
    pub may_have_run: AtomicU64,
    /// Messages of the server that are not messages of the protocol, or that belong to no call.
    pub malformed: AtomicU64,
    /// Times from the beginning of calls to the server's answers.
    pub latency: Histogram,
}

impl ClientMetrics {
    /// Counts the end of a call.
    pub(crate) fn count(&self, result: &Result<Answer, CallError>) {
        add(match result.as_ref().map_err(CallError::executed) {
            Ok(_) => &self.answered,
            Err(Executed::Ran) => &self.failed,
            Err(Executed::NotRun) => &self.not_run,
            Err(Executed::MayHaveRun) => &self.may_have_run,
        });
    }

    /// Returns the counters as a page for Prometheus.
    #[must_use]
    pub fn page(&self) -> String {
        let mut page = Page::new();
        for (name, help, counter) in [
            ("apus_rpc_client_started_total", "Calls begun.", &self.started),
            ("apus_rpc_client_answered_total", "Calls that were answered.", &self.answered),
            ("apus_rpc_client_failed_total", "Calls whose handler failed.", &self.failed),
            ("apus_rpc_client_not_run_total", "Calls that failed and did not run.", &self.not_run),
            (
                "apus_rpc_client_may_have_run_total",
                "Calls that failed and may have run.",
                &self.may_have_run,
            ),
            (
                "apus_rpc_client_malformed_total",
                "Messages that are none of the protocol.",
                &self.malformed,
            ),
        ] {
            page.metric(name, Kind::Counter, help).sample(&[], value(counter));
        }
        let help = "Time from the beginning of a call to the answer of the server.";
        page.metric("apus_rpc_client_latency_seconds", Kind::Summary, help);
        for (name, share) in [("0.5", 0.5), ("0.9", 0.9), ("0.99", 0.99), ("0.999", 0.999)] {
            let latency = self.latency.quantile_us(share).map_or(f64::NAN, |us| us / 1e6);
            page.sample(&[("quantile", name)], latency);
        }
        page.sum(&[], self.latency.sum_seconds()).count(&[], self.latency.count() as f64);
        page.finish()
    }
}

fn value(counter: &AtomicU64) -> f64 {
    counter.load(Ordering::Relaxed) as f64
}

/// Counters of a server since its start.
#[derive(Default)]
#[non_exhaustive]
pub struct ServerMetrics {
    /// Calls received.
    pub received: AtomicU64,
    /// Calls that were answered.
    pub answered: AtomicU64,
    /// Calls whose handler failed, or gave no answer or too long an answer.
    pub failed: AtomicU64,
    /// Calls whose handler panicked.
    pub panicked: AtomicU64,
    /// Calls that did not run because the server had too many.
    pub overloaded: AtomicU64,
    /// Calls that did not run because their deadline had passed.
    pub expired: AtomicU64,
    /// Calls that were cancelled, before or while they ran.
    pub cancelled: AtomicU64,
    /// Calls of methods that the server does not have.
    pub unknown_method: AtomicU64,
    /// Messages that are not messages of the protocol. Each of them ends its connection.
    pub malformed: AtomicU64,
    /// Calls that count towards [`ServerOptions::max_calls`](crate::ServerOptions::max_calls), as of the last
    /// [`Server::metrics`](crate::Server::metrics): calls that are queued, run, or have an answer whose body is being read. A
    /// queued call that is cancelled counts until a worker or its lane reaches it.
    pub current: AtomicU64,
}

impl ServerMetrics {
    /// Returns the counters as a page for Prometheus.
    #[must_use]
    pub fn page(&self) -> String {
        let mut page = Page::new();
        for (name, help, counter) in [
            ("apus_rpc_server_received_total", "Calls received.", &self.received),
            ("apus_rpc_server_answered_total", "Calls that were answered.", &self.answered),
            ("apus_rpc_server_failed_total", "Calls whose handler failed.", &self.failed),
            ("apus_rpc_server_panicked_total", "Calls whose handler panicked.", &self.panicked),
            (
                "apus_rpc_server_overloaded_total",
                "Calls that did not run because the server had too many.",
                &self.overloaded,
            ),
            (
                "apus_rpc_server_expired_total",
                "Calls that did not run because their deadline had passed.",
                &self.expired,
            ),
            ("apus_rpc_server_cancelled_total", "Calls that were cancelled.", &self.cancelled),
            (
                "apus_rpc_server_unknown_method_total",
                "Calls of methods that the server does not have.",
                &self.unknown_method,
            ),
            (
                "apus_rpc_server_malformed_total",
                "Messages that are none of the protocol.",
                &self.malformed,
            ),
        ] {
            page.metric(name, Kind::Counter, help).sample(&[], value(counter));
        }
        let help = "Calls that wait, run, or have an answer whose body is being read.";
        page.metric("apus_rpc_server_calls", Kind::Gauge, help).sample(&[], value(&self.current));
        page.finish()
    }
}
