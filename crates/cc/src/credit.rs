//! Limits that ports set to credits.

/// Limit of a port to the credits of a credit-based algorithm (ExpressPass §3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreditLimit {
    /// Number of credits that pass at once.
    pub burst: u32,
    /// Maximum number of credits queued in a port.
    pub queue: u32,
}
