//! The calendar of a run that goes window by window: which nodes have something to do in which.
//!
//! A window is as long as the smallest delay of a link, so nothing that a node does within one
//! touches another node in the same: all a node's arrivals are known when it begins, and each node
//! takes them by itself, a switch even port by port. So there is no order to keep but that of one
//! port's or one host's events, and what is kept is a bit per node and window, and the next event of
//! each link and port.

use apus_fabric::{FabricEvent, Network, Node, opposite};
use apus_units::{HostId, PortId, Time};
use apus_wire::Header;

/// Windows that the calendar looks ahead: one word of bits. What is due later is looked at again
/// within so many.
const WINDOWS: u64 = 64;
/// A time at which nothing happens.
const NEVER: u64 = u64::MAX;
/// No node.
const NONE: u32 = u32::MAX;

/// The events that a class port waits for beside arrivals.
#[derive(Clone, Copy, Debug)]
struct Own {
    service: u64,
    wake: u64,
    held: u64,
}

/// What happens when, by node: switches first, then hosts.
#[derive(Debug)]
pub(crate) struct Calendar {
    /// A window in picoseconds.
    width: u64,
    /// The window being gone through, or the last one.
    cursor: u64,
    /// Bit `n % 64` of window n: whether any node has something to do in it.
    windows: u64,
    /// By window modulo [`WINDOWS`]: a bit per node.
    nodes: Vec<u64>,
    /// Words of bits per window.
    words: usize,
    switches: u32,
    /// Places of the links that lead to each node, and of the last one their end.
    first: Vec<u32>,
    /// The port behind which lies the link at each place.
    inbound: Vec<PortId>,
    /// By port: place of its link, and the node that it leads to.
    place: Vec<(u32, u32)>,
    /// By place: when the next packet arrives.
    arrivals: Vec<u64>,
    /// By port; empty if there are FIFO ports only.
    own: Vec<Own>,
    /// The node whose events are being handled: it is looked at afterwards anyway.
    busy: u32,
}

impl Calendar {
    /// A calendar for a network in which nothing has been sent; `None` if its nodes touch each other
    /// at once.
    pub(crate) fn new(network: &Network<Header>) -> Option<Self> {
        let width = network.smallest_delay();
        if width.is_zero() || !network.ports_are_independent() {
            return None;
        }
        let switches = network.switches();
        let node = |node| match node {
            Node::Switch(switch) => switch.get(),
            Node::Host(host) => switches + host.get(),
        };
        let mut inbound: Vec<PortId> = network.ports().collect();
        inbound.sort_by_key(|&port| (node(network.port_ends(port).1), port));
        let nodes = (switches + network.hosts()) as usize;
        let (mut first, mut place) = (vec![0; nodes + 1], vec![(0, 0); inbound.len()]);
        for (at, &port) in (0..).zip(&inbound) {
            let node = node(network.port_ends(port).1);
            place[port.index()] = (at, node);
            first[node as usize + 1] = at + 1;
        }
        // A node that no link leads to ends where the one before it does.
        for index in 1..first.len() {
            first[index] = first[index].max(first[index - 1]);
        }
        let words = nodes.div_ceil(64);
        let own = Own { service: NEVER, wake: NEVER, held: NEVER };
        let ports = if network.has_class_ports() { inbound.len() } else { 0 };
        Some(Self {
            width: width.as_ps(),
            cursor: 0,
            windows: 0,
            nodes: vec![0; words * WINDOWS as usize],
            words,
            switches,
            first,
            arrivals: vec![NEVER; inbound.len()],
            inbound,
            place,
            own: vec![own; ports],
            busy: NONE,
        })
    }

    /// Notes that a node has something to do at `at`.
    #[inline]
    fn mark(&mut self, node: u32, at: u64) {
        let window = (at / self.width).min(self.cursor + (WINDOWS - 1)) % WINDOWS;
        self.windows |= 1 << window;
        self.nodes[window as usize * self.words + node as usize / 64] |= 1 << (node % 64);
    }

    /// The node that owns a port: where the link of the opposite direction leads.
    #[inline]
    fn owner(&self, port: PortId) -> u32 {
        self.place[opposite(port).index()].1
    }

    /// Notes an event of the fabric.
    #[inline]
    pub(crate) fn push(&mut self, event: FabricEvent, at: Time) {
        let at = at.as_ps();
        if let FabricEvent::Arrival(port) = event {
            let (place, node) = self.place[port.index()];
            self.arrivals[place as usize] = at;
            if node != self.busy {
                self.mark(node, at);
            }
        } else {
            self.push_own(event, at);
        }
    }

    #[inline]
    fn push_own(&mut self, event: FabricEvent, at: u64) {
        let port = match event {
            FabricEvent::Service(port) => {
                self.own[port.index()].service = at;
                port
            }
            FabricEvent::Wake(port) => {
                self.own[port.index()].wake = at;
                port
            }
            FabricEvent::Held(port) => {
                self.own[port.index()].held = at;
                port
            }
            FabricEvent::Arrival(port) | FabricEvent::Mail(port) => {
                unreachable!("{port} is not independent, so there is no calendar")
            }
        };
        let node = self.owner(port);
        if node != self.busy {
            self.mark(node, at);
        }
    }

    /// Notes a host's wake-up.
    #[inline]
    pub(crate) fn push_host(&mut self, host: HostId, at: Time) {
        let node = self.switches + host.get();
        if node != self.busy {
            self.mark(node, at.as_ps());
        }
    }

    /// The next window in which any node has something to do.
    fn next_window(&self) -> Option<u64> {
        let ahead = self.windows.rotate_right((self.cursor % WINDOWS) as u32);
        (ahead != 0).then(|| self.cursor + u64::from(ahead.trailing_zeros()))
    }

    /// A lower bound of the next event's time; [`Time::MAX`] if there is none.
    pub(crate) fn next_at(&self) -> Time {
        self.next_window().map_or(Time::MAX, |window| Time::from_ps(window * self.width))
    }

    /// Begins the next window that starts before `end`; returns where it ends, `end` at most.
    pub(crate) fn begin_window(&mut self, end: Time) -> Option<Time> {
        let window = self.next_window()?;
        let start = window * self.width;
        if start >= end.as_ps() {
            return None;
        }
        self.cursor = window;
        self.windows &= !(1 << (window % WINDOWS));
        Some(Time::from_ps(start.saturating_add(self.width)).min(end))
    }

    /// Takes the nodes `64 n` to `64 n + 63` that have something to do in this window, as bits.
    #[inline]
    pub(crate) fn take_nodes(&mut self, n: usize) -> u64 {
        let word = (self.cursor % WINDOWS) as usize * self.words + n;
        core::mem::take(&mut self.nodes[word])
    }

    /// How often [`Calendar::take_nodes`] is to be asked.
    pub(crate) fn words(&self) -> usize {
        self.words
    }

    /// What a node is.
    #[inline]
    pub(crate) fn node(&self, node: u32) -> Option<HostId> {
        node.checked_sub(self.switches).map(HostId::new)
    }

    /// The places of a node's links.
    #[inline]
    pub(crate) fn places(&self, node: u32) -> core::ops::Range<usize> {
        self.first[node as usize] as usize..self.first[node as usize + 1] as usize
    }

    /// The port behind which lies the link at a place.
    #[inline]
    pub(crate) fn port(&self, place: usize) -> PortId {
        self.inbound[place]
    }

    /// The place of the link back from where a port's leads to: of the switch's own links, if it is a
    /// port of a switch.
    #[inline]
    pub(crate) fn place_of_egress(&self, port: PortId) -> usize {
        self.place[opposite(port).index()].0 as usize
    }

    /// When the next packet arrives at a place.
    #[inline]
    pub(crate) fn arrival(&self, place: usize) -> Time {
        Time::from_ps(self.arrivals[place])
    }

    /// Notes when the next packet arrives at a place of the node that is handled.
    #[inline]
    pub(crate) fn set_arrival(&mut self, place: usize, at: Time) {
        self.arrivals[place] = at.as_ps();
    }

    /// Whether ports have events of their own.
    #[inline]
    pub(crate) fn has_own_events(&self) -> bool {
        !self.own.is_empty()
    }

    /// A port's next own event, and when.
    #[inline]
    pub(crate) fn next_own(&self, port: PortId) -> (Time, FabricEvent) {
        let Some(&Own { service, wake, held }) = self.own.get(port.index()) else {
            return (Time::MAX, FabricEvent::Service(port));
        };
        let (at, event) = if service <= wake && service <= held {
            (service, FabricEvent::Service(port))
        } else if wake <= held {
            (wake, FabricEvent::Wake(port))
        } else {
            (held, FabricEvent::Held(port))
        };
        (Time::from_ps(at), event)
    }

    /// Takes a port's own event, to handle it.
    #[inline]
    pub(crate) fn take_own(&mut self, event: FabricEvent) {
        match event {
            FabricEvent::Service(port) => self.own[port.index()].service = NEVER,
            FabricEvent::Wake(port) => self.own[port.index()].wake = NEVER,
            FabricEvent::Held(port) => self.own[port.index()].held = NEVER,
            FabricEvent::Arrival(_) | FabricEvent::Mail(_) => {}
        }
    }

    /// From here on the events of `node` are handled.
    #[inline]
    pub(crate) fn begin(&mut self, node: u32) {
        self.busy = node;
    }

    /// They have been, up to the next one at `next`.
    #[inline]
    pub(crate) fn finish(&mut self, next: Time) {
        if next < Time::MAX {
            self.mark(self.busy, next.as_ps());
        }
        self.busy = NONE;
    }
}
