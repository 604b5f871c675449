//! Early ends of a run: on request, or because the run makes no progress.

use std::fmt::{self, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use apus_cc::AlgorithmFactory;
use apus_units::{Bytes, FlowId, Span, Time};

use crate::Fault;
use crate::credits::data_counters;
use crate::host::Host;
use crate::monitor::{Monitor, States};
use crate::part::Part;
use crate::plan::Plan;
use crate::stalls::reason;

/// Conditions that end a run early, checked at every step of its progress. Clones share the flag.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    /// Flag that ends the run at its next step when it becomes true.
    pub stop: Arc<AtomicBool>,
    /// Simulated time without a delivered packet, while ops are outstanding, after which the run ends;
    /// `None`: never. It is checked at the end of whole steps of the run's progress and where the plan stops
    /// the run, so that recording does not change the time of the end.
    pub silence: Option<Span>,
    /// Receiver of reports of flows without progress during the run, for a few flows per run.
    pub tell: Option<Tell>,
    /// Receiver of the state of runs in progress.
    pub monitor: Option<Monitor>,
    /// First failure of an external algorithm, for the caller of the runs.
    pub fault: Arc<Mutex<Option<Fault>>>,
}

/// Receiver of reports: a function of the name of a run and a sentence about it.
#[derive(Clone)]
pub struct Tell(pub Arc<Hear>);

/// See [`Tell`].
pub type Hear = dyn Fn(&str, &str) + Send + Sync;

impl fmt::Debug for Tell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tell")
    }
}

/// State of a [`Watch`] during a run.
pub(crate) struct Watcher {
    watch: Watch,
    /// Name of the run.
    name: String,
    states: Option<States>,
    delivered: u64,
    /// Time of the last step by which packets had been delivered.
    since: Time,
}

/// Reason for the end of a run that was ended on request.
pub const INTERRUPTED: &str = "interrupted";

/// Maximum number of flows in a report.
const NAMED_FLOWS: usize = 3;

impl Watch {
    /// Stores the failure of an algorithm for the caller of the runs, and returns its message.
    #[must_use]
    pub fn failed(&self, fault: Fault) -> String {
        let message = fault.message.clone();
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(fault);
        message
    }

    /// Returns the first failure of an algorithm, and removes it.
    #[must_use]
    pub fn take_fault(&self) -> Option<Fault> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Watcher {
    pub(crate) fn new(watch: Watch, name: &str) -> Self {
        let states = watch.monitor.clone().map(States::new);
        Self { watch, name: name.to_owned(), states, delivered: 0, since: Time::ZERO }
    }

    /// Returns `true` if the user has asked to end the run.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.watch.stop.load(Ordering::Relaxed)
    }

    /// Returns the reason if the run ends at `now` on request.
    pub(crate) fn interrupted(&self) -> Option<String> {
        self.is_interrupted().then(|| INTERRUPTED.to_owned())
    }

    /// Passes the state at `now` to the monitor.
    pub(crate) fn tell<F: AlgorithmFactory>(
        &mut self,
        now: Time,
        parts: &[Part<F>],
        plan: &Plan<F>,
    ) {
        if let Some(states) = &mut self.states {
            states.tell(&self.name, now, parts, plan);
        }
    }

    /// Returns the reason if the run ends at `now` because it makes no progress. The time of the end depends
    /// on the times of the checks, so check only at steps that the plan alone determines.
    pub(crate) fn stuck<F: AlgorithmFactory>(
        &mut self,
        now: Time,
        parts: &[Part<F>],
        plan: &Plan<F>,
    ) -> Option<String> {
        let delivered = parts.iter().map(|part| part.world.network.counters().delivered).sum();
        if delivered != self.delivered {
            (self.delivered, self.since) = (delivered, now);
        }
        let silent = now.since(self.since);
        if self.watch.silence.is_some_and(|limit| silent >= limit) {
            // Without outstanding ops, a time without packets is part of the scenario; it is checked again later.
            self.since = now;
            return report(now, silent, parts, plan);
        }
        None
    }
}

/// Returns the flows that wait, with their reasons; `None` if no flow waits.
fn report<F: AlgorithmFactory>(
    now: Time,
    silent: Span,
    parts: &[Part<F>],
    plan: &Plan<F>,
) -> Option<String> {
    let mut waiting: Vec<(u64, String, &Host<F>, FlowId)> = Vec::new();
    for host in parts.iter().flat_map(|part| &part.hosts) {
        for index in 0..host.flows.len() {
            let id = FlowId::new(index as u32);
            waiting
                .extend(describe(now, host, id).map(|(timeouts, text)| (timeouts, text, host, id)));
        }
    }
    if waiting.is_empty() {
        return None;
    }
    // Flows with the most timeouts come first; the sort is stable, so that ties stay in order.
    waiting.sort_by_key(|(timeouts, ..)| std::cmp::Reverse(*timeouts));
    let mut text = format!("no packet was delivered for {silent} while ops are outstanding");
    let count = waiting.len();
    for (_, flow, host, id) in waiting.into_iter().take(NAMED_FLOWS) {
        // Writing to a String cannot fail.
        let _ = write!(text, "; {flow}: {}", reason(now, parts, plan, host, id));
    }
    if count > NAMED_FLOWS {
        let _ = write!(text, "; and {} more", count - NAMED_FLOWS);
    }
    let _ = write!(text, "; {}", queue(now, parts, plan));
    Some(text)
}

/// Returns the reason why a flow with outstanding ops waits, and its number of timeouts.
fn describe<F: AlgorithmFactory>(now: Time, host: &Host<F>, id: FlowId) -> Option<(u64, String)> {
    let local = host.clocks.host.read(now);
    let waiting = host.endpoint.waiting(local, id)?;
    let flow = &host.flows[id.index()];
    let timeouts = host.endpoint.counters(id).map_or(0, |counters| counters.timeouts);
    let next = match (waiting.next_packet, waiting.timeout) {
        (Some(at), _) => format!("next packet in {}", at.since(local)),
        (None, Some(at)) => format!("next timeout in {}", at.since(local)),
        (None, None) => "nothing to send".to_owned(),
    };
    let text = format!(
        "flow {} (host {} -> host {}): window {} packets, {} ops outstanding, {} packets in flight, \
         {timeouts} timeouts, {next}",
        flow.connection,
        host.id.get(),
        flow.peer.get(),
        waiting.cwnd,
        waiting.ops,
        waiting.in_flight
    );
    Some((timeouts, text))
}

/// Returns the port with the most drops or, if there are no drops, the port with the longest queue. Of equal
/// ports it is the first.
fn queue<F: AlgorithmFactory>(now: Time, parts: &[Part<F>], plan: &Plan<F>) -> String {
    let mut fullest: Option<(Bytes, String)> = None;
    let mut worst: Option<(u64, String)> = None;
    let ports = parts.first().map(|part| part.world.network.ports());
    for port in ports.into_iter().flatten() {
        // Ports are visited in their order, independent of the parts.
        let Some(part) = parts.iter().find(|part| part.owns(port)) else { continue };
        let network = &part.world.network;
        let held = network.queue_bytes(port, now);
        if held > fullest.as_ref().map_or(Bytes::default(), |(most, _)| *most) {
            fullest = Some((held, network.port_name(port)));
        }
        let counters = data_counters(network, plan.credits.is_some(), port, now);
        let dropped = counters.dropped.packets;
        if dropped > worst.as_ref().map_or(0, |(most, _)| *most) {
            worst = Some((dropped, network.port_name(port)));
        }
    }
    match (fullest, worst) {
        (_, Some((drops, port))) => format!("most drops: {drops} packets at {port}"),
        (Some((held, port)), None) => format!("fullest queue: {held} at {port}"),
        (None, None) => {
            let in_flight = |part: &Part<F>| part.world.network.pool().len() as u64;
            let held: u64 = parts.iter().map(in_flight).sum();
            format!("all queues are empty and nothing was dropped: {held} packets are on links")
        }
    }
}
