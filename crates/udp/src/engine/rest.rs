//! The end of a step of an engine: packets left to send, and the time until which its thread may sleep.

use apus_units::Time;
use apus_units::planted::{Bug, is_planted};

use super::Engine;
use super::network::Network;
use super::protocol::Protocol;
use crate::clock::LIFETIME;
use crate::containment::contain;

impl<N: Network> Engine<N> {
    /// Takes the commands of applications and sends, including held acknowledgements. Does not poll the socket.
    pub(crate) fn flush(&mut self) {
        if self.mailbox.status.has_failed() {
            self.mailbox.drain();
            return;
        }
        let held = std::mem::take(&mut self.holds);
        let flushed = contain(|| {
            if self.is_stopped() {
                self.stop();
            } else if let Some(now) = self.take_commands() {
                self.send(now);
                self.complete();
            } else if held {
                self.send(self.network.now());
            }
        });
        if flushed.is_none() {
            self.fail();
        }
    }

    /// Returns when the next timer is due; [`Time::MAX`] for never. The result may be too early. It excludes the
    /// comparison of clocks, which may be late.
    pub(crate) fn next_due(&self) -> Time {
        let Protocol { connections, ops, regions, .. } = &self.protocol;
        ops.next_timeout().min(connections.next_timeout()).min(regions.next_check)
    }

    /// Makes [`Engine::next_due`] exact, for a thread that is about to sleep or to set an alarm.
    pub(crate) fn settle_timers(&mut self) {
        self.protocol.ops.endpoint.settle_timers();
    }

    /// Returns `true` if packets that are not held are left to send, at once or when the socket has room.
    pub(crate) fn has_left(&self) -> bool {
        !self.holds && self.has_work()
    }

    /// Returns the time until which the thread that drives the engine may sleep; `None` if there is something to do at
    /// once.
    pub(crate) fn rest(&mut self) -> Option<Rest> {
        let sending = self.transmitter.is_blocked() && !is_planted(Bug::LostWakeUp);
        let blocked = self.transmitter.is_blocked();
        if self.is_stopped() || !blocked && self.protocol.has_transmit() {
            return None;
        }
        let now = self.network.now();
        let due = self.next_due().min(Time::ZERO + LIFETIME);
        if due <= now {
            return None;
        }
        Some(Rest { due, sending })
    }

    /// Records that the thread that drives the engine has slept, and that no timer was due before `due`. Compares the
    /// clocks if that is due, for the datagrams that have arrived meanwhile: no timer wakes an engine for the
    /// comparison.
    pub(crate) fn slept(&mut self, due: Time) {
        let now = self.network.now();
        self.descheduled.on_slept(due, now);
        self.network.compare_clocks(now);
    }
}

/// Events that end the sleep of a thread that drives an engine, besides datagrams and commands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rest {
    /// When the next timer is due; [`Time::MAX`] for never.
    pub(crate) due: Time,
    /// Whether room to send also ends the sleep.
    pub(crate) sending: bool,
}
