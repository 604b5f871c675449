//! Switches that choose the next hop of a packet themselves.
//!
//! A packet always has a complete route, one of the shortest paths between its hosts. A switch with
//! a choice may replace the rest of the route by that of another path with the same ports up to
//! this switch. Signals, pauses and acknowledgements therefore find the way back as on any route.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use apus_cc::{SwitchChoice, SwitchHalf};
use apus_units::random::{INCREMENT, SplitMix64, mix};
use apus_units::{HostId, PortId, Span, Time};

use super::Network;
use crate::counters::DropReason;
use crate::event::Schedule;
use crate::packet::{PacketRef, Way};
use crate::routing::{RouteId, opposite};
use crate::topology::Node;

/// Packets below this size keep their route: acknowledgements and headers of trimmed packets (uet-htsim
/// 40ccb05, `getNextHop`: below 100 B).
const SMALL: u32 = 100;

/// A rule by which switches choose, with its state.
pub(super) struct Chooser {
    rule: SwitchChoice,
    /// State of each switch.
    switches: Vec<SwitchState>,
    /// For each port: its bytes, from which each class derives its load, and the time of that
    /// reading; [`Time::MAX`] if never read.
    loads: Vec<(Time, u64)>,
}

struct SwitchState {
    random: SplitMix64,
    turn: u32,
    /// For each entry of pairs of hosts: the port of their packets, and the time of the last
    /// packet. Empty until the first packet.
    flowlets: Box<[(PortId, Time)]>,
}

impl<P, W: SwitchHalf> Network<P, W> {
    /// Lets switches choose the next hop of packets with the returned way. Call it before the paths
    /// of these packets are stored ([`Network::path_set`]), and before the network is divided into
    /// parts.
    ///
    /// # Panics
    /// If there are more than 253 rules.
    pub fn let_switches_choose(&mut self, rule: SwitchChoice, seed: u64) -> Way {
        let state = |switch: usize| SwitchState {
            random: SplitMix64::new(mix(seed.wrapping_add(INCREMENT)) ^ mix(switch as u64)),
            turn: 0,
            flowlets: Box::default(),
        };
        let known = self.choosers.iter().position(|chooser| chooser.rule == rule);
        let number = known.unwrap_or_else(|| {
            self.choosers.push(Chooser {
                rule,
                switches: (0..self.names.len()).map(state).collect(),
                loads: vec![(Time::MAX, 0); self.ports.len()],
            });
            self.choosers.len() - 1
        });
        Way::chosen(u8::try_from(number).expect("at most 253 rules"))
    }

    /// Advances a packet like [`Network::pass`] if it does not follow its route forwards, or may
    /// visit no further switch.
    #[inline(never)] // most packets follow their route
    pub(super) fn pass_otherwise<S: Schedule>(
        &mut self,
        now: Time,
        packet: PacketRef,
        schedule: &mut S,
    ) -> Option<PortId> {
        let routes = &self.common.routes;
        let fields = self.common.pool.fields_mut(packet);
        if fields.ttl <= 1 {
            fields.ttl = 0;
            let ingress = routes.port(fields.route, fields.hop);
            let ingress = if fields.way == Way::BACK { opposite(ingress) } else { ingress };
            self.common.discard(ingress, packet, DropReason::Ttl);
            return None;
        }
        fields.ttl -= 1;
        Some(self.choose(now, packet, schedule))
    }

    /// Returns the egress port of a packet that does not follow its route forwards.
    fn choose<S: Schedule>(&mut self, now: Time, packet: PacketRef, schedule: &mut S) -> PortId {
        let routes = &self.common.routes;
        let fields = self.common.pool.fields_mut(packet);
        let Some(rule) = fields.way.rule() else {
            fields.hop -= 1;
            return opposite(routes.port(fields.route, fields.hop));
        };
        fields.hop += 1;
        let planned = routes.port(fields.route, fields.hop);
        if fields.wire_bytes < SMALL {
            return planned;
        }
        let choices = routes.choices(fields.route, fields.hop);
        let (a, b) = self.ends[planned.index() / 2];
        let owner = if planned.get().is_multiple_of(2) { a } else { b };
        let Node::Switch(switch) = owner else { return planned };
        if choices.is_empty() {
            return planned;
        }
        let (hop, class, pair) = (fields.hop, fields.class, (fields.src, fields.dst));
        let (route, count) = (fields.route, choices.len());
        for number in 0..count {
            // The choice reads the load of this port, which must be up to date.
            let routes = &self.common.routes;
            let port = routes.port(RouteId::new(routes.choices(route, hop)[number]), hop);
            self.ports[port.index()].serve_lazily(now, &mut self.common, schedule);
        }
        let routes = &self.common.routes;
        let choices = routes.choices(route, hop);
        let port_of = |route: &u32| routes.port(RouteId::new(*route), hop);
        let (ports, shared) = (&self.ports, &self.common.shared);
        let is_up = |route: &&u32| ports[port_of(route).index()].is_up();
        let all_down = !choices.iter().any(|route| is_up(&route));
        let usable = || choices.iter().filter(move |route| all_down || is_up(route));
        let Chooser { rule, switches, loads } = &mut self.choosers[rule];
        let state = &mut switches[switch.index()];
        let mut load = |levels: &[f64; 3], period, port: PortId| {
            let (at, bytes) = &mut loads[port.index()];
            let port = &ports[port.index()];
            if *at == Time::MAX || now.since(*at) > period {
                (*at, *bytes) = (now, port.queued(now).bytes);
            }
            let fill = port.fill(class, *bytes, shared);
            levels.iter().filter(|level| fill >= **level).count() as u8 // at most 3
        };
        let chosen = match rule {
            SwitchChoice::InTurn => {
                state.turn = state.turn.wrapping_add(1);
                usable().nth(state.turn as usize % usable().count())
            }
            SwitchChoice::LeastLoaded { levels, period } => {
                least(&mut state.random, usable(), |route| load(levels, *period, port_of(route)))
            }
            SwitchChoice::Flowlet { gap, least_loaded, places } => {
                if state.flowlets.is_empty() {
                    state.flowlets =
                        vec![(PortId::new(u32::MAX), Time::ZERO); *places as usize].into();
                }
                let place = place_of(pair, *places);
                let (port, last) = state.flowlets[place];
                let kept = usable().find(|route| port_of(route) == port && now.since(last) <= *gap);
                let chosen = kept.or_else(|| {
                    let next = |route: &u32| match least_loaded {
                        true => load(&FLOWLET_LEVELS, Span::ZERO, port_of(route)),
                        false => 0,
                    };
                    least(&mut state.random, usable(), next)
                });
                let port = chosen.map_or(port, port_of);
                state.flowlets[place] = (port, now);
                chosen
            }
        };
        let Some(&chosen) = chosen else { return planned };
        let port = port_of(&chosen);
        self.common.pool.fields_mut(packet).route = RouteId::new(chosen);
        port
    }
}

/// Load levels for the choice of a flowlet: those of [`SwitchChoice::LeastLoaded`] in uet-htsim
/// 40ccb05.
const FLOWLET_LEVELS: [f64; 3] = [0.05, 0.1, 0.2];

/// Returns a random one of the routes with the least load.
fn least<'a>(
    random: &mut SplitMix64,
    routes: impl Iterator<Item = &'a u32>,
    mut load: impl FnMut(&u32) -> u8,
) -> Option<&'a u32> {
    let (mut best, mut least, mut equal) = (None, u8::MAX, 0);
    for route in routes {
        let load = load(route);
        if load < least || best.is_none() {
            (best, least, equal) = (Some(route), load, 1);
        } else if load == least {
            // Each of the equally loaded routes is kept with the same probability.
            equal += 1;
            if random.below(equal) == 0 {
                best = Some(route);
            }
        }
    }
    best
}

/// Returns the index of a pair of hosts in a table with `places` entries, a power of two.
fn place_of((src, dst): (HostId, HostId), places: u32) -> usize {
    let pair = u64::from(src.get()) << 32 | u64::from(dst.get());
    (mix(pair.wrapping_add(INCREMENT)) & u64::from(places - 1)) as usize
}
