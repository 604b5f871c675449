//! The version of the layout.

/// The version of the layout. A change after which packets of a released library are interpreted
/// differently or refused raises it; changes between releases do not.
pub const VERSION: u8 = 1;
