//! Limits that ports set to credits.

/// Limit of a port to the credits of a credit-based algorithm (ExpressPass §3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreditLimit {
    /// Maximum number of credits in one burst.
    pub burst: u32,
    /// Maximum number of credits queued in a port.
    pub queue: u32,
    /// Whether the queue limit counts bytes instead of credits: the bytes of `queue` credits of nominal size.
    /// A short credit may then fit where a long one does not.
    pub queue_in_bytes: bool,
}
