//! Faults: their kind, place and duration.

use std::fmt;

use apus_units::Span;

use crate::draw::Draw;
use crate::plan::HostPlan;

/// A fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Start of the fault.
    pub(crate) at: Span,
    /// Duration of the fault, unless it is a single event.
    pub(crate) lasts: Span,
    pub(crate) what: Trouble,
}

/// Links that a fault affects: those of one host, or all (`None`).
pub(crate) type Links = Option<usize>;

/// Kind of a fault. Numbers `u64` without another meaning are probabilities in 1/1000.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Datagrams are lost with this probability in 1/1000.
    Lose(Links, u64),
    /// Datagrams arrive a second time, soon or later.
    Duplicate(Links, u64),
    /// Datagrams are delayed by up to this time.
    Delay(Links, Span),
    /// Bits of datagrams change.
    Corrupt(Links, u64),
    /// Datagrams lose their end.
    Truncate(Links, u64),
    /// A path drops datagrams above this number of bytes of UDP payload without notice.
    Narrow(Links, usize),
    /// The interface rejects datagrams above this number of bytes, and the kernel knows its MTU.
    Interface(usize, u32),
    /// No datagram passes from or to a host; if `true`, only datagrams from the host are lost.
    Cut(usize, bool),
    /// Datagrams of a host leave from another address, as behind a NAT that lost its mapping.
    Rebind(usize),
    /// A host does not run.
    Pause(usize),
    /// A host crashes after it has sent this number of datagrams, and restarts.
    Crash(usize, u64),
    /// A host stops in an orderly way and starts again.
    Restart(usize),
    /// A host drains, stops and starts again.
    Drain(usize),
    /// The clock of a host jumps ahead.
    Jump(usize, Span),
    /// Timestamps of a host's kernel are wrong by up to this time.
    Stamps(usize, Span),
    /// The send buffer of a host's socket is full.
    Full(usize),
    /// A host's sends fail with this errno, with this probability in 1/1000.
    SendErrors(usize, i32, u64),
    /// A host's receives fail with this errno.
    ReceiveErrors(usize, i32),
    /// The application of a host does not run.
    Slow(usize),
    /// The memory of a host's region panics when an engine uses it.
    Panic(usize),
    /// Engines find the memory of a host's region of known content at half its registered length.
    Shrink(usize),
    /// The application closes its connections to a peer.
    Close(usize, usize),
    /// The application withdraws its regions, at once or after their last answers.
    Withdraw(usize, bool),
    /// All hosts replace their key.
    Rotate,
    /// A host lacks the key of the other hosts.
    LoseKey(usize),
    /// An outsider sends recorded datagrams again, from this period and from earlier ones.
    Replay(u64),
    /// An outsider sends modified and random datagrams with the addresses of hosts.
    Forge(Span),
    /// An outsider floods a host with requests from many addresses.
    Flood(usize, u64),
    /// A host does not list the key of a peer.
    Unlist(usize, usize),
    /// A host replaces its key pair.
    Replace(usize),
    /// A host revokes the right of a peer to write to its slots.
    Deny(usize, usize),
    /// A host with a key (the first one) sends packets with random content to the other host.
    Insider(usize, usize),
    /// A host with a key (the first one) sends packets of every kind for the flows of its connection to the other host, and
    /// commands of sessions.
    InformedInsider(usize, usize),
    /// Datagrams from or to a port of a host, given by its number, are lost.
    LosePort(usize, u8, u64),
    /// Datagrams from or to a port of a host are delayed by up to this time.
    DelayPort(usize, u8, Span),
    /// The path of a port drops datagrams above this number of bytes without notice.
    NarrowPort(usize, u8, usize),
    /// Datagrams from a port appear to come from another port, as behind a NAT that lost its mapping.
    RebindPort(usize, u8),
}

impl Fault {
    /// Draws a fault among these hosts, within `horizon`.
    pub(crate) fn draw(draw: &mut Draw, hosts: &[HostPlan], horizon: Span) -> Self {
        let host = draw.index(hosts.len());
        let links = draw.chance(600).then_some(host);
        let share = draw.pick(&[10, 50, 200, 500]);
        let (us, ms, s) = (Span::from_us, Span::from_ms, Span::from_secs);
        let mut lasts = draw.span(us(100), horizon.max(ms(1)));
        let insider = hosts.iter().position(|host| host.insider);
        let what = match draw.range(0, 35) {
            0..3 => Trouble::Lose(links, share),
            3..5 => Trouble::Duplicate(links, share),
            5 | 6 => Trouble::Delay(links, draw.span(us(10), s(1))),
            7 => Trouble::Corrupt(links, share),
            8 => Trouble::Truncate(links, share),
            9 => Trouble::Narrow(links, draw.range(1240, 1500) as usize),
            10 => Trouble::Interface(host, draw.range(1280, 1500) as u32),
            11 => Trouble::Cut(host, draw.chance(500)),
            12 => Trouble::Rebind(host),
            13 | 14 => {
                lasts = draw.span(us(100), s(20));
                Trouble::Pause(host)
            }
            15..18 => {
                lasts = draw.span(ms(1), s(3));
                Trouble::Crash(host, draw.range(0, 60))
            }
            18 => Trouble::Restart(host),
            19 => Trouble::Drain(host),
            20 => Trouble::Jump(host, draw.span(us(100), s(20))),
            21 => Trouble::Stamps(host, draw.span(us(10), s(100))),
            22 => {
                lasts = draw.span(us(100), s(2));
                Trouble::Full(host)
            }
            23 => {
                let errors = [libc::EAGAIN, libc::EINVAL, libc::ENOBUFS, libc::EIO, libc::EPERM];
                Trouble::SendErrors(host, draw.pick(&errors), share)
            }
            24 => Trouble::ReceiveErrors(host, draw.pick(&[libc::ECONNREFUSED, libc::ENOMEM])),
            25 => Trouble::Slow(host),
            26 => Trouble::Panic(host),
            27 => {
                let (from, to) = draw.pair(hosts.len());
                Trouble::Close(from, to)
            }
            28 => Trouble::Withdraw(host, draw.chance(500)),
            29 => Trouble::Rotate,
            30 => Trouble::LoseKey(host),
            31 => Trouble::Replay(share),
            32 => Trouble::Forge(draw.span(us(20), ms(20))),
            33 => Trouble::Flood(host, draw.range(20, 200)),
            _ => match insider {
                Some(from) => Trouble::Insider(from, draw.index(from)),
                None => Trouble::Lose(links, share),
            },
        };
        Self { at: draw.below(horizon), lasts, what }
    }

    /// Draws memory that shrinks on one of these hosts.
    pub(crate) fn draw_of_memory(draw: &mut Draw, hosts: usize, horizon: Span) -> Self {
        let lasts = draw.span(Span::from_us(100), horizon.max(Span::from_ms(1)));
        Self { at: draw.below(horizon), lasts, what: Trouble::Shrink(draw.index(hosts)) }
    }

    /// Draws the replacement of a key pair; each of its stages takes a fifth of the duration.
    pub(crate) fn draw_of_replacement(draw: &mut Draw, hosts: usize, horizon: Span) -> Self {
        let lasts = draw.span(Span::from_us(100), Span::from_secs(5));
        Self { at: draw.below(horizon), lasts, what: Trouble::Replace(draw.index(hosts)) }
    }

    /// Draws an insider that sends packets of every kind and commands; `insider` is the last host.
    pub(crate) fn draw_of_informed(draw: &mut Draw, insider: usize, horizon: Span) -> Self {
        let lasts = draw.span(Span::from_ms(1), horizon.max(Span::from_ms(2)));
        let what = Trouble::InformedInsider(insider, draw.index(insider));
        Self { at: draw.below(horizon), lasts, what }
    }

    /// Draws a fault of keys and rights, for a world whose hosts have keys of their own.
    pub(crate) fn draw_of_rights(draw: &mut Draw, hosts: usize, horizon: Span) -> Self {
        let (host, peer) = draw.pair(hosts);
        let what =
            if draw.chance(300) { Trouble::Unlist(host, peer) } else { Trouble::Deny(host, peer) };
        let lasts = draw.span(Span::from_us(100), horizon.max(Span::from_ms(1)));
        Self { at: draw.below(horizon), lasts, what }
    }
}

impl Fault {
    /// Draws a fault of a source port.
    pub(crate) fn draw_of_port(draw: &mut Draw, hosts: usize, horizon: Span) -> Self {
        let (host, port) = (draw.index(hosts), draw.range(0, 7) as u8);
        let (us, ms) = (Span::from_us, Span::from_ms);
        let what = match draw.range(0, 9) {
            0..4 => Trouble::LosePort(host, port, draw.pick(&[50, 500, 1000, 1000])),
            4 | 5 => Trouble::DelayPort(host, port, draw.span(us(100), ms(200))),
            6 => Trouble::NarrowPort(host, port, draw.range(1240, 1500) as usize),
            _ => Trouble::RebindPort(host, port.max(1)),
        };
        Self { at: draw.below(horizon), lasts: draw.span(ms(1), horizon.max(ms(2))), what }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {} for {}", self.what, self.at, self.lasts)
    }
}

/// Returns `true` if the fault affects links of `a` or `b`.
pub(crate) fn affects(links: Links, a: usize, b: usize) -> bool {
    links.is_none_or(|host| host == a || host == b)
}
