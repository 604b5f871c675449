//! From a run of a scenario to a network of namespaces, or what of it cannot be emulated.

use std::collections::BTreeMap;

use apus_cc::Given;
use apus_fabric::{Buffer, ClassConfig, LinkSpec, Node as FabricNode, PortConfig, Topology};
use apus_sim::plan::{ConnectionPlan, Load, Plan};
use apus_sim::scenario::Setup;
use apus_transport::{EndpointConfig, OpKind};
use apus_udp::Config;
use apus_units::{Bytes, Span, Time};

use super::network;
use super::spec::{AgentSpec, FlowSpec, Link, LoadSpec, Node, OpName, Port, Route, Spec, Stack};

/// deviation: no source; up to it a link's delay is small against what a kernel takes to forward a packet
/// (some 10 us), which stands for it; netem adds longer ones.
const SHORT_DELAY: Span = Span::from_us(20);
/// deviation: measured, one core forwards some 10 Gb/s through HTB.
const FASTEST_PORT: u64 = 10_000_000_000;
/// deviation: no source; the list of them goes to the hosts' processes before the start.
const MOST_OPS: usize = 1_000_000;
/// As `max_flows` of a host.
const MOST_FLOWS: usize = 1024;
/// Most nodes: each is a namespace, most with a process.
const MOST_NODES: u32 = 256;
/// Costs per packet below this are less than what a system call takes: the machine's own count.
const SLOW_RECEIVER: Span = Span::from_us(10);

/// The network of a run, for our engine.
///
/// # Errors
/// Each thing that cannot be emulated, by its key.
pub fn spec(setup: &Setup, plan: &Plan, key: &str) -> Result<Spec, Vec<String>> {
    let mut problems = Vec::new();
    check_fabric(plan, &mut problems);
    check_traffic(plan, &mut problems);
    check_transport(plan, &mut problems);
    let routes = routes(&plan.topology, &mut problems);
    let Some(algorithm) = plan.connections.first().map(|c| &c.algorithm) else {
        problems.push("workload: opens no connection".to_owned());
        return Err(problems);
    };
    if !problems.is_empty() {
        return Err(problems);
    }
    let settings = algorithm.effective();
    let algorithm = (
        algorithm.info().name.to_owned(),
        algorithm.profile().to_owned(),
        settings.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
    );
    let mtu = Config::mtu_for(plan.sizes.payload);
    let largest = plan.connections.iter().map(largest_op).max().unwrap_or(0);
    let slow = plan.host.engine.map_or(Span::ZERO, |costs| costs.receive_packet);
    let agents = (0..plan.topology.hosts).map(|host| {
        let flows: Vec<FlowSpec> = flows(plan, host);
        // A host that sends as well needs its thread for that.
        let slow = slow >= SLOW_RECEIVER && flows.is_empty();
        let cost =
            plan.host.engine.filter(|_| slow).map_or(0, |c| c.receive_packet.as_ps() / 1_000);
        AgentSpec {
            host,
            cores: Vec::new(),
            tcp: None,
            key: key.to_owned(),
            algorithm: algorithm.clone(),
            mtu,
            line_rate: line_rate(&plan.topology, host),
            max_ops: plan.endpoint.max_ops,
            largest_op: largest,
            receive_packet_ns: cost,
            flows,
            warmup_ns: plan.warmup.as_ps() / 1_000,
            duration_ns: plan.duration.as_ps() / 1_000,
        }
    });
    Ok(Spec {
        name: setup.name().to_owned(),
        stack: Stack::Apus,
        hosts: plan.topology.hosts,
        switches: plan.topology.switches.len() as u32,
        links: plan.topology.links.iter().map(|l| link(&plan.topology, l)).collect(),
        routes,
        mtu,
        agents: agents.collect(),
    })
}

/// The same network with the kernel's TCP in place of our engine.
///
/// # Errors
/// If the traffic is nothing that a byte stream does.
pub fn with_tcp(spec: &Spec, congestion_control: &str) -> Result<Spec, String> {
    let mut spec = spec.clone();
    spec.stack = Stack::Tcp(congestion_control.to_owned());
    for agent in &mut spec.agents {
        if agent.flows.iter().any(|flow| flow.op == OpName::Read) {
            let what = "--tcp: a byte stream has no reads; use op = \"write\" or \"message\"";
            return Err(what.to_owned());
        }
        agent.tcp = Some(congestion_control.to_owned());
    }
    Ok(spec)
}

/// What of the scenario the network of namespaces leaves out, in sentences.
pub fn left_out(plan: &Plan) -> Vec<String> {
    let mut notes = Vec::new();
    let delay = plan.topology.links.iter().map(|link| link.delay).max().unwrap_or_default();
    notes.push(if delay > SHORT_DELAY {
        format!("links: those that take more than {SHORT_DELAY} have netem; the kernel's own time comes on top")
    } else {
        format!(
            "links: the simulator's take {delay}, those of the network of namespaces what the kernel \
             takes"
        )
    });
    if plan.connections.iter().any(|c| matches!(c.load, Load::Open(_))) {
        notes.push(
            "open loads: ops come at the simulator's times, but a thread has to be woken for each, \
             which takes some 100 us and counts in their latency"
                .to_owned(),
        );
    }
    notes.push(
        "hosts' NICs: the simulator's send at the rate of their link, a veth as fast as the core; \
         queues are at the switches' ports alone"
            .to_owned(),
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
                "hosts: those that only receive spend {} on each packet, as the scenario says; all \
                 other costs are the machine's own",
                costs.receive_packet
            )
        } else {
            "hosts: the scenario's costs are a model, the machine has its own".to_owned()
        });
    }
    notes
}

fn check_fabric(plan: &Plan, problems: &mut Vec<String>) {
    let topology = &plan.topology;
    let nodes = topology.hosts + topology.switches.len() as u32;
    let mut not = |what: String| problems.push(what);
    if nodes > MOST_NODES {
        not(format!("topology: has {nodes} nodes; at most {MOST_NODES} can be emulated"));
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
        not("algorithm: lives on credits, which no qdisc limits".to_owned());
    } else if switch_ports().any(|(_, port)| port.classes.len() > 1) {
        not("topology.class: only one traffic class can be emulated".to_owned());
    }
    if switch_ports()
        .any(|(_, port)| port.classes.iter().any(|c| c.algorithm.gives() != Given::Nothing))
    {
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

fn check_traffic(plan: &Plan, problems: &mut Vec<String>) {
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
    not(any(|c| c.service.is_some()), "workload.service: the engine answers reads from memory");
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
        any(|c| c.kind == OpKind::Message && largest_op(c) > 1 << 20),
        "workload.size: a message has at most 1 MiB; use op = \"write\"",
    );
    let ops = plan.connections.iter().map(|c| match &c.load {
        Load::Open(arrivals) => arrivals.len(),
        Load::Closed { .. } | Load::Round { .. } => 0,
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
    let both = |c: &ConnectionPlan| sends(c.to) || matches!(c.kind, OpKind::Read { .. });
    if slow && plan.connections.iter().any(both) {
        problems.push(format!(
            "host.engine.receive_packet: from {SLOW_RECEIVER} on only for hosts that do nothing but \
             receive writes or messages"
        ));
    }
}

/// What the scenario sets of the transport and our engine has fixed.
fn check_transport(plan: &Plan, problems: &mut Vec<String>) {
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
}

/// The payload of a connection's largest op.
fn largest_op(connection: &ConnectionPlan) -> u64 {
    load(connection).map_or(0, |load| load.largest())
}

/// Times are from the start.
fn ns(time: Time) -> u64 {
    time.since(Time::ZERO).as_ps() / 1_000
}

/// What a connection submits, if that can be emulated.
fn load(connection: &ConnectionPlan) -> Option<LoadSpec> {
    match &connection.load {
        Load::Closed { size, outstanding } => {
            Some(LoadSpec::Closed { size: size.get(), outstanding: *outstanding })
        }
        Load::Open(arrivals) => {
            let ops = arrivals.iter().map(|op| (ns(op.at), op.size.get()));
            Some(LoadSpec::Open(ops.collect()))
        }
        Load::Round { .. } => None,
    }
}

fn flows(plan: &Plan, host: u32) -> Vec<FlowSpec> {
    let own = plan.connections.iter().enumerate().filter(|(_, c)| c.from.get() == host);
    let flow = |(index, connection): (usize, &ConnectionPlan)| {
        Some(FlowSpec {
            index,
            to: connection.to.get(),
            op: match connection.kind {
                OpKind::Write { .. } => OpName::Write,
                OpKind::Read { .. } => OpName::Read,
                OpKind::Message => OpName::Message,
            },
            load: load(connection)?,
            start_ns: ns(connection.start),
            stop_ns: ns(connection.stop),
        })
    };
    own.filter_map(flow).collect()
}

fn line_rate(topology: &Topology, host: u32) -> u64 {
    let own = topology.links.iter().find_map(|link| match (link.a, link.b) {
        (FabricNode::Host(h), _) if h.get() == host => Some(&link.ab),
        (_, FabricNode::Host(h)) if h.get() == host => Some(&link.ba),
        _ => None,
    });
    own.map_or(0, |port| port.rate.as_bps())
}

fn node(node: FabricNode) -> Node {
    match node {
        FabricNode::Host(host) => Node::Host(host.get()),
        FabricNode::Switch(switch) => Node::Switch(switch.get()),
    }
}

fn link(topology: &Topology, link: &LinkSpec) -> Link {
    let port = |from, to, config: &PortConfig| Port {
        name: format!("{} -> {}", topology.node_name(from), topology.node_name(to)),
        rate: config.rate.as_bps(),
        buffer: match config.buffer {
            Buffer::Own(Bytes::MAX) | Buffer::Shared { .. } => None,
            Buffer::Own(bytes) => Some(bytes.get()),
        },
    };
    Link {
        a: node(link.a),
        b: node(link.b),
        ab: port(link.a, link.b, &link.ab),
        ba: port(link.b, link.a, &link.ba),
        delay_ns: if link.delay > SHORT_DELAY { link.delay.as_ps() / 1_000 } else { 0 },
    }
}

/// The next switch on the only shortest path from each switch to each host.
fn routes(topology: &Topology, problems: &mut Vec<String>) -> Vec<Vec<Route>> {
    let switches = topology.switches.len();
    let mut routes: Vec<Vec<Route>> = vec![Vec::new(); switches];
    let ends = |link: &LinkSpec| (node(link.a), node(link.b));
    for host in 0..topology.hosts {
        // Breadth first from the switch that has the host.
        let mut hops: Vec<Option<u32>> = vec![None; switches];
        let first = topology.links.iter().map(ends).find_map(|(a, b)| match (a, b) {
            (Node::Host(h), Node::Switch(s)) | (Node::Switch(s), Node::Host(h)) if h == host => {
                Some(s)
            }
            _ => None,
        });
        let Some(first) = first else {
            problems.push(format!("topology: host {host} is not on a switch"));
            return routes;
        };
        hops[first as usize] = Some(0);
        let mut queue = vec![first];
        let mut done = 0;
        while done < queue.len() {
            let at = queue[done];
            done += 1;
            let mine = hops[at as usize].unwrap_or(0);
            for (index, link) in topology.links.iter().enumerate() {
                let (Node::Switch(a), Node::Switch(b)) = ends(link) else { continue };
                let Some(other) = (a == at).then_some(b).or((b == at).then_some(a)) else {
                    continue;
                };
                match hops[other as usize] {
                    None => {
                        hops[other as usize] = Some(mine + 1);
                        routes[other as usize].push(Route { host, next: at, link: index });
                        queue.push(other);
                    }
                    Some(theirs) if theirs == mine + 1 => {
                        problems.push(
                            "topology: has several paths between two hosts (ECMP); only one can be \
                             emulated"
                                .to_owned(),
                        );
                        return routes;
                    }
                    Some(_) => {}
                }
            }
        }
    }
    routes
}
