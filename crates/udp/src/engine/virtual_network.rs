//! A network in virtual time. Its owner sets the time, and datagrams are kept in queues. Used by tests and
//! [`crate::virtual_host`].

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};

use apus_units::{Span, Time};

use super::network::Network;
use crate::clock::plausible;
use crate::session::Peer;
use crate::sys::{Departure, Meta, Outgoing, Reach, ReceiveBuffers};

/// Datagrams or aggregates that one call receives.
pub(crate) type Batch = Vec<(Meta, Vec<u8>)>;

/// A burst as the engine sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) at: Time,
    pub(crate) to: Peer,
    /// The bytes of each datagram.
    pub(crate) datagrams: Vec<Vec<u8>>,
    pub(crate) tos: u8,
    pub(crate) stamped: bool,
}

/// A network of one engine.
pub(crate) struct VirtualNetwork {
    pub(crate) now: Cell<Time>,
    pub(crate) local: SocketAddr,
    /// The engine's further ports.
    more: Vec<u16>,
    /// Batches that are queued for reception.
    batches: RefCell<VecDeque<Batch>>,
    pub(crate) sent: RefCell<Vec<Sent>>,
    /// Results of the next sends, by errno; 0 for a send that succeeds.
    pub(crate) errors: RefCell<VecDeque<i32>>,
    /// Results of the next receive calls, by errno; 0 for a call that succeeds.
    pub(crate) receive_errors: RefCell<VecDeque<i32>>,
    /// Whether the socket has no room to send.
    pub(crate) full: Cell<bool>,
    /// Whether the kernel can segment bursts.
    pub(crate) segmentation: Cell<bool>,
    /// Reports of departures.
    pub(crate) departures: RefCell<VecDeque<(u32, Time)>>,
    /// Whether the kernel reports when bursts leave; `stamped` is the number of the next one.
    pub(crate) reports: Cell<bool>,
    stamped: Cell<u32>,
    pub(crate) mtu: Cell<Option<u32>>,
    /// Maximum number of bytes of a UDP payload that the interface carries. Longer payloads are refused with EMSGSIZE.
    pub(crate) longest: Cell<usize>,
    /// Errno that probes of an address return.
    pub(crate) reach: Cell<i32>,
    pub(crate) probes: Cell<u32>,
}

impl VirtualNetwork {
    /// Returns a network without datagrams for an engine at `local`. Its time is one second after the start of time.
    pub(crate) fn new(local: SocketAddr, more: &[u16]) -> Self {
        Self {
            now: Cell::new(Time::ZERO + Span::from_secs(1)),
            local,
            more: more.to_vec(),
            batches: RefCell::default(),
            sent: RefCell::default(),
            errors: RefCell::default(),
            receive_errors: RefCell::default(),
            full: Cell::new(false),
            segmentation: Cell::new(true),
            reports: Cell::new(false),
            stamped: Cell::new(0),
            longest: Cell::new(usize::MAX),
            departures: RefCell::default(),
            mtu: Cell::new(Some(1280)),
            reach: Cell::new(libc::EACCES),
            probes: Cell::new(0),
        }
    }

    /// Returns the number of ports.
    pub(crate) fn ports(&self) -> usize {
        1 + self.more.len()
    }

    /// Returns the address of a port.
    pub(crate) fn address(&self, number: u8) -> SocketAddr {
        let more = usize::from(number).checked_sub(1).and_then(|place| self.more.get(place));
        SocketAddr::new(self.local.ip(), more.copied().unwrap_or(self.local.port()))
    }

    /// Adds a batch to the queue.
    pub(crate) fn put(&self, batch: Batch) {
        self.batches.borrow_mut().push_back(batch);
    }

    /// Returns `true` if a batch is queued for reception, so that the socket is readable.
    pub(crate) fn is_readable(&self) -> bool {
        !self.batches.borrow().is_empty()
    }

    /// Removes the pending failures of calls.
    pub(crate) fn clear_errors(&self) {
        self.errors.borrow_mut().clear();
        self.receive_errors.borrow_mut().clear();
    }
}

/// Functions that only tests use.
#[cfg(test)]
impl VirtualNetwork {
    /// Changes the datagram that is received next.
    pub(crate) fn change_next(&self, change: impl FnOnce(SocketAddr, &mut Vec<u8>)) {
        if let Some((meta, bytes)) =
            self.batches.borrow_mut().front_mut().and_then(|b| b.first_mut())
        {
            change(meta.from, bytes);
        }
    }

    /// Moves time forward.
    pub(crate) fn advance(&self, span: Span) {
        self.now.set(self.now.get() + span);
    }

    /// Returns the control messages of a datagram, or of an aggregate of datagrams of `segment` bytes.
    pub(crate) fn meta(from: SocketAddr, segment: usize, tos: u8) -> Meta {
        Meta { segment, ttl: Some(64), tos, ..Meta::new(from, 0) }
    }

    /// Adds a batch of aggregates, each as bytes and bytes per datagram.
    pub(crate) fn put_batch(&self, aggregates: Vec<(Vec<u8>, usize)>) {
        let from = ([10, 0, 0, 9], 9).into();
        let batch = aggregates.into_iter();
        let batch = batch.map(|(bytes, segment)| (Self::meta(from, segment, 0), bytes));
        self.batches.borrow_mut().push_back(batch.collect());
    }

    /// Adds a datagram to the queue.
    pub(crate) fn put_datagram(&self, from: SocketAddr, tos: u8, datagram: Vec<u8>) {
        let length = datagram.len();
        self.put_aggregate(Self::meta(from, length, tos), datagram);
    }

    /// Adds an aggregate of datagrams to the queue.
    pub(crate) fn put_aggregate(&self, meta: Meta, bytes: Vec<u8>) {
        self.batches.borrow_mut().push_back(vec![(meta, bytes)]);
    }

    /// Moves the datagrams that another engine sent to this one into the queue of this one. Returns their number.
    pub(crate) fn deliver_from(&self, other: &Self) -> usize {
        let mut sent = other.sent.borrow_mut();
        let mut delivered = 0;
        let here = |to: SocketAddr| {
            (0u8..=u8::MAX).take(self.ports()).find(|&number| self.address(number) == to)
        };
        for burst in sent.extract_if(.., |burst| here(burst.to.address).is_some()) {
            let (from, port) = (other.address(burst.to.port), here(burst.to.address).unwrap_or(0));
            for datagram in burst.datagrams {
                let meta = Meta { port, ..Self::meta(from, datagram.len(), burst.tos) };
                self.put_aggregate(meta, datagram);
                delivered += 1;
            }
        }
        delivered
    }
}

impl Network for VirtualNetwork {
    fn now(&self) -> Time {
        self.now.get()
    }

    fn receive(&self, buffers: &mut ReceiveBuffers) -> io::Result<bool> {
        let error = self.receive_errors.borrow_mut().pop_front().unwrap_or(0);
        if error != 0 {
            buffers.fill(&[]);
            return Err(io::Error::from_raw_os_error(error));
        }
        let batch = self.batches.borrow_mut().pop_front();
        buffers.fill(batch.as_deref().unwrap_or_default());
        Ok(!self.batches.borrow().is_empty())
    }

    fn send<'a>(&self, bursts: impl Iterator<Item = Outgoing<'a>> + Clone) -> io::Result<usize> {
        let mut count = 0;
        for burst in bursts {
            let segment = burst.segment.clamp(1, burst.bytes.len().max(1));
            let error = match self.errors.borrow_mut().pop_front().unwrap_or(0) {
                0 if self.full.get() => libc::EAGAIN,
                0 if segment > self.longest.get() => libc::EMSGSIZE,
                0 if segment < burst.bytes.len() && !self.segmentation.get() => libc::EINVAL,
                error => error,
            };
            match error {
                0 => {}
                _ if count > 0 => {
                    self.errors.borrow_mut().push_front(error);
                    return Ok(count);
                }
                _ => return Err(io::Error::from_raw_os_error(error)),
            }
            let datagrams = burst.bytes.chunks(segment).map(<[u8]>::to_vec);
            self.sent.borrow_mut().push(Sent {
                at: self.now(),
                to: burst.to,
                datagrams: datagrams.collect(),
                tos: burst.tos,
                stamped: burst.stamp,
            });
            if burst.stamp && self.reports.get() {
                let number = self.stamped.replace(self.stamped.get().wrapping_add(1));
                self.departures.borrow_mut().push_back((number, self.now()));
            }
            count += 1;
        }
        Ok(count)
    }

    fn has_segmentation(&self) -> bool {
        self.segmentation.get()
    }

    fn departure(&self) -> io::Result<Option<Departure>> {
        let next = self.departures.borrow_mut().pop_front();
        Ok(next.map(|(number, at)| Departure {
            number,
            left_at: Some(i128::from(at.as_ps())),
            nic_left_at: None,
        }))
    }

    fn restart_departures(&self) -> io::Result<()> {
        self.departures.borrow_mut().clear();
        self.stamped.set(0);
        Ok(())
    }

    fn received_at(&self, meta: &Meta, now: Time) -> Time {
        let at = meta.received_at.and_then(|ps| u64::try_from(ps).ok()).map(Time::from_ps);
        at.and_then(|at| plausible(at, now)).unwrap_or(now)
    }

    fn departed_at(&self, departure: &Departure, _: Time) -> Option<Time> {
        departure.left_at.and_then(|ps| u64::try_from(ps).ok()).map(Time::from_ps)
    }

    fn compare_clocks(&mut self, _: Time) {}

    fn path_mtu(&self, _: SocketAddr) -> Option<u32> {
        self.mtu.get()
    }

    fn source_to(&self, _: SocketAddr) -> Option<IpAddr> {
        None
    }

    fn probe_reach(&self, _: SocketAddr) -> Reach {
        self.probes.set(self.probes.get() + 1);
        Reach::failed(self.reach.get())
    }
}
