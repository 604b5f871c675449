//! The content of a recorded run.

use crate::support::{Plan, Simulation, Topology};
use std::sync::Arc;

use crate::support::{connection, plan, tier};
use apus_sim::host_model::HostModel;
use apus_sim::record::{Around, Passed, Quantity, Record, Recording, Trace};
use apus_sim::summary::Summary;
use apus_units::{Rate, Span, Time};

fn recorded(plan: &Plan, record: Record) -> (Summary, Arc<Recording>) {
    let simulation = Simulation::new(plan).expect("plan").record(record).expect("record");
    let summary = simulation.run("test", &mut |_| {}).expect("run");
    let recording = summary.recording.clone().expect("recorded");
    (summary, recording)
}

/// Three hosts on 8 Gb/s links (1 B/ns) of 1 us; one flow of ops of 10 packets with a window of
/// one packet.
fn one_flow() -> Plan {
    let star = Topology::star(3, &tier(Rate::from_gbps(8), Span::from_us(1)));
    let connection = connection(("constant", &[("window", "1")]), 0, 2, 10_000);
    plan(star, vec![connection], Span::from_us(1000))
}

/// A packet is 1064 B and takes 1.064 us on each of two links, its ACK 0.084 us. With 4 us of propagation a
/// round trip is 6.296 us, and an op of 10 packets in sequence takes 62.96 us. The ideal is a round trip and
/// 10.64 us: 16.936 us, a slowdown of 3.7175.
#[test]
fn ops_by_hand() {
    let plan = one_flow();
    let (summary, recording) = recorded(&plan, Record::of_duration(plan.duration));
    assert_eq!(recording.ops.len() as u64, summary.measured.ops);
    assert_eq!(recording.ops.len(), 15); // 1000 / 62.96
    for (number, op) in recording.ops.iter().enumerate() {
        assert_eq!(op.latency(), Span::from_ps(62_960_000));
        assert_eq!((op.flow, op.op, op.size), (0, number as u64, 10_000));
        let slowdown = recording.slowdown(op);
        assert!((slowdown - 62.96 / 16.936).abs() < 1e-9, "{slowdown}");
    }
    let flow = &recording.flows[0];
    assert_eq!(flow.ideal.base_rtt, Span::from_ps(6_296_000));
    assert_eq!(flow.rtt.max, Span::from_ps(6_296_000));
    assert_eq!(flow.rtt.sum_ps, flow.rtt.count * 6_296_000);
    assert_eq!(flow.counters.packets_sent, 159); // one per 6.296 us, the first at 0
}

#[test]
fn samples_add_up_to_what_was_delivered() {
    let mut plan = one_flow();
    plan.drain = plan.duration;
    let record = Record { interval: Span::from_us(50), ..Record::of_duration(plan.duration) };
    let (summary, recording) = recorded(&plan, record);
    assert_eq!(recording.times.len(), 20);
    assert_eq!(recording.sampled_flows, [0]);
    let of_flow = |quantity| recording.samples.iter().map(move |s| s[0].get(quantity));
    let mean = of_flow(Quantity::Goodput).sum::<f64>() / 20.0;
    assert!((mean - summary.goodput_gbps).abs() < 1e-9, "{mean} {}", summary.goodput_gbps);
    assert!(of_flow(Quantity::Cwnd).all(|window| window == 1.0));
    assert!(of_flow(Quantity::FabricCwnd).all(f64::is_nan));
    let busiest = recording.sampled_ports[0];
    assert_eq!(recording.port_name(busiest), summary.busiest_port.name);
    let sent: u64 = recording.port_samples.iter().map(|s| s[0].sent_bytes).sum();
    assert_eq!(sent, recording.ports[busiest.index()].sent_bytes);
    assert!(recording.notes.is_empty(), "{:?}", recording.notes);
}

/// The credits of two receivers meet at the port to their sender, which drops what exceeds their share of the link.
#[test]
fn dropped_credits_are_no_drops_in_samples() {
    let star = Topology::star(3, &tier(Rate::from_gbps(8), Span::from_us(1)));
    let flow = |to| connection(("expresspass", &[]), 0, to, 1_000_000);
    let plan = plan(star, vec![flow(1), flow(2)], Span::from_us(1000));
    let (summary, recording) = recorded(&plan, Record::of_duration(plan.duration));
    assert!(summary.losses.causes.credit_limit > 0);
    assert_eq!(summary.losses.packets, summary.losses.causes.credit_limit);
    assert!(recording.ports.iter().all(|port| port.drops == 0));
    assert!(recording.port_samples.iter().flatten().all(|sample| sample.drops == 0));
    let over_time = &recording.network;
    let cells = over_time.group_cells.iter().chain(&over_time.link_cells).flatten();
    assert!(cells.map(|cell| cell.drops).all(|drops| drops == 0));
}

#[test]
fn what_does_not_fit_is_left_out_and_said() {
    let mut plan = one_flow();
    plan.connections.push(connection(("swift", &[]), 1, 2, 5_000));
    let record = Record { ops: 4, flows: 1, ports: 1, ..Record::of_duration(plan.duration) };
    let (summary, recording) = recorded(&plan, record);
    assert_eq!(recording.ops.len(), 4);
    assert_eq!(recording.ops_seen, summary.measured.ops);
    assert!(recording.ops.is_sorted_by_key(|op| op.completed));
    assert_eq!(recording.sampled_flows, [0]);
    assert_eq!(recording.sampled_ports.len(), 1);
    let notes = recording.notes.join("\n");
    let ops = format!("the first 4 of the {} ops", summary.measured.ops);
    for note in [ops.as_str(), "1 of the 2 flows", "the 1 ports of 3"] {
        assert!(notes.contains(note), "{note}: {notes}");
    }
    assert!(recording.bands.iter().all(|band| band[Quantity::Cwnd as usize].flows == 2));
}

/// The warm-up counts in the samples, but not in the totals.
#[test]
fn totals_are_of_the_measured_phase() {
    let mut plan = one_flow();
    plan.warmup = Span::from_us(500);
    let (summary, recording) = recorded(&plan, Record::of_duration(plan.duration));
    let delivered = recording.flows[0].delivered as f64 * 8e-9 / 500e-6;
    assert!((delivered - summary.goodput_gbps).abs() < 1e-9);
    assert_eq!(recording.flows[0].counters.packets_sent, summary.measured.data_packets_sent);
    assert_eq!(recording.ops.len() as u64, summary.measured.ops + summary.startup.ops);
    let goodput = recording.samples.iter().map(|s| s[0].get(Quantity::Goodput));
    assert!(goodput.sum::<f64>() / 200.0 > 0.99 * summary.goodput_gbps);
}

/// The port to the receiver and the NIC of the sender send 1064 B per 6.296 us; the groups of ports have their sums.
#[test]
fn groups_of_links_have_the_bytes_of_their_ports() {
    let plan = one_flow();
    let (_, recording) = recorded(&plan, Record::of_duration(plan.duration));
    let network = &recording.network;
    assert_eq!(network.groups.len(), 2, "hosts to the switch, and back: {:?}", network.groups);
    let seconds = plan.duration.as_secs_f64() / network.times.len() as f64;
    for (index, group) in network.groups.iter().enumerate() {
        assert_eq!((group.ports, group.rate_gbps), (3, 24.0));
        let cells = network.group_cells.iter().map(|cells| cells[index]);
        let sent: f64 =
            cells.clone().map(|cell| f64::from(cell.utilisation) * 24e9 / 8.0 * seconds).sum();
        let own = recording
            .ports
            .iter()
            .filter(|port| network.group_of[port.port.index()] == index as u32);
        let expected = own.map(|port| port.sent_bytes).sum::<u64>() as f64;
        assert!((sent / expected - 1.0).abs() < 1e-4, "{sent} {expected}");
        // One link of three is used: the busiest link has three times the mean, less the acknowledgements on
        // another link.
        let busiest = cells.map(|cell| cell.busiest).fold(0.0, f32::max);
        assert!((0.1..0.5).contains(&busiest), "{busiest}");
    }
    // The links that are kept individually are those of the switch.
    assert_eq!((network.links.len(), network.candidates), (3, 3));
}

/// Samples begin with the load: the first interval is as long as the others, and as busy.
#[test]
fn the_first_interval_of_links_begins_with_the_load() {
    let mut plan = one_flow();
    plan.connections[0].start = Time::ZERO + Span::from_us(500);
    let (_, recording) = recorded(&plan, Record::of_duration(plan.duration));
    let cells = &recording.network.group_cells;
    let busiest = |at: usize| cells[at].iter().map(|cell| cell.busiest).fold(0.0, f32::max);
    let (first, last) = (busiest(0), busiest(cells.len() - 1));
    assert!(first > 0.5 * last && last > 0.0, "{first} {last}");
    // The cells match those of the links that are kept individually.
    let links = &recording.network.link_cells;
    let busiest = |at: usize| links.iter().map(|cells| cells[at].busiest).fold(0.0, f32::max);
    let (first, last) = (busiest(0), busiest(cells.len() - 1));
    assert!(first > 0.5 * last && last > 0.0, "{first} {last}");
}

/// Around the first 100 us: a packet every 6.296 us is at the switch after 2.064 us and at the receiver after
/// 4.128 us, so there are 16 packets at each of the two ports. Acknowledgements of 64 B and 20 B of overhead
/// are at the switch after 5.212 us and back after 6.296 us: 16 and 15. Each packet leaves 1 us, the delay of
/// its link, before it arrives.
#[test]
fn around_an_op_all_packets_at_the_ports_of_its_path_are_kept() {
    let plan = one_flow();
    let us = |us| Time::ZERO + Span::from_us(us);
    let around = Around { connection: 0, from: us(0), until: us(100), ports: true };
    let trace = Trace { events: 1000, around: vec![around], ..Trace::default() };
    let record = Record { ops: 0, flows: 0, ports: 0, ..Record::of_duration(plan.duration) };
    let simulation = Simulation::new(&plan).expect("plan").record(record).expect("record");
    let simulation = simulation.trace(&trace).expect("trace");
    let summary = simulation.run("test", &mut |_| {}).expect("run");
    let plain = Simulation::new(&plan).expect("plan").run("test", &mut |_| {}).expect("run");
    assert_eq!(
        summary.work.event_hash, plain.work.event_hash,
        "the events are those of a plain run"
    );
    let recording = summary.recording.expect("recorded");
    let passed = &recording.traced.passed;
    let data = |one: &&Passed| one.is_data;
    assert_eq!(passed.packets.iter().filter(data).count(), 32);
    assert_eq!((passed.packets.len(), passed.seen), (63, 63));
    for packet in &passed.packets {
        let bytes = if packet.is_data { 1064 } else { 84 };
        assert_eq!((packet.connection, packet.wire_bytes), (Some(0), bytes));
        assert_eq!(packet.arrives.since(packet.left), Span::from_us(1));
    }
    let first: Vec<u64> = passed.packets.iter().take(2).map(|packet| packet.left.as_ps()).collect();
    assert_eq!(first, [1_064_000, 3_128_000]);
    // The events of the flow are also kept only for that time.
    let events = &recording.traced.events;
    assert!(!events.is_empty() && events.iter().all(|event| event.at <= us(100)));
    // The samples of the flow are those of the whole run.
    assert_eq!(recording.sampled_flows, [0]);
    assert!(!recording.times.is_empty() && recording.samples.len() == recording.times.len());
    // Without the ports, only the events are kept.
    let trace =
        Trace { around: vec![Around { ports: false, ..around }], events: 1000, ..Trace::default() };
    let simulation = Simulation::new(&plan).expect("plan").record(record).expect("record");
    let simulation = simulation.trace(&trace).expect("trace");
    let again = simulation.run("test", &mut |_| {}).expect("run").recording.expect("recorded");
    assert_eq!((again.traced.passed.packets.len(), again.traced.events.len()), (0, events.len()));
}

/// A host with two threads: one sends while the other processes a batch, whose packets take effect during its time.
#[test]
fn events_of_a_flow_are_in_order_of_time_without_a_shared_engine() {
    let star = Topology::star(2, &tier(Rate::from_gbps(100), Span::from_us(1)));
    let flow = connection(("constant", &[("window", "32")]), 0, 1, 1_000_000);
    let mut plan = plan(star, vec![flow], Span::from_us(500));
    plan.host = HostModel::preset("t1").expect("preset");
    plan.host.engine.as_mut().expect("engine").shared = false;
    let trace = Trace { flows: 1, events: 10_000, ..Trace::default() };
    let simulation = Simulation::new(&plan).expect("plan");
    let simulation = simulation.record(Record::of_duration(plan.duration)).expect("record");
    let summary = simulation.trace(&trace).expect("trace").run("test", &mut |_| {}).expect("run");
    let events = &summary.recording.expect("recorded").traced.events;
    assert!(events.len() > 100, "{}", events.len());
    assert!(events.is_sorted_by_key(|event| event.at));
}
