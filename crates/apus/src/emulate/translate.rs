//! Translates a run of a scenario to a network of namespaces.

use apus_fabric::{Buffer, Node as FabricNode};
use apus_scenario::Setup;
use apus_scenario::{LinkSpec, Plan, PortConfig, Topology};
use apus_udp::Config;
use apus_udp::session::Cipher;
use apus_units::{Bytes, Span};

use super::check::{SHORT_DELAY, SLOW_RECEIVER, check_fabric, check_traffic, check_transport};
use super::spec::{AgentSpec, FlowSpec, Link, Node, OpName, Port, Route, Spec, Stack};
use super::traffic::{flows, largest_op};

/// Returns the network of a run, for our engine.
///
/// # Errors
/// Every property that cannot be emulated, by its key.
pub fn spec(setup: &Setup, plan: &Plan, key: &str, cipher: Cipher) -> Result<Spec, Vec<String>> {
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
        // If the host also sends, its thread is needed for that.
        let slow = slow >= SLOW_RECEIVER && flows.is_empty();
        let cost =
            plan.host.engine.filter(|_| slow).map_or(0, |c| c.receive_packet.as_ps() / 1_000);
        AgentSpec {
            host,
            cores: Vec::new(),
            tcp: None,
            key: key.to_owned(),
            cipher: cipher.name().to_owned(),
            algorithm: algorithm.clone(),
            mtu,
            line_rate: line_rate(&plan.topology, host),
            max_ops: plan.endpoint.max_ops,
            largest_op: largest,
            receive_packet_ns: cost,
            flows,
            warmup_ns: plan.warmup.as_ps() / 1_000,
            duration_ns: plan.duration.as_ps() / 1_000,
            drain_ns: plan.drain.as_ps() / 1_000,
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

/// Returns the same network with the kernel's TCP in place of our engine.
///
/// # Errors
/// If a byte stream cannot carry the traffic.
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

/// Returns the next switch on the only shortest path from each switch to each host.
fn routes(topology: &Topology, problems: &mut Vec<String>) -> Vec<Vec<Route>> {
    let switches = topology.switches.len();
    let mut routes: Vec<Vec<Route>> = vec![Vec::new(); switches];
    let ends = |link: &LinkSpec| (node(link.a), node(link.b));
    for host in 0..topology.hosts {
        // Breadth-first search from the switch of the host.
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
