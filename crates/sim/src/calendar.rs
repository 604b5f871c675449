//! Calendar of a run in time windows: the packets, ports and hosts with events, per window.
//!
//! A window is at most as long as the smallest delay of a link, so nodes do not affect each other within a
//! window. All arrivals of a node are known when the window begins. Each node, and each port of a switch,
//! processes its events independently, so only the events of one port or one host need an order.
//!
//! Per window, the calendar stores the packets that arrive ([`Flights`]), the other events of ports, and one
//! bit for each *place*: a link into a node together with the node's own port on this link. Places of one
//! node are adjacent; switches precede hosts.

use apus_cc::SwitchHalf;
use apus_fabric::{FabricEvent, Flight, Network, Node, opposite};
use apus_units::{HostId, PortId, Span, Time};
use apus_wire::Header;

use crate::flights::{Flights, LISTS, List};

/// Number of windows that the calendar covers: one word of bits. Later events are entered into the last
/// window and checked again there.
const WINDOWS: u64 = 64;
const _: () = assert!(LISTS == 2 * WINDOWS as usize, "a list for switches and one for hosts");
/// Maximum length of a window in picoseconds. Products of one window and a time within [`WINDOWS`] windows
/// fit into 64 bits; a time within a window fits into the 32 bits that it has in the order of packets.
const LONGEST: u64 = 1 << 28;
const _: () = assert!(LONGEST < 1 << u32::BITS);
/// Time of no event.
const NEVER: u64 = u64::MAX;
const BITS: usize = 64;

/// Events of a class port other than arrivals.
#[derive(Clone, Copy, Debug)]
struct Own {
    /// The earliest of the other events.
    due: u64,
    service: u64,
    wake: u64,
    held: u64,
}

impl Own {
    const NONE: Self = Self { due: NEVER, service: NEVER, wake: NEVER, held: NEVER };

    #[inline]
    fn set_due(&mut self) {
        self.due = self.service.min(self.wake).min(self.held);
    }
}

/// A link into a node, and the node's own port on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// Port that sends over the link.
    pub(crate) link: PortId,
    /// The node's own port on the link.
    pub(crate) port: PortId,
    /// The host, if the node is one.
    pub(crate) host: Option<HostId>,
}

/// Pending events by window.
#[derive(Debug)]
pub(crate) struct Calendar {
    /// Length of a window in picoseconds, and 2^64 divided by it, rounded up.
    width: u64,
    inverse: u64,
    /// Number and start of the current window; between windows, those of the previous one.
    cursor: u64,
    start: u64,
    /// Bit n % 64 is set if window n has events.
    windows: u64,
    /// By window modulo [`WINDOWS`]: a bit per place.
    bits: Vec<u64>,
    words_per_window: usize,
    /// By window modulo [`WINDOWS`]: the packets that arrive at switches, and those that arrive at hosts.
    pub(crate) flights: Flights,
    /// Bit n % 64 is set if the packets of window n include packets of later windows.
    far: u64,
    /// By window modulo [`WINDOWS`]: ports to be served before their packets of the given time.
    to_serve: Vec<Vec<(Time, PortId)>>,
    places: Vec<Place>,
    /// First word of bits of hosts. Places of hosts share no word with places of switches.
    hosts_from: usize,
    /// By port: the place to which its link leads.
    place_of: Vec<u32>,
    /// By place: events other than arrivals; empty if all ports are FIFO ports.
    own: Vec<Own>,
    /// Place whose own events are being processed. Its next event is entered afterwards.
    busy: Option<u32>,
    /// Whether a window is open.
    open: bool,
    /// Places with further events in the open window, because it ends early.
    after: Vec<u32>,
}

impl Calendar {
    /// Returns a calendar for a network without packets; `None` if nodes of the network affect each other
    /// without delay, or a host has several ports.
    pub(crate) fn new<W: SwitchHalf>(network: &Network<Header, W>) -> Option<Self> {
        let width = network.smallest_delay().as_ps().min(LONGEST);
        // A window handles a host at one place, that of its link.
        let mut hosts = (0..network.hosts()).map(HostId::new);
        let has_one_place = hosts.all(|host| network.host_ports(host).len() == 1);
        if width < 2 || !network.ports_are_independent() || !has_one_place {
            return None;
        }
        let switches = network.switches();
        let node = |link| match network.port_ends(link).1 {
            Node::Switch(switch) => (switch.get(), None),
            Node::Host(host) => (switches + host.get(), Some(host)),
        };
        let mut links: Vec<PortId> = network.ports().collect();
        links.sort_by_key(|&link| (node(link).0, link));
        let mut place_of = vec![0; links.len()];
        let mut places: Vec<Place> = Vec::with_capacity(links.len());
        let mut hosts_from = None;
        for link in links {
            let place = Place { link, port: opposite(link), host: node(link).1 };
            if place.host.is_some() && hosts_from.is_none() {
                places.resize(places.len().next_multiple_of(BITS), place);
                hosts_from = Some(places.len() / BITS);
            }
            place_of[link.index()] = places.len() as u32;
            places.push(place);
        }
        let words_per_window = places.len().div_ceil(BITS);
        let with_own = if network.has_event_ports() { places.len() } else { 0 };
        Some(Self {
            width,
            inverse: u64::MAX / width + 1,
            cursor: 0,
            start: 0,
            windows: 0,
            bits: vec![0; words_per_window * WINDOWS as usize],
            words_per_window,
            flights: Flights::new(),
            far: 0,
            to_serve: vec![Vec::new(); WINDOWS as usize],
            hosts_from: hosts_from.unwrap_or(words_per_window),
            place_of,
            own: vec![Own::NONE; with_own],
            places,
            busy: None,
            open: false,
            after: Vec::new(),
        })
    }

    /// Returns the length of a window.
    pub(crate) fn width(&self) -> Span {
        Span::from_ps(self.width)
    }

    /// Returns the number of windows between the current window and `at`, limited to the last window of the calendar.
    #[inline]
    fn ahead(&self, at: u64) -> u64 {
        let since = at - self.start;
        if since < WINDOWS * self.width { self.windows_in(since) } else { WINDOWS - 1 }
    }

    /// Returns the number of whole windows in a time within the calendar.
    #[inline]
    fn windows_in(&self, since: u64) -> u64 {
        // Exact: both are below 2^34 and the width below 2^28, see `LONGEST`.
        ((u128::from(since) * u128::from(self.inverse)) >> u64::BITS) as u64
    }

    /// Enters an event of a place at `at`.
    #[inline]
    pub(crate) fn mark(&mut self, place: u32, at: Time) {
        let ahead = self.ahead(at.as_ps());
        if ahead == 0 && self.open {
            self.after.push(place);
        } else {
            self.set_bit(place, (self.cursor + ahead) % WINDOWS);
        }
    }

    #[inline]
    fn set_bit(&mut self, place: u32, window: u64) {
        let (word, bit) = (place as usize / BITS, place as usize % BITS);
        self.windows |= 1 << window;
        self.bits[window as usize * self.words_per_window + word] |= 1 << bit;
    }

    /// Returns the window of a packet, modulo [`WINDOWS`].
    #[inline(always)]
    fn window_of(&mut self, at: Time) -> u64 {
        let since = at.as_ps() - self.start;
        if since < WINDOWS * self.width {
            (self.cursor + self.windows_in(since)) % WINDOWS
        } else {
            self.farthest_window()
        }
    }

    /// Returns the last window of the calendar, for a packet that arrives later than that.
    #[cold]
    fn farthest_window(&mut self) -> u64 {
        let window = (self.cursor + WINDOWS - 1) % WINDOWS;
        self.far |= 1 << window;
        window
    }

    /// Stores a packet until it arrives at a host or at a switch.
    #[inline(always)]
    pub(crate) fn fly(&mut self, flight: Flight, to_host: bool) {
        let window = self.window_of(flight.arrives);
        if self.flights.push(2 * window as usize + usize::from(to_host), flight) {
            self.windows |= 1 << window;
        }
    }

    /// Takes the packets of this window that arrive at hosts or at switches.
    pub(crate) fn take_flights(&mut self, at_hosts: bool) -> List {
        self.flights.take(2 * (self.cursor % WINDOWS) as usize + usize::from(at_hosts))
    }

    /// Returns `true` if some packets of this window may arrive at `limit` or later.
    pub(crate) fn has_later(&self, limit: Time) -> bool {
        limit.as_ps() < self.start.saturating_add(self.width)
            || self.far >> (self.cursor % WINDOWS) & 1 == 1
    }

    /// Enters a port that must be served before its packets of time `at`.
    pub(crate) fn serve_by(&mut self, port: PortId, at: Time) {
        let window = self.window_of(at);
        self.windows |= 1 << window;
        self.to_serve[window as usize].push((at, port));
    }

    /// Takes the ports that are entered in this window, in exchange for the empty `ports`. Some of them are
    /// due in a later window.
    pub(crate) fn take_to_serve(&mut self, ports: &mut Vec<(Time, PortId)>) {
        core::mem::swap(&mut self.to_serve[(self.cursor % WINDOWS) as usize], ports);
    }

    /// Enters an event of the fabric.
    #[inline]
    pub(crate) fn push(&mut self, event: FabricEvent, at: Time) {
        let place = self.push_own(event, at.as_ps());
        if self.busy != Some(place) {
            self.mark(place, at);
        }
    }

    /// Removes an event. The bit of its place in the window stays set, without effect.
    pub(crate) fn cancel(&mut self, event: FabricEvent) {
        self.push_own(event, NEVER);
    }

    #[inline]
    fn push_own(&mut self, event: FabricEvent, at: u64) -> u32 {
        let (FabricEvent::Arrival(port)
        | FabricEvent::Mail(port)
        | FabricEvent::Service(port)
        | FabricEvent::Wake(port)
        | FabricEvent::Held(port)) = event;
        let place = self.place_of_port(port);
        let own = &mut self.own[place as usize];
        match event {
            FabricEvent::Service(_) => own.service = at,
            FabricEvent::Wake(_) => own.wake = at,
            FabricEvent::Held(_) => own.held = at,
            FabricEvent::Arrival(_) | FabricEvent::Mail(_) => {
                unreachable!(
                    "packets fly in a network with a calendar, and its ports do not touch each other"
                )
            }
        }
        own.set_due();
        place
    }

    /// Enters the wake-up of a host.
    #[inline]
    pub(crate) fn push_host(&mut self, nic: PortId, at: Time) {
        let place = self.place_of_port(nic);
        if self.busy != Some(place) {
            self.mark(place, at);
        }
    }

    /// Returns the next window with events.
    fn next_window(&self) -> Option<u64> {
        let ahead = self.windows.rotate_right((self.cursor % WINDOWS) as u32);
        (ahead != 0).then(|| self.cursor + u64::from(ahead.trailing_zeros()))
    }

    /// Returns a lower bound of the time of the next event; [`Time::MAX`] if there is none.
    pub(crate) fn next_at(&self) -> Time {
        self.next_window().map_or(Time::MAX, |window| Time::from_ps(window * self.width))
    }

    /// Opens the next window that starts before `end`. Returns its end, at most `end`.
    pub(crate) fn begin_window(&mut self, end: Time) -> Option<Time> {
        let window = self.next_window()?;
        let start = window * self.width;
        if start >= end.as_ps() {
            return None;
        }
        (self.cursor, self.start) = (window, start);
        self.windows &= !(1 << (window % WINDOWS));
        self.open = true;
        Some(Time::from_ps(start.saturating_add(self.width)).min(end))
    }

    /// Closes the window after its events.
    pub(crate) fn end_window(&mut self) {
        self.open = false;
        self.far &= !(1 << (self.cursor % WINDOWS));
        while let Some(place) = self.after.pop() {
            self.set_bit(place, self.cursor % WINDOWS);
        }
    }

    /// Replaces `places` by the places of hosts or of switches with events in this window, in order, and
    /// removes them from the calendar.
    pub(crate) fn take_places(&mut self, of_hosts: bool, places: &mut Vec<u32>) {
        places.clear();
        let window = (self.cursor % WINDOWS) as usize;
        let words = &mut self.bits[window * self.words_per_window..][..self.words_per_window];
        let (switches, hosts) = words.split_at_mut(self.hosts_from);
        let (from, words) = if of_hosts { (self.hosts_from, hosts) } else { (0, switches) };
        for (word, bits) in (from..).zip(words) {
            places.extend(ones(core::mem::take(bits)).map(|bit| (word * BITS) as u32 + bit));
        }
    }

    /// Enters the place at the end of a link into the current window, which is open.
    #[inline(always)]
    pub(crate) fn mark_now(&mut self, link: PortId) {
        let place = self.place_of[link.index()] as usize;
        let window = (self.cursor % WINDOWS) as usize;
        self.bits[window * self.words_per_window + place / BITS] |= 1 << (place % BITS);
    }

    /// Returns the start of the current window.
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    #[inline]
    pub(crate) fn place(&self, place: u32) -> Place {
        self.places[place as usize]
    }

    /// Returns the place of a node's own port.
    #[inline]
    pub(crate) fn place_of_port(&self, port: PortId) -> u32 {
        self.place_of[opposite(port).index()]
    }

    /// Returns `true` if ports have events other than arrivals.
    #[inline]
    pub(crate) fn has_own_events(&self) -> bool {
        !self.own.is_empty()
    }

    /// Returns the time of the next event of a place's port other than arrivals.
    #[inline]
    pub(crate) fn next_own(&self, place: u32) -> Time {
        self.own.get(place as usize).map_or(Time::MAX, |own| Time::from_ps(own.due))
    }

    /// Removes the next event of a place's port other than arrivals, so that the caller processes it.
    #[inline]
    pub(crate) fn take_own(&mut self, place: u32) -> FabricEvent {
        let (own, port) = (&mut self.own[place as usize], self.places[place as usize].port);
        let (at, event) = if own.service == own.due {
            (&mut own.service, FabricEvent::Service(port))
        } else if own.wake == own.due {
            (&mut own.wake, FabricEvent::Wake(port))
        } else {
            (&mut own.held, FabricEvent::Held(port))
        };
        *at = NEVER;
        own.set_due();
        event
    }

    /// Begins the processing of a place's own events.
    #[inline]
    pub(crate) fn begin(&mut self, place: u32) {
        self.busy = Some(place);
    }

    /// Ends the processing of a place. The next own event of the place is at `next`.
    #[inline]
    pub(crate) fn finish(&mut self, place: u32, next: Time) {
        self.busy = None;
        if next < Time::MAX {
            self.mark(place, next);
        }
    }
}

/// Returns the set bits, from the lowest upwards.
#[inline]
fn ones(mut bits: u64) -> impl Iterator<Item = u32> {
    core::iter::from_fn(move || {
        let bit = bits.trailing_zeros();
        bits &= bits.wrapping_sub(1);
        (bit < u64::BITS).then_some(bit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use apus_fabric::{Tier, Topology};
    use apus_units::{Bytes, Rate, Span};

    fn calendar(delay: Span) -> Option<Calendar> {
        let tier = Tier::<apus_cc::Plain>::hosts(Rate::from_gbps(100), delay, Bytes::new(1 << 20));
        Calendar::new(&Topology::star(3, &tier).build(1).expect("network"))
    }

    /// Every time falls into the window that a division gives, and times beyond the calendar into its last window.
    #[test]
    fn windows_are_found_without_division() {
        for width in [2, 3, 999_983, 1_000_000, LONGEST] {
            let mut calendar = calendar(Span::from_ps(width)).expect("calendar");
            for start in [0, 17] {
                (calendar.cursor, calendar.start) = (start, start * width);
                for window in [0, 1, 40, 62, 63, 64, 1000] {
                    for within in [0, 1, width / 2, width - 1] {
                        let at = (start + window) * width + within;
                        assert_eq!(calendar.ahead(at), window.min(WINDOWS - 1), "{width} {at}");
                    }
                }
            }
        }
    }

    #[test]
    fn links_without_delay_leave_no_window() {
        assert!(calendar(Span::ZERO).is_none());
    }

    /// Places come out in order, each in its window. Places of a window that was cut short come out again.
    #[test]
    fn places_come_in_their_windows() {
        let mut calendar = calendar(Span::from_ps(1000)).expect("calendar");
        let at = Time::from_ps;
        // The three hosts are the places from 64 upwards.
        for (place, time) in [(66, 2500), (2, 2999), (0, 7000)] {
            calendar.mark(place, at(time));
        }
        let mut places = Vec::new();
        assert_eq!(calendar.next_at(), at(2000));
        assert_eq!(calendar.begin_window(at(2000)), None);
        assert_eq!(calendar.begin_window(at(2800)), Some(at(2800)));
        calendar.take_places(false, &mut places);
        assert_eq!(places, [2]);
        calendar.take_places(true, &mut places);
        assert_eq!(places, [66]);
        calendar.mark(2, at(2999));
        calendar.end_window();
        assert_eq!(calendar.begin_window(at(9000)), Some(at(3000)));
        calendar.take_places(false, &mut places);
        assert_eq!(places, [2]);
        calendar.end_window();
        assert_eq!(calendar.begin_window(at(9000)), Some(at(8000)));
        calendar.take_places(false, &mut places);
        assert_eq!(places, [0]);
        calendar.end_window();
        assert_eq!(calendar.next_at(), Time::MAX);
    }
}
