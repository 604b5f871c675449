//! Bolt's header fields (Bolt Listing 1).

use apus_units::Rate;

use crate::Word;

/// The flags and the transmission time of a data packet (Bolt Listing 1). Whether a packet is data,
/// an acknowledgement or a switch's feedback is known from what carries these fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BoltFields {
    flags: u8,
    sent: Word,
}

impl BoltFields {
    /// `first`: in the first window of the flow (§3.2).
    pub const FIRST: u8 = 1;
    /// `last`: in the last window of the flow (§3.2).
    pub const LAST: u8 = 2;
    /// `inc`: asks for a larger window, and, where it arrives, says that there is room (§3.2).
    pub const INC: u8 = 4;
    /// `dec`: a switch has told the source of congestion (§3.1).
    pub const DEC: u8 = 8;
    /// Listing 1's reserved bit: of high priority, so that switches may spare it SRCs (App. B.2). The
    /// paper does not say how a switch knows.
    pub const FAVOURED: u8 = 16;
    /// All flags.
    const ALL: u8 = Self::FIRST | Self::LAST | Self::INC | Self::DEC | Self::FAVOURED;

    /// Fields with these flags; `sent` is `t_data_tx`, nanoseconds modulo 2^32.
    #[inline]
    #[must_use]
    pub const fn new(flags: u8, sent: u32) -> Self {
        Self { flags: flags & Self::ALL, sent: Word::new(sent) }
    }

    /// Whether this flag is set.
    #[inline]
    #[must_use]
    pub const fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// All flags.
    #[inline]
    #[must_use]
    pub const fn flags(self) -> u8 {
        self.flags
    }

    /// `t_data_tx`: when the packet left, nanoseconds modulo 2^32.
    #[inline]
    #[must_use]
    pub const fn sent(self) -> u32 {
        self.sent.get()
    }

    /// Sets a flag.
    #[inline]
    pub fn set(&mut self, flag: u8) {
        self.flags |= flag;
    }

    /// Clears a flag.
    #[inline]
    pub fn clear(&mut self, flag: u8) {
        self.flags &= !flag;
    }
}

/// What a receiver tells back: how many data packets of the flow arrived with INC still set, modulo
/// 2^32. The paper reflects the flag of each packet; a count says the same where every packet is
/// acknowledged apart, and loses nothing where one acknowledgement answers several (§6: NICs that
/// batch) or is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BoltEcho {
    granted: Word,
}

impl BoltEcho {
    /// With this count.
    #[inline]
    #[must_use]
    pub const fn new(granted: u32) -> Self {
        Self { granted: Word::new(granted) }
    }

    /// The count.
    #[inline]
    #[must_use]
    pub const fn granted(self) -> u32 {
        self.granted.get()
    }

    /// The echo after one more data packet.
    #[inline]
    #[must_use]
    pub const fn after(self, fields: BoltFields) -> Self {
        Self::new(self.granted().wrapping_add(fields.has(BoltFields::INC) as u32))
    }
}

/// The rates that the 8 bits of `link_rate` can name, in Gb/s (Bolt Listing 1 does not say how they
/// are coded; the authors' code has five of these).
const LINK_RATES: [u64; 10] = [1, 10, 25, 40, 50, 100, 200, 400, 800, 1600];

/// The code of a link rate, 1 and up: the fastest listed rate that is not above it, so that a flow
/// never takes its part in a queue for smaller than it is. 1 for links below 1 Gb/s.
#[must_use]
pub fn link_rate_code(rate: Rate) -> u8 {
    let below = LINK_RATES.partition_point(|&gbps| Rate::from_gbps(gbps) <= rate);
    below.max(1) as u8
}

/// The rate that a code names, if it names one.
#[must_use]
pub fn rate_of_code(code: u8) -> Option<Rate> {
    let index = usize::from(code).checked_sub(1)?;
    LINK_RATES.get(index).copied().map(Rate::from_gbps)
}
