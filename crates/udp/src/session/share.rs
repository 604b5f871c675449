//! Shares: the work that each peer may cause at an overloaded engine.
//!
//! The kernel delivers datagrams in the order of their arrival. Without shares, a peer that sends more valid packets than the
//! engine can handle would delay the packets of all other peers, until those are lost too. Shares apply once datagrams have
//! waited for long, and the socket was never empty, for [`WATCHED`] rounds. Each peer then has a share of the work, and
//! packets beyond the share are dropped before a cipher is run. The share adapts as in Approximate Fair Dropping (Pan,
//! Breslau, Prabhakar and Shenker, SIGCOMM CCR 33(2), 2003). While datagrams still wait, the share falls, down to the
//! engine's work divided by the number of peers. While they do not wait, it rises, so that a peer may use the capacity that
//! the other peers leave. A peer that needs less than an equal part therefore loses nothing.
//!
//! Work is counted for authentic packets, received or sent, and for the key changes that they cause. No sender can therefore
//! use up the share of another. A peer is identified by its own key. If sessions prove a shared key alone, or the ring does
//! not list the peer's key, the peer is identified by its IP address (the /64 of IPv6).

use std::collections::BTreeMap;

use apus_units::{Span, Time};
use slab::Slab;

use super::quota::Source;

/// Length of a round, in which work is counted. deviation: no source; about 300 packets of one engine.
const ROUND: Span = Span::from_ms(1);
/// Waiting time of datagrams above which the engine may be overloaded. Rationale: a few times the delay that Swift leaves at
/// an endpoint. CoDel (RFC 8289 §4.2) has the same rule, the smallest waiting time of an interval, with 5 ms for the
/// Internet. deviation: no source.
const LONG: Span = Span::from_us(250);
/// Waiting time of datagrams up to which shares rise. deviation: no source.
const SHORT: Span = Span::from_us(100);
/// Number of consecutive late rounds before shares are enforced. deviation: no source; an engine that was descheduled for a
/// few milliseconds catches up in this time.
const WATCHED: u32 = 10;
/// Number of rounds without a drop after which shares are no longer enforced. deviation: no source.
const QUIET: u32 = 100;
/// Number of rounds whose share a peer may save for a burst. deviation: no source; 4 ms.
const SAVED: i64 = 4;
/// Number of rounds for which a peer is counted after its last packet: at least this many, at most twice as many.
const WINDOW: u32 = 8;
/// Cost of a packet without payload, in bytes of payload that take as long. Rationale: system calls, header and transport
/// take about a microsecond, as long as sealing or opening about 9000 B with a copy (docs/security.md). deviation: rounded
/// down to a power of two.
const PACKET: i64 = 8192;
/// Cost of a key change in one direction, in bytes of payload that take as long. Three or four HKDF expansions and the setup
/// of a cipher take 1.2 to 1.4 us (`cargo bench -p apus-udp --bench session -- answer`). A peer may replace its key with each
/// packet, and this host follows with its answers. A peer that replaces it by count and age, as Apus does, pays next to
/// nothing. deviation: rounded up to a whole [`PACKET`].
const NEW_KEY: i64 = 2 * PACKET;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The engine keeps up.
    Calm,
    /// Datagrams waited for long. The value is the number of such rounds in a row.
    Late(u32),
    /// Shares are enforced. The value is the number of rounds in a row without a drop.
    Enforced(u32),
}

/// A peer.
#[derive(Debug)]
struct Account {
    holder: Source,
    sessions: u32,
    /// The work that the peer may still cause, and the round in which this was last updated.
    credit: i64,
    round: u32,
    /// The window (of [`WINDOW`] rounds) in which work was last counted for the peer.
    window: u32,
}

/// The shares of an engine's peers.
#[derive(Debug)]
pub(crate) struct Shares {
    accounts: Slab<Account>,
    places: BTreeMap<Source, usize>,
    phase: Phase,
    round: u32,
    began: Time,
    /// The smallest waiting time of this round at each of the engine's ports that had datagrams. Ports are separate, because
    /// a flood at one port does not delay datagrams at another.
    waits: Vec<(u8, Span)>,
    /// Whether all ports were empty at some time of this round.
    emptied: bool,
    /// The work of this round, and the average work of a late round.
    spent: i64,
    capacity: i64,
    /// The share of a peer per round.
    share: i64,
    /// Number of peers seen in this window, and in the previous one.
    seen: [i64; 2],
    dropped: bool,
}

impl Default for Shares {
    fn default() -> Self {
        Self {
            accounts: Slab::new(),
            places: BTreeMap::new(),
            phase: Phase::Calm,
            round: 0,
            began: Time::ZERO,
            waits: Vec::new(),
            emptied: false,
            spent: 0,
            capacity: 0,
            share: 0,
            seen: [0; 2],
            dropped: false,
        }
    }
}

impl Shares {
    /// Counts a session of a peer; returns the number of the peer's account.
    pub(crate) fn open(&mut self, holder: Source) -> usize {
        let (accounts, share, round) = (&mut self.accounts, self.share, self.round);
        let place = *self.places.entry(holder).or_insert_with(|| {
            // A new account starts without savings, so that another session or another key gives no more than a share.
            accounts.insert(Account { holder, sessions: 0, credit: share, round, window: 0 })
        });
        self.accounts[place].sessions += 1;
        place
    }

    /// Counts the end of a session.
    pub(crate) fn close(&mut self, place: usize) {
        let Some(account) = self.accounts.get_mut(place) else { return };
        account.sessions -= 1;
        if account.sessions == 0 {
            self.places.remove(&account.holder);
            self.accounts.remove(place);
        }
    }

    /// Returns `true` if work must be counted, that is, unless the engine keeps up.
    #[inline]
    pub(crate) fn counts(&self) -> bool {
        self.phase != Phase::Calm
    }

    /// Records that the engine has polled its sockets. The oldest datagram found at `port` had waited for the time `waited`.
    /// `empty` states that no port has datagrams left.
    #[inline]
    pub(crate) fn on_poll(&mut self, now: Time, (port, waited): (u8, Span), empty: bool) {
        let waited = if empty { Span::ZERO } else { waited };
        match self.phase {
            Phase::Calm if waited <= LONG => {}
            Phase::Calm => {
                (self.phase, self.began) = (Phase::Late(0), now);
                self.begin_round();
                self.waits.push((port, waited));
                (self.spent, self.capacity, self.seen, self.dropped) = (0, 0, [0; 2], false);
                // Start a new window, in which no account has been seen yet.
                self.round = (self.round / WINDOW + 2) * WINDOW;
            }
            Phase::Late(_) | Phase::Enforced(_) => {
                self.emptied |= empty;
                match self.waits.iter_mut().find(|(known, _)| *known == port) {
                    Some((_, least)) => *least = waited.min(*least),
                    None => self.waits.push((port, waited)),
                }
                self.on_counted_poll(now);
            }
        }
    }

    #[cold]
    fn on_counted_poll(&mut self, now: Time) {
        let passed = now.since(self.began);
        if passed < ROUND {
            return;
        }
        let rounds = (passed.as_ps() / ROUND.as_ps()).min(u64::from(QUIET)) as u32;
        // An engine that was not polled for a long time was not busy.
        let kept_up = self.emptied || rounds > WINDOW;
        let longest = self.waits.iter().map(|(_, wait)| *wait).max();
        let wait = longest.filter(|_| !kept_up).unwrap_or(Span::ZERO);
        let spent = self.spent / i64::from(rounds.max(1));
        let active = self.seen[0].max(self.seen[1]).max(1);
        self.phase = match self.phase {
            Phase::Late(late) if wait > LONG => {
                self.capacity += (spent - self.capacity) / i64::from(late + 1);
                self.share = (self.capacity / active).max(PACKET);
                if late + rounds < WATCHED {
                    Phase::Late(late + rounds)
                } else {
                    Phase::Enforced(0)
                }
            }
            Phase::Late(_) | Phase::Calm => Phase::Calm,
            Phase::Enforced(quiet) => {
                if wait > SHORT {
                    // Shares limit `spent`. A smaller value does not show that the engine can do less.
                    self.capacity = self.capacity.max(self.capacity + (spent - self.capacity) / 8);
                    let least = (self.capacity / active).max(PACKET);
                    self.share = (self.share - self.share / 4).max(least);
                } else {
                    self.share += self.share / 16;
                }
                let quiet = if self.dropped { 0 } else { quiet + rounds };
                if quiet < QUIET { Phase::Enforced(quiet) } else { Phase::Calm }
            }
        };
        let window = self.round / WINDOW;
        self.round = self.round.wrapping_add(rounds);
        if self.round / WINDOW != window {
            self.seen = [0, self.seen[0]];
        }
        (self.began, self.spent, self.dropped) = (now, 0, false);
        self.begin_round();
    }

    fn begin_round(&mut self) {
        self.waits.clear();
        self.emptied = false;
    }

    /// Returns `true` if a packet of this account may be handled now. Ask only if [`Shares::counts`].
    #[cold]
    pub(crate) fn admits(&mut self, place: usize) -> bool {
        let (round, share) = (self.round, self.share);
        let Some(account) = self.accounts.get_mut(place) else { return true };
        if !matches!(self.phase, Phase::Enforced(_)) {
            // A peer that causes work before shares are enforced has no savings when they begin.
            (account.credit, account.round) = (share, round);
            return true;
        }
        let passed = i64::from(round.wrapping_sub(account.round));
        let earned = share.saturating_mul(passed);
        account.credit = account.credit.saturating_add(earned).min(share.saturating_mul(SAVED));
        account.round = round;
        let admitted = account.credit > 0;
        self.dropped |= !admitted;
        admitted
    }

    /// Counts the work for an authentic packet of this account. Call it only if [`Shares::counts`].
    #[cold]
    pub(crate) fn charge(&mut self, place: usize, bytes: usize) {
        self.spend(place, PACKET + bytes as i64); // at most 64 KiB
    }

    /// Counts the work for a key change of this account, in one direction. Call it only if [`Shares::counts`].
    #[cold]
    pub(crate) fn charge_new_key(&mut self, place: usize) {
        self.spend(place, NEW_KEY);
    }

    fn spend(&mut self, place: usize, cost: i64) {
        self.spent += cost;
        let window = self.round / WINDOW;
        if let Some(account) = self.accounts.get_mut(place) {
            account.credit -= cost;
            if account.window != window {
                account.window = window;
                self.seen[0] += 1;
            }
        }
    }

    /// Returns the work of this round, in packets without payload.
    #[cfg(test)]
    pub(crate) fn packets_spent(&self) -> i64 {
        self.spent / PACKET
    }

    /// Returns `true` if no session is counted.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.accounts.is_empty() && self.places.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::session::quota::source;

    /// An engine that can handle 100 packets without payload per round, or drop 3000.
    struct Engine {
        shares: Shares,
        now: Time,
        places: Vec<usize>,
        /// The waiting packets: the peer and the arrival time of each.
        socket: VecDeque<(usize, Time)>,
        /// Time until which the engine is busy.
        busy: Time,
    }

    const HANDLES: Span = Span::from_us(10);
    const DROPS: Span = Span::from_ns(333);
    const TENTH: Span = Span::from_us(100);

    impl Engine {
        fn new(peers: u8) -> Self {
            let mut shares = Shares::default();
            let holders = (0..peers).map(|n| source(([10, 0, 0, n]).into()));
            let places = holders.map(|holder| shares.open(holder)).collect();
            Self { shares, now: Time::ZERO, places, socket: VecDeque::new(), busy: Time::ZERO }
        }

        /// Returns the number of packets of each peer that are handled, and that are dropped, in this number of rounds.
        fn run(&mut self, rounds: u32, wants: &[f64]) -> [Vec<u32>; 2] {
            let mut ends = [vec![0; wants.len()], vec![0; wants.len()]];
            let mut owed = vec![0.0; wants.len()];
            for _ in 0..rounds * 10 {
                for (peer, wanted) in wants.iter().enumerate() {
                    owed[peer] += wanted / 10.0;
                    while owed[peer] >= 1.0 {
                        owed[peer] -= 1.0;
                        self.socket.push_back((peer, self.now));
                    }
                }
                self.now += TENTH;
                while self.busy < self.now {
                    let Some((peer, arrived)) = self.socket.pop_front() else {
                        self.busy = self.now;
                        self.shares.on_poll(self.now, (0, Span::ZERO), true);
                        break;
                    };
                    let (at, place) = (self.busy, self.places[peer]);
                    let admitted = !self.shares.counts() || self.shares.admits(place);
                    if admitted && self.shares.counts() {
                        self.shares.charge(place, 0);
                    }
                    ends[usize::from(!admitted)][peer] += 1;
                    self.busy += if admitted { HANDLES } else { DROPS };
                    self.shares.on_poll(at, (0, at.since(arrived)), self.socket.is_empty());
                }
            }
            ends
        }
    }

    #[test]
    fn an_engine_that_keeps_up_counts_nothing() {
        let mut engine = Engine::new(2);
        assert_eq!(engine.run(50, &[10.0, 80.0]), [vec![500, 4000], vec![0, 0]]);
        assert!(!engine.shares.counts());
    }

    /// Max-min fairness: two peers need 10 and 20 of 100 packets, and the third gets the rest.
    #[test]
    fn a_greedy_peer_gets_what_the_others_leave_and_they_lose_nothing() {
        let mut engine = Engine::new(3);
        engine.run(100, &[10.0, 20.0, 500.0]);
        let [handled, dropped] = engine.run(400, &[10.0, 20.0, 500.0]);
        assert_eq!(dropped[..2], [0, 0]);
        assert!((3990..=4010).contains(&handled[0]), "{handled:?}");
        // 70 of 100 packets, less the time for drops. The share falls and rises around that value.
        assert!((18_000..=28_000).contains(&handled[2]), "{handled:?}");
        // Without the greedy peer, shares end.
        engine.run(200, &[10.0, 20.0, 0.0]);
        assert!(!engine.shares.counts());
    }

    #[test]
    fn greedy_peers_have_equal_shares_and_a_lone_one_has_all() {
        let mut engine = Engine::new(2);
        engine.run(100, &[300.0, 700.0]);
        let [handled, _] = engine.run(400, &[300.0, 700.0]);
        let ratio = f64::from(handled[0]) / f64::from(handled[1]);
        assert!((0.9..=1.1).contains(&ratio), "{handled:?}");
        let mut lone = Engine::new(1);
        lone.run(100, &[110.0]);
        let [handled, _] = lone.run(100, &[110.0]);
        assert!(handled[0] >= 9_500, "{handled:?}");
    }

    /// Datagrams that cost no share, such as forged ones, keep the engine late. A peer then has an equal part of the work
    /// that the engine did before shares were enforced: 55 of 110 packets per round.
    #[test]
    fn shares_do_not_fall_below_equal_parts_though_they_do_not_end_the_overload() {
        let mut shares = Shares::default();
        let places = [1, 2].map(|n| shares.open(source(([10, 0, 0, n]).into())));
        let mut now = Time::ZERO;
        let mut handled = [0, 0];
        for round in 0..300 {
            for (peer, wants) in [10, 100].into_iter().enumerate() {
                for _ in 0..wants {
                    if !shares.counts() || shares.admits(places[peer]) {
                        if shares.counts() {
                            shares.charge(places[peer], 0);
                        }
                        handled[peer] += u32::from(round >= 200);
                    }
                }
            }
            now += ROUND;
            shares.on_poll(now, (0, Span::from_ms(1)), false);
            // No datagram waits at another port.
            shares.on_poll(now, (1, Span::ZERO), false);
        }
        assert_eq!(handled[0], 1000);
        assert!((5400..=5600).contains(&handled[1]), "{handled:?}");
    }

    /// An engine that did not run for 5 ms catches up before shares are enforced.
    #[test]
    fn a_short_pause_costs_nobody_a_packet() {
        let mut engine = Engine::new(2);
        engine.run(20, &[10.0, 30.0]);
        engine.busy = engine.now + Span::from_ms(5);
        let [handled, dropped] = engine.run(50, &[10.0, 30.0]);
        assert_eq!((handled, dropped), (vec![500, 1500], vec![0, 0]));
    }

    /// Returns whether the packets of a greedy peer are dropped after this number of rounds, in which datagrams waited for
    /// this long. The engine is polled once per round.
    fn drops_after(rounds: u64, waited: Span) -> bool {
        let mut shares = Shares::default();
        let place = shares.open(source(([10, 0, 0, 1]).into()));
        for round in 0..=rounds {
            shares.on_poll(Time::ZERO + Span::from_ms(1) * round, (0, waited), false);
        }
        shares.charge(place, 1 << 30);
        shares.counts() && !shares.admits(place)
    }

    #[test]
    fn shares_are_enforced_after_ten_rounds_in_which_datagrams_waited_for_more_than_250_us() {
        let long = Span::from_us(250) + Span::from_ps(1);
        assert_eq!([9, 10, 11].map(|rounds| drops_after(rounds, long)), [false, true, true]);
        assert!(!drops_after(100, Span::from_us(250)));
    }

    #[test]
    fn accounts_end_with_their_sessions() {
        let mut shares = Shares::default();
        let holder = |n| source(([10, 0, 0, n]).into());
        let [one, again, other] = [1, 1, 2].map(|n| shares.open(holder(n)));
        assert!(one == again && one != other);
        shares.close(one);
        shares.close(other);
        assert!(!shares.is_empty());
        shares.close(again);
        assert!(shares.is_empty());
        shares.close(again);
    }
}
