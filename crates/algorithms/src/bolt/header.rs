//! Bolt's header fields (Bolt Listing 1).

use apus_cc::{DataEvent, FieldLayout, Fields, MAX_FIELD_BYTES, Receiver};

/// Identifier of the fields.
const ID: u8 = 1;

/// The fields as they are sent: one byte that switches change, one of flags that they only read, and
/// the departure time; acknowledgements return a count.
pub(crate) const LAYOUT: FieldLayout =
    FieldLayout { id: ID, writable: 1, authenticated: 5, echo: 4 };

/// The flags and the transmission time of a data packet (Bolt Listing 1). `data`, `ack` and `src` follow
/// from the kind of the packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BoltFields {
    /// INC and DEC, which switches change.
    switch: u8,
    /// All flags except DEC and INC.
    own: u8,
    sent: [u8; 4],
}

impl BoltFields {
    /// `first`: in the first window of the flow (§3.2).
    pub const FIRST: u8 = 1;
    /// `last`: in the last window of the flow (§3.2).
    pub const LAST: u8 = 2;
    /// `inc`: requests a larger window; at the receiver, states that bandwidth is available (§3.2).
    pub const INC: u8 = 4;
    /// `dec`: a switch has sent an SRC about congestion (§3.1).
    pub const DEC: u8 = 8;
    /// Listing 1's reserved bit: high priority, so that switches may omit SRCs (App. B.2). The
    /// paper does not say how a switch recognises such flows.
    pub const FAVOURED: u8 = 16;
    /// The flags that switches change.
    const SWITCH: u8 = Self::INC | Self::DEC;
    /// The flags that switches only read.
    const OWN: u8 = Self::FIRST | Self::LAST | Self::FAVOURED;

    /// Fields with these flags; `sent` is `t_data_tx`, nanoseconds modulo 2^32.
    #[inline]
    #[must_use]
    pub const fn new(flags: u8, sent: u32) -> Self {
        Self { switch: flags & Self::SWITCH, own: flags & Self::OWN, sent: sent.to_be_bytes() }
    }

    /// The fields of a data packet, if they are Bolt's.
    #[inline]
    #[must_use]
    pub const fn of(fields: &Fields) -> Option<Self> {
        match fields.as_data(ID) {
            Some(&[switch, own, a, b, c, d]) => Some(Self { switch, own, sent: [a, b, c, d] }),
            None => None,
        }
    }

    /// The fields as a packet carries them.
    #[inline]
    #[must_use]
    pub const fn fields(self) -> Fields {
        let [a, b, c, d] = self.sent;
        Fields::data(ID, [self.switch, self.own, a, b, c, d])
    }

    /// Returns `true` if this flag is set.
    #[inline]
    #[must_use]
    pub const fn has(self, flag: u8) -> bool {
        self.flags() & flag != 0
    }

    /// All flags.
    #[inline]
    #[must_use]
    pub const fn flags(self) -> u8 {
        (self.switch & Self::SWITCH) | (self.own & Self::OWN)
    }

    /// `t_data_tx`: when the packet left, nanoseconds modulo 2^32.
    #[inline]
    #[must_use]
    pub const fn sent(self) -> u32 {
        u32::from_be_bytes(self.sent)
    }

    /// Sets INC or DEC.
    #[inline]
    pub fn set(&mut self, flag: u8) {
        self.switch |= flag & Self::SWITCH;
    }

    /// Clears INC or DEC.
    #[inline]
    pub fn clear(&mut self, flag: u8) {
        self.switch &= !flag;
    }
}

/// Bolt's receiver half: counts the data packets of the flow that arrived with INC still set, modulo 2^32,
/// and returns the count with each acknowledgement.
///
/// deviation: the paper reflects the flag of each packet. A count is equivalent where every packet is
/// acknowledged separately, and loses nothing where one acknowledgement answers several packets (§6: NICs
/// that batch) or is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GrantCounter {
    granted: Option<[u8; 4]>,
}

impl Receiver for GrantCounter {
    #[inline]
    fn on_data(&mut self, event: &DataEvent) -> bool {
        if event.is_new
            && let Some(fields) = BoltFields::of(&event.fields)
        {
            let before = self.granted.map_or(0, u32::from_be_bytes);
            let granted = before.wrapping_add(u32::from(fields.has(BoltFields::INC)));
            self.granted = Some(granted.to_be_bytes());
        }
        true
    }

    #[inline]
    fn echo(&self) -> Fields {
        self.granted.map_or(Fields::NONE, |granted| grants(u32::from_be_bytes(granted)))
    }

    fn sends_control(&self) -> bool {
        false
    }
}

/// The fields of an acknowledgement with this count.
#[must_use]
pub const fn grants(granted: u32) -> Fields {
    let mut bytes = [0; MAX_FIELD_BYTES];
    [bytes[0], bytes[1], bytes[2], bytes[3]] = granted.to_be_bytes();
    Fields::echo(ID, bytes)
}

/// The count that an acknowledgement carries, if it carries one.
#[inline]
#[must_use]
pub const fn granted(fields: &Fields) -> Option<u32> {
    match fields.as_echo(ID) {
        Some(&[a, b, c, d, ..]) => Some(u32::from_be_bytes([a, b, c, d])),
        None => None,
    }
}
