//! The version of the layout.

/// The version of the layout.
pub const VERSION: u8 = 1;
