//! The version of the layout.

/// The version of the layout. It is raised when a packet of a released library would be read differently
/// or refused; changes between releases leave it.
pub const VERSION: u8 = 1;
