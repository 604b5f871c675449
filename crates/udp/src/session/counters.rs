//! Counters of a session table.

use super::event::Dropped;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counters since the creation of the session table.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counters {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counters {
            /// Number of counters.
            pub const COUNT: usize = [$(stringify!($name)),*].len();

            /// Returns each counter with its name, in a fixed order.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name),)*].into_iter()
            }
        }
    };
}

counters! {
    /// Packets that were sealed.
    sealed,
    /// Packets that were opened, including control packets.
    opened,
    /// Sessions that were connected.
    connected,
    /// Sessions that ended after they had been connected.
    ended,
    /// Handshakes that ended without a session.
    failed,
    /// Key changes in both directions.
    key_changes,
    /// Replies dropped because the queue of replies was full.
    replies_dropped,
    /// Reach probes: datagrams by which a host that waits for the answer to a handshake asks whether this port is open.
    reach_probes,
    /// Dropped: not a packet of this protocol.
    dropped_malformed,
    /// Dropped: a handshake of the other mode (insecure, or with keys).
    dropped_other_mode,
    /// Dropped: for an unknown session.
    dropped_unknown,
    /// Dropped: not from the address of the session.
    dropped_address,
    /// Dropped: a replay, or too old to exclude one.
    dropped_replay,
    /// Dropped: not authentic, or damaged.
    dropped_forged,
    /// Dropped: a handshake under an unknown key.
    dropped_unknown_key,
    /// Dropped: a handshake that does not prove its key.
    dropped_unproven,
    /// Dropped: a handshake for which the system provided no random bytes.
    dropped_no_randomness,
    /// Dropped: a handshake packet that proves a known key but belongs to no handshake in progress.
    dropped_stray,
    /// Dropped: no room for another session.
    dropped_full,
    /// Dropped: a handshake beyond the rate limit of its address or key.
    dropped_rate,
    /// Dropped: beyond its peer's share of an overloaded engine.
    dropped_share,
}

impl Counters {
    pub(crate) fn count(&mut self, dropped: Dropped) {
        *match dropped {
            Dropped::Malformed => &mut self.dropped_malformed,
            Dropped::UnknownSession => &mut self.dropped_unknown,
            Dropped::Address => &mut self.dropped_address,
            Dropped::Replay => &mut self.dropped_replay,
            Dropped::Forged => &mut self.dropped_forged,
            Dropped::OtherMode => &mut self.dropped_other_mode,
            Dropped::UnknownKey => &mut self.dropped_unknown_key,
            Dropped::Unproven => &mut self.dropped_unproven,
            Dropped::NoRandomness => &mut self.dropped_no_randomness,
            Dropped::Stray => &mut self.dropped_stray,
            Dropped::Full => &mut self.dropped_full,
            Dropped::Rate => &mut self.dropped_rate,
            Dropped::Share => &mut self.dropped_share,
        } += 1;
    }
}
