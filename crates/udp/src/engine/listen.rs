//! Looks at the sockets: detailed ones, in batches, and plain ones, for a datagram at a time (see `looks`), at the
//! first socket and that of the busiest peer (see `busiest`).

use std::io;

use apus_units::Time;

use super::looks::{Off, Turn};
use super::{Engine, RECEIVE_BATCHES};
use crate::region::Held;
use crate::stats::add;
use crate::sys::{Looked, ReceiveBuffers};

/// What detailed looks at all sockets found.
struct Found {
    any: bool,
    /// All were in vain.
    vain: bool,
    /// There may be more in one.
    more: bool,
}

impl Engine {
    /// Receives what came, at most a few batches; returns whether anything did. If `timed`, every socket is
    /// looked at.
    pub(super) fn receive(&mut self, timed: bool) -> bool {
        let Some(mut buffers) = self.buffers.take() else { return false };
        if self.departures.is_some() {
            // First, so that the acknowledgements find t1 corrected.
            self.take_departures(self.clock.now());
        }
        let mut any = self.busiest.is_leaving() && self.receive_rest(&mut buffers);
        any |= if !self.looks.is_plain() {
            self.receive_batches(&mut buffers)
        } else if self.busiest.is_joined() {
            self.receive_from_busiest(&mut buffers, timed)
        } else {
            self.receive_one(&mut buffers)
        };
        self.unread |= self.busiest.is_leaving();
        self.buffers = Some(buffers);
        any
    }

    /// A plain look: one datagram at most.
    fn receive_one(&mut self, buffers: &mut ReceiveBuffers) -> bool {
        self.count_plain_look();
        let looked = self.socket.receive_one(buffers);
        self.unread = looked != Looked::Nothing;
        if looked == Looked::Nothing {
            self.looks.on_nothing();
            if self.busiest.is_wanted() {
                self.join_busiest();
            }
        }
        if looked != Looked::Datagram {
            return false;
        }
        let now = self.clock.now(); // t3, t6
        let known = self.looks.on_found(now);
        if !known {
            self.ask_arrival(self.socket.arrived_at(), buffers);
        }
        self.take_one(now, known, buffers);
        true
    }

    /// A plain look at the socket of the busiest peer, or, if that is in vain and it is their turn, at that of all
    /// others.
    fn receive_from_busiest(&mut self, buffers: &mut ReceiveBuffers, timed: bool) -> bool {
        self.count_plain_look();
        self.unread = true;
        match self.busiest.look(buffers) {
            Looked::Datagram => {
                let now = self.clock.now(); // t3, t6
                let known = self.looks.on_found(now);
                if !known {
                    self.ask_arrival(self.busiest.arrived_at(), buffers);
                }
                self.take_one(now, known, buffers);
                return true;
            }
            Looked::Nothing => {
                self.looks.on_nothing();
            }
            Looked::Error => return false,
        }
        if !(timed || self.busiest.others_are_due()) {
            return false;
        }
        self.count_plain_look();
        let looked = self.socket.receive_one(buffers);
        self.unread = looked != Looked::Nothing;
        self.busiest.on_others(self.unread);
        if looked == Looked::Datagram {
            let now = self.clock.now(); // t3, t6
            self.looks.on_clock(now);
            self.ask_arrival(self.socket.arrived_at(), buffers);
            self.hand_on(now, buffers);
        }
        looked == Looked::Datagram
    }

    fn count_plain_look(&self) {
        add(&self.shared.stats.receive_calls, 1);
        add(&self.shared.stats.plain_looks, 1);
    }

    /// When the kernel received a datagram that may have waited.
    fn ask_arrival(&mut self, arrived_at: io::Result<i128>, buffers: &mut ReceiveBuffers) {
        match arrived_at {
            Ok(at) => buffers.set_received_at(at),
            Err(_) => self.looks.forbid(),
        }
    }

    /// A plain look at the socket that it looks at every time found something.
    #[inline]
    fn take_one(&mut self, now: Time, known: bool, buffers: &mut ReceiveBuffers) {
        if self.looks.on_plain(known) {
            if self.looks.is_crowded() {
                self.look_in_detail();
            } else {
                self.see_details();
            }
        }
        self.hand_on(now, buffers);
    }

    #[inline]
    fn hand_on(&mut self, now: Time, buffers: &mut ReceiveBuffers) {
        let lost = buffers.from().is_some_and(|from| self.busiest.hear(from));
        for (meta, datagram) in buffers.received() {
            self.handle_datagram(now, meta, datagram, &mut Held::default());
        }
        self.count_received(1);
        if lost {
            self.leave_busiest();
        }
    }

    /// What is left in the socket of a peer that is not the busiest any more.
    #[cold]
    fn receive_rest(&mut self, buffers: &mut ReceiveBuffers) -> bool {
        let Some(socket) = self.busiest.socket() else { return false };
        add(&self.shared.stats.receive_calls, 1);
        let looked = socket.receive(buffers);
        if looked.is_ok() && buffers.len() == 0 {
            self.busiest.on_nothing();
        } else if buffers.is_undated()
            && let Ok(at) = socket.arrived_at()
        {
            // That of the last of them.
            buffers.set_received_at(at);
        }
        self.handle_batch(buffers)
    }

    fn receive_batches(&mut self, buffers: &mut ReceiveBuffers) -> bool {
        let mut found = Found { any: false, vain: true, more: false };
        if self.busiest.is_joined() {
            self.receive_batches_of(true, buffers, &mut found);
        }
        self.receive_batches_of(false, buffers, &mut found);
        self.unread = found.more;
        if found.vain {
            match self.looks.on_nothing() {
                Off::Aggregation => self.aggregate(false),
                Off::Details if self.detail(false).is_err() => {
                    self.look_in_detail();
                    self.looks.hold();
                }
                Off::Details | Off::Nothing => {}
            }
        }
        found.any
    }

    /// Of the socket of the busiest peer, or of the first one.
    fn receive_batches_of(
        &mut self,
        busiest: bool,
        buffers: &mut ReceiveBuffers,
        found: &mut Found,
    ) {
        for batch in 0..RECEIVE_BATCHES {
            let socket = if busiest { self.busiest.socket() } else { None };
            add(&self.shared.stats.receive_calls, 1);
            // Errors of single datagrams (ICMP) are not ours: timers take care of lost packets.
            let looked = socket.unwrap_or(&self.socket).receive(buffers);
            let vain = looked.is_ok() && buffers.len() == 0;
            if vain && busiest {
                self.busiest.on_nothing();
            }
            found.vain &= vain;
            let more = looked.unwrap_or(true);
            found.any |= self.handle_batch(buffers);
            // What comes one by one is answered before the next look.
            let single = batch == 0 && buffers.len() == 1;
            if buffers.len() > 0 {
                self.note_detailed(single && !buffers.is_aggregate());
            }
            if !more || single {
                found.more |= more;
                return;
            }
        }
        found.more = true;
    }

    /// A detailed look found something.
    fn note_detailed(&mut self, single: bool) {
        let known = self.looks.on_found(self.clock.now());
        if !single {
            self.leave_busiest();
        }
        match self.looks.on_detailed(single && known) {
            Turn::No => {}
            Turn::Plain if self.owners.iter().flatten().any(|owner| owner.marks) => {
                self.looks.hold();
                self.leave_busiest();
            }
            Turn::Plain => self.looks.turn_plain(),
            Turn::Back => self.look_in_detail(),
        }
    }

    /// Looks in detail until datagrams come one by one again.
    pub(super) fn look_in_detail(&mut self) {
        self.leave_busiest();
        self.see_details();
    }

    /// Looks in detail, if only for a while.
    fn see_details(&mut self) {
        self.aggregate(true);
        // If the kernel does not let it, the clock is read instead.
        let _ = self.detail(true);
        self.looks.turn_detailed();
    }

    fn aggregate(&self, on: bool) {
        self.socket.aggregate(on);
        if let Some(socket) = self.busiest.socket() {
            socket.aggregate(on);
        }
    }

    fn detail(&self, on: bool) -> io::Result<()> {
        let of_busiest = self.busiest.socket().map_or(Ok(()), |socket| socket.detail(on));
        self.socket.detail(on).and(of_busiest)
    }
}
