//! Packet numbers that have arrived: Swift's SACK bitmap (§3.6), at the receiver and at the sender.
//!
//! The receiver keeps the largest packet number and a bitmap of the 128 numbers up to it
//! ([`ReceivedPackets`]), and every ACK carries both. ACKs may be lost, repeated and reordered; the
//! sender derives each acknowledged packet number from them at most once ([`AckedPackets`]).

use apus_units::PacketNumber;

/// Packet numbers that one bitmap covers: the largest and the 127 before it.
const WINDOW: u64 = u128::BITS as u64;

/// 128 bits, aligned to 8 bytes: the alignment of a `u128` would waste space in every flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Bits([u64; 2]);

impl Bits {
    #[inline]
    const fn new(bits: u128) -> Self {
        Self([bits as u64, (bits >> u64::BITS) as u64])
    }

    #[inline]
    const fn get(self) -> u128 {
        (self.0[1] as u128) << u64::BITS | self.0[0] as u128
    }
}

/// The packet numbers of a flow that a receiver has received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceivedPackets {
    /// Meaningless while `bitmap` is zero.
    largest: PacketNumber,
    /// Bit i is set if `largest - i` was received; zero only before the first packet.
    bitmap: Bits,
}

/// The result of [`ReceivedPackets::record`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// Not seen before.
    New,
    /// Seen before: a duplicate made by the network, or a replay.
    Duplicate,
    /// More than 127 before the largest, so that the receiver cannot decide whether it is new.
    /// Treat it like a duplicate: no ACK can report it any more, and the sender will send its range
    /// under a fresh number.
    TooOld,
}

impl ReceivedPackets {
    /// Records a packet that has arrived and returns whether it is new.
    #[inline]
    pub fn record(&mut self, packet: PacketNumber) -> Recorded {
        let bitmap = self.bitmap.get();
        if bitmap == 0 {
            *self = Self { largest: packet, bitmap: Bits::new(1) };
            return Recorded::New;
        }
        if packet > self.largest {
            let ahead = packet.get() - self.largest.get();
            if ahead < SHORT {
                // Most packets arrive in order, which needs only a shift by a constant.
                let bitmap = match ahead {
                    1 => shifted_once(self.bitmap, 0),
                    _ => shifted_a_little([self.bitmap, Bits::default()], ahead)[0],
                };
                *self = Self { largest: packet, bitmap: Bits([bitmap.0[0] | 1, bitmap.0[1]]) };
                return Recorded::New;
            }
            *self = Self { largest: packet, bitmap: Bits::new(shifted(bitmap, ahead) | 1) };
            return Recorded::New;
        }
        let behind = self.largest.get() - packet.get();
        if behind >= WINDOW {
            return Recorded::TooOld;
        }
        let bit = 1 << behind;
        if bitmap & bit != 0 {
            return Recorded::Duplicate;
        }
        self.bitmap = Bits::new(bitmap | bit);
        Recorded::New
    }

    /// Returns `true` if `packet` was received; `false` if it was not, or is more than 127 before the
    /// largest.
    #[must_use]
    pub fn contains(&self, packet: PacketNumber) -> bool {
        let behind = self.largest.get().checked_sub(packet.get()).filter(|behind| *behind < WINDOW);
        behind.is_some_and(|behind| self.bitmap.get() >> behind & 1 != 0)
    }

    /// Returns the largest packet number received, if there is one.
    #[inline]
    #[must_use]
    pub fn largest(&self) -> Option<PacketNumber> {
        (self.bitmap.get() != 0).then_some(self.largest)
    }

    /// Returns the bitmap: bit i is set if `largest - i` was received. Zero before the first packet.
    #[inline]
    #[must_use]
    pub fn bitmap(&self) -> u128 {
        self.bitmap.get()
    }
}

/// Packet numbers that a sender has seen acknowledged.
///
/// The last 256 packet numbers are stored, twice the range of an ACK. An overtaken ACK therefore
/// still counts in full while the largest number that it reports is at most 128 behind. Reports of
/// even older packets are ignored, which costs at most a spurious retransmission: no number is ever
/// yielded twice.
#[derive(Clone, Copy, Debug, Default)]
pub struct AckedPackets {
    /// Meaningless while `recent` is zero.
    largest: PacketNumber,
    /// Bit i is set if `largest - i` was acknowledged; zero only before the first ACK.
    recent: Bits,
    /// Bit i is set if `largest - 128 - i` was acknowledged.
    older: Bits,
}

impl AckedPackets {
    /// Returns the largest packet number acknowledged, if there is one.
    #[inline]
    #[must_use]
    pub fn largest(&self) -> Option<PacketNumber> {
        (self.recent.get() != 0).then_some(self.largest)
    }

    /// Processes an ACK (bit i of `bitmap`: `largest - i` was received) and yields the packet
    /// numbers that no earlier ACK has reported, oldest first. They count as acknowledged even if
    /// the iterator is dropped.
    ///
    /// The caller must first check that `largest` was sent.
    #[inline]
    pub fn on_ack(&mut self, largest: PacketNumber, bitmap: u128) -> NewlyAcked {
        let mut bitmap = bitmap;
        if largest.get() < WINDOW - 1 {
            // A bit below packet number 0, which only a broken peer can set, names no packet.
            bitmap &= u128::MAX >> (WINDOW - 1 - largest.get());
        }
        if bitmap == 0 {
            return NewlyAcked { largest, bits: 0 };
        }
        // Fast path for almost all acknowledgements: in order, and a little beyond the one before.
        if let Some(ahead @ 0..SHORT) = largest.get().checked_sub(self.largest.get())
            && self.recent != Bits::default()
        {
            let [recent, older] = match ahead {
                1 => [
                    shifted_once(self.recent, 0),
                    shifted_once(self.older, self.recent.0[1] >> (SHORT - 1)),
                ],
                _ => shifted_a_little([self.recent, self.older], ahead),
            };
            let bits = bitmap & !recent.get();
            *self = Self { largest, recent: Bits::new(recent.get() | bits), older };
            return NewlyAcked { largest, bits };
        }
        if self.recent.get() == 0 || largest > self.largest {
            self.advance(largest);
        }
        let (recent, older) = (self.recent.get(), self.older.get());
        // Align our bitmaps with the range of the ACK: bit i is then `largest - i` in both.
        let behind = self.largest.get() - largest.get();
        let known = (recent.checked_shr(shift(behind)).unwrap_or(0))
            | match behind {
                0 => 0,
                1..WINDOW => older << (WINDOW - behind),
                _ => older.checked_shr(shift(behind - WINDOW)).unwrap_or(0),
            };
        // Packets older than the stored numbers do not count as new.
        let remembered = u128::MAX.checked_shr(shift(behind.saturating_sub(WINDOW))).unwrap_or(0);
        let bits = bitmap & !known & remembered;

        self.recent = Bits::new(recent | shifted(bits, behind));
        let beyond = match behind {
            0 => 0,
            1..WINDOW => bits >> (WINDOW - behind),
            _ => shifted(bits, behind - WINDOW),
        };
        self.older = Bits::new(older | beyond);
        NewlyAcked { largest, bits }
    }

    /// Moves the bitmaps to a new largest number.
    #[inline]
    fn advance(&mut self, largest: PacketNumber) {
        let ahead = largest.get() - self.largest.get();
        let (recent, older) = (self.recent.get(), self.older.get());
        self.older = Bits::new(match ahead {
            0 => older,
            1..WINDOW => (older << ahead) | (recent >> (WINDOW - ahead)),
            _ => shifted(recent, ahead - WINDOW),
        });
        self.recent = Bits::new(shifted(recent, ahead));
        self.largest = largest;
    }
}

/// Shift counts below this limit move bits at most into the next word.
const SHORT: u64 = u64::BITS as u64;

/// Returns 128 bits shifted up by one; `lowest` is the new lowest bit.
#[inline]
fn shifted_once(bits: Bits, lowest: u64) -> Bits {
    let [a, b] = bits.0;
    Bits([a << 1 | lowest, b << 1 | a >> (SHORT - 1)])
}

/// Returns 256 bits, the lower half first, shifted up by fewer than [`SHORT`] bits.
#[inline]
fn shifted_a_little([low, high]: [Bits; 2], by: u64) -> [Bits; 2] {
    let into_next = |word: u64| (word >> 1) >> (SHORT - 1 - by);
    let ([a, b], [c, d]) = (low.0, high.0);
    let low = Bits([a << by, b << by | into_next(a)]);
    let high = Bits([c << by | into_next(b), d << by | into_next(c)]);
    [low, high]
}

/// Returns `bits << by`, zero if no bit remains.
#[inline]
fn shifted(bits: u128, by: u64) -> u128 {
    bits.checked_shl(shift(by)).unwrap_or(0)
}

/// Limits a shift count so that it is out of range exactly if `by` is.
#[inline]
fn shift(by: u64) -> u32 {
    by.min(WINDOW) as u32
}

/// Packet numbers acknowledged for the first time, oldest first.
#[derive(Clone, Copy, Debug)]
pub struct NewlyAcked {
    largest: PacketNumber,
    /// Bit i represents `largest - i`.
    bits: u128,
}

impl Iterator for NewlyAcked {
    type Item = PacketNumber;

    #[inline]
    fn next(&mut self) -> Option<PacketNumber> {
        if self.bits <= 1 {
            // At the end, or only the largest is left: most acknowledgements report nothing else.
            return (core::mem::take(&mut self.bits) == 1).then_some(self.largest);
        }
        let behind = u128::BITS - 1 - self.bits.leading_zeros();
        self.bits &= !(1 << behind);
        Some(PacketNumber::new(self.largest.get() - u64::from(behind)))
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let count = self.bits.count_ones() as usize;
        (count, Some(count))
    }
}

impl ExactSizeIterator for NewlyAcked {}
