//! Ops and completions: the requests of an application to a flow, and their results.
//!
//! As in Pony Express (Swift §3, Fig. 1), applications submit ops and poll completions.

use apus_units::planted::{Bug, is_planted};
use apus_units::{FlowId, OpId, Time};
use apus_wire::{RegionKey, RejectReason, WORD_BYTES};
use thiserror::Error;

/// Maximum length of an op: 256 TiB. The limit keeps sums over all ops of a flow far from overflow.
pub const MAX_OP_BYTES: u64 = 1 << 48;

/// Type of an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpKind {
    /// One-sided write: stores bytes in a region of the peer.
    Write {
        /// The peer's region.
        region: RegionKey,
        /// First byte within the region.
        address: u64,
    },
    /// One-sided read: fetches bytes from a region of the peer.
    Read {
        /// The peer's region.
        region: RegionKey,
        /// First byte within the region.
        address: u64,
    },
    /// Two-sided message: delivers bytes to the peer's application.
    Message,
    /// One-sided atomic op: replaces a word in a region of the peer if it has the expected value,
    /// and fetches the previous word.
    CompareAndSwap {
        /// The peer's region.
        region: RegionKey,
        /// First byte within the region, a multiple of [`WORD_BYTES`].
        address: u64,
    },
    /// One-sided atomic op: adds to a word in a region of the peer, modulo 2^64, and fetches the
    /// previous word.
    FetchAdd {
        /// The peer's region.
        region: RegionKey,
        /// First byte within the region, a multiple of [`WORD_BYTES`].
        address: u64,
    },
}

impl OpKind {
    /// Returns `true` for the kinds that execute on a word at the peer, and only once.
    #[inline]
    #[must_use]
    pub const fn is_atomic(&self) -> bool {
        matches!(self, Self::CompareAndSwap { .. } | Self::FetchAdd { .. })
    }

    /// Returns `true` for the kinds that end with an answer of the peer: reads and atomic ops.
    #[inline]
    #[must_use]
    pub const fn is_answered(&self) -> bool {
        matches!(self, Self::Read { .. }) || self.is_atomic()
    }
}

/// An op as submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    /// Type of the op.
    pub kind: OpKind,
    /// Payload bytes that the op moves; [`WORD_BYTES`] for an atomic op.
    pub length: u64,
    /// The application's own tag, returned with the completion. In the answer to an atomic op of
    /// the peer ([`Endpoint::source`](crate::Endpoint::source)): the word to be sent.
    pub user: u64,
}

impl Op {
    /// Checks that a packet can express the op: the length, for a one-sided op the last address, and
    /// for an atomic op the alignment.
    ///
    /// # Errors
    /// [`SubmitError::TooLong`], [`SubmitError::AddressOverflow`], [`SubmitError::NotAWord`] or
    /// [`SubmitError::Unaligned`].
    pub fn check(&self) -> Result<(), SubmitError> {
        if self.length > MAX_OP_BYTES {
            return Err(SubmitError::TooLong);
        }
        match self.kind {
            OpKind::Write { address, .. } | OpKind::Read { address, .. }
                if address.checked_add(self.length).is_none()
                    && !is_planted(Bug::AddressOverflow) =>
            {
                Err(SubmitError::AddressOverflow)
            }
            OpKind::CompareAndSwap { address, .. } | OpKind::FetchAdd { address, .. } => {
                self.check_atomic(address)
            }
            _ => Ok(()),
        }
    }

    fn check_atomic(&self, address: u64) -> Result<(), SubmitError> {
        let word = u64::from(WORD_BYTES);
        if self.length != word {
            return Err(SubmitError::NotAWord);
        }
        if !address.is_multiple_of(word) {
            return Err(SubmitError::Unaligned);
        }
        address.checked_add(word).map(|_| ()).ok_or(SubmitError::AddressOverflow)
    }
}

/// The outcome of an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Complete: the peer acknowledged every byte, or the answer to a read or atomic op has arrived.
    Done,
    /// The op was not applied: none of its packets was ever sent.
    Failed,
    /// The peer refused the op and applied no part of it, unless the reason is `Withdrawn`.
    Rejected(RejectReason),
    /// The flow ended, or the op was cancelled, after parts of it may have been applied.
    Unknown,
}

/// The end of an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The flow to which the op was submitted.
    pub flow: FlowId,
    /// Number of the op.
    pub op: OpId,
    /// The op as submitted.
    pub submitted: Op,
    /// Time of the submission.
    pub submitted_at: Time,
    /// Time of the completion.
    pub completed_at: Time,
    /// Outcome of the op.
    pub outcome: Outcome,
}

/// The reason why an op was refused: back-pressure that the caller can handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SubmitError {
    /// The flow does not exist, or it was aborted.
    #[error("the flow does not exist or was aborted; open it first")]
    NoFlow,
    /// The flow's outstanding ops already span the configured range of numbers: the oldest must
    /// complete first.
    #[error(
        "the flow's outstanding ops span as many numbers as allowed; wait for the oldest to complete"
    )]
    TooManyOps,
    /// The op is longer than [`MAX_OP_BYTES`].
    #[error("an op moves at most 2^48 bytes; split it")]
    TooLong,
    /// The address plus length of a one-sided op is 2^64 or more, which no packet can express.
    #[error("address + length must be below 2^64")]
    AddressOverflow,
    /// The length of an atomic op is not [`WORD_BYTES`].
    #[error("the length of an atomic op must be 8 bytes")]
    NotAWord,
    /// The address of an atomic op is not a multiple of [`WORD_BYTES`].
    #[error("the address of an atomic op must be a multiple of 8")]
    Unaligned,
}
