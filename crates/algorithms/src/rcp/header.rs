//! RCP's header fields (IWQoS 2005 §2: "each packet carries R_p" and the sender's RTT).

use apus_cc::{FieldLayout, Fields};
use apus_units::{Rate, Span};

/// Identifier of the fields.
const ID: u8 = 2;

/// Layout of the fields: a rate that switches lower, and the sender's RTT. Acknowledgements return the rate.
pub(crate) const LAYOUT: FieldLayout =
    FieldLayout { id: ID, writable: 3, authenticated: 2, echo: 3 };

/// Step of a rate in a header, bit/s: 24 bits reach to 1.68 Tb/s.
const RATE_STEP: u64 = 100_000;
/// Step of an RTT in a header, picoseconds: 16 bits reach to 16 ms.
const RTT_STEP: u64 = 250_000;
/// The largest rate of a header.
const ANY_RATE: u32 = (1 << 24) - 1;

/// A rate in 24 bits, so that the fields of a packet stay short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Steps([u8; 3]);

impl Steps {
    const fn new(steps: u32) -> Self {
        let [_, high, middle, low] = steps.to_be_bytes();
        Self([high, middle, low])
    }

    /// Reads steps as they arrived. Zero steps count as one, the smallest rate of a port.
    const fn read(bytes: [u8; 3]) -> Self {
        match bytes {
            [0, 0, 0] => Self::new(1),
            bytes => Self(bytes),
        }
    }

    const fn get(self) -> u32 {
        let [high, middle, low] = self.0;
        u32::from_be_bytes([0, high, middle, low])
    }

    fn rate(self) -> Rate {
        Rate::from_bps(u64::from(self.get()) * RATE_STEP)
    }
}

/// The fields of a data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RcpFields {
    /// `R_p`: the smallest rate of the ports so far.
    rate: Steps,
    /// The sender's RTT, 0 before its first sample.
    rtt: [u8; 2],
}

impl RcpFields {
    /// Returns the fields of a packet that leaves the sender: any rate is accepted.
    #[must_use]
    pub fn new(rtt: Option<Span>) -> Self {
        let steps = rtt.map_or(0, |rtt| (rtt.as_ps() + RTT_STEP / 2) / RTT_STEP);
        let steps = u16::try_from(steps).unwrap_or(u16::MAX);
        Self { rate: Steps::new(ANY_RATE), rtt: steps.to_be_bytes() }
    }

    /// `R_p`, rounded down to 100 kb/s.
    #[inline]
    #[must_use]
    pub fn rate(self) -> Rate {
        self.rate.rate()
    }

    /// The sender's RTT to 250 ns, if it has a sample; 16 ms if the RTT is longer.
    #[inline]
    #[must_use]
    pub fn rtt(self) -> Option<Span> {
        let steps = u64::from(u16::from_be_bytes(self.rtt));
        (steps > 0).then(|| Span::from_ps(steps * RTT_STEP))
    }

    /// Limits the rate to that of a port: the smaller one remains, at least 100 kb/s.
    #[inline]
    pub fn limit(&mut self, rate: Rate) {
        let own = u32::try_from(rate.as_bps() / RATE_STEP).unwrap_or(ANY_RATE).max(1);
        if own < self.rate.get() {
            self.rate = Steps::new(own);
        }
    }

    /// The fields of a data packet, if they are RCP's.
    #[inline]
    #[must_use]
    pub fn of(fields: &Fields) -> Option<Self> {
        let &[a, b, c, d, e, _] = fields.as_data(ID)?;
        Some(Self { rate: Steps::read([a, b, c]), rtt: [d, e] })
    }

    /// The fields as a packet carries them: the rate in steps of 100 kb/s (24 bits), the RTT in steps of
    /// 250 ns.
    #[inline]
    #[must_use]
    pub fn fields(self) -> Fields {
        let ([a, b, c], [d, e]) = (self.rate.0, self.rtt);
        Fields::data(ID, [a, b, c, d, e, 0])
    }
}

/// `R_p` of the newest data packet, rounded down to 100 kb/s, if an acknowledgement carries it.
#[inline]
#[must_use]
pub fn echoed_rate(fields: &Fields) -> Option<Rate> {
    let &[a, b, c, ..] = fields.as_echo(ID)?;
    Some(Steps::read([a, b, c]).rate())
}
