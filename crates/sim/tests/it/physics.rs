//! Runs compared with closed forms that every correct packet-level simulator must reproduce.

use crate::support::{Network, Tier, Topology};
use crate::support::{connection, plan, run, tier};
use apus_fabric::{FabricEvent, Outcome, Packet, PortKind, Schedule, Way};
use apus_sim::fairness::max_min_shares;
use apus_units::{Bytes, ClassId, HostId, Rate, Span, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Returns the completion time of an op of `packets` full packets over `links` equal links. The last packet
/// leaves the sender after all serialisations; then each link adds its delay, and each switch one more
/// serialisation. The acknowledgement returns the same way.
fn completion_ps(packets: u64, links: u64, rate: Rate, delay: Span) -> u64 {
    let data = rate.serialization_time(Bytes::new(1064)).as_ps();
    let ack = rate.serialization_time(Bytes::new(84)).as_ps();
    let delay = delay.as_ps();
    packets * data + (links - 1) * data + links * delay + links * (ack + delay)
}

fn check_completion(topology: Topology, to: u32, links: u64, rate: Rate, delay: Span) {
    for packets in [1, 2, 7, 40] {
        let op = connection(("constant", &[("window", "100")]), 0, to, packets * 1000);
        let mut plan = plan(topology.clone(), vec![op], Span::from_ms(1));
        plan.drain = Span::from_ms(1);
        let summary = run(&plan);
        let expected = completion_ps(packets, links, rate, delay) as f64 * 1e-6;
        let latency = summary.op_latency_us;
        assert!(latency.count > 0);
        // Exact to the picosecond: both extremes are kept as integers and printed as floats.
        assert!((latency.min.unwrap() - expected).abs() < 1e-7, "{latency:?}, {expected}");
        assert!((latency.max.unwrap() - expected).abs() < 1e-7, "{latency:?}, {expected}");
    }
}

#[test]
fn store_and_forward_completion_is_exact_over_two_links() {
    let (rate, delay) = (Rate::from_gbps(100), Span::from_us(1));
    check_completion(Topology::star(2, &tier(rate, delay)), 1, 2, rate, delay);
}

/// 102 Gb/s: a byte takes 78.43 ps, so a constant per byte would be off by nanoseconds.
#[test]
fn store_and_forward_completion_is_exact_at_an_odd_rate() {
    let (rate, delay) = (Rate::from_gbps(102), Span::from_ps(1_272_001));
    let edge = tier(rate, delay);
    check_completion(Topology::dumbbell(1, 1, &edge, &edge), 1, 3, rate, delay);
}

#[test]
fn store_and_forward_completion_is_exact_across_a_fat_tree() {
    let (rate, delay) = (Rate::from_gbps(40), Span::from_ns(500));
    let tier = tier(rate, delay);
    let tree = Topology::fat_tree(4, 2, &tier, &tier, &tier).expect("fat tree");
    check_completion(tree, 15, 6, rate, delay);
}

/// Stores the fabric's events in order.
#[derive(Default)]
struct Events(BinaryHeap<Reverse<(Time, u32, u8)>>);

impl Schedule for Events {
    fn at(&mut self, event: FabricEvent, time: Time) {
        let (port, kind) = match event {
            FabricEvent::Arrival(port) => (port, 0),
            FabricEvent::Service(port) => (port, 1),
            FabricEvent::Wake(port) => (port, 2),
            FabricEvent::Held(port) => (port, 3),
            FabricEvent::Mail(port) => (port, 4),
        };
        self.0.push(Reverse((time, port.get(), kind)));
    }
}

impl Events {
    fn pop_before(&mut self, limit: Time) -> Option<(Time, FabricEvent)> {
        let Reverse((time, port, kind)) = *self.0.peek()?;
        if time >= limit {
            return None;
        }
        self.0.pop();
        let port = apus_units::PortId::new(port);
        let event = match kind {
            0 => FabricEvent::Arrival(port),
            1 => FabricEvent::Service(port),
            2 => FabricEvent::Wake(port),
            3 => FabricEvent::Held(port),
            _ => FabricEvent::Mail(port),
        };
        Some((time, event))
    }
}

/// Draws a uniform number with SplitMix64.
fn uniform(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

struct Queueing {
    /// Mean time from arrival at the port to departure, in service times.
    mean_time: f64,
    /// Time average of the packets in the port, sampled at random instants.
    mean_packets: f64,
    /// Arrivals per service time.
    load: f64,
}

/// Simulates Poisson arrivals of packets of one size at a port: an M/D/1 queue. The port is a host's NIC. The
/// times in the port come from the deliveries of packets, not from the port's own counters.
fn m_d_1(load: f64, packets: u32, kind: PortKind) -> Queueing {
    let (rate, delay) = (Rate::from_gbps(10), Span::from_us(1));
    let service = rate.serialization_time(Bytes::new(1250));
    let topology = Topology::star(2, &Tier::hosts(rate, delay, Bytes::MAX));
    let mut network: Network<Time> = topology.build_at_least(1, kind).expect("star");
    let (from, to) = (HostId::new(0), HostId::new(1));
    let route = network.route(from, to, 0, 0).expect("route");
    let port = network.host_port(from);
    let unqueued = service * 2 + delay * 2;
    let (mut events, mut random, mut now) = (Events::default(), 42, Time::ZERO);
    let mut next_look = Time::ZERO;
    let (mut time_sum, mut delivered, mut seen, mut looks) = (0.0, 0u64, 0u64, 0u64);
    for _ in 0..packets {
        let gap = -(1.0 - uniform(&mut random)).ln() / load;
        now += service.mul_f64(gap);
        loop {
            // Sampling times are also Poisson and independent of arrivals, so samples see time averages.
            let limit = now.min(next_look);
            while let Some((at, event)) = events.pop_before(limit) {
                if let Outcome::Delivered { packet, .. } = network.handle(at, event, &mut events) {
                    let sent = network.take(packet).payload;
                    // The second link is never busier than the first one, so all queueing is at the first one.
                    time_sum += at.since(sent).as_ps_f64() - unqueued.as_ps_f64();
                    delivered += 1;
                }
            }
            if next_look > now {
                break;
            }
            seen += network.port_counters(port, next_look).queued.packets;
            looks += 1;
            next_look += service.mul_f64(-(1.0 - uniform(&mut random)).ln() * 2.0);
        }
        let packet = Packet {
            wire_bytes: 1250,
            route,
            hop: 0,
            way: Way::FORWARD,
            ttl: 64,
            class: ClassId::new(0),
            congestion: apus_cc::CongestionHeader::default(),
            src: from,
            dst: to,
            payload: now,
        };
        network.send(now, from, packet, &mut events);
    }
    Queueing {
        mean_time: time_sum / delivered as f64 / service.as_ps_f64() + 1.0,
        mean_packets: seen as f64 / looks as f64,
        load: f64::from(packets) * service.as_ps_f64() / now.as_ps() as f64,
    }
}

/// Pollaczek-Khinchine for deterministic service: mean wait = rho / (2 (1 - rho)) service times.
#[test]
fn m_d_1_waiting_times_follow_pollaczek_khinchine() {
    for kind in [PortKind::Fifo, PortKind::Lazy, PortKind::Event] {
        for (load, tolerance) in [(0.3, 0.02), (0.6, 0.02), (0.9, 0.06)] {
            let queueing = m_d_1(load, 1_000_000, kind);
            let expected = load / (2.0 * (1.0 - load));
            let wait = queueing.mean_time - 1.0;
            assert!((wait / expected - 1.0).abs() < tolerance, "load {load}: {wait}, {expected}");
        }
    }
}

/// L = lambda W, with both sides measured independently.
#[test]
fn littles_law_holds_at_a_port() {
    let queueing = m_d_1(0.8, 1_000_000, PortKind::Fifo);
    let expected = queueing.load * queueing.mean_time;
    assert!((queueing.mean_packets / expected - 1.0).abs() < 0.02, "{}", queueing.mean_packets);
}

/// Three flows into host 3 and one from host 2 to host 4: max-min fairness gives 1/3 each to the first three,
/// and 2/3 to the last one, which the link of host 2 limits.
#[test]
fn swift_reaches_max_min_shares_on_a_star() {
    let swift = ("swift", &[("max_cwnd", "100")][..]);
    let pairs = [(0, 3), (1, 3), (2, 3), (2, 4)];
    let connections = pairs.map(|(from, to)| {
        let mut connection = connection(swift, from, to, 64_000);
        crate::support::set_outstanding(&mut connection, 4);
        connection
    });
    let topology = Topology::star(5, &tier(Rate::from_gbps(40), Span::from_us(3)));
    let mut plan = plan(topology, connections.to_vec(), Span::from_ms(60));
    plan.warmup = Span::from_ms(20);
    plan.sample_interval = Some(Span::from_ms(5));
    plan.fair_share_after = Some(Span::from_ms(10));
    let shares = max_min_shares(
        &[1.0; 5],
        // links: 0-2 are the uplinks of hosts 0-2, 3 and 4 the downlinks of hosts 3 and 4
        &[vec![0, 3], vec![1, 3], vec![2, 3], vec![2, 4]],
    );
    assert!((shares[3] - 2.0 / 3.0).abs() < 1e-12);
    let deviation = run(&plan).fair_share_deviation.expect("sampled");
    assert!(deviation < 0.1, "worst deviation from the max-min share: {deviation}");
}

/// With all rates times ten and all times divided by ten, the packets are the same and ten times as fast.
#[test]
fn time_scaling_leaves_everything_but_time_unchanged() {
    let scaled = |factor: u64| {
        let times =
            [("base_target", 250), ("hop_scale", 10), ("fs_range", 500), ("endpoint_target", 1000)];
        let rto = [("min_rto", 10_000), ("initial_rto", 10_000)];
        let text: Vec<(&str, String)> = times
            .iter()
            .chain(&rto)
            .map(|(name, tenths)| (*name, Span::from_ns(tenths * 100 / factor).to_string()))
            .collect();
        let settings: Vec<(&str, &str)> = text.iter().map(|(n, v)| (*n, v.as_str())).collect();
        let connections =
            (0..4).map(|from| connection(("swift", &settings), from, 4, 64_000)).collect();
        let rate = Rate::from_gbps(10 * factor);
        let topology = Topology::star(5, &tier(rate, Span::from_ns(4_000 / factor)));
        run(&plan(topology, connections, Span::from_us(20_000 / factor)))
    };
    let (slow, fast) = (scaled(1), scaled(10));
    let (slow_packets, fast_packets) =
        (slow.measured.data_packets_sent as f64, fast.measured.data_packets_sent as f64);
    assert!((fast_packets / slow_packets - 1.0).abs() < 1e-3, "{slow_packets} {fast_packets}");
    let (slow_rtt, fast_rtt) = (slow.fabric_rtt_us.mean.unwrap(), fast.fabric_rtt_us.mean.unwrap());
    assert!((10.0 * fast_rtt / slow_rtt - 1.0).abs() < 1e-3, "{slow_rtt} {fast_rtt}");
    assert!((fast.throughput_gbps / slow.throughput_gbps / 10.0 - 1.0).abs() < 1e-3);
}
