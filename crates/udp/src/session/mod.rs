//! Sessions: a peer proves a key before it can cost memory or touch a region.
//!
//! This module is a state machine without sockets and clocks: time, addresses and randomness are arguments. One [`Sessions`]
//! serves one engine. Each session belongs to one peer address and carries any number of flows.
//!
//! # Handshake
//!
//! ```text
//! initiator                                   responder
//!     | Hello (proof)                  ------------> |  nothing is stored
//!     | <------------ Cookie (proof)                 |  for the address that asked
//!     | Init (proof, cookie, Noise 1)  ------------> |  key and return path proven: a session is
//!     |                                              |  offered to the application
//!     | <------------ Response (proof, Noise 2)      |  after `accept`
//!     | ping (sealed)                  ------------> |  the session is connected
//!     | <-------------- pong, or data (sealed)       |
//! the session is connected                           |
//! ```
//!
//! The initiator regards the session as connected only when the responder has shown that it keeps the session. A Response alone
//! does not show this: the initiator's thread may have been descheduled for so long that the responder gave up the handshake
//! before the initiator read the Response.
//!
//! Every message names the protection that the initiator proposes for the session's packets: a checksum only, or a [`Cipher`]. A
//! responder accepts the ciphers of [`Config::accept_ciphers`] and refuses others by name. The proposal is part of the Noise
//! transcript, so that an attacker cannot change it in transit.
//!
//! The proof is an HMAC under the shared key, so a handshake packet from a peer without the key costs one hash. The cookie is
//! bound into the Noise transcript, so an old Init cannot be replayed.
//!
//! If the sides have keys of their own ([`KeyRing::of`]), the Init carries the initiator's key, encrypted to the responder's
//! key. The initiator must therefore know the responder's key. Each message then names the credential that combines the
//! shared key with the responder's key. A table with keys of its own neither opens nor accepts other sessions, so no message
//! can turn off the proof of these keys.
//!
//! # Packets
//!
//! Header and payload in the layout of `apus_wire`, followed by the guard:
//!
//! ```text
//! sealed:   writable fields | header | payload, encrypted | tag 16      | session 4 | number 4
//! insecure: writable fields | header | payload            | session 4 | number 4 | CRC-32C 4
//! ```
//!
//! The header stays readable and is authenticated with the payload (Bolt §4.3's crypt offset), except the fields of its
//! congestion extension that switches write. A switch's Signal has no guard, since switches hold no key: `apus_wire` gives it a
//! checksum.
//!
//! The CRC-32C covers the numbers and everything that is authenticated in sealed packets. It is combined by exclusive or with
//! the first four bytes of the handshake's secret for that direction. A packet of another session with the same number is
//! therefore not accepted.
//!
//! `session` is the receiver's number of the session. `number` is the low half of the packet's number in the session. Each
//! packet of a session has a fresh number, which determines the nonce and the epoch of the key and protects against replays.
//! The number counts the packets of the session, because a transport packet number is unique only within one direction of one
//! flow, and all flows share the keys.
//!
//! # Loss of the peer
//!
//! A silent peer is pinged, and is given up after [`Config::idle_timeout`]. A peer that has lost the session, for example by
//! a restart, answers with an unproven Unknown. The Unknown starts pings, and the session ends only if none of them is
//! answered. A new handshake from the same address ends the old session once the new session is confirmed. In each case
//! outstanding ops end as `unknown`.

mod checksum;
mod cipher;
mod config;
mod cookie;
mod counters;
mod event;
mod guard;
mod handshake;
mod identity;
mod incoming;
mod key;
mod liveness;
mod noise;
mod outgoing;
mod packet;
mod packet_key;
mod peer;
mod ports;
mod primitives;
mod protect;
mod quota;
pub(crate) mod random;
mod ring;
mod rotation;
mod share;
mod state;
mod table;
mod told;
mod traffic;
mod turns;
mod window;

#[cfg(test)]
mod tests;

pub use cipher::Cipher;
pub use config::Config;
pub(crate) use config::in_range;
pub use counters::Counters;
pub use event::{AcceptError, ConnectError, Dropped, End, Event, Received, SealError, SessionId};
pub(crate) use guard::guard_bytes;
pub use handshake::{MAX_HANDSHAKE_BYTES, MAX_HELLO_BYTES};
pub use identity::{KeyPair, PeerKey};
pub use key::{KeyId, SharedKey};
pub(crate) use packet::REACH_PROBE;
pub use peer::Peer;
pub use ports::MAX_PORTS;
pub use quota::Principal;
pub(crate) use quota::of_unlisted;
pub use random::{Randomness, Seeded};
pub use ring::{Entry, EntryKey, KeyError, KeyRing, MAX_KEYS, PeerNameError, entries};
pub use table::Sessions;
pub use told::{MAX_REASON_BYTES, Told};
pub use traffic::Extended;
