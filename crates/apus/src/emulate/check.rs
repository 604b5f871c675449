//! Finds properties of a run that cannot be emulated, and properties that an emulation leaves out.

use apus_scenario::{ClassConfig, ConnectionPlan, Plan};
use std::collections::BTreeMap;

use apus_cc::{AlgorithmFactory, SwitchFeedback, SwitchHalf};
use apus_fabric::{Buffer, Node as FabricNode};
use apus_sim::plan::{FINE_TIMERS_LOG2_PS, Load, OpType};
use apus_transport::EndpointConfig;
use apus_udp::Config;
use apus_units::{Bytes, Span};

use super::network;
use super::traffic::largest_op;

/// deviation: no source. Up to this limit the delay of a link is small compared with the time that a kernel takes to
/// forward a packet (about 10 us), and the emulation leaves it to the kernel; netem adds longer delays.
pub(super) const SHORT_DELAY: Span = Span::from_us(20);
/// deviation: measured, one core forwards about 10 Gb/s through HTB.
const FASTEST_PORT: u64 = 10_000_000_000;
/// deviation: no source; the list of ops is sent to the hosts' processes before the start.
const MOST_OPS: usize = 1_000_000;
/// Same limit as `max_flows` of a host.
const MOST_FLOWS: usize = 1024;
/// Maximum number of nodes. Each node is a namespace, and most have a process.
const MOST_NODES: u32 = 256;
/// Smaller costs per packet are below the cost of a system call, so the machine's own cost stands for them.
pub(super) const SLOW_RECEIVER: Span = Span::from_us(10);

/// Returns the properties of the scenario that the network of namespaces leaves out, in sentences.
pub fn left_out(plan: &Plan) -> Vec<String> {
    let mut notes = Vec::new();
    let delay = plan.topology.links.iter().map(|link| link.delay).max().unwrap_or_default();
    notes.push(if delay > SHORT_DELAY {
        format!("links: netem adds delays of more than {SHORT_DELAY} to the time that the kernel takes")
    } else {
        format!(
            "links: {delay} in the simulator; in the network of namespaces, only the time that the kernel \
             takes"
        )
    });
    if plan.connections.iter().any(|c| matches!(c.load, Load::Open(_))) {
        notes.push(
            "open loads: ops arrive at the simulator's times, but a thread has to be woken for each, \
             which takes about 100 us and counts in their latency; in the drain, only the simulator's \
             load continues"
                .to_owned(),
        );
    }
    notes.push(
        "hosts' NICs: those of the simulator send at the rate of their link, a veth as fast as the core; \
         only switch ports have queues"
            .to_owned(),
    );
    notes.push(
        "drops: the network counts packets that a sender gave to its kernel in one call, up to 64 kB, as one".to_owned(),
    );
    notes.push(format!(
        "headers: the simulator adds {} B to a packet of {} B, the network at most {} B of IP, UDP, \
         transport and encryption, and 14 B of Ethernet",
        plan.sizes.header,
        plan.sizes.payload,
        Config::mtu_for(0)
    ));
    if let Some(costs) = plan.host.engine {
        notes.push(if costs.receive_packet >= SLOW_RECEIVER {
            format!(
                "hosts: those that only receive spend {} on each packet, as in the scenario; all \
                 other costs are those of the machine",
                costs.receive_packet
            )
        } else {
            "hosts: the costs of the scenario are a model; the machine has its own".to_owned()
        });
    }
    notes
}

/// Records the properties of the fabric that cannot be emulated.
pub(super) fn check_fabric(plan: &Plan, problems: &mut Vec<String>) {
    let topology = &plan.topology;
    let nodes = topology.hosts + topology.switches.len() as u32;
    let mut not = |what: String| problems.push(what);
    if nodes > MOST_NODES {
        not(format!("topology: has {nodes} nodes; at most {MOST_NODES} can be emulated"));
    }
    let mut ports = vec![0; topology.hosts as usize];
    for end in topology.links.iter().flat_map(|link| [link.a, link.b]) {
        if let FabricNode::Host(host) = end {
            ports[host.index()] += 1;
        }
    }
    if ports.into_iter().any(|ports| ports > 1) {
        not("topology: has hosts with several ports; only hosts with one port can be emulated"
            .to_owned());
    }
    if let Some(slow) = topology.links.iter().map(|l| l.delay).find(|&d| d > SHORT_DELAY)
        && let Err(why) = network::can_delay()
    {
        not(format!(
            "topology.delay: links may take at most {SHORT_DELAY}, not {slow}, because this kernel \
             has no netem (CONFIG_NET_SCH_NETEM), which delays packets: {why}"
        ));
    }
    if topology.switches.iter().any(|s| s.pipeline_latency > SHORT_DELAY) {
        not(format!(
            "topology.pipeline_latency: must be at most {SHORT_DELAY}; use `delay` instead"
        ));
    }
    let ports = || topology.links.iter().flat_map(|link| [(link.a, &link.ab), (link.b, &link.ba)]);
    let switch_ports = || ports().filter(|(node, _)| matches!(node, FabricNode::Switch(_)));
    if let Some((_, port)) = switch_ports().find(|(_, port)| port.rate.as_bps() > FASTEST_PORT) {
        not(format!(
            "topology.rate: a core forwards some 10 Gb/s, which is the most that can be emulated, \
             not {}",
            port.rate
        ));
    }
    if switch_ports().any(|(_, port)| matches!(port.buffer, Buffer::Shared { .. })) {
        not("topology.shared: a qdisc has a buffer of its own; give `buffer` instead".to_owned());
    }
    if plan.credits.is_some() {
        not("algorithm: is credit-based, and no qdisc limits credits".to_owned());
    } else if switch_ports().any(|(_, port)| port.classes.len() > 1) {
        not("topology.class: only one traffic class can be emulated".to_owned());
    }
    if switch_ports().any(|(_, port)| {
        port.classes.iter().any(|c| c.algorithm.feedback() != SwitchFeedback::Nothing)
    }) {
        not("algorithm: needs switches that mark, stamp or signal (topology.ecn, bolt, hpcc), \
             which HTB does not"
            .to_owned());
    }
    if plan.pfc.is_some() {
        not("topology.pfc: no qdisc pauses".to_owned());
    }
    let limited = |c: &ClassConfig| {
        c.limit != Bytes::MAX || c.limit_packets != u32::MAX || c.rate_limit.is_some()
    };
    if switch_ports().any(|(_, port)| port.classes.iter().any(limited)) {
        not("topology.class: limits of classes cannot be emulated; give the port a `buffer`"
            .to_owned());
    }
    if !plan.faults.is_empty() {
        not("fault: links cannot be made to fail, lose or reorder".to_owned());
    }
}

/// Records the properties of the traffic that cannot be emulated.
pub(super) fn check_traffic(plan: &Plan, problems: &mut Vec<String>) {
    let any = |is: fn(&ConnectionPlan) -> bool| plan.connections.iter().any(is);
    let mut not = |wrong: bool, what: &str| {
        if wrong {
            problems.push(what.to_owned());
        }
    };
    not(
        any(|c| matches!(c.load, Load::Round { .. })),
        "workload.kind: rounds of requests and answers (partition-aggregate) cannot be emulated; \
         loops and open loads can",
    );
    not(
        any(|c| matches!(c.load, Load::Job { .. })),
        "workload.kind: jobs cannot be emulated; loops and open loads can",
    );
    not(any(|c| c.service.is_some()), "workload.service: the engine answers reads from memory");
    not(
        any(|c| c.handshake),
        "workload.handshake: connections are set up before the load; remove it",
    );
    not(
        any(|c| c.algorithm.reads_receiver_level()),
        "algorithm.profile: reads how full the receiver's NIC is, which the kernel does not tell",
    );
    not(any(|c| c.reroute.is_some()), "workload.flow.reroute: paths cannot change");
    let describe = |c: &ConnectionPlan| (c.algorithm.info().name, c.algorithm.effective());
    let first = plan.connections.first().map(describe);
    not(
        plan.connections.iter().any(|c| Some(describe(c)) != first),
        "algorithm: only one at a time can be emulated; remove the others",
    );
    not(any(|c| largest_op(c) > 1 << 30), "workload.size: at most 1GB can be emulated");
    not(
        any(|c| c.kind == OpType::Message && largest_op(c) > 1 << 20),
        "workload.size: a message has at most 1 MiB; use op = \"write\"",
    );
    not(
        plan.streamed.is_some(),
        "workload.stream: the processes get all ops before the start; remove it",
    );
    let ops = plan.connections.iter().map(|c| match &c.load {
        Load::Open(arrivals) => arrivals.len(),
        Load::Closed { .. } | Load::Round { .. } | Load::Job { .. } => 0,
    });
    not(
        ops.sum::<usize>() > MOST_OPS,
        "workload: has more than a million ops of open loads; shorten `duration`",
    );
    let mut pairs: BTreeMap<_, usize> = BTreeMap::new();
    for connection in &plan.connections {
        *pairs.entry((connection.from, connection.to)).or_default() += 1;
    }
    not(
        pairs.into_values().max().unwrap_or(0) > MOST_FLOWS,
        "workload.flows: a pair of hosts has more than 1024 flows; use flows = \"per-pair\"",
    );
    let slow = plan.host.engine.is_some_and(|costs| costs.receive_packet >= SLOW_RECEIVER);
    let sends = |host| plan.connections.iter().any(|c| c.from == host);
    let both = |c: &ConnectionPlan| sends(c.to) || c.kind == OpType::Read;
    if slow && plan.connections.iter().any(both) {
        problems.push(format!(
            "host.engine.receive_packet: from {SLOW_RECEIVER} on only for hosts that do nothing but \
             receive writes or messages"
        ));
    }
}

/// Records transport settings of the scenario that are fixed in our engine.
pub(super) fn check_transport(plan: &Plan, problems: &mut Vec<String>) {
    let (asked, engine) = (&plan.endpoint, EndpointConfig::default());
    let mut not = |differs: bool, key: &str| {
        if differs {
            problems.push(format!("transport.{key}: the real engine has its default; remove it"));
        }
    };
    not(asked.recovery != engine.recovery, "recovery");
    not(asked.reorder_threshold != engine.reorder_threshold, "reorder_threshold");
    not(asked.local_rx_delay != engine.local_rx_delay, "local_rx_delay");
    not(asked.give_up_after != engine.give_up_after, "give_up_after");
    // Some algorithms have a finer default in the simulator; a scenario that uses the default does not set a value.
    let granularity = asked.timer_granularity_log2_ps;
    let fine = plan.connections.iter().any(|c| c.algorithm.fine_timers());
    let is_default = granularity == engine.timer_granularity_log2_ps
        || fine && granularity == FINE_TIMERS_LOG2_PS;
    not(!is_default, "timer_granularity");
}
