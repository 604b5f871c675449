//! The calendar of a run that goes window by window: which links and ports have something to do in
//! which.
//!
//! A window is no longer than the smallest delay of a link, so nothing that a node does within one
//! touches another node in the same: all a node's arrivals are known when it begins, and each node
//! takes them by itself, a switch even port by port. So there is no order to keep but that of one
//! port's or one host's events. What is kept is the next event of each link and port, and a bit per
//! window for each *place*: a link into a node together with the node's own port on that link. Places
//! of one node stand side by side, switches before hosts.

use apus_cc::SwitchHalf;
use apus_fabric::{FabricEvent, Network, Node, opposite};
use apus_units::{HostId, PortId, Span, Time};
use apus_wire::Header;

/// Windows that the calendar looks ahead: one word of bits. What is due later is looked at again
/// within so many.
const WINDOWS: u64 = 64;
/// The longest window: products of times within [`WINDOWS`] of them and of one fit into 64 bits.
const LONGEST: u64 = 1 << 28;
/// A time at which nothing happens.
const NEVER: u64 = u64::MAX;
const BITS: usize = 64;

/// The events that a class port waits for beside arrivals.
#[derive(Clone, Copy, Debug)]
struct Own {
    service: u64,
    wake: u64,
    held: u64,
}

impl Own {
    const NONE: Self = Self { service: NEVER, wake: NEVER, held: NEVER };
}

/// A link into a node, and the node's own port on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// The port behind which the link lies.
    pub(crate) link: PortId,
    /// The node's own port on the link.
    pub(crate) port: PortId,
    /// The node's first place.
    pub(crate) first: u32,
    /// Which host the node is, if it is one.
    pub(crate) host: Option<HostId>,
}

/// What happens when.
#[derive(Debug)]
pub(crate) struct Calendar {
    /// A window in picoseconds, and 2^64 over that, rounded up.
    width: u64,
    inverse: u64,
    /// The window being gone through, or the last one, and where it starts.
    cursor: u64,
    start: u64,
    /// Bit n % 64 of window n: whether anything happens in it.
    windows: u64,
    /// By window modulo [`WINDOWS`]: a bit per place, and above them a bit per word that has any.
    bits: Vec<u64>,
    words: Vec<u64>,
    words_per_window: usize,
    words_above: usize,
    places: Vec<Place>,
    /// Places of hosts begin here.
    hosts_from: u32,
    /// By port: the place to which its link leads.
    place_of: Vec<u32>,
    /// By place: when the next packet arrives.
    arrivals: Vec<u64>,
    /// By place; empty if no port is of the general kind.
    own: Vec<Own>,
    /// The place whose own events are being handled: it is looked at afterwards anyway.
    busy: Option<u32>,
    /// A window is being gone through; and places that have more to do in it because it ends early.
    open: bool,
    after: Vec<u32>,
}

impl Calendar {
    /// A calendar for a network in which nothing has been sent; `None` if its nodes touch each other
    /// at once.
    pub(crate) fn new<W: SwitchHalf>(network: &Network<Header, W>) -> Option<Self> {
        let width = network.smallest_delay().as_ps().min(LONGEST);
        if width < 2 || !network.ports_are_independent() {
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
        for (index, &link) in (0..).zip(&links) {
            let (id, host) = node(link);
            let first = match places.last() {
                Some(last) if node(last.link).0 == id => last.first,
                _ => index,
            };
            place_of[link.index()] = index;
            places.push(Place { link, port: opposite(link), first, host });
        }
        let words_per_window = places.len().div_ceil(BITS);
        let words_above = words_per_window.div_ceil(BITS);
        let with_own = if network.has_class_ports() { places.len() } else { 0 };
        Some(Self {
            width,
            inverse: u64::MAX / width + 1,
            cursor: 0,
            start: 0,
            windows: 0,
            bits: vec![0; words_per_window * WINDOWS as usize],
            words: vec![0; words_above * WINDOWS as usize],
            words_per_window,
            words_above,
            hosts_from: places.partition_point(|place| place.host.is_none()) as u32,
            place_of,
            arrivals: vec![NEVER; places.len()],
            own: vec![Own::NONE; with_own],
            places,
            busy: None,
            open: false,
            after: Vec::new(),
        })
    }

    /// How long a window is.
    pub(crate) fn width(&self) -> Span {
        Span::from_ps(self.width)
    }

    /// Begins anew at `now`; what happens is yet to be noted.
    pub(crate) fn restart(&mut self, now: Time) {
        self.cursor = now.as_ps() / self.width;
        self.start = self.cursor * self.width;
    }

    /// Takes all events of the fabric out, and forgets the hosts'.
    pub(crate) fn drain(&mut self, mut take: impl FnMut(FabricEvent, Time)) {
        self.windows = 0;
        self.bits.fill(0);
        self.words.fill(0);
        for (place, at) in self.places.iter().zip(&mut self.arrivals) {
            if *at != NEVER {
                take(FabricEvent::Arrival(place.link), Time::from_ps(*at));
                *at = NEVER;
            }
        }
        for (place, own) in self.places.iter().zip(&mut self.own) {
            let Own { service, wake, held } = core::mem::replace(own, Own::NONE);
            let events = [
                (FabricEvent::Service(place.port), service),
                (FabricEvent::Wake(place.port), wake),
                (FabricEvent::Held(place.port), held),
            ];
            for (event, at) in events.into_iter().filter(|(_, at)| *at != NEVER) {
                take(event, Time::from_ps(at));
            }
        }
    }

    /// How many windows after the one being gone through `at` lies, as far as the calendar looks.
    #[inline]
    fn ahead(&self, at: u64) -> u64 {
        let since = at - self.start;
        if since >= WINDOWS * self.width {
            return WINDOWS - 1;
        }
        // Exact: both are below 2^34 and the width below 2^28, see `LONGEST`.
        ((u128::from(since) * u128::from(self.inverse)) >> u64::BITS) as u64
    }

    /// Notes that a place has something to do at `at`.
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
        self.words[window as usize * self.words_above + word / BITS] |= 1 << (word % BITS);
    }

    /// Notes an event of the fabric.
    #[inline]
    pub(crate) fn push(&mut self, event: FabricEvent, at: Time) {
        let place = if let FabricEvent::Arrival(port) = event {
            let place = self.place_of[port.index()];
            self.arrivals[place as usize] = at.as_ps();
            place
        } else {
            self.push_own(event, at.as_ps())
        };
        if self.busy != Some(place) {
            self.mark(place, at);
        }
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
                unreachable!("a network whose ports touch each other has no calendar")
            }
        }
        place
    }

    /// Notes a host's wake-up.
    #[inline]
    pub(crate) fn push_host(&mut self, nic: PortId, at: Time) {
        let place = self.place_of_port(nic);
        if self.busy != Some(place) {
            self.mark(place, at);
        }
    }

    /// The next window in which anything happens.
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
        (self.cursor, self.start) = (window, start);
        self.windows &= !(1 << (window % WINDOWS));
        self.open = true;
        Some(Time::from_ps(start.saturating_add(self.width)).min(end))
    }

    /// Ends it, after all that happens in it.
    pub(crate) fn end_window(&mut self) {
        self.open = false;
        while let Some(place) = self.after.pop() {
            self.set_bit(place, self.cursor % WINDOWS);
        }
    }

    /// Takes the places that have something to do in this window, in order.
    pub(crate) fn take_places(&mut self, places: &mut Vec<u32>) {
        let window = (self.cursor % WINDOWS) as usize;
        for above in 0..self.words_above {
            let words = &mut self.words[window * self.words_above + above];
            for word in ones(core::mem::take(words)) {
                let word = above * BITS + word as usize;
                let bits = &mut self.bits[window * self.words_per_window + word];
                places.extend(ones(core::mem::take(bits)).map(|bit| (word * BITS) as u32 + bit));
            }
        }
    }

    /// The first place of a host.
    pub(crate) fn hosts_from(&self) -> u32 {
        self.hosts_from
    }

    #[inline]
    pub(crate) fn place(&self, place: u32) -> Place {
        self.places[place as usize]
    }

    /// The place of a node's own port.
    #[inline]
    pub(crate) fn place_of_port(&self, port: PortId) -> u32 {
        self.place_of[opposite(port).index()]
    }

    /// When the next packet arrives at a place.
    #[inline]
    pub(crate) fn arrival(&self, place: u32) -> Time {
        Time::from_ps(self.arrivals[place as usize])
    }

    /// Notes when the next packet arrives at a place of the node that is handled.
    #[inline]
    pub(crate) fn set_arrival(&mut self, place: u32, at: Time) {
        self.arrivals[place as usize] = at.as_ps();
    }

    /// Whether ports have events of their own.
    #[inline]
    pub(crate) fn has_own_events(&self) -> bool {
        !self.own.is_empty()
    }

    /// The next event of a place's port beside arrivals, and when.
    #[inline]
    pub(crate) fn next_own(&self, place: u32) -> (Time, OwnEvent) {
        let Some(&Own { service, wake, held }) = self.own.get(place as usize) else {
            return (Time::MAX, OwnEvent::Service);
        };
        let (at, event) = if service <= wake && service <= held {
            (service, OwnEvent::Service)
        } else if wake <= held {
            (wake, OwnEvent::Wake)
        } else {
            (held, OwnEvent::Held)
        };
        (Time::from_ps(at), event)
    }

    /// Takes a port's own event, to handle it.
    #[inline]
    pub(crate) fn take_own(&mut self, place: u32, event: OwnEvent) -> FabricEvent {
        let (own, port) = (&mut self.own[place as usize], self.places[place as usize].port);
        match event {
            OwnEvent::Service => {
                own.service = NEVER;
                FabricEvent::Service(port)
            }
            OwnEvent::Wake => {
                own.wake = NEVER;
                FabricEvent::Wake(port)
            }
            OwnEvent::Held => {
                own.held = NEVER;
                FabricEvent::Held(port)
            }
        }
    }

    /// From here on the own events of a place are handled.
    #[inline]
    pub(crate) fn begin(&mut self, place: u32) {
        self.busy = Some(place);
    }

    /// They have been, up to the next one at `next`.
    #[inline]
    pub(crate) fn finish(&mut self, place: u32, next: Time) {
        self.busy = None;
        if next < Time::MAX {
            self.mark(place, next);
        }
    }
}

/// An event of a port beside arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwnEvent {
    Service,
    Wake,
    Held,
}

/// The bits that are set, from the lowest on.
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

    /// Every time falls into the window that a division says, and what lies beyond the calendar into
    /// its last.
    #[test]
    fn windows_are_found_without_division() {
        for width in [2, 3, 999_983, 1_000_000, LONGEST] {
            let mut calendar = calendar(Span::from_ps(width)).expect("calendar");
            for start in [0, 17] {
                calendar.restart(Time::from_ps(start * width));
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

    /// Places come out in order, each in its window, and those of a window cut short come again.
    #[test]
    fn places_come_in_their_windows() {
        let mut calendar = calendar(Span::from_ps(1000)).expect("calendar");
        let at = Time::from_ps;
        for (place, time) in [(5, 2500), (2, 2999), (0, 7000)] {
            calendar.mark(place, at(time));
        }
        let mut places = Vec::new();
        assert_eq!(calendar.next_at(), at(2000));
        assert_eq!(calendar.begin_window(at(2000)), None);
        assert_eq!(calendar.begin_window(at(2800)), Some(at(2800)));
        calendar.take_places(&mut places);
        assert_eq!(places, [2, 5]);
        calendar.mark(2, at(2999));
        calendar.end_window();
        places.clear();
        assert_eq!(calendar.begin_window(at(9000)), Some(at(3000)));
        calendar.take_places(&mut places);
        calendar.end_window();
        assert_eq!(calendar.begin_window(at(9000)), Some(at(8000)));
        calendar.take_places(&mut places);
        assert_eq!(places, [2, 0]);
        calendar.end_window();
        assert_eq!(calendar.next_at(), Time::MAX);
    }
}
