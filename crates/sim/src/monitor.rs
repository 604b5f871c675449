//! The state of a run in progress, for display to users. Monitoring changes no result.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use apus_cc::AlgorithmFactory;
use apus_units::{PortId, Span, Time};

use crate::credits::data_counters;
use crate::part::Part;
use crate::plan::Plan;

/// Maximum number of queues in a state. Rationale: a terminal has room for about as many next to the other output.
const NAMED_QUEUES: usize = 16;
/// Number of classes of utilisation, which have equal widths.
pub const UTILISATION_CLASSES: usize = 10;
/// Pause after a state, as a multiple of the time that it took. deviation: no source; the run takes at most 2 % longer.
const PAUSE_FACTOR: u32 = 50;

/// Receiver of the state of runs in progress.
#[derive(Clone)]
pub struct Monitor {
    /// Minimum real time between two states of a run.
    pub interval: Duration,
    /// Function that gets the name of a run and its state, on the thread of the run.
    pub hear: Arc<HearState>,
}

/// See [`Monitor`].
pub type HearState = dyn Fn(&str, State) + Send + Sync;

impl fmt::Debug for Monitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Monitor").field("interval", &self.interval).finish_non_exhaustive()
    }
}

/// State of a run at one simulated time. Counts begin at the start of the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    /// Simulated time since the start.
    pub simulated: Span,
    /// Payload delivered for the first time, in bytes.
    pub delivered_bytes: u64,
    /// Ops that have ended.
    pub ops: u64,
    /// Packets dropped at ports and on links, credits not included.
    pub dropped_packets: u64,
    /// Packets marked with ECN by switches.
    pub marked_packets: u64,
    /// Packets trimmed by switches.
    pub trimmed_packets: u64,
    /// Number of times that a class of a port was paused.
    pub pauses: u64,
    /// Bytes in all ports.
    pub queued_bytes: u64,
    /// The ports with the longest queues, longest first; ports without a queue are omitted.
    pub longest_queues: Vec<QueueState>,
    /// Number of ports by utilisation since the previous state: up to 10 %, up to 20 %, and so on. Ports that
    /// have sent nothing are omitted.
    pub by_utilisation: [u64; UTILISATION_CLASSES],
}

/// The queue of a port.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueueState {
    /// Name of the port.
    pub port: String,
    /// Bytes in the port, the packet in service included.
    pub bytes: u64,
    /// Bytes sent since the previous state as a share of the port's capacity, from 0 to 1.
    pub utilisation: f64,
    /// Packets dropped at the port since the start, credits not included.
    pub dropped_packets: u64,
}

/// Produces the states of one run.
pub(crate) struct States {
    monitor: Monitor,
    /// Real time of the next state.
    next: Instant,
    /// By port: bytes that it had sent at the previous state.
    sent: Vec<u64>,
    before: Time,
}

impl States {
    pub(crate) fn new(monitor: Monitor) -> Self {
        Self { monitor, next: Instant::now(), sent: Vec::new(), before: Time::ZERO }
    }

    /// Reports the state at `now` if it is due.
    pub(crate) fn tell<F: AlgorithmFactory>(
        &mut self,
        name: &str,
        now: Time,
        parts: &[Part<F>],
        plan: &Plan<F>,
    ) {
        let started = Instant::now();
        if started < self.next || now == self.before {
            return;
        }
        let state = self.take(now, parts, plan);
        (self.monitor.hear)(name, state);
        let pause = self.monitor.interval.max(started.elapsed() * PAUSE_FACTOR);
        self.next = Instant::now() + pause;
    }

    fn take<F: AlgorithmFactory>(&mut self, now: Time, parts: &[Part<F>], plan: &Plan<F>) -> State {
        let has_credits = plan.credits.is_some();
        let mut state =
            State { simulated: now.since(Time::ZERO).min(plan.duration), ..State::default() };
        for part in parts {
            let metrics = &part.world.metrics;
            state.delivered_bytes += metrics.startup.new_bytes + metrics.warm.new_bytes;
            state.ops += part.world.op_times.ended;
            let counters = part.world.network.counters();
            state.dropped_packets += counters.dropped_total();
            state.trimmed_packets += counters.trimmed;
            state.pauses += counters.pauses;
        }
        let mut queues: Vec<(u64, PortId, f64)> = Vec::new();
        let since = now.since(self.before).as_secs_f64();
        for part in parts {
            let network = &part.world.network;
            self.sent.resize(network.ports().count(), 0);
            for port in network.ports().filter(|&port| part.owns(port)) {
                let counters = data_counters(network, has_credits, port, now);
                let dropped_credits =
                    network.port_counters(port, now).dropped.packets - counters.dropped.packets;
                state.dropped_packets -= dropped_credits;
                state.marked_packets += counters.marked;
                state.queued_bytes += counters.queued.bytes;
                let before = core::mem::replace(&mut self.sent[port.index()], counters.sent.bytes);
                let bits = counters.sent.bytes.saturating_sub(before) as f64 * 8.0;
                let utilisation = (bits / (network.rate(port).as_bps() as f64 * since)).min(1.0);
                if bits > 0.0 {
                    let class = (utilisation * UTILISATION_CLASSES as f64).ceil() as usize;
                    state.by_utilisation[class.clamp(1, UTILISATION_CLASSES) - 1] += 1;
                }
                if counters.queued.bytes > 0 {
                    queues.push((counters.queued.bytes, port, utilisation));
                }
            }
        }
        // Ports with equal queues keep the order of their numbers, so that rows do not change places.
        queues.sort_by_key(|&(bytes, port, _)| (std::cmp::Reverse(bytes), port));
        queues.truncate(NAMED_QUEUES);
        state.longest_queues.extend(queues.into_iter().filter_map(|(bytes, port, utilisation)| {
            let network = &parts.iter().find(|part| part.owns(port))?.world.network;
            let dropped_packets = data_counters(network, has_credits, port, now).dropped.packets;
            Some(QueueState { port: network.port_name(port), bytes, utilisation, dropped_packets })
        }));
        self.before = now;
        state
    }
}
