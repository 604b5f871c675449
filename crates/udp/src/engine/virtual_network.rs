//! A network in virtual time for tests: time moves when the test says so, and datagrams lie in queues.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};

use apus_units::{Span, Time};

use super::network::Network;
use crate::session::Peer;
use crate::sys::{Departure, Meta, Outgoing, Reach, ReceiveBuffers};

/// Datagrams, or aggregates, that one call receives.
type Batch = Vec<(Meta, Vec<u8>)>;

/// A burst as it was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) at: Time,
    pub(super) to: Peer,
    /// The bytes of each datagram.
    pub(super) datagrams: Vec<Vec<u8>>,
    pub(super) tos: u8,
    pub(super) stamped: bool,
}

/// A network of one engine.
pub(super) struct VirtualNetwork {
    pub(super) now: Cell<Time>,
    pub(super) local: SocketAddr,
    /// Batches that wait to be received.
    batches: RefCell<VecDeque<Batch>>,
    pub(super) sent: RefCell<Vec<Sent>>,
    /// Results of the next sends, by errno; 0 for a send that succeeds.
    pub(super) errors: RefCell<VecDeque<i32>>,
    /// Reports of departures.
    pub(super) departures: RefCell<VecDeque<(u32, Time)>>,
    pub(super) mtu: Cell<Option<u32>>,
    /// Errno that probes of an address find.
    pub(super) reach: Cell<i32>,
    pub(super) probes: Cell<u32>,
}

impl VirtualNetwork {
    /// Returns a network without datagrams for an engine at `local`, one second after the start of time.
    pub(super) fn new(local: SocketAddr) -> Self {
        Self {
            now: Cell::new(Time::ZERO + Span::from_secs(1)),
            local,
            batches: RefCell::default(),
            sent: RefCell::default(),
            errors: RefCell::default(),
            departures: RefCell::default(),
            mtu: Cell::new(Some(1280)),
            reach: Cell::new(libc::EACCES),
            probes: Cell::new(0),
        }
    }

    /// Moves time forward.
    pub(super) fn advance(&self, span: Span) {
        self.now.set(self.now.get() + span);
    }

    /// Returns the control messages of a datagram, or of an aggregate of datagrams of `segment` bytes.
    pub(super) fn meta(from: SocketAddr, segment: usize, tos: u8) -> Meta {
        Meta { segment, ttl: Some(64), tos, ..Meta::new(from, 0) }
    }

    /// Adds a batch of aggregates: bytes, and bytes per datagram.
    pub(super) fn put_batch(&self, aggregates: Vec<(Vec<u8>, usize)>) {
        let from = ([10, 0, 0, 9], 9).into();
        let batch = aggregates.into_iter();
        let batch = batch.map(|(bytes, segment)| (Self::meta(from, segment, 0), bytes));
        self.batches.borrow_mut().push_back(batch.collect());
    }

    /// Adds a datagram to the queue.
    pub(super) fn put(&self, from: SocketAddr, tos: u8, datagram: Vec<u8>) {
        let length = datagram.len();
        self.put_aggregate(Self::meta(from, length, tos), datagram);
    }

    /// Adds an aggregate of datagrams to the queue.
    pub(super) fn put_aggregate(&self, meta: Meta, bytes: Vec<u8>) {
        self.batches.borrow_mut().push_back(vec![(meta, bytes)]);
    }

    /// Moves the datagrams that another engine sent to this one into its queue; returns how many.
    pub(super) fn deliver_from(&self, other: &Self) -> usize {
        let mut sent = other.sent.borrow_mut();
        let mut delivered = 0;
        for burst in sent.extract_if(.., |burst| burst.to.address == self.local) {
            for datagram in burst.datagrams {
                self.put(other.local, burst.tos, datagram);
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
        let batch = self.batches.borrow_mut().pop_front();
        buffers.fill(batch.as_deref().unwrap_or_default());
        Ok(!self.batches.borrow().is_empty())
    }

    fn send<'a>(&self, bursts: impl Iterator<Item = Outgoing<'a>> + Clone) -> io::Result<usize> {
        let mut count = 0;
        for burst in bursts {
            let error = self.errors.borrow_mut().pop_front().unwrap_or(0);
            match error {
                0 => {}
                _ if count > 0 => {
                    self.errors.borrow_mut().push_front(error);
                    return Ok(count);
                }
                _ => return Err(io::Error::from_raw_os_error(error)),
            }
            let datagrams = burst.bytes.chunks(burst.segment.max(1)).map(<[u8]>::to_vec);
            self.sent.borrow_mut().push(Sent {
                at: self.now(),
                to: burst.to,
                datagrams: datagrams.collect(),
                tos: burst.tos,
                stamped: burst.stamp,
            });
            count += 1;
        }
        Ok(count)
    }

    fn has_segmentation(&self) -> bool {
        true
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
        Ok(())
    }

    fn received_at(&self, _: &Meta, now: Time) -> Time {
        now
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
