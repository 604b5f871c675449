//! The compared numbers: the same for the simulator, our engine and the kernel's TCP.

use apus_sim::bounds::{Bounds, percentile};
use apus_sim::columns::gbps;
use apus_sim::distribution::{DistributionSummary, jain};
use apus_sim::record::{Cdf, PortRecord, Quantity, Recording};
use apus_sim::summary::Summary;
use apus_udp::Histogram;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::spec::{Buckets, HostResult, Outcome, PortResult, Samples, Spec, Stack};

/// Numbers of one side after the warm-up; `null` if the side does not have the number.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Side {
    /// Payload delivered per time, Gb/s.
    pub goodput_gbps: f64,
    /// Jain's index of the flows' goodput.
    pub jain: f64,
    /// Packets dropped at switch ports since the start.
    pub drops: u64,
    /// Packets that senders declared lost; `None` for TCP, which does not report them.
    pub losses: Option<u64>,
    /// Median of the NIC-to-NIC RTT; for TCP, of its smoothed RTT.
    pub fabric_rtt_p50_us: Option<f64>,
    /// 99th percentile of the same RTT.
    pub fabric_rtt_p99_us: Option<f64>,
    /// Mean of the effective fabric target.
    pub target_us: Option<f64>,
    /// Median fabric RTT over the mean target.
    pub fabric_rtt_over_target: Option<f64>,
    /// Mean queue of the busiest port, as time at the rate of the port.
    pub queue_us: Option<f64>,
    /// The switch port with the highest utilisation.
    pub busiest_port: String,
    /// Throughput of this port over its rate; on the real side without preambles and gaps.
    pub utilisation: f64,
    /// Median of t6 - t1.
    pub end_to_end_rtt_p50_us: Option<f64>,
    /// Median of the time in hosts.
    pub endpoint_delay_p50_us: Option<f64>,
    /// Mean of the window that follows the fabric delay, packets.
    pub fabric_cwnd: Option<f64>,
    /// Mean of the window that follows the endpoint delay, packets.
    pub endpoint_cwnd: Option<f64>,
    /// Latency of ops.
    #[serde(flatten)]
    pub op_latency: OpLatency,
    /// Distributions for the report page.
    #[serde(skip)]
    pub curves: Curves,
}

/// Distributions of a side: values in microseconds, each with the fraction of samples at or below it.
#[derive(Clone, Debug, Default)]
pub struct Curves {
    /// Latency of the ops that ended.
    pub op_latency: Cdf,
    /// NIC-to-NIC RTT.
    pub fabric_rtt: Cdf,
    /// RTT between the clocks of the hosts, t6 - t1.
    pub end_to_end_rtt: Cdf,
}

/// Returns the points of sorted values, each with its number of occurrences; `more` further values are larger.
fn curve(values: &[(f64, u64)], more: u64) -> Cdf {
    let count = values.iter().map(|(_, count)| count).sum::<u64>() + more;
    let mut seen = 0;
    let point = |&(value, occurrences): &(f64, u64)| {
        seen += occurrences;
        (value, seen as f64 / count as f64)
    };
    values.iter().map(point).collect()
}

/// Latency of the ops submitted in the measured time, with bounds. The lower bound assumes that unfinished ops ended
/// with the run, the upper bound that they never end.
#[derive(Clone, Debug, Default)]
pub struct OpLatency {
    /// Median.
    pub p50_us: Option<Bounds>,
    /// 99th percentile.
    pub p99_us: Option<Bounds>,
    /// Ops that had not ended after the drain.
    pub unfinished: u64,
    /// Age of the oldest unfinished op, microseconds.
    pub oldest_unfinished_us: f64,
}

impl OpLatency {
    fn of_simulation(latency: &DistributionSummary) -> Self {
        Self {
            p50_us: latency.bounds(|d| d.p50),
            p99_us: latency.bounds(|d| d.p99),
            unfinished: latency.unfinished(),
            oldest_unfinished_us: latency
                .open
                .as_ref()
                .map_or(0.0, |open| open.oldest_unfinished_us),
        }
    }

    /// Returns the latency from a histogram of the ended ops and the ages of the unfinished ones.
    fn of_ops(ended: &[(f64, u64)], unfinished_us: &[f64]) -> Self {
        let at = |share| {
            let bounds = Bounds::of_percentile(ended, unfinished_us, share)?;
            Some(bounds.value_within(Histogram::RESOLUTION).map_or(bounds, Bounds::exact))
        };
        Self {
            p50_us: at(0.5),
            p99_us: at(0.99),
            unfinished: unfinished_us.len() as u64,
            oldest_unfinished_us: unfinished_us.iter().copied().fold(0.0, f64::max),
        }
    }
}

/// Serialises as the results of simulations do: a censored percentile is `null`, with its bounds next to it.
impl Serialize for OpLatency {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, bounds) in [("op_latency_p50", self.p50_us), ("op_latency_p99", self.p99_us)] {
            map.serialize_entry(&format!("{name}_us"), &bounds.and_then(Bounds::value))?;
            let finite = |bound: f64| Some(bound).filter(|bound| bound.is_finite());
            map.serialize_entry(&format!("{name}_lower_us"), &bounds.map(|b| b.lower))?;
            map.serialize_entry(
                &format!("{name}_upper_us"),
                &bounds.and_then(|b| finite(b.upper)),
            )?;
        }
        map.serialize_entry("ops_unfinished", &self.unfinished)?;
        map.serialize_entry("oldest_unfinished_us", &self.oldest_unfinished_us)?;
        map.end()
    }
}

impl Side {
    /// Returns the side of a recorded simulation.
    pub fn of_simulation(summary: &Summary) -> Self {
        let band = |quantity: Quantity| {
            let recording = summary.recording.as_ref()?;
            let times = recording.times.iter().zip(&recording.bands);
            let measured = times.filter(|(time, _)| **time >= recording.warmup);
            let means: Vec<f64> =
                measured.map(|(_, bands)| bands[quantity as usize].mean).collect();
            mean(means.into_iter().filter(|mean| mean.is_finite()))
        };
        let busiest = summary.recording.as_ref().and_then(|recording| busiest(recording));
        Self {
            goodput_gbps: summary.goodput_gbps,
            jain: summary.jain,
            drops: summary.measured.drops + summary.startup.drops,
            losses: summary.recording.as_ref().map(|recording| {
                let losses = recording.flows.iter().map(|flow| flow.counters);
                losses.map(|counters| counters.fast_losses + counters.timeout_losses).sum()
            }),
            fabric_rtt_p50_us: summary.fabric_rtt_us.p50,
            fabric_rtt_p99_us: summary.fabric_rtt_us.p99,
            target_us: band(Quantity::TargetDelay),
            queue_us: busiest
                .map(|(_, port)| port.mean_queue_bytes * 8.0 / port.rate.as_bps() as f64 * 1e6),
            busiest_port: busiest.map(|(r, port)| r.port_name(port.port)).unwrap_or_default(),
            utilisation: busiest.map_or(0.0, |(_, port)| {
                gbps(port.sent_bytes, summary.measured.seconds) / port.rate.as_gbps_f64()
            }),
            end_to_end_rtt_p50_us: summary.end_to_end_rtt_us.p50,
            endpoint_delay_p50_us: summary.endpoint_delay_us.p50,
            fabric_cwnd: band(Quantity::FabricCwnd),
            endpoint_cwnd: band(Quantity::EndpointCwnd),
            op_latency: OpLatency::of_simulation(&summary.op_latency_us),
            curves: summary.recording.as_ref().map_or_else(Curves::default, |recording| Curves {
                op_latency: recording.op_latency.clone(),
                fabric_rtt: recording.fabric_rtt.clone(),
                end_to_end_rtt: recording.end_to_end_rtt.clone(),
            }),
            ..Self::default()
        }
        .with_ratio()
    }

    /// Returns the side of a network of namespaces.
    pub fn of_outcome(outcome: &Outcome, spec: &Spec) -> Self {
        let seconds = outcome.hosts.iter().map(|host| host.seconds).fold(0.0, f64::max);
        let flows = spec.agents.iter().map(|agent| agent.flows.len()).sum();
        let mut bytes = vec![0u64; flows];
        for (&index, &count) in outcome.hosts.iter().flat_map(|host| &host.bytes) {
            if let Some(place) = bytes.get_mut(index) {
                *place += count;
            }
        }
        let all = |of: fn(&HostResult) -> &Buckets| -> Vec<(f64, u64)> {
            let mut all: Vec<_> = outcome.hosts.iter().flat_map(|host| of(host).clone()).collect();
            all.sort_by(|a, b| a.0.total_cmp(&b.0));
            all
        };
        let fabric = if outcome.tcp_rtt_us.is_empty() {
            all(|host| &host.fabric_rtt)
        } else {
            let mut rtts: Vec<_> = outcome.tcp_rtt_us.iter().map(|&us| (us, 1)).collect();
            rtts.sort_by(|a, b| a.0.total_cmp(&b.0));
            rtts
        };
        let (end_to_end, endpoint) = (all(|h| &h.end_to_end_rtt), all(|h| &h.endpoint_delay));
        let latency = all(|host| &host.op_latency);
        let unfinished: Vec<f64> =
            outcome.hosts.iter().flat_map(|host| host.unfinished_us.iter().copied()).collect();
        let sampled = |of: fn(&Samples) -> f64| {
            let count: u64 = outcome.hosts.iter().map(|host| host.samples.count).sum();
            let sum: f64 = outcome.hosts.iter().map(|host| of(&host.samples)).sum();
            (sum > 0.0).then(|| sum / count as f64)
        };
        let used = |port: &PortResult| port.sent_bytes as f64 / port.rate as f64;
        let busiest = outcome.ports.iter().max_by(|a, b| used(a).total_cmp(&used(b)));
        let per_flow: Vec<f64> = bytes.iter().map(|&b| b as f64).collect();
        Self {
            goodput_gbps: gbps(bytes.iter().sum(), seconds),
            jain: jain(&per_flow),
            drops: outcome.ports.iter().map(|port| port.drops).sum(),
            losses: (spec.stack == Stack::Apus)
                .then(|| outcome.hosts.iter().map(|host| host.losses).sum()),
            fabric_rtt_p50_us: percentile(&fabric, 0.5),
            fabric_rtt_p99_us: percentile(&fabric, 0.99),
            target_us: sampled(|s| s.target_us),
            queue_us: busiest.and_then(waiting_us),
            busiest_port: busiest.map(|port| port.name.clone()).unwrap_or_default(),
            utilisation: busiest.map_or(0.0, |port| {
                gbps(port.sent_bytes, outcome.watched_seconds) * 1e9 / port.rate as f64
            }),
            end_to_end_rtt_p50_us: percentile(&end_to_end, 0.5),
            endpoint_delay_p50_us: percentile(&endpoint, 0.5),
            fabric_cwnd: sampled(|s| s.fabric_cwnd),
            endpoint_cwnd: sampled(|s| s.endpoint_cwnd),
            op_latency: OpLatency::of_ops(&latency, &unfinished),
            curves: Curves {
                op_latency: curve(&latency, unfinished.len() as u64),
                fabric_rtt: curve(&fabric, 0),
                end_to_end_rtt: curve(&end_to_end, 0),
            },
            ..Self::default()
        }
        .with_ratio()
    }

    fn with_ratio(mut self) -> Self {
        self.fabric_rtt_over_target =
            self.fabric_rtt_p50_us.zip(self.target_us).map(|(r, t)| r / t);
        self
    }
}

/// Returns the switch port with the highest utilisation.
fn busiest(recording: &Recording) -> Option<(&Recording, &PortRecord)> {
    let of_switches = recording.ports.iter().filter(|port| recording.nodes[port.from].tier > 0);
    let used = |port: &PortRecord| port.sent_bytes as f64 / port.rate.as_bps() as f64;
    let most = of_switches.max_by(|a, b| used(a).total_cmp(&used(b)))?;
    Some((recording, most))
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values.fold((0u64, 0.0), |(count, sum), value| (count + 1, sum + value));
    (count > 0).then(|| sum / count as f64)
}

fn waiting_us(port: &PortResult) -> Option<f64> {
    let bytes = mean(port.backlog.iter().map(|&bytes| bytes as f64))?;
    Some(bytes * 8.0 / port.rate as f64 * 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 98 ops ended after 1 us and two are unfinished after 5 us and 7 us: the 98th op is known, the 99th is at least
    /// 5 us.
    #[test]
    fn op_latency_has_bounds_if_ops_are_unfinished() {
        let latency = OpLatency::of_ops(&[(1.0, 98)], &[7.0, 5.0]);
        assert_eq!(latency.p50_us.and_then(Bounds::value), Some(1.0));
        assert_eq!(latency.p99_us, Some(Bounds { lower: 5.0, upper: f64::INFINITY }));
        assert_eq!((latency.unfinished, latency.oldest_unfinished_us), (2, 7.0));
        let json = serde_json::to_value(&latency).expect("JSON");
        assert_eq!(json["op_latency_p50_us"], 1.0);
        assert!(json["op_latency_p99_us"].is_null() && json["op_latency_p99_upper_us"].is_null());
        assert_eq!(
            (&json["op_latency_p99_lower_us"], &json["ops_unfinished"]),
            (&5.0.into(), &2.into())
        );
    }

    /// The unfinished op moves the median by one bucket of 1/64.
    #[test]
    fn op_latency_is_known_to_the_resolution_of_the_histogram() {
        let latency = OpLatency::of_ops(&[(64.0, 1), (65.0, 1)], &[1.0]);
        assert_eq!(latency.p50_us, Some(Bounds::exact(65.0)));
    }

    /// Two of four ops ended, after 3 us and 5 us; each of the two is a quarter of all ops.
    #[test]
    fn a_curve_ends_where_ops_had_not_ended() {
        assert_eq!(curve(&[(3.0, 1), (5.0, 1)], 2), [(3.0, 0.25), (5.0, 0.5)]);
    }

    /// 62.5 MB in half a second at 1 Gb/s, while the hosts measured for a second.
    #[test]
    fn a_port_is_used_by_what_it_sent_in_the_time_that_it_was_watched() {
        let port = PortResult {
            name: String::new(),
            rate: 1_000_000_000,
            sent_bytes: 62_500_000,
            drops: 0,
            backlog: Vec::new(),
        };
        let outcome = Outcome {
            hosts: vec![HostResult { seconds: 1.0, ..HostResult::default() }],
            ports: vec![port],
            watched_seconds: 0.5,
            tcp_rtt_us: Vec::new(),
        };
        let spec = Spec {
            name: String::new(),
            stack: Stack::Apus,
            hosts: 1,
            switches: 1,
            links: Vec::new(),
            routes: Vec::new(),
            mtu: 1500,
            agents: Vec::new(),
        };
        assert_eq!(Side::of_outcome(&outcome, &spec).utilisation, 1.0);
    }

    #[test]
    fn a_queue_is_the_time_that_its_bytes_take() {
        let port = PortResult {
            name: String::new(),
            rate: 1_000_000_000,
            sent_bytes: 0,
            drops: 0,
            backlog: vec![0, 25_000],
        };
        // 12,500 B at 1 Gb/s.
        assert_eq!(waiting_us(&port), Some(100.0));
    }
}
