//! The network within a host.

use apus_units::Time;

use crate::plan::LocalNetwork;

/// The port of a rank into the network within its host.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LocalPort {
    /// Times at which the port is free to send, and to receive.
    free: [Time; 2],
}

impl LocalPort {
    /// Sends a message. Returns when it has left, and when it begins to arrive.
    pub(super) fn send(&mut self, now: Time, bytes: u64, network: &LocalNetwork) -> (Time, Time) {
        let begins = self.free[0].max(now);
        self.free[0] = begins.saturating_add(network.occupies(bytes));
        (self.free[0], begins.saturating_add(network.delay))
    }

    /// Returns the time at which a message that begins to arrive now has arrived.
    pub(super) fn receive(&mut self, now: Time, bytes: u64, network: &LocalNetwork) -> Time {
        self.free[1] = self.free[1].max(now).saturating_add(network.occupies(bytes));
        self.free[1]
    }
}
