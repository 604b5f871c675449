//! Kinds of events.

/// Type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An acknowledgement.
    Ack,
    /// A loss found by holes in the acknowledgements.
    Loss,
    /// The retransmission timeout.
    Timeout,
}

impl Event {
    /// Returns the word in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ack => "ack",
            Self::Loss => "loss",
            Self::Timeout => "timeout",
        }
    }
}
