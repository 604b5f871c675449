//! Typed identifiers: an index of one kind cannot be used as an index of another.

use core::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($int:ty), $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name($int);

        impl $name {
            /// Returns the identifier with this number.
            #[inline]
            #[must_use]
            pub const fn new(n: $int) -> Self {
                Self(n)
            }

            /// Returns the number.
            #[inline]
            #[must_use]
            pub const fn get(self) -> $int {
                self.0
            }

            /// Returns the number as an index into a table.
            #[inline]
            #[must_use]
            pub const fn index(self) -> usize {
                self.0 as usize
            }

            /// Returns the next identifier.
            #[inline]
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0 + 1)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}

id!(
    /// A host of the fabric.
    HostId(u32),
    "host "
);
id!(
    /// A switch of the fabric.
    SwitchId(u32),
    "switch "
);
id!(
    /// An egress port of a host or switch, with the link behind it.
    PortId(u32),
    "port "
);
id!(
    /// A flow of one transport endpoint: its index in that endpoint's table.
    FlowId(u32),
    "flow "
);
id!(
    /// A traffic class; class 0 is the default.
    ClassId(u8),
    "class "
);
id!(
    /// An op of a flow, numbered by its initiator from 0 in the order of submission.
    OpId(u64),
    "op "
);
id!(
    /// The number of a transmission, fresh for each, per flow and direction.
    PacketNumber(u64),
    "packet "
);
