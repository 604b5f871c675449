//! Limits that ports set to credits.

/// Limit of a port to the credits of a credit-based algorithm (ExpressPass §3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreditLimit {
    /// Number of credits that pass at once.
    pub burst: u32,
    /// Maximum number of credits queued in a port.
    pub queue: u32,
    /// Whether the limit is in bytes instead: those of `queue` credits of nominal size. A short credit may then find room
    /// where a long one does not.
    pub queue_in_bytes: bool,
}
