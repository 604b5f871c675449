//! One measurement of one contestant: starts its processes, and compares the counts of both ends.

use std::env;
use std::hint::black_box;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use apus_sim::bounds::percentile;
use serde::Serialize;

use super::spec::{
    ClientResult, Contestant, Load, OpName, Role, SMALL, ServerState, Serving, Spec, Usage,
};
use crate::agent::Agent;
use crate::real::any;

/// Name of the hidden command that runs one end.
pub const END: &str = "bench-udp-end";

/// Results of one measurement.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// Ops of all clients that ended in the measured time.
    pub ops: u64,
    /// Measured time.
    pub seconds: f64,
    /// Median of the round trips; `None` for other loads.
    pub p50_us: Option<f64>,
    /// 99th percentile of the round trips; `None` for other loads.
    pub p99_us: Option<f64>,
    /// Ops per second of all clients.
    pub ops_per_second: f64,
    /// Payload of writes per second; `None` for round trips.
    pub goodput_gbps: Option<f64>,
    /// Resources that the clients used.
    pub client: Used,
    /// Resources that the server used.
    pub server: Used,
    /// Resources of the busy threads; `None` without any.
    pub busy: Option<Used>,
}

/// Resources that the processes of one side used in the measured time.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Used {
    /// CPU time of all threads, microseconds per second.
    pub cpu_us_per_second: f64,
    /// Time in which threads were runnable but had no core, microseconds per second; `None` if the kernel does not
    /// report it.
    pub queued_us_per_second: Option<f64>,
    /// Number of times per second that a thread got a core.
    pub runs_per_second: Option<f64>,
}

impl Used {
    fn new(usage: Usage, seconds: f64) -> Self {
        let scheduler = usage.scheduler;
        Self {
            cpu_us_per_second: usage.cpu.as_secs_f64() * 1e6 / seconds,
            queued_us_per_second: scheduler.map(|s| s.queued.as_secs_f64() * 1e6 / seconds),
            runs_per_second: scheduler.map(|s| s.runs as f64 / seconds),
        }
    }
}

fn start(name: &str, role: &Role) -> Result<Agent, String> {
    let program = env::current_exe().map_err(|error| error.to_string())?;
    // The child has its own process group, so that Ctrl-C reaches this process only.
    let mut command = Command::new(program);
    let mut agent = Agent::start(command.arg(END).process_group(0), name.to_owned())?;
    agent.tell_json(role)?;
    Ok(agent)
}

/// Runs a measurement. `remote` is the address of a process with `--listen`, which starts the server; without it both
/// ends are processes on this machine.
///
/// # Errors
/// If a process fails, or the two sides counted different numbers of bytes or connections.
pub fn run(spec: &Spec, remote: Option<SocketAddr>) -> Result<Measured, String> {
    let mut server = match remote {
        None => start("the server", &Role::Server(spec.clone()))?,
        Some(address) => {
            let stream = TcpStream::connect(address).map_err(|error| {
                format!("{address}: {error}; run `apus bench udp --listen` there")
            })?;
            let mut agent = Agent::connected(stream, format!("the server at {address}"))?;
            // Keys are never sent over the network.
            agent.tell_json(&Role::Server(Spec { key: String::new(), ..spec.clone() }))?;
            agent
        }
    };
    let serving: Serving = server.hear_json()?;
    let here = remote.map_or(spec.bind, |remote| any(&[remote]).ip());
    let client = Role::Client(Spec { bind: here, ..spec.clone() }, serving);
    let clients = 0..spec.load.clients();
    let clients = clients.map(|number| start(&format!("client {number}"), &client));
    let mut clients = clients.collect::<Result<Vec<_>, _>>()?;
    for client in &mut clients {
        client.expect("ready")?;
    }
    server.tell("state")?;
    let before: ServerState = server.hear_json()?;
    let busy = Busy::start(spec.load);
    for client in &mut clients {
        client.tell("go")?;
    }
    for client in &mut clients {
        client.expect("done")?;
    }
    let busy = busy.stop();
    server.tell("state")?;
    let after: ServerState = server.hear_json()?;
    let results = clients.iter_mut().map(Agent::hear_json).collect::<Result<Vec<_>, _>>()?;
    check_counts(spec, &after, &results)?;
    clients.into_iter().for_each(Agent::end);
    server.end();
    Ok(Measured { busy, ..summary(spec.load, after.usage.since(before.usage), &results) })
}

/// Threads of this process that compute during a measurement.
struct Busy {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    from: Instant,
    before: Usage,
}

impl Busy {
    fn start(load: Load) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let count = if let Load::RoundTrips { busy, .. } = load { busy } else { 0 };
        let compute = |_| {
            let stop = Arc::clone(&stop);
            thread::spawn(move || {
                let mut number = 0u64;
                while !stop.load(Ordering::Relaxed) {
                    number = black_box(number.wrapping_mul(3).wrapping_add(1));
                }
            })
        };
        let threads = (0..count).map(compute).collect();
        Self { stop, threads, from: Instant::now(), before: Usage::now() }
    }

    /// Stops the threads, and returns the resources that they used.
    fn stop(mut self) -> Option<Used> {
        let (usage, seconds) = (Usage::now().since(self.before), self.from.elapsed().as_secs_f64());
        self.stop.store(true, Ordering::Relaxed);
        let any = !self.threads.is_empty();
        for thread in self.threads.drain(..) {
            // The thread cannot panic.
            let _ = thread.join();
        }
        any.then(|| Used::new(usage, seconds))
    }
}

/// Stops the threads even if the measurement fails.
impl Drop for Busy {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Checks that both ends carried out every op.
fn check_counts(spec: &Spec, server: &ServerState, clients: &[ClientResult]) -> Result<(), String> {
    let ops: u64 = clients.iter().map(|client| client.all_ops).sum();
    let at_clients: u64 = clients.iter().map(|client| client.bytes).sum();
    let (size, expected) = match spec.load {
        Load::Idle { connections } if server.connections != u64::from(connections) => {
            return Err(format!(
                "{}: the server has {} connections, not {connections}",
                spec.contestant, server.connections
            ));
        }
        Load::Idle { .. } => return Ok(()),
        Load::RoundTrips { .. } | Load::Answered { .. } => {
            (SMALL, spec.contestant.bytes_received(ops * SMALL as u64))
        }
        Load::Writes { bytes, .. } => (bytes, spec.contestant.bytes_received(ops * bytes as u64)),
    };
    if (at_clients, server.bytes) != expected {
        return Err(format!(
            "{}: {ops} ops of {size} B, but the clients have received {at_clients} B (expected {}) and the server {} B \
             (expected {})",
            spec.contestant, expected.0, server.bytes, expected.1
        ));
    }
    Ok(())
}

impl Contestant {
    /// Returns the payload bytes that the clients and the server must have received after ops with `bytes` bytes in
    /// total. Clients with sockets check each answer and count no bytes.
    /// with sockets check each answer and count none.
    fn bytes_received(self, bytes: u64) -> (u64, u64) {
        match self {
            Self::Udp(_) | Self::Tcp | Self::Apus { op: OpName::Write, .. } => (0, bytes),
            Self::Apus { op: OpName::Message | OpName::Call, .. } => (bytes, bytes),
            Self::Apus { op: OpName::Read, .. } => (bytes, 0),
        }
    }
}

fn summary(load: Load, server: Usage, clients: &[ClientResult]) -> Measured {
    let mut times: Vec<f64> = clients.iter().flat_map(|client| &client.times_us).copied().collect();
    times.sort_by(f64::total_cmp);
    let times: Vec<(f64, u64)> = times.into_iter().map(|time| (time, 1)).collect();
    let ops: u64 = clients.iter().map(|client| client.ops).sum();
    let seconds = clients.iter().map(|client| client.seconds).fold(0.0, f64::max);
    let usage = clients.iter().map(|client| client.usage).reduce(Usage::and).unwrap_or_default();
    let ops_per_second = ops as f64 / seconds;
    Measured {
        ops,
        seconds,
        p50_us: percentile(&times, 0.5),
        p99_us: percentile(&times, 0.99),
        ops_per_second,
        goodput_gbps: match load {
            Load::Writes { bytes, .. } => Some(ops_per_second * bytes as f64 * 8e-9),
            Load::RoundTrips { .. } | Load::Answered { .. } | Load::Idle { .. } => None,
        },
        client: Used::new(usage, seconds),
        server: Used::new(server, seconds),
        busy: None,
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::time::Duration;

    use super::*;
    use crate::real::bench::spec::Waiting;

    fn spec(op: OpName, load: Load) -> Spec {
        Spec {
            bind: Ipv4Addr::LOCALHOST.into(),
            contestant: Contestant::Apus { op, waiting: Waiting::Blocking, sealed: false },
            load,
            duration: Duration::from_millis(1),
            key: String::new(),
            cipher: String::new(),
            mtu: 9000,
        }
    }

    fn state(bytes: u64, connections: u64) -> ServerState {
        ServerState { usage: Usage::default(), bytes, connections }
    }

    #[test]
    fn counts_of_both_ends_must_agree() {
        let load = Load::RoundTrips { gap: Duration::ZERO, clients: 2, threads: 1, busy: 0 };
        let of = |bytes| ClientResult { all_ops: 10, bytes, ..ClientResult::default() };
        let check =
            |op, server, a, b| check_counts(&spec(op, load), &state(server, 1), &[of(a), of(b)]);
        // Twenty ops of 64 B.
        assert_eq!(check(OpName::Message, 1280, 640, 640), Ok(()));
        assert_eq!(check(OpName::Write, 1280, 0, 0), Ok(()));
        assert_eq!(check(OpName::Read, 0, 640, 640), Ok(()));
        let error = check(OpName::Message, 1216, 640, 640).expect_err("an op has not arrived");
        assert!(error.contains("1216 B (expected 1280)"), "{error}");
        assert!(check(OpName::Read, 0, 640, 576).is_err());
        let writes = spec(OpName::Write, Load::Writes { bytes: 1000, outstanding: 4 });
        assert_eq!(check_counts(&writes, &state(10_000, 1), &[of(0)]), Ok(()));
        let idle = spec(OpName::Message, Load::Idle { connections: 3 });
        assert_eq!(check_counts(&idle, &state(0, 3), &[of(0)]), Ok(()));
        assert!(check_counts(&idle, &state(0, 2), &[of(0)]).is_err());
    }

    /// Round trips of 1 to 100 us in two clients: by nearest rank, the median is the 50th value and the 99th percentile
    /// the 99th.
    #[test]
    fn percentiles_are_those_of_all_clients_together() {
        let of = |from: u32| ClientResult {
            times_us: (0..50).map(|i| f64::from(from + 2 * i)).collect(),
            ops: 50,
            seconds: 0.5,
            ..ClientResult::default()
        };
        let load = Load::RoundTrips { gap: Duration::ZERO, clients: 2, threads: 1, busy: 0 };
        let measured = summary(load, Usage::default(), &[of(1), of(2)]);
        assert_eq!((measured.p50_us, measured.p99_us), (Some(50.0), Some(99.0)));
        assert_eq!((measured.ops, measured.ops_per_second), (100, 200.0));
    }
}
