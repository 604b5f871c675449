//! Simulator and kernel compared as text, Markdown and JSON, with reasons for differences.

use apus_sim::bounds::Bounds;
use serde::Serialize;
use serde_json::Value;

use super::side::Side;
use crate::text::{bounds, columns, number};

/// deviation: no source; smaller relative differences are not explained.
const NOTICEABLE: f64 = 0.1;

/// All runs of a scenario.
#[derive(Serialize)]
pub struct Comparisons {
    /// Runs in the scenario's order.
    pub runs: Vec<Comparison>,
}

/// One run.
#[derive(Serialize)]
pub struct Comparison {
    name: String,
    simulated: Side,
    real: Side,
    #[serde(skip_serializing_if = "Option::is_none")]
    tcp: Option<Side>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tcp_name: Option<String>,
    /// Quantities that differ by more than 10 %, with the reasons.
    differences: Vec<String>,
    /// Properties of the scenario that the network of namespaces leaves out.
    notes: Vec<String>,
    /// Failed ops and streams, by host.
    failures: Vec<String>,
    /// The simulation in the form of a report page.
    #[serde(skip)]
    page: Option<Value>,
}

/// A row: the quantity, and its value on a side.
pub(super) type Row = (&'static str, fn(&Side) -> Option<Bounds>);

pub(super) const ROWS: &[Row] = &[
    ("goodput, Gb/s", |s| Some(Bounds::exact(s.goodput_gbps))),
    ("utilisation of the busiest port", |s| Some(Bounds::exact(s.utilisation))),
    ("packets dropped", |s| Some(Bounds::exact(s.drops as f64))),
    ("packets declared lost", |s| s.losses.map(|losses| Bounds::exact(losses as f64))),
    ("Jain's index", |s| Some(Bounds::exact(s.jain))),
    ("fabric RTT p50, us", |s| s.fabric_rtt_p50_us.map(Bounds::exact)),
    ("fabric RTT p99, us", |s| s.fabric_rtt_p99_us.map(Bounds::exact)),
    ("fabric target, mean, us", |s| s.target_us.map(Bounds::exact)),
    ("fabric RTT p50 / target", |s| s.fabric_rtt_over_target.map(Bounds::exact)),
    ("queue at the busiest port, mean, us", |s| s.queue_us.map(Bounds::exact)),
    ("fabric RTT p50 less that queue, us", |s| beside_queue(s).map(Bounds::exact)),
    ("end-to-end RTT p50, us", |s| s.end_to_end_rtt_p50_us.map(Bounds::exact)),
    ("endpoint delay p50, us", |s| s.endpoint_delay_p50_us.map(Bounds::exact)),
    ("fabric window, mean, packets", |s| s.fabric_cwnd.map(Bounds::exact)),
    ("endpoint window, mean, packets", |s| s.endpoint_cwnd.map(Bounds::exact)),
    ("op latency p50, us", |s| s.op_latency.p50_us),
    ("op latency p99, us", |s| s.op_latency.p99_us),
    ("ops unfinished after the drain", |s| {
        s.op_latency.p50_us.map(|_| Bounds::exact(s.op_latency.unfinished as f64))
    }),
    ("age of the oldest of them, us", |s| {
        (s.op_latency.unfinished > 0).then(|| Bounds::exact(s.op_latency.oldest_unfinished_us))
    }),
];

fn beside_queue(side: &Side) -> Option<f64> {
    Some((side.fabric_rtt_p50_us? - side.queue_us?).max(0.0))
}

impl Comparison {
    /// Returns the comparison of two or three sides.
    pub fn new(
        name: &str,
        simulated: Side,
        real: Side,
        tcp: Option<(Side, String)>,
        notes: Vec<String>,
        failures: Vec<String>,
    ) -> Self {
        let (tcp, tcp_name) = tcp.unzip();
        let differences = differences(&simulated, &real);
        let name = name.to_owned();
        Self { name, simulated, real, tcp, tcp_name, differences, notes, failures, page: None }
    }

    /// Adds the simulation in the form of a report page.
    pub fn with_page(self, page: Option<Value>) -> Self {
        Self { page, ..self }
    }

    pub(super) fn page(&self) -> Option<&Value> {
        self.page.as_ref()
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the sides with their names.
    pub(super) fn sides(&self) -> Vec<(String, &Side)> {
        let mut sides =
            vec![("simulator".to_owned(), &self.simulated), ("real".to_owned(), &self.real)];
        let tcp = self.tcp.as_ref().zip(self.tcp_name.as_ref());
        sides.extend(tcp.map(|(side, name)| (format!("TCP {name}"), side)));
        sides
    }

    /// Returns the failures.
    pub(super) fn failures(&self) -> &[String] {
        &self.failures
    }

    /// Returns the failures, the differences with their reasons, and the omissions.
    pub(super) fn sentences(&self) -> impl Iterator<Item = &String> {
        self.lists().into_iter().flat_map(|(_, sentences)| sentences)
    }

    fn lists(&self) -> [(&'static str, &Vec<String>); 3] {
        [
            ("Failed", &self.failures),
            ("Where they differ", &self.differences),
            ("Left out", &self.notes),
        ]
    }

    /// Returns the table with its header.
    pub(super) fn table(&self) -> Vec<Vec<String>> {
        let mut table = vec![self.header()];
        table.extend(self.rows());
        table
    }

    fn header(&self) -> Vec<String> {
        let mut header = vec!["", "simulator", "real", "real / simulator"];
        let tcp = self.tcp_name.as_ref().map(|name| format!("TCP {name}"));
        header.extend(tcp.as_deref());
        header.into_iter().map(str::to_owned).collect()
    }

    fn rows(&self) -> Vec<Vec<String>> {
        let cell = |value: Option<Bounds>| value.map_or_else(|| "-".to_owned(), bounds);
        let rows = ROWS.iter().map(|(name, of)| {
            let (simulated, real) = (of(&self.simulated), of(&self.real));
            let ratio = simulated.zip(real).filter(|(s, _)| s.lower > 0.0).map(|(s, r)| r.over(s));
            let mut row = vec![(*name).to_owned(), cell(simulated), cell(real), cell(ratio)];
            row.extend(self.tcp.as_ref().map(|tcp| cell(of(tcp))));
            row
        });
        rows.collect()
    }

    fn to_text(&self) -> String {
        let mut rows = vec![self.header()];
        rows.extend(self.rows());
        let mut text = format!("{}\n{}", self.name, columns(&rows, "  "));
        let lists = self.lists();
        for (title, sentences) in lists {
            if !sentences.is_empty() {
                text += &format!("{title}:\n");
                text.extend(sentences.iter().map(|sentence| format!("  * {sentence}\n")));
            }
        }
        text
    }

    fn to_markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let header = self.header();
        let mut text = format!("## {}\n{}|", self.name, line(&header));
        text.extend(header.iter().enumerate().map(|(i, _)| if i == 0 { "---|" } else { "---:|" }));
        text.push('\n');
        text.extend(self.rows().iter().map(|row| line(row)));
        let lists = self.lists();
        for (title, sentences) in lists {
            if !sentences.is_empty() {
                text += &format!("\n{title}:\n");
                text.extend(sentences.iter().map(|sentence| format!("* {sentence}\n")));
            }
        }
        text
    }
}

impl Comparisons {
    /// Returns the text for a terminal.
    pub fn to_text(&self) -> String {
        let texts: Vec<String> = self.runs.iter().map(Comparison::to_text).collect();
        texts.join("\n")
    }

    /// Returns the text for a document.
    pub fn to_markdown(&self) -> String {
        let texts: Vec<String> = self.runs.iter().map(Comparison::to_markdown).collect();
        texts.join("\n")
    }
}

/// Returns two numbers if they differ noticeably and are not both small compared with `floor`.
fn differ(simulated: Option<f64>, real: Option<f64>, floor: f64) -> Option<(f64, f64)> {
    let (s, r) = simulated.zip(real)?;
    let (low, high) = (s.min(r), s.max(r));
    (high > floor && high - low > NOTICEABLE * high).then_some((s, r))
}

/// Returns the noticeable differences, with the numbers that explain them.
fn differences(simulated: &Side, real: &Side) -> Vec<String> {
    let mut all = Vec::new();
    if simulated.busiest_port != real.busiest_port {
        all.push(format!(
            "the busiest port is {} in the simulator and {} in the network of namespaces",
            simulated.busiest_port, real.busiest_port
        ));
    }
    let path = (beside_queue(simulated), beside_queue(real));
    if let Some((s, r)) = differ(path.0, path.1, 5.0) {
        all.push(format!(
            "the path without its queue takes {} us in the kernel and {} us in the simulator: \
             system calls, wake-ups and the sender's bursts, which the kernel's timestamps include",
            number(r),
            number(s)
        ));
    }
    if let Some((s, r)) = differ(simulated.queue_us, real.queue_us, 5.0) {
        let why = if real.fabric_rtt_over_target.is_some_and(|ratio| (0.9..1.1).contains(&ratio)) {
            "the algorithm keeps the RTT at the target, so the queue is the target less the delay of the path"
        } else {
            "the RTT is not at its target on the real side (fabric RTT over target)"
        };
        all.push(format!("queue: {} us against {} us: {why}", number(r), number(s)));
    }
    let rtts = (simulated.fabric_rtt_over_target, real.fabric_rtt_over_target);
    if let Some((s, r)) = differ(rtts.0, rtts.1, 0.0) {
        all.push(format!(
            "fabric RTT over target: {} against {}: parts of the RTT that the algorithm does not control, \
             in the real network the path and packets that leave in bursts",
            number(r),
            number(s)
        ));
    }
    let delays = (simulated.endpoint_delay_p50_us, real.endpoint_delay_p50_us);
    if let Some((s, r)) = differ(delays.0, delays.1, 5.0) {
        all.push(format!(
            "endpoint delay: {} us against {} us: real engines sleep, are woken by the scheduler \
             and share cores; the simulator has the scenario's model of a host",
            number(r),
            number(s)
        ));
    }
    if let Some((s, r)) = differ(Some(simulated.goodput_gbps), Some(real.goodput_gbps), 0.0) {
        all.push(format!(
            "goodput: {} against {} Gb/s at port utilisations of {} and {}: {}",
            number(r),
            number(s),
            number(real.utilisation),
            number(simulated.utilisation),
            if real.utilisation < 0.9 * simulated.utilisation {
                "the real senders leave the port idle at times"
            } else {
                "headers differ, and bytes of ops that end after the measured phase do not count on the real side"
            }
        ));
    }
    if let Some((s, r)) = differ(simulated.fabric_cwnd, real.fabric_cwnd, 0.0) {
        all.push(format!(
            "fabric window: {} against {} packets: a window is rate times RTT, and grows without \
             effect while the other window is smaller",
            number(r),
            number(s)
        ));
    }
    if let Some((s, r)) = differ(simulated.endpoint_cwnd, real.endpoint_cwnd, 0.0) {
        all.push(format!(
            "endpoint window: {} against {} packets: it follows the endpoint delay",
            number(r),
            number(s)
        ));
    }
    let p50 = |side: &Side| side.op_latency.p50_us.and_then(Bounds::value);
    let latencies = (p50(simulated), p50(real));
    if let Some((s, r)) = differ(latencies.0, latencies.1, 0.0) {
        all.push(format!(
            "op latency: {} against {} us: in a closed loop, it is the outstanding bytes over the goodput; in \
             an open loop, the time in the network, in the hosts and behind earlier ops",
            number(r),
            number(s)
        ));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_explained_with_both_numbers() {
        let simulated = Side {
            goodput_gbps: 0.95,
            fabric_rtt_p50_us: Some(200.0),
            queue_us: Some(190.0),
            ..Side::default()
        };
        let real = Side { queue_us: Some(140.0), ..simulated.clone() };
        let found = differences(&simulated, &real);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("60 us in the kernel and 10 us"), "{found:?}");
        assert!(found[1].starts_with("queue: 140 us against 190 us"), "{found:?}");
        assert_eq!(differences(&simulated, &simulated), Vec::<String>::new());
    }

    /// If ops failed in a network, its numbers are not those of the scenario.
    #[test]
    fn what_failed_has_a_heading_of_its_own() {
        let (notes, failures) = (vec!["note".to_owned()], vec!["host 1: refused".to_owned()]);
        let one = Comparison::new("run", Side::default(), Side::default(), None, notes, failures);
        let text = one.to_text();
        assert!(text.contains("Failed:\n  * host 1: refused\n"), "{text}");
        assert!(text.ends_with("Left out:\n  * note\n"), "{text}");
    }
}
