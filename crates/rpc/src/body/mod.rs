//! Bodies: large or unbounded sequences of bytes that belong to a call, in either direction.
//!
//! The sender of a body registers a region for the call and grants its key to the peer. The receiver fetches the bytes by
//! one-sided reads when it needs them; this is the back-pressure. For a body in memory, the region is the memory itself.
//! Other bodies pass through a ring: the sender announces each position up to which it has filled the ring, and the receiver
//! reports the position up to which it has read. The region is withdrawn with the call.

mod receive;
mod send;

use std::sync::Arc;
use std::time::Instant;

use apus_udp::{Connection, Host};

use crate::envelope::{CallId, Grant};
use crate::outgoing::Outgoing;

pub use receive::BodyReader;
pub(crate) use receive::{Early, Receiving};
pub use send::BodyWriter;
pub(crate) use send::Sending;

use crate::error::BodyError;

/// Bytes of a one-sided read. Rationale: large enough that the costs per op do not matter at 40 Gb/s, and small enough that a
/// few chunks fit into the caches. deviation: no source.
pub(crate) const CHUNK_BYTES: u64 = 256 << 10;
/// Number of reads in flight. Rationale: four chunks are 1 MiB, the product of 40 Gb/s and 200 us.
pub(crate) const READ_AHEAD: usize = 4;
/// Default size of a ring. Rationale: twice the bytes in flight, so that the sender fills one half while the other is read.
pub(crate) const RING_BYTES: usize = 2 << 20;

/// The call to which a body belongs.
#[derive(Clone)]
pub(crate) struct BodyLink {
    pub(crate) outgoing: Arc<Outgoing>,
    pub(crate) id: CallId,
    pub(crate) deadline: Option<Instant>,
}

impl BodyLink {
    /// Returns the reason why a blocking wait ended without a result.
    fn stopped(&self) -> BodyError {
        if self.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            return BodyError::Deadline;
        }
        BodyError::Ended(self.outgoing.end_of_wait())
    }
}

/// Registers a body that is in memory.
///
/// # Errors
/// If the host has too many regions.
pub(crate) fn whole(
    host: &Host,
    to: &Connection,
    bytes: bytes::Bytes,
) -> std::io::Result<(Arc<Sending>, Grant)> {
    Sending::whole(host, to, bytes)
}
