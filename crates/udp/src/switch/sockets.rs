//! The switch with its operating system resources: sockets, a clock, and the loop between them and the [`Forwarder`].

use std::collections::VecDeque;
use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU64;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use apus_algorithms::BuiltInSwitch;
use apus_cc::{AlgorithmFactory, SwitchHalf, SwitchInfo};
use apus_units::{Bytes, Rate, Span, Time};
use apus_wire::{link_rate_code, rate_of_code};
use rustix::event::{Timespec, epoll};
use rustix::thread::set_current_timer_slack;

use super::Config;
use super::clients::{Clients, Found, MAX_CLIENTS};
use super::counters::{Cause, Direction, Punctuality, Report};
use super::datagram::Datagram;
use super::forwarder::{Forwarder, Received};
use crate::clock::{Clock, LIFETIME};
use crate::config::wire_bytes_of;
use crate::error::StartError;
use crate::session::Peer;
use crate::sys::{Families, Outgoing, ReceiveBuffers, Socket, SocketOptions, TTL};

/// Time before a departure at which the thread stops sleeping. deviation: no source; an idle core of Linux needs about
/// as long to wake a thread.
const SPIN: Span = Span::from_us(10);
/// Precision of the thread's sleep, in nanoseconds. By default, Linux delays wake-ups by up to 50 us to combine them
/// (prctl(2), PR_SET_TIMERSLACK).
const TIMER_SLACK: NonZeroU64 = NonZeroU64::MIN;
/// Number of receive calls on one socket before the other sockets get their turn. deviation: no source; 64 full
/// aggregates.
const RECEIVES_PER_SOCKET: usize = 16;
/// Maximum number of datagrams that wait for room in the kernel's buffers. deviation: no source; the switch then
/// forwards faster than the link behind it carries. A longer queue would only replace the delays of the switch by the
/// delays of that link.
const MAX_DUE: usize = 1024;
/// Maximum number of sockets that one wait reports.
const EVENTS: usize = 64;
/// Time without a datagram after which a new client may replace a client: the default of a session's `idle_timeout`, so
/// that the connections of the replaced client have ended.
const IDLE: Span = Span::from_secs(15);
/// Bytes of the UDP header, and of the IP headers of both versions.
const UDP: u32 = 8;
const IPV4: u32 = 20;
const IPV6: u32 = 40;
/// Number of the front socket in the kernel's events. The sockets towards the server have the numbers of their clients.
const FRONT: u64 = u64::MAX;

/// A socket, and its current TTL.
struct Outlet {
    socket: Socket,
    ttl: u8,
    /// Number of datagrams that the kernel dropped for lack of room, up to the last report.
    dropped: u32,
}

impl Outlet {
    fn open(bind: SocketAddr, buffer: u32) -> Result<Self, StartError> {
        let families = Families::of(bind);
        let options = SocketOptions { buffer, shared: false, families };
        let socket = Socket::open(bind, options).map_err(|error| StartError::Bind(bind, error))?;
        socket
            .timestamp(false)
            .map_err(|e| StartError::System("have received datagrams timestamped", e))?;
        Ok(Self { socket, ttl: TTL, dropped: 0 })
    }

    /// Sends the first datagrams of `due` that have the same direction, client and TTL. Returns their number.
    fn send(&mut self, due: &VecDeque<Due>, to: Peer) -> io::Result<usize> {
        let Some(first) = due.front() else { return Ok(0) };
        if self.ttl != first.datagram.ttl {
            self.socket.set_ttl(first.datagram.ttl)?;
            self.ttl = first.datagram.ttl;
        }
        let sends = due.iter().take_while(|it| it.outlet() == first.outlet());
        self.socket.send(sends.map(|Due { datagram, .. }| Outgoing {
            to,
            bytes: &datagram.bytes,
            segment: datagram.bytes.len(),
            tos: datagram.tos,
            stamp: false,
        }))
    }

    /// Returns the number of datagrams that the kernel has dropped since the last call.
    fn newly_dropped(&mut self) -> u64 {
        let dropped = self.socket.dropped().unwrap_or(self.dropped);
        let new = dropped.wrapping_sub(std::mem::replace(&mut self.dropped, dropped));
        u64::from(new)
    }
}

/// A datagram that is due to leave.
struct Due {
    direction: Direction,
    at: Time,
    datagram: Datagram,
}

impl Due {
    /// Returns the direction, client and TTL, which identify the datagram's socket and destination.
    fn outlet(&self) -> (Direction, u32, u8) {
        (self.direction, self.datagram.client, self.datagram.ttl)
    }
}

/// The clients, each with its socket towards the server.
struct Back {
    server: SocketAddr,
    socket_buffer: u32,
    clients: Clients,
    /// Sockets by client number.
    outlets: Vec<Outlet>,
    epoll: OwnedFd,
}

impl Back {
    /// Returns the number of a client. Opens its socket if it has none.
    fn client(&mut self, peer: Peer, now: Time) -> Option<u32> {
        let client = match self.clients.find(peer, now) {
            Found::Known(client) => return Some(client),
            Found::Full => return None,
            Found::New(client) => client,
        };
        match (self.open(client), self.outlets.get_mut(client as usize)) {
            (Ok(outlet), Some(place)) => *place = outlet,
            (Ok(outlet), None) => self.outlets.push(outlet),
            // Use the socket of the client that had this number before.
            (Err(_), Some(_)) => {}
            (Err(_), None) => {
                self.clients.forget_last();
                return None;
            }
        }
        Some(client)
    }

    fn open(&self, client: u32) -> Result<Outlet, StartError> {
        let ip: IpAddr = match self.server {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let outlet = Outlet::open((ip, 0).into(), self.socket_buffer)?;
        watch(&self.epoll, &outlet.socket, client.into())
            .map_err(|error| StartError::System("wait for sockets", error.into()))?;
        Ok(outlet)
    }
}

/// A switch between clients and a server. It forwards datagrams only while a thread is in [`Switch::forward`].
pub struct Switch {
    local: SocketAddr,
    front: Outlet,
    back: Back,
    clock: Clock,
    forwarder: Forwarder<BuiltInSwitch>,
    buffers: ReceiveBuffers,
    due: VecDeque<Due>,
    punctuality: Punctuality,
    reported: Time,
    /// Rate that the switch half's signals and telemetry state, if it makes any.
    announced: Option<Rate>,
}

impl Switch {
    /// Opens the switch. Datagrams wait in its socket until [`Switch::forward`].
    ///
    /// # Errors
    /// If a setting is impossible, an address cannot be bound, or the system refuses another service.
    pub fn open(config: &Config) -> Result<Self, StartError> {
        config.check()?;
        let front = Outlet::open(config.bind, config.socket_buffer)?;
        let local =
            front.socket.local_addr().map_err(|error| StartError::Bind(config.bind, error))?;
        // The MTU of the path behind the switch as the kernel knows it, as a host in the place of the switch would use
        // it.
        let mtu = front.socket.path_mtu(config.server).unwrap_or(config.max_mtu);
        let packet = Bytes::new(wire_bytes_of(mtu.min(config.max_mtu)).into());
        let halves = Direction::ALL.map(|direction| {
            // Ports of one machine differ in their seeds, and so do their numbers in the telemetry of a packet.
            let seed = u64::from(local.port()) << 1 | direction as u64;
            config.half(&SwitchInfo { packet, seed, nic: false })
        });
        let half = &halves[0];
        let announces = half.signals() || half.acts_on_dequeue();
        let announced = rate_of_code(link_rate_code(config.rate)).filter(|_| announces);
        let ip = if local.is_ipv6() { IPV6 } else { IPV4 };
        let port = (config.rate, config.buffer, config.delay);
        let layout = config.algorithm.as_ref().and_then(AlgorithmFactory::fields);
        let forwarder = Forwarder::new(port, halves, layout, wire_bytes_of(UDP + ip));
        let system =
            |error: rustix::io::Errno| StartError::System("wait for sockets", error.into());
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(system)?;
        watch(&epoll, &front.socket, FRONT).map_err(system)?;
        let clock = Clock::new(None).map_err(|e| StartError::System("read the clock", e))?;
        // A datagram of an idle client must have left before another client gets its number.
        let longest = config.rate.serialization_time(config.buffer).saturating_add(config.delay);
        Ok(Self {
            local,
            front,
            back: Back {
                server: config.server,
                socket_buffer: config.socket_buffer,
                clients: Clients::new(MAX_CLIENTS, IDLE.saturating_add(longest)),
                outlets: Vec::new(),
                epoll,
            },
            clock,
            forwarder,
            buffers: ReceiveBuffers::new(),
            due: VecDeque::new(),
            punctuality: Punctuality::default(),
            reported: Time::ZERO,
            announced,
        })
    }

    /// Returns the address to which clients send.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Returns the link rate that signals and telemetry of this switch state: the next lower rate that a packet can express, but
    /// at least 1 Gb/s. Returns `None` if the algorithm's switch half makes neither signals nor telemetry.
    #[must_use]
    pub fn announced_rate(&self) -> Option<Rate> {
        self.announced
    }

    /// Forwards datagrams for the duration `time`.
    ///
    /// # Errors
    /// If the system refuses to wait for sockets or to wake the thread in time; also after 213 days, when the clock ends.
    pub fn forward(&mut self, time: Duration) -> io::Result<()> {
        let span = Span::from_ns(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX / 1_000));
        set_current_timer_slack(Some(TIMER_SLACK))?;
        let mut now = self.clock.now();
        let end = now.saturating_add(span);
        while now < end {
            check_lifetime(now)?;
            let wait = self.time_to_sleep(now, end);
            let events = self.wait(wait)?;
            let begun = self.clock.now();
            self.clock.compare(begun);
            let received = self.receive(&events, begun);
            self.forwarder.advance(begun);
            while let Some((direction, at, datagram)) = self.forwarder.depart(begun) {
                if self.due.len() < MAX_DUE {
                    self.due.push_back(Due { direction, at, datagram });
                } else {
                    self.forwarder.on_lost(direction, datagram, Cause::NotSent);
                }
            }
            let sent = self.send_due();
            now = self.clock.now();
            if received || sent {
                self.punctuality.busy = self.punctuality.busy.saturating_add(now.since(begun));
            }
        }
        Ok(())
    }

    /// Returns the counters since the last report.
    pub fn report(&mut self) -> Report {
        let now = self.clock.now();
        self.forwarder.not_received(Direction::ToServer, self.front.newly_dropped());
        let dropped = self.back.outlets.iter_mut().map(Outlet::newly_dropped).sum();
        self.forwarder.not_received(Direction::ToClients, dropped);
        let time = now.since(std::mem::replace(&mut self.reported, now));
        Report {
            time,
            ports: self.forwarder.take_counters(now),
            punctuality: std::mem::take(&mut self.punctuality),
            clients: self.back.clients.len(),
        }
    }

    /// Returns how long the thread can sleep.
    fn time_to_sleep(&self, now: Time, end: Time) -> Span {
        if !self.due.is_empty() {
            return Span::ZERO;
        }
        let next = self.forwarder.next_event().map(|at| at.since(now).saturating_sub(SPIN));
        let end = end.since(now);
        next.map_or(end, |next| next.min(end))
    }

    /// Waits for datagrams. Returns the sockets that have some.
    fn wait(&self, time: Span) -> io::Result<Events> {
        let ns = time.as_ps() / 1_000;
        let timeout = Timespec {
            tv_sec: (ns / 1_000_000_000) as i64, // at most 2^64 ps
            tv_nsec: (ns % 1_000_000_000) as _,
        };
        let mut events = Events { numbers: [0; EVENTS], count: 0 };
        let mut space = [const { MaybeUninit::<epoll::Event>::uninit() }; EVENTS];
        match epoll::wait(&self.back.epoll, &mut space[..], Some(&timeout)) {
            Ok((ready, _)) => {
                for (place, event) in events.numbers.iter_mut().zip(&*ready) {
                    *place = event.data.u64();
                }
                events.count = ready.len();
                Ok(events)
            }
            Err(rustix::io::Errno::INTR) => Ok(events),
            Err(error) => Err(error.into()),
        }
    }

    /// Receives from these sockets. Returns `true` if there was a datagram.
    fn receive(&mut self, events: &Events, now: Time) -> bool {
        let mut any = false;
        for &number in &events.numbers[..events.count] {
            for _ in 0..RECEIVES_PER_SOCKET {
                let more = if number == FRONT {
                    self.receive_from_clients(now)
                } else {
                    // The event's number is that of a client.
                    self.receive_from_server(number as u32, now)
                };
                any |= self.buffers.len() > 0;
                if !more {
                    break;
                }
            }
        }
        any
    }

    fn receive_from_clients(&mut self, now: Time) -> bool {
        let more = self.front.socket.receive(&mut self.buffers).unwrap_or(false);
        for (meta, bytes) in self.buffers.received() {
            let client = self.back.client(meta.peer(), now);
            let at = self.clock.received(meta, now);
            for bytes in bytes.chunks(meta.segment.max(1)) {
                match client {
                    Some(client) => {
                        let received =
                            Received::new(meta, at, (Direction::ToServer, client), bytes);
                        self.forwarder.receive(&received);
                    }
                    None => self.forwarder.drop_received(Direction::ToServer, Cause::Clients),
                }
            }
        }
        more
    }

    fn receive_from_server(&mut self, client: u32, now: Time) -> bool {
        let Some(outlet) = self.back.outlets.get(client as usize) else { return false };
        let more = outlet.socket.receive(&mut self.buffers).unwrap_or(false);
        let server = self.back.server;
        for (meta, bytes) in self.buffers.received().filter(|(meta, _)| meta.from == server) {
            self.back.clients.touch(client, now);
            let at = self.clock.received(meta, now);
            for bytes in bytes.chunks(meta.segment.max(1)) {
                let received = Received::new(meta, at, (Direction::ToClients, client), bytes);
                self.forwarder.receive(&received);
            }
        }
        more
    }

    /// Sends the due datagrams until the kernel has no more room. Returns `true` if there were any.
    fn send_due(&mut self) -> bool {
        let any = !self.due.is_empty();
        while let Some(first) = self.due.front() {
            let client = first.datagram.client;
            let (outlet, to) = match first.direction {
                Direction::ToServer => {
                    (&mut self.back.outlets[client as usize], Peer::from(self.back.server))
                }
                Direction::ToClients => (&mut self.front, self.back.clients.peer(client)),
            };
            let failed = match outlet.send(&self.due, to) {
                Ok(count) => {
                    let now = self.clock.now();
                    for Due { direction, at, datagram } in self.due.drain(..count) {
                        self.punctuality.note(now.since(at));
                        self.forwarder.on_sent(direction, datagram);
                    }
                    continue;
                }
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN) => break,
                    Some(libc::EMSGSIZE) => Cause::TooLong,
                    _ => Cause::NotSent,
                },
            };
            if let Some(Due { direction, datagram, .. }) = self.due.pop_front() {
                self.forwarder.on_lost(direction, datagram, failed);
            }
        }
        any
    }
}

/// Returns an error if the clock has reached the end of its range: times would not grow any more.
fn check_lifetime(now: Time) -> io::Result<()> {
    let days = LIFETIME.as_ps() / Span::from_secs(86_400).as_ps();
    match now < Time::ZERO + LIFETIME {
        true => Ok(()),
        false => Err(io::Error::other(format!(
            "the switch has run for {days} days, after which its clock ends; start it again"
        ))),
    }
}

/// Sockets that have datagrams.
struct Events {
    numbers: [u64; EVENTS],
    count: usize,
}

fn watch(epoll: &OwnedFd, socket: &Socket, number: u64) -> rustix::io::Result<()> {
    epoll::add(epoll, socket.as_fd(), epoll::EventData::new_u64(number), epoll::EventFlags::IN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_ends_with_an_error_that_says_what_to_do() {
        let end = Time::ZERO + LIFETIME;
        assert!(check_lifetime(end - Span::from_ps(1)).is_ok());
        let why = check_lifetime(end).expect_err("it has ended").to_string();
        assert!(why.contains("213 days") && why.contains("start it again"), "{why}");
    }
}
