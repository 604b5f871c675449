//! Bugs that a test plants to show that other tests find them.
//!
//! Without the feature `planted`, [`is_planted`] is `false` at compile time, and the program contains no code
//! of a bug. With the feature, a process has at most one bug, which `plant` chooses.

#[cfg(feature = "planted")]
use core::sync::atomic::{AtomicU32, Ordering};

macro_rules! bugs {
    ($($(#[doc = $doc:literal])+ $bug:ident = $name:literal,)+) => {
        /// A bug. Most of these bugs were, or nearly were, in this project once.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u32)]
        pub enum Bug {
            $($(#[doc = $doc])+ $bug,)+
        }

        impl Bug {
            /// All bugs.
            pub const ALL: &'static [Self] = &[$(Self::$bug),+];

            /// Returns the name of the bug.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$bug => $name),+ }
            }

            /// Returns the description of the bug.
            #[must_use]
            pub const fn description(self) -> &'static str {
                match self { $(Self::$bug => concat!($($doc),+)),+ }
            }
        }
    };
}

bugs! {
    /// A duplicate of a received message is not acknowledged while the queue of messages is full.
    FullQueue = "full-queue",
    /// An op that waits for room does not start when the peer confirms a cancellation.
    RoomUnnoticed = "room-unnoticed",
    /// A sender reads the bits of an acknowledgement one packet too far.
    AckShifted = "ack-shifted",
    /// An op is accepted although its address plus length is 2^64 or more.
    AddressOverflow = "address-overflow",
    /// A cancelled atomic op ends as not sent, although its request was sent.
    FalseNotSent = "false-not-sent",
    /// A cancelled write ends as not sent while none of its packets is acknowledged.
    FalseNotSentWrite = "false-not-sent-write",
    /// An engine whose socket is full does not wait for room.
    LostWakeUp = "lost-wake-up",
    /// Every handshake uses the same ephemeral keys.
    EphemeralAgain = "ephemeral-again",
    /// A change of key begins with a number that was used.
    NonceAgain = "nonce-again",
    /// The secret of a region's key is not compared.
    TenantKey = "tenant-key",
    /// The access of a region is not checked.
    ReadOnlyWritten = "read-only-written",
    /// The end of an op is not compared with the end of its region.
    BeyondEnd = "beyond-end",
    /// A request that arrives again is executed again.
    ExecutedTwice = "executed-twice",
    /// A cancelled message keeps its room.
    RoomLeak = "room-leak",
    /// The flows of a connection that ends are not released.
    FlowLeak = "flow-leak",
    /// A message is delivered with its last packet, even if others are missing.
    EarlyMessage = "early-message",
    /// A withdrawn region still accepts ops.
    WithdrawnUsed = "withdrawn-used",
    /// An op that waits for older ones has no end if its connection ends.
    WaitingDropped = "waiting-dropped",
    /// A session that was closed stays in its table.
    ClosingStays = "closing-stays",
    /// The last bytes of an answer come after the end of their read.
    ReadTail = "read-tail",
    /// Messages of two flows with the same number of op share their memory.
    InboxByOp = "inbox-by-op",
    /// A request that is declared lost is not sent again.
    LostForGood = "lost-for-good",
    /// The number of outstanding ops has no limit.
    OpsWithoutLimit = "ops-without-limit",
    /// A truncated control packet panics.
    ShortDatagram = "short-datagram",
    /// A word is replaced even if it has not the expected value.
    SwapAlways = "swap-always",
    /// The rest of a lost range that is divided is sent from the start of the range.
    CutOffset = "cut-offset",
    /// A late acknowledgement of a packet counts although its bytes were sent again, and that packet counts too.
    AckedTwice = "acked-twice",
    /// A cancellation has no effect at the peer if it arrives before all packets of its op.
    CancelUnseen = "cancel-unseen",
    /// An older answer that is sent again has the bytes of the oldest one that is outstanding.
    OldestAnswer = "oldest-answer",
    /// A write whose region is withdrawn under way ends as if no part of it had been applied.
    RefusedInPart = "refused-in-part",
    /// A complete message is delivered again with each further packet of it, as long as an older op is incomplete.
    MessageAgain = "message-again",
    /// Refusals of a connection that has ended are repeated on the next one with the same flows.
    RefusalsStay = "refusals-stay",
    /// A connection that is refused because the backlog is full keeps a slot of it.
    SlotLeak = "slot-leak",
    /// A read of memory that has become shorter panics.
    ShrunkMemory = "shrunk-memory",
}

#[cfg(feature = "planted")]
static PLANTED: AtomicU32 = AtomicU32::new(u32::MAX);

/// Plants a bug in this process in place of the previous one; `None` removes it.
#[cfg(feature = "planted")]
pub fn plant(bug: Option<Bug>) {
    PLANTED.store(bug.map_or(u32::MAX, |bug| bug as u32), Ordering::Relaxed);
}

/// Returns `true` if this bug is planted.
#[cfg(feature = "planted")]
#[must_use]
pub fn is_planted(bug: Bug) -> bool {
    PLANTED.load(Ordering::Relaxed) == bug as u32
}

/// Returns `true` if this bug is planted, which needs the feature `planted`.
#[cfg(not(feature = "planted"))]
#[inline(always)]
#[must_use]
pub const fn is_planted(_: Bug) -> bool {
    false
}
