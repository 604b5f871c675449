//! Grants of regions: the kinds of access that peers have, and the set of peers that have it.

use std::fmt;
use std::ops::BitOr;

use crate::connection::Connection;
use crate::driver::HostId;
use crate::session::PeerKey;

/// Kinds of access that peers have to a region: reads, writes and atomic ops, combined by `|`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Access(u8);

impl Access {
    /// Reads.
    pub const READ: Self = Self(1);
    /// Writes.
    pub const WRITE: Self = Self(2);
    /// Atomic ops, which read and change a word.
    pub const ATOMIC: Self = Self(4);
    /// Reads and writes.
    pub const READ_WRITE: Self = Self(3);
    /// Reads, writes and atomic ops.
    pub const ALL: Self = Self(7);

    /// Names of the kinds, in the order of their bits.
    const NAMES: [&str; 3] = ["read", "write", "atomic"];

    /// Returns the access with these bits: 1 for reads, 2 for writes, 4 for atomic ops. Returns `None` if no bit or any other bit
    /// is set.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Option<Self> {
        if matches!(bits, 1..=7) { Some(Self(bits)) } else { None }
    }

    /// Returns the access that a text names: `read`, `write` and `atomic`, joined by `-`, or `all`. Returns `None` for any other
    /// text.
    #[must_use]
    pub fn from_name(text: &str) -> Option<Self> {
        if text == "all" {
            return Some(Self::ALL);
        }
        text.split('-')
            .try_fold(0, |bits, name| {
                let bit = 1 << Self::NAMES.iter().position(|&known| known == name)?;
                (bits & bit == 0).then_some(bits | bit)
            })
            .and_then(Self::from_bits)
    }

    /// Returns `true` if this access includes every kind of access in `wanted`.
    #[must_use]
    pub const fn allows(self, wanted: Self) -> bool {
        self.0 & wanted.0 == wanted.0
    }
}

impl BitOr for Access {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |&(bit, _): &(usize, &str)| self.0 & 1 << bit != 0;
        let names: Vec<&str> =
            Self::NAMES.into_iter().enumerate().filter(of).map(|(_, name)| name).collect();
        f.write_str(&names.join("-"))
    }
}

/// Set of peers that may use a region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant(Who);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Who {
    All,
    /// A connection by its number, which is unique within its host.
    Connection(HostId, u64),
    /// Peers by their keys, sorted.
    Keys(Vec<PeerKey>),
}

/// A peer that uses a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    /// Number of the peer's connection, unique within the host.
    pub(crate) connection: u64,
    /// The peer's own key, which it proved.
    pub(crate) key: Option<PeerKey>,
}

impl Grant {
    /// Returns a grant for every peer of the host that knows the region key.
    #[must_use]
    pub const fn all() -> Self {
        Self(Who::All)
    }

    /// Returns a grant for no peer.
    #[must_use]
    pub const fn nobody() -> Self {
        Self(Who::Keys(Vec::new()))
    }

    /// Returns a grant for the peer of this connection, until the connection ends. Only regions of the connection's own host can
    /// have this grant.
    #[must_use]
    pub fn connection(connection: &Connection) -> Self {
        Self(Who::Connection(connection.host(), connection.number()))
    }

    /// Returns a grant for the peers with these keys ([`Connection::peer_key`]), on any connection.
    #[must_use]
    pub fn keys(keys: impl IntoIterator<Item = PeerKey>) -> Self {
        let mut keys: Vec<PeerKey> = keys.into_iter().collect();
        keys.sort_unstable();
        Self(Who::Keys(keys))
    }

    /// Returns `true` if a region of this host can have the grant: it names no connection of another host.
    pub(crate) fn is_for(&self, host: HostId) -> bool {
        !matches!(self.0, Who::Connection(of, _) if of != host)
    }

    pub(crate) fn allows(&self, caller: &Caller) -> bool {
        match &self.0 {
            Who::All => true,
            Who::Connection(_, number) => *number == caller.connection,
            Who::Keys(keys) => caller.key.is_some_and(|key| keys.binary_search(&key).is_ok()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_access_are_apart_and_have_names() {
        let kinds = [Access::READ, Access::WRITE, Access::ATOMIC];
        for (i, one) in kinds.into_iter().enumerate() {
            for (j, other) in kinds.into_iter().enumerate() {
                assert_eq!(one.allows(other), i == j);
            }
            assert!(Access::ALL.allows(one));
        }
        assert!(!Access::READ_WRITE.allows(Access::ATOMIC), "atomic ops are a right of their own");
        assert_eq!(Access::READ | Access::WRITE | Access::ATOMIC, Access::ALL);
        for bits in 1..=7 {
            let access = Access::from_bits(bits).unwrap();
            assert_eq!(Access::from_name(&format!("{access:?}")), Some(access));
        }
        assert_eq!(Access::from_name("all"), Some(Access::ALL));
        for wrong in ["", "-", "read-", "read-read", "readwrite", "Read"] {
            assert_eq!(Access::from_name(wrong), None, "{wrong}");
        }
        assert!(Access::from_bits(0).is_none() && Access::from_bits(8).is_none());
    }

    #[test]
    fn a_grant_is_for_all_a_connection_keys_or_nobody() {
        let key = |n| PeerKey::new([n; 32]).unwrap();
        let (a, b, none) = (Some(key(9)), Some(key(11)), None);
        let caller = |connection, key| Caller { connection, key };
        assert!(Grant::all().allows(&caller(1, none)));
        assert!(
            !Grant::nobody().allows(&caller(1, a)) && !Grant::nobody().allows(&caller(1, none))
        );
        let (host, other) = (HostId::new(), HostId::new());
        let one = Grant(Who::Connection(host, 7));
        assert!(one.is_for(host) && !one.is_for(other) && Grant::all().is_for(other));
        assert!(one.allows(&caller(7, none)) && !one.allows(&caller(8, a)));
        let keys = Grant::keys([key(11), key(9), key(13)]);
        assert!(keys.allows(&caller(1, a)) && keys.allows(&caller(2, b)));
        assert!(!keys.allows(&caller(1, none)) && !keys.allows(&caller(1, Some(key(15)))));
    }
}
