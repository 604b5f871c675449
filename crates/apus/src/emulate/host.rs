//! The process of one emulated host: our engine with the scenario's traffic.
//!
//! The process receives its commands on standard input and reports its progress on standard output: see
//! [`Agent::execute`]. It ends when its input is closed.

use std::collections::BTreeMap;
use std::io::{self, BufRead};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use crate::registry;
use apus_udp::session::KeyRing;
use apus_udp::{Access, Config, Connection, Host, Mode, Request, async_channel};
use apus_units::Rate;
use clap::Args;
use rustix::thread::CpuSet;

use super::load::{Flow, Work};
use super::network::socket;
use super::spec::{AgentSpec, FlowSpec, HostResult, PORT, Samples};
use super::tcp;
use crate::agent::say;
use crate::failure::Failure;
use crate::real::greeting;

/// Samples of each flow's state over the measured time: as many as in a recorded simulation.
const SAMPLES: u32 = 200;
/// Shortest sampling interval. deviation: no source; more frequent samples would wake idle engines.
const CLOSEST_SAMPLES: Duration = Duration::from_millis(10);

/// One host of an emulated network.
#[derive(Args)]
pub struct Agent {}

impl Agent {
    /// Reads an [`AgentSpec`] and writes `ready` when the host listens. On `connect`, connects to the peers and writes
    /// `connected`; on `go`, runs the traffic and prints a [`HostResult`].
    pub fn execute(&self) -> Result<(), Failure> {
        let mut lines = io::stdin().lock().lines().map_while(Result::ok);
        let mut next = || lines.next();
        let Some(spec) = next() else { return Ok(()) };
        let spec: AgentSpec =
            serde_json::from_str(&spec).map_err(|error| Failure::Input(error.to_string()))?;
        stay_on(&spec.cores)?;
        let done = if spec.tcp.is_some() {
            tcp::run(&spec, &mut next)
        } else {
            run(&spec, PORT, &mut next)
        };
        done.map_err(Failure::Run)?;
        std::process::exit(0)
    }
}

/// Reports the results and waits until the input ends. Peers may still be measuring and need this host, so the caller
/// must keep everything that serves them.
pub(super) fn conclude(
    result: &HostResult,
    next: &mut dyn FnMut() -> Option<String>,
) -> Result<(), String> {
    say(&serde_json::to_string(result).map_err(|error| error.to_string())?);
    while next().is_some() {}
    Ok(())
}

/// Pins this thread, and the threads that it will start, to these cores.
fn stay_on(cores: &[usize]) -> Result<(), Failure> {
    if cores.is_empty() {
        return Ok(());
    }
    let mut set = CpuSet::new();
    for &core in cores {
        set.set(core);
    }
    rustix::thread::sched_setaffinity(None, &set)
        .map_err(|error| Failure::Run(format!("cores {cores:?} cannot be used: {error}")))
}

/// Listens on `port`, runs the host's traffic, and serves its peers until the input ends.
fn run(
    spec: &AgentSpec,
    port: u16,
    next: &mut dyn FnMut() -> Option<String>,
) -> Result<(), String> {
    let server = Arc::new(start(spec, port)?);
    let region = server
        .register(vec![0; spec.largest_op.max(1) as usize], Access::ALL)
        .map_err(|error| error.to_string())?;
    let greeting = [region.key().get().to_be_bytes(), spec.largest_op.to_be_bytes()].concat();
    let (serving, cost) = (Arc::clone(&server), Duration::from_nanos(spec.receive_packet_ns));
    thread::spawn(move || {
        if cost.is_zero() {
            serve(&serving, &greeting);
        } else {
            serve_slowly(&serving, &greeting, cost);
        }
    });
    // Two hosts that send to each other need two connections, and these need two pairs of addresses.
    let client = if spec.flows.is_empty() { None } else { Some(start(spec, 0)?) };
    say("ready");
    if next().is_none() {
        return Ok(());
    }
    let flows = client.as_ref().map_or(Ok(Vec::new()), |client| connect(spec, client))?;
    say("connected");
    if next().is_none() {
        return Ok(());
    }
    let (queue, ends) = async_channel::unbounded();
    let measured = Duration::from_nanos(spec.warmup_ns)..Duration::from_nanos(spec.duration_ns);
    let work = Arc::new(Work::new(flows, queue, measured));
    let follower = Arc::clone(&work);
    thread::spawn(move || follower.follow(&ends));
    let hosts: Vec<&Host> = client.iter().chain([&*server]).collect();
    conclude(&measure(spec, &hosts, &work), next)
}

fn start(spec: &AgentSpec, port: u16) -> Result<Host, String> {
    let keys = KeyRing::parse(&spec.key).map_err(|error| error.to_string())?;
    let bind = SocketAddr::from(([0, 0, 0, 0], port));
    let mut config = Config::new(bind, keys).map_err(|error| error.to_string())?;
    let (name, profile, settings) = &spec.algorithm;
    let settings: Vec<_> = settings.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    config.algorithm =
        registry().build(name, Some(profile), &settings).map_err(|error| error.to_string())?;
    config.session.cipher = spec.cipher.parse()?;
    config.max_mtu = spec.mtu;
    config.max_ops = spec.max_ops;
    config.line_rate = Rate::from_bps(spec.line_rate);
    if spec.receive_packet_ns > 0 {
        config.mode = Mode::Inline;
    }
    Host::start(config).map_err(|error| error.to_string())
}

/// Greets peers and receives their data.
fn serve(host: &Host, greeting: &[u8]) {
    while let Ok(connection) = host.accept() {
        let greeting = greeting.to_vec();
        thread::spawn(move || {
            if connection.submit(Request::message(greeting)).is_ok() {
                while connection.receive().is_ok() {}
            }
        });
    }
}

/// Greets peers and receives their data on one thread, which spends `cost` on each received packet before the next
/// poll.
fn serve_slowly(host: &Host, greeting: &[u8], cost: Duration) {
    let mut connections: Vec<Connection> = Vec::new();
    let mut seen = 0;
    loop {
        host.drive();
        if let Some(connection) = host.try_accept()
            && connection.submit(Request::message(greeting.to_vec())).is_ok()
        {
            connections.push(connection);
        }
        for connection in &connections {
            while let Ok(Some(_)) = connection.try_receive() {}
        }
        let all = host.stats().map(|s| s.datagrams_received.load(Ordering::Relaxed)).sum::<u64>();
        let busy = cost * u32::try_from(all - seen).unwrap_or(u32::MAX);
        seen = all;
        thread::sleep(if busy.is_zero() { Duration::from_micros(20) } else { busy });
    }
}

/// Opens one connection per peer, with one flow for each flow to that peer.
fn connect(spec: &AgentSpec, host: &Host) -> Result<Vec<Flow>, String> {
    let mut peers: BTreeMap<u32, Vec<&FlowSpec>> = BTreeMap::new();
    for flow in &spec.flows {
        peers.entry(flow.to).or_default().push(flow);
    }
    let mut flows = Vec::new();
    for (peer, specs) in peers {
        let connection = host
            .connect_with(socket(peer)?, &vec![0; specs.len()], None)
            .map_err(|error| format!("host {} to host {peer}: {error}", spec.host))?;
        let greeted = greeting(&connection);
        let (region, _) = greeted.map_err(|_| format!("host {peer} is no emulated host"))?;
        for (place, &flow) in specs.iter().enumerate() {
            flows.push(Flow::new(flow.clone(), connection.clone(), place, region));
        }
    }
    Ok(flows)
}

/// Submits ops at their times, samples the flows' states and counts from the end of the warm-up. Then lets the ops of
/// the measured time end.
fn measure(spec: &AgentSpec, hosts: &[&Host], work: &Work) -> HostResult {
    let warmup = Duration::from_nanos(spec.warmup_ns);
    let end = Duration::from_nanos(spec.duration_ns);
    let interval = ((end - warmup) / SAMPLES).max(CLOSEST_SAMPLES);
    let ops = work.timed_ops();
    let mut ops = ops.iter().peekable();
    let mut samples = Samples::default();
    let mut next_sample = warmup;
    let mut losses_before: u64 = 0;
    let losses = || {
        let counters = work.flows.iter().map(|flow| flow.connection.flow_state(flow.place));
        counters.flatten().map(|(_, counters)| counters.fast_losses + counters.timeout_losses).sum()
    };
    loop {
        let next_op = ops.peek().map_or(end, |op| op.at);
        let next = next_op.min(next_sample).min(end);
        thread::sleep(next.saturating_sub(work.begin.elapsed()));
        if next == end {
            break;
        }
        if next == next_op {
            while let Some(op) = ops.next_if(|op| op.at <= next) {
                work.submit(op);
            }
            continue;
        }
        if next == warmup {
            for stats in hosts.iter().flat_map(|host| host.stats()) {
                stats.fabric_rtt.clear();
                stats.end_to_end_rtt.clear();
                stats.endpoint_delay.clear();
            }
            losses_before = losses();
            work.measuring.store(true, Ordering::Relaxed);
        }
        sample(work.flows.iter().filter(|flow| flow.has_started(next)), &mut samples);
        next_sample += interval;
    }
    work.measuring.store(false, Ordering::Relaxed);
    let mut result = HostResult {
        bytes: BTreeMap::new(),
        seconds: (work.begin.elapsed().saturating_sub(warmup)).as_secs_f64(),
        losses: losses().saturating_sub(losses_before),
        samples,
        ..HostResult::default()
    };
    for stats in hosts.iter().flat_map(|host| host.stats()) {
        result.fabric_rtt.extend(stats.fabric_rtt.buckets());
        result.end_to_end_rtt.extend(stats.end_to_end_rtt.buckets());
        result.endpoint_delay.extend(stats.endpoint_delay.buckets());
    }
    for flow in &work.flows {
        result.bytes.insert(flow.spec.index, flow.bytes.load(Ordering::Relaxed));
    }
    // Until the ops of the measured time end, they must meet the same load, so closed loops continue.
    result.unfinished_us = work.drain(end.saturating_add(Duration::from_nanos(spec.drain_ns)));
    result.op_latency = work.latency.buckets().collect();
    result.failed = work.failure();
    result
}

fn sample<'f>(flows: impl Iterator<Item = &'f Flow>, samples: &mut Samples) {
    for flow in flows {
        let Ok((state, _)) = flow.connection.flow_state(flow.place) else { continue };
        samples.count += 1;
        samples.fabric_cwnd += state.fabric_cwnd.unwrap_or(0.0);
        samples.endpoint_cwnd += state.endpoint_cwnd.unwrap_or(0.0);
        samples.target_us += state.target_delay.map_or(0.0, |t| t.as_ps_f64() / 1e6);
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use apus_udp::session::{Config as SessionConfig, SharedKey};

    use super::*;

    /// Hosts receive `go` one after the other and wake up at different times, so the measured time of one host ends
    /// before that of another.
    #[test]
    fn a_host_whose_time_is_over_still_takes_what_its_peers_write() {
        let port = UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
        let port = port.expect("a port that is free").port();
        let key = SharedKey::new([11; 32]).to_line().to_string();
        let spec = AgentSpec {
            key,
            cipher: SessionConfig::default().cipher.name().to_owned(),
            algorithm: ("constant".to_owned(), "constant".to_owned(), Vec::new()),
            mtu: 1500,
            line_rate: 1_000_000_000,
            max_ops: 16,
            largest_op: 100,
            duration_ns: 1_000_000,
            ..AgentSpec::default()
        };
        let peer = start(&spec, 0).expect("a host");
        let (mut here, mut words, mut written) = (None, 0, None);
        let mut next = || {
            words += 1;
            match words {
                1 => {
                    let connection = peer.connect(SocketAddr::from(([127, 0, 0, 1], port)));
                    let connection = connection.expect("it says that it is ready");
                    let (region, _) = greeting(&connection).expect("its region");
                    here = Some((connection, region));
                    Some("go".to_owned())
                }
                2 => Some("go".to_owned()),
                _ => {
                    // The host has reported its results.
                    let (connection, region) = here.take().expect("connected");
                    let write = Request::write(region, 0, vec![1; 100]);
                    written = Some(connection.submit(write).expect("room").wait());
                    None
                }
            }
        };
        run(&spec, port, &mut next).expect("run");
        let written = written.expect("it is told that the run is over at the end only");
        written.expect("its region is there until then");
    }
}
