//! The first process in the namespaces: builds the network, runs the hosts' processes, and watches the ports.
//!
//! The process reads a [`Spec`] from standard input and prints an [`Outcome`], or the reason why there is none. When
//! its input is closed, it ends together with everything that it created.

use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use rustix::thread::CpuSet;
use serde_json::Value;

use super::network::{self, device, run, within};
use super::spec::{AgentSpec, Node, Outcome, PortResult, Spec};
use crate::agent::{self, Agent};
use crate::failure::Failure;

/// Time between two reads of the queues. deviation: no source; a read takes 0.1 ms of a core that hosts use as well.
const LOOK: Duration = Duration::from_millis(100);

/// The process within the namespaces.
#[derive(Args)]
pub struct Inside {}

impl Inside {
    /// Runs the command.
    pub fn execute(&self) -> Result<(), Failure> {
        let mut line = String::new();
        let read = io::stdin().read_line(&mut line);
        read.map_err(|error| Failure::Run(error.to_string()))?;
        let spec: Spec =
            serde_json::from_str(&line).map_err(|error| Failure::Input(error.to_string()))?;
        thread::spawn(|| {
            // The parent process keeps this pipe open as long as it wants the outcome.
            let _ = io::copy(&mut io::stdin(), &mut io::sink());
            std::process::exit(1)
        });
        let outcome = network::build(&spec).and_then(|()| work(&spec));
        let json = serde_json::to_string(&outcome);
        agent::say(&json.map_err(|error| Failure::Run(error.to_string()))?);
        // This is the first process of its PID namespace: its end also ends all other processes there.
        std::process::exit(0)
    }
}

fn start(program: &Path, spec: &AgentSpec) -> Result<Agent, String> {
    let mut command = within(Node::Host(spec.host));
    let mut agent =
        Agent::start(command.arg(program).arg("emulate-host"), format!("host {}", spec.host))?;
    agent.tell_json(spec)?;
    Ok(agent)
}

/// Returns the cores of each host. Hosts stand for separate machines, so each has its own cores if there are enough;
/// otherwise none is pinned.
fn cores(hosts: usize) -> Vec<Vec<usize>> {
    let Ok(allowed) = rustix::thread::sched_getaffinity(None) else { return Vec::new() };
    let allowed: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&core| allowed.is_set(core)).collect();
    share(&allowed, hosts)
}

fn share(cores: &[usize], hosts: usize) -> Vec<Vec<usize>> {
    match cores.len().checked_div(hosts) {
        None | Some(0) => Vec::new(),
        Some(each) => cores.chunks(each).take(hosts).map(<[usize]>::to_vec).collect(),
    }
}

fn work(spec: &Spec) -> Result<Outcome, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let cores = cores(spec.agents.len());
    let agents = spec.agents.iter().enumerate();
    let agents = agents.map(|(i, agent)| {
        let cores = cores.get(i).cloned().unwrap_or_default();
        start(&program, &AgentSpec { cores, ..agent.clone() })
    });
    let mut agents = agents.collect::<Result<Vec<_>, _>>()?;
    for agent in &mut agents {
        agent.expect("ready")?;
    }
    // Hosts connect one after the other: a hundred simultaneous handshakes are not part of the measurement.
    for agent in &mut agents {
        agent.tell("connect")?;
        agent.expect("connected")?;
    }
    let begin = Instant::now();
    for agent in &mut agents {
        agent.tell("go")?;
    }
    let mut outcome = watch(spec, begin)?;
    for agent in &mut agents {
        outcome.hosts.push(agent.hear_json()?);
    }
    Ok(outcome)
}

/// A port that is observed.
struct Watched {
    switch: u32,
    device: String,
    result: PortResult,
    sent_before: u64,
}

/// Reads the ports until the end.
fn watch(spec: &Spec, begin: Instant) -> Result<Outcome, String> {
    let mut ports: Vec<Watched> = Vec::new();
    for (index, link) in spec.links.iter().enumerate() {
        for (node, end, port) in [(link.a, 'a', &link.ab), (link.b, 'b', &link.ba)] {
            let Node::Switch(switch) = node else { continue };
            let result = PortResult {
                name: port.name.clone(),
                rate: port.rate,
                sent_bytes: 0,
                drops: 0,
                backlog: Vec::new(),
            };
            ports.push(Watched { switch, device: device(index, end), result, sent_before: 0 });
        }
    }
    let (warmup, end) = spec.agents.first().map_or((0, 0), |a| (a.warmup_ns, a.duration_ns));
    let (warmup, end) = (Duration::from_nanos(warmup), Duration::from_nanos(end));
    let senders = spec.agents.iter().filter(|agent| !agent.flows.is_empty() && agent.tcp.is_some());
    // Each step queries one sender, so that its duration does not depend on their number.
    let mut senders = senders.cycle();
    let mut tcp_rtt_us = Vec::new();
    let switches = (0..spec.switches).map(Observer::start);
    let mut switches = switches.collect::<Result<Vec<_>, _>>()?;
    thread::sleep(warmup.saturating_sub(begin.elapsed()));
    look(&mut switches, &mut ports)?;
    let first = Instant::now();
    for port in &mut ports {
        port.sent_before = port.result.sent_bytes;
        port.result.backlog.clear();
    }
    while begin.elapsed() + LOOK < end {
        thread::sleep(LOOK);
        look(&mut switches, &mut ports)?;
        if let Some(sender) = senders.next() {
            let mut ss = within(Node::Host(sender.host));
            tcp_rtt_us.extend(rtts(&run(ss.args(["ss", "-tinH", "state", "established"]), "")?));
        }
    }
    thread::sleep(end.saturating_sub(begin.elapsed()));
    look(&mut switches, &mut ports)?;
    let watched_seconds = first.elapsed().as_secs_f64();
    let ports = ports.into_iter().map(|port| PortResult {
        sent_bytes: port.result.sent_bytes - port.sent_before,
        ..port.result
    });
    Ok(Outcome { hosts: Vec::new(), ports: ports.collect(), watched_seconds, tcp_rtt_us })
}

/// A running `tc` that reports a switch's queues on request. Starting one per read would take milliseconds from the
/// hosts' engines.
struct Observer {
    switch: u32,
    child: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Observer {
    fn start(switch: u32) -> Result<Self, String> {
        let name = Node::Switch(switch).namespace();
        let mut tc = Command::new("tc");
        tc.args(["-n", &name, "-s", "-j", "-batch", "-"]);
        let child = tc.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.map_err(|error| format!("tc cannot be run: {error}"))?;
        let (Some(questions), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("a process has no pipes".to_owned());
        };
        Ok(Self { switch, child, questions, answers: BufReader::new(answers) })
    }

    /// Returns all queueing disciplines of the switch.
    fn queues(&mut self) -> Result<Vec<Value>, String> {
        let mut line = String::new();
        let asked = writeln!(self.questions, "qdisc show").and_then(|()| self.questions.flush());
        let heard = asked.and_then(|()| self.answers.read_line(&mut line));
        heard.map_err(|error| format!("tc: {error}"))?;
        serde_json::from_str(&line).map_err(|error| format!("tc says {line:?}: {error}"))
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        // The process holds no state, so it can be killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads the state of the queues from `tc`.
fn look(switches: &mut [Observer], ports: &mut [Watched]) -> Result<(), String> {
    for observer in switches {
        for queue in observer.queues()?.iter().filter(|queue| queue["kind"] == "bfifo") {
            let port = ports.iter_mut().find(|port| {
                port.switch == observer.switch && queue["dev"] == port.device.as_str()
            });
            if let Some(Watched { result, .. }) = port {
                let number = |key: &str| queue[key].as_u64().unwrap_or(0);
                result.sent_bytes = number("bytes");
                result.drops = number("drops");
                result.backlog.push(number("backlog"));
            }
        }
    }
    Ok(())
}

/// Returns the smoothed RTTs in the output of `ss -ti`, in microseconds, of the connections that have sent data.
/// Connections that only receive have the RTT of their handshake. The first bytes of a stream name its flow.
fn rtts(text: &str) -> Vec<f64> {
    let mut all = Vec::new();
    for line in text.lines() {
        let value = |name: &str| line.split_whitespace().find_map(|word| word.strip_prefix(name));
        let sent = value("bytes_sent:").and_then(|bytes| bytes.parse::<u64>().ok());
        let ms = value("rtt:").and_then(|rtt| rtt.split('/').next()?.parse::<f64>().ok());
        if sent.is_some_and(|bytes| bytes > 8) {
            all.extend(ms.map(|ms| ms * 1e3));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of `ss -tinH` (iproute2): a connection, then its state. Of these three connections, the second only
    /// receives, and the third has sent only the number of its flow.
    #[test]
    fn rtts_are_those_of_connections_that_send() {
        let text = "0 64 10.1.0.1:4000 10.1.0.2:4791\n\t cubic rto:204 rtt:3.5/0.2 mss:1448 bytes_sent:65544 bytes_acked:9\n\
                    0 0 10.1.0.1:4791 10.1.0.3:4000\n\t cubic rto:200 rtt:0.05/0.02 mss:1448 bytes_received:65544\n\
                    0 0 10.1.0.1:4002 10.1.0.2:4791\n\t cubic rto:200 rtt:0.07/0.02 mss:1448 bytes_sent:8 bytes_acked:9\n";
        assert_eq!(rtts(text), [3500.0]);
    }

    #[test]
    fn hosts_share_the_cores_evenly_if_each_gets_one() {
        assert_eq!(share(&[0, 1], 2), [[0], [1]]);
        assert_eq!(share(&[1, 3, 4, 6, 7], 2), [[1, 3], [4, 6]]);
        assert!(share(&[0, 1], 3).is_empty());
        assert!(share(&[], 2).is_empty() && share(&[0], 0).is_empty());
    }
}
