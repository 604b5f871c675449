//! Metrics of connections and peers for Prometheus.

use crate::op_counters::{KINDS, OUTCOMES, OpCounts};
use crate::prometheus::{Kind, Page};
use crate::spreading::OnePort;
use apus_transport::EvCounters;

use crate::report::{ConnectionReport, PeerReport, Report, Totals};

/// Name, help text, and value of a gauge of a connection.
type Gauge = (&'static str, &'static str, fn(&ConnectionReport) -> Option<f64>);

const GAUGES: [Gauge; 7] = [
    ("apus_connection_flows", "Flows of the connection.", |c| Some(c.flows as f64)),
    ("apus_connection_path_mtu_bytes", "Maximum length of its IP packets.", |c| {
        Some(f64::from(c.mtu))
    }),
    ("apus_connection_rtt_seconds", "Smoothed end-to-end RTT, the mean over flows.", |c| {
        c.windows.smoothed_rtt()
    }),
    (
        "apus_connection_target_delay_seconds",
        "Fabric target delay (Swift, section 3.5), the mean over flows.",
        |c| c.windows.target_delay(),
    ),
    ("apus_connection_cwnd_packets", "Congestion window in force, the sum over flows.", |c| {
        Some(c.windows.cwnd)
    }),
    (
        "apus_connection_fabric_cwnd_packets",
        "Window that follows the fabric delay (Swift, section 3.3), the sum over flows.",
        |c| c.windows.fabric_cwnd,
    ),
    (
        "apus_connection_endpoint_cwnd_packets",
        "Window that follows the endpoint delay (Swift, section 3.3), the sum over flows.",
        |c| c.windows.endpoint_cwnd,
    ),
];

/// Name after the prefix, help text, and value of a counter.
type Counter = (&'static str, &'static str, fn(&Totals) -> u64);

const COUNTERS: [Counter; 4] = [
    ("packets_sent_total", "Data packets sent, including retransmissions.", |t| t.packets_sent),
    (
        "retransmissions_total",
        "Data packets declared lost and retransmitted, by acknowledgements or a timeout.",
        |t| t.fast_losses + t.timeout_losses,
    ),
    ("timeout_retransmissions_total", "Those that were declared lost by a timeout.", |t| {
        t.timeout_losses
    }),
    ("rto_total", "Retransmission timeouts that expired.", |t| t.timeouts),
];

/// Labels of a connection or a peer, and its counters.
struct Series<'a> {
    labels: Vec<(&'static str, String)>,
    totals: &'a Totals,
}

impl Series<'_> {
    fn sample(&self, page: &mut Page, more: &[(&str, &str)], value: f64) {
        let labels = self.labels.iter().map(|(name, value)| (*name, &**value));
        page.sample(&labels.chain(more.iter().copied()).collect::<Vec<_>>(), value);
    }
}

/// Writes the metrics of the reports, one per engine.
pub(crate) fn write(page: &mut Page, reports: &[Option<Report>]) {
    page.metric("apus_engine_report", Kind::Gauge, "1 if the engine has reported its connections.");
    for (engine, report) in reports.iter().enumerate() {
        let reported = if report.is_some() { 1.0 } else { 0.0 };
        page.sample(&[("engine", &engine.to_string())], reported);
    }
    let reports: Vec<(String, &Report)> = reports
        .iter()
        .enumerate()
        .filter_map(|(engine, report)| Some((engine.to_string(), report.as_ref()?)))
        .collect();
    let help = "Connections beyond the limit of those that are listed.";
    page.metric("apus_connections_unlisted", Kind::Gauge, help);
    for (engine, report) in &reports {
        page.sample(&[("engine", engine)], report.unlisted as f64);
    }
    let connections: Vec<(&ConnectionReport, Series<'_>)> = reports
        .iter()
        .flat_map(|(engine, report)| report.connections.iter().map(move |c| (c, of(engine, c))))
        .collect();
    for (name, help, value) in GAUGES {
        page.metric(name, Kind::Gauge, help);
        for (connection, series) in &connections {
            // Some algorithms do not provide the value, and flows may not have it before their first sample.
            if let Some(value) = value(connection) {
                series.sample(page, &[], value);
            }
        }
    }
    ports(page, &connections);
    let series: Vec<Series<'_>> = connections.into_iter().map(|(_, series)| series).collect();
    counters(page, "apus_connection", &series);
    peers(page, &reports);
}

/// Name of an outcome of packets, and the number of packets with this outcome.
type Fate = (&'static str, fn(&EvCounters) -> u64);

const FATES: [Fate; 5] = [
    ("sent", |c| c.sent),
    ("good", |c| c.good),
    ("marked", |c| c.marked),
    ("lost", |c| c.lost),
    ("timeout", |c| c.timeouts),
];

/// Writes the metrics of the source ports of connections with a balancer.
fn ports(page: &mut Page, connections: &[(&ConnectionReport, Series<'_>)]) {
    let help = "Source ports by which packets leave, and others that the peer has not confirmed.";
    page.metric("apus_connection_ports", Kind::Gauge, help);
    let spread = || connections.iter().filter(|(c, _)| c.paths.one_port != Some(OnePort::Off));
    for (connection, series) in spread() {
        let ports = &connection.paths.ports;
        for (state, usable) in [("usable", true), ("unconfirmed", false)] {
            let count = ports.iter().filter(|port| port.usable == usable).count();
            series.sample(page, &[("state", state)], count as f64);
        }
    }
    let help =
        "1 if all packets leave by one source port although the host has a balancer, by reason.";
    page.metric("apus_connection_one_port", Kind::Gauge, help);
    for (connection, series) in spread() {
        if let Some(reason) = connection.paths.one_port {
            series.sample(page, &[("reason", reason.name())], 1.0);
        }
    }
    let help = "Packets by source port: sent, reported as arrived without and with an ECN mark, declared lost; and timeouts.";
    page.metric("apus_connection_port_packets_total", Kind::Counter, help);
    for (connection, series) in spread().filter(|(c, _)| c.paths.ports.len() > 1) {
        for port in &connection.paths.ports {
            let number = port.port.to_string();
            for (fate, value) in FATES {
                let labels = [("port", &*number), ("fate", fate)];
                series.sample(page, &labels, value(&port.counters) as f64);
            }
        }
    }
}

fn of<'a>(engine: &str, connection: &'a ConnectionReport) -> Series<'a> {
    let labels = vec![
        ("engine", engine.to_owned()),
        ("peer", connection.peer.to_string()),
        ("connection", connection.number.to_string()),
    ];
    Series { labels, totals: &connection.totals }
}

fn peers(page: &mut Page, reports: &[(String, &Report)]) {
    let mut all: Vec<(&PeerReport, Series<'_>)> = Vec::new();
    for (engine, report) in reports {
        let listed = report.peers.iter().map(|(ip, peer)| (ip.to_string(), peer));
        for (name, peer) in listed.chain([("other".to_owned(), &report.other)]) {
            let labels = vec![("engine", engine.clone()), ("peer", name)];
            all.push((peer, Series { labels, totals: &peer.totals }));
        }
    }
    page.metric("apus_peer_connections", Kind::Gauge, "Open connections of the peer.");
    for (peer, series) in &all {
        series.sample(page, &[], peer.open as f64);
    }
    let series: Vec<Series<'_>> = all.into_iter().map(|(_, series)| series).collect();
    counters(page, "apus_peer", &series);
}

fn counters(page: &mut Page, prefix: &str, all: &[Series<'_>]) {
    for (name, help, value) in COUNTERS {
        page.metric(&format!("{prefix}_{name}"), Kind::Counter, help);
        for series in all {
            series.sample(page, &[], value(series.totals) as f64);
        }
    }
    let name = format!("{prefix}_ops_total");
    page.metric(&name, Kind::Counter, "Ops of this host that have ended, by kind and end.");
    for series in all {
        let OpCounts { ops, .. } = &series.totals.ops;
        for (kind, ends) in KINDS.into_iter().zip(ops) {
            for (outcome, &count) in OUTCOMES.into_iter().zip(ends) {
                series.sample(page, &[("kind", kind), ("outcome", outcome)], count as f64);
            }
        }
    }
    let name = format!("{prefix}_delivered_bytes_total");
    page.metric(
        &name,
        Kind::Counter,
        "Bytes moved by the ops of this host that were done, by kind.",
    );
    for series in all {
        for (kind, &bytes) in KINDS.into_iter().zip(&series.totals.ops.bytes) {
            series.sample(page, &[("kind", kind)], bytes as f64);
        }
    }
}
