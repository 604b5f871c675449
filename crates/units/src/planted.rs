//! Bugs that a test plants to show that other tests find them.
//!
//! Worlds of the transport find the bugs of the first list, scenarios of the simulator those of the other two.
//!
//! Without the feature `planted`, [`is_planted`] is `false` at compile time, and the program contains no code
//! of a bug. With the feature, a process has at most one bug, which `plant` chooses.

#[cfg(feature = "planted")]
use core::sync::atomic::{AtomicU32, Ordering};

macro_rules! bugs {
    (
        transport { $($(#[doc = $doc:literal])+ $bug:ident = $name:literal,)+ }
        simulator { $($(#[doc = $sim_doc:literal])+ $sim_bug:ident = $sim_name:literal,)+ }
        rare { $($(#[doc = $rare_doc:literal])+ $rare_bug:ident = $rare_name:literal,)+ }
    ) => {
        /// A bug. Most of these bugs were, or nearly were, in this project once.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u32)]
        pub enum Bug {
            $($(#[doc = $doc])+ $bug,)+
            $($(#[doc = $sim_doc])+ $sim_bug,)+
            $($(#[doc = $rare_doc])+ $rare_bug,)+
        }

        impl Bug {
            /// Bugs that worlds of the transport find.
            pub const TRANSPORT: &'static [Self] = &[$(Self::$bug),+];
            /// Bugs that scenarios of the simulator find.
            pub const SIMULATOR: &'static [Self] = &[$(Self::$sim_bug),+];
            /// Bugs that fewer than one in 10,000 scenarios find.
            pub const RARE: &'static [Self] = &[$(Self::$rare_bug),+];

            /// Returns the name of the bug.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$bug => $name,)+
                    $(Self::$sim_bug => $sim_name,)+
                    $(Self::$rare_bug => $rare_name,)+
                }
            }

            /// Returns the description of the bug.
            #[must_use]
            pub const fn description(self) -> &'static str {
                match self {
                    $(Self::$bug => concat!($($doc),+),)+
                    $(Self::$sim_bug => concat!($($sim_doc),+),)+
                    $(Self::$rare_bug => concat!($($rare_doc),+),)+
                }
            }
        }
    };
}

bugs! {
    transport {
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
        /// A session goes on after the key of its peer was removed from the key ring.
        PeerKeyStays = "peer-key-stays",
    }
    simulator {
        /// A link that is repaired stays down.
        RepairForgotten = "repair-forgotten",
        /// A pause of a link and its end that are due together are sent in reverse order.
        PausesReversed = "pauses-reversed",
        /// Ports send credits without a limit of their rate.
        CreditsUnlimited = "credits-unlimited",
        /// The ideal time of a message has the header of one packet too many.
        IdealTooLong = "ideal-too-long",
        /// A shared memory accepts a packet that is larger than its free room if the threshold of the queue allows it.
        MemoryOverdrawn = "memory-overdrawn",
        /// Packets that are lost in a port whose link fails still count towards the pauses of their switch.
        PauseKept = "pause-kept",
        /// A rate limit saves up tokens beyond its burst while no packet is sent.
        TokensSaved = "tokens-saved",
        /// A link that fails still delivers the packets that were handed over to another part.
        PartKeepsPackets = "part-keeps-packets",
        /// A far event comes after the other events of its slot, even if they are later.
        FarEventLate = "far-event-late",
        /// Packets that reach a port at the same time over several links join it in the order in which they were stored.
        TieUnordered = "tie-unordered",
        /// A rank does not act on the end of a send to another rank of its host.
        LocalSendUnnoticed = "local-send-unnoticed",
    }
    rare {
        /// Events shortly before a fault run after it if another event is due at the time of the fault.
        LateEvents = "late-events",
        /// The range of packet numbers of a flow with several paths moves on with acknowledgements only.
        RangeStays = "range-stays",
    }
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
