//! Mapping of entropy values to paths.

use apus_cc::{Ev, SwitchHalf};
use apus_fabric::{Network, PathSet, RouteId, Way};
use apus_transport::{NextEv, Path};
use apus_units::random::{INCREMENT, below, mix};
use apus_units::{PacketNumber, Time};
use apus_wire::Header;

use crate::plan::{AckPath, EvForm};

/// Marks a pair of ports that is not used because its links are avoided; stored in place of the port.
const CUT: u8 = u8::MAX;

/// The paths of a flow that spreads its packets.
#[derive(Clone, Debug)]
pub(crate) struct FlowPaths {
    set: PathSet,
    /// The paths of a network without failures.
    planned: PathSet,
    /// Ports of the host where the paths begin, as bits.
    ports: u64,
    /// By pair of ports: this host's port, or [`CUT`]. Empty if the host has one port, or its ports lead to
    /// unequal networks.
    pairs: Box<[u8]>,
    /// Hash of the run and the connection, the same at both ends.
    key: u64,
    form: EvForm,
    ack_path: AckPath,
    /// How data packets follow their route.
    way: Way,
    /// Time at which the ports have sent all data of a job that the flow has passed to them. Data may leave
    /// through one port before earlier data of the flow leaves through another.
    left_at: Time,
}

impl FlowPaths {
    pub(crate) fn new(
        set: PathSet,
        key: u64,
        (form, ack_path): (EvForm, AckPath),
        way: Way,
    ) -> Self {
        let (ports, pairs) = (1, Box::default());
        Self { set, planned: set, ports, pairs, key, form, ack_path, way, left_at: Time::ZERO }
    }

    /// Records that a port will have sent data of a job at `left_at`. Returns the time at which all data so
    /// far has left.
    pub(crate) fn leaves(&mut self, left_at: Time) -> Time {
        self.left_at = self.left_at.max(left_at);
        self.left_at
    }

    /// Sets the paths that packets take from now on.
    pub(crate) fn set_current(&mut self, set: PathSet) {
        self.set = set;
    }

    /// Sets the ports of a host with several ports. `port_of` returns the number of the port where a route
    /// begins, and whether the host avoids the route now. If all routes are avoided, they are all used.
    pub(crate) fn set_ports(&mut self, port_of: impl Fn(RouteId) -> (u8, bool)) {
        let pairs = self.planned.port_pairs();
        let paths = if pairs > 1 { pairs } else { self.planned.count() };
        let mut ports: Vec<(u8, bool)> =
            (0..paths).map(|path| port_of(self.planned.route(path))).collect();
        if ports.iter().all(|(_, is_avoided)| *is_avoided) {
            ports.iter_mut().for_each(|(_, is_avoided)| *is_avoided = false);
        }
        let used = ports.iter().filter(|(_, is_avoided)| !is_avoided);
        self.ports = used.fold(0, |all, (port, _)| all | 1 << port);
        if pairs > 1 {
            self.pairs =
                ports.iter().map(|&(port, is_cut)| if is_cut { CUT } else { port }).collect();
        }
    }

    /// Returns the paths that packets take now.
    pub(crate) fn routes(&self) -> impl Iterator<Item = RouteId> + use<> {
        let set = self.set;
        (0..set.count()).map(move |number| set.route(number))
    }

    /// Returns the ports of the host where the paths begin, as bits.
    #[inline]
    pub(crate) fn ports(&self) -> u64 {
        self.ports
    }

    /// Returns `true` if entropy values name ports of the host.
    #[inline]
    pub(crate) fn names_ports(&self) -> bool {
        !self.pairs.is_empty()
    }

    /// Returns the number of pairs of ports that entropy values name.
    pub(crate) fn pairs(&self) -> usize {
        self.pairs.len()
    }

    /// Returns the entropy value with which the next packet leaves through a port that is `free`, and that
    /// port; `None` if the packet waits for its port.
    ///
    /// If the port of the policy's value is free, the packet uses that value. Otherwise, if the policy keeps
    /// its path, the packet waits. If the policy allows a move, the packet uses the next free port from
    /// `first` on, except ports of failing pairs: a port that is free because its packets are lost would get
    /// most of them. If the packet's own port is not `up`, it takes any free port. The new value is close to
    /// that of the policy, and leads to the same port of the peer if the ports of both hosts reach each
    /// other.
    pub(crate) fn on_a_port(
        &self,
        next: &NextEv<'_>,
        free: u64,
        up: u64,
        first: u32,
    ) -> Option<(Ev, u32)> {
        let (ev, pairs) = (next.ev, self.pairs.len());
        let own = usize::from(ev.get()).checked_rem(pairs)?;
        let port = |pair: usize| u32::from(self.pairs[pair]);
        let is_in =
            |ports: u64, pair: usize| ports.checked_shr(port(pair)).is_some_and(|bit| bit & 1 == 1);
        if is_in(free, own) {
            return Some((ev, port(own)));
        }
        // A port that is cut off sends nothing, so waiting for it would never end.
        let waits = port(own) != u32::from(CUT) && (up == 0 || is_in(up, own));
        if waits && !next.may_move {
            return None;
        }
        let best = |may_fail: bool| {
            let found = (0..pairs).filter(|&pair| {
                let fails = next.failing.get(pair).is_some_and(|fails| *fails);
                is_in(free, pair) && (may_fail || !fails)
            });
            found.map(port).min_by_key(|&port| (port < first, port))
        };
        let other = best(false).or_else(|| if waits { None } else { best(true) })?;
        let before = (0..own).filter(|&pair| port(pair) == port(own)).count();
        let of_other = || (0..pairs).filter(|&pair| port(pair) == other);
        let pair = of_other().nth(before % of_other().count())?;
        let base = usize::from(ev.get()) - own + pair;
        // The value must stay below the number of values of the policy, a power of two.
        let other = match base.checked_sub(pairs) {
            Some(lower) if pair > own && !pairs.is_power_of_two() => lower,
            _ => base,
        };
        Some((Ev::new(u16::try_from(other).unwrap_or(ev.get())), port(pair)))
    }

    /// Returns the set of ports, as bits, for which a packet waits that cannot leave [through a
    /// port](Self::on_a_port) now.
    pub(crate) fn waits_for(&self, next: &NextEv<'_>, up: u64) -> u64 {
        let bit = |port: u8| 1_u64.checked_shl(port.into()).unwrap_or(0);
        let own = usize::from(next.ev.get()) % self.pairs.len().max(1);
        let own = self.pairs.get(own).map_or(0, |port| bit(*port));
        let keeps_own = own != 0 && (up == 0 || own & up != 0);
        let fails = |pair: usize| next.failing.get(pair).is_some_and(|fails| *fails);
        let may_take = |pair: usize| !keeps_own || next.may_move && !fails(pair);
        let pairs = self.pairs.iter().enumerate().filter(|(pair, _)| may_take(*pair));
        pairs.fold(own, |all, (_, port)| all | bit(*port))
    }

    /// Returns the route of the packet with number `seq` for the `path` that the transport chose, and how the
    /// packet follows the route. `is_up` returns whether the link of a port works, for hosts with several
    /// ports.
    #[inline]
    pub(crate) fn route(
        &self,
        path: Path,
        seq: PacketNumber,
        is_up: impl Fn(u8) -> bool,
    ) -> (RouteId, Way) {
        let count = self.set.count();
        let number = match (path, self.form) {
            (Path::Spread(ev), EvForm::Hashed) => self.on_its_pair(ev),
            (Path::Spread(ev), EvForm::Indexed) => self.indexed(u32::from(ev.get())),
            (Path::Back(number), _) if self.ack_path == AckPath::Symmetric => number % count,
            // The hash input has upper bits that no entropy value has.
            (Path::Back(_), _) => self.hashed(!seq.get()),
            (Path::Label(label), _) => label % count,
        };
        let number =
            if self.pairs.is_empty() { number } else { self.on_a_used_pair(number, is_up) };
        let way = if let Path::Spread(_) = path { self.way } else { Way::FORWARD };
        (self.set.route(number), way)
    }

    /// Returns the number of the path on which a packet of the peer arrived.
    #[inline]
    pub(crate) fn came_by<W: SwitchHalf>(
        &self,
        route: RouteId,
        network: &Network<Header, W>,
    ) -> u32 {
        match self.set.number_of(route) {
            Some(number) => number,
            None => self.came_by_former(route, network),
        }
    }

    /// Returns the number of the path of a packet that was sent before the paths changed.
    #[cold]
    fn came_by_former<W: SwitchHalf>(&self, route: RouteId, network: &Network<Header, W>) -> u32 {
        let planned = self.planned.number_of(route).map(|number| (number, 1));
        let Some((number, variants)) = planned.or_else(|| network.detour_number(route)) else {
            return 0;
        };
        let now = self.set.variants();
        number / variants * now + number % variants % now
    }

    /// Returns the path of an indexed value. The lower digits of the value select a path of the network
    /// without failures, the upper digits a detour of that path.
    #[inline]
    fn indexed(&self, value: u32) -> u32 {
        let (count, variants) = (self.set.count(), self.set.variants());
        if variants == 1 {
            return value % count;
        }
        let planned = count / variants;
        value % planned * variants + value / planned % variants
    }

    /// Returns the path for the hash of an entropy value. If the host has several ports, the value itself
    /// names the port, because a NIC chooses its port and switches hash.
    #[inline]
    fn on_its_pair(&self, ev: Ev) -> u32 {
        let (word, pairs) = (u64::from(ev.get()), self.pairs.len() as u32);
        if pairs == 0 {
            return self.hashed(word);
        }
        let variants = self.set.variants();
        let drawn = self.drawn(word, u64::from(self.set.count() / pairs));
        let path = u32::from(ev.get()) % pairs + pairs * (drawn / variants);
        path * variants + drawn % variants
    }

    /// Returns the number of a path; if its pair is not in use, the number of the same path between the next
    /// pair in use.
    fn on_a_used_pair(&self, number: u32, is_up: impl Fn(u8) -> bool) -> u32 {
        let (variants, pairs) = (self.set.variants(), self.pairs.len() as u32);
        let (path, variant) = (number / variants, number % variants);
        let own = path % pairs;
        let is_used = |pair: &u32| {
            let port = self.pairs[*pair as usize];
            port != CUT && is_up(port)
        };
        if is_used(&own) {
            return number;
        }
        let pair = (own..pairs).chain(0..own).find(is_used).unwrap_or(own);
        (path - own + pair) * variants + variant
    }

    #[inline]
    fn hashed(&self, word: u64) -> u32 {
        self.drawn(word, u64::from(self.set.count()))
    }

    /// Returns a number below `count` by a hash.
    #[inline]
    fn drawn(&self, word: u64, count: u64) -> u32 {
        let hash = mix(self.key.wrapping_add(INCREMENT) ^ word);
        below(mix(hash.wrapping_add(INCREMENT)), count) as u32 // below the count of paths
    }
}
