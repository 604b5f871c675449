//! The guard, which follows header and payload: the tag and numbers of a sealed packet, or the numbers and checksum of
//! an insecure one.

use apus_units::{Span, Time};
use apus_wire::authenticated_from;

use super::checksum::{CHECKSUM_BYTES, crc_32c};
use super::cipher::Mode;
use super::noise::Secrets;
use super::packet_key::TAG_BYTES;
use super::protect::{LAST_NUMBER, Opener, Sealer, epoch_of};

/// Bytes of the session number and the packet number.
const NUMBERS_BYTES: usize = 8;

/// Returns the length of the guard in bytes.
pub(crate) const fn guard_bytes(sealed: bool) -> usize {
    NUMBERS_BYTES + if sealed { TAG_BYTES } else { CHECKSUM_BYTES }
}

/// Returns the session number and the short packet number of a packet; `None` if the packet is too short for them.
#[inline]
pub(crate) fn numbers(sealed: bool, packet: &[u8]) -> Option<(u32, u32)> {
    let end = packet.len().checked_sub(if sealed { 0 } else { CHECKSUM_BYTES })?;
    let bytes = packet.get(end.checked_sub(NUMBERS_BYTES)?..end)?;
    let word =
        |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    Some((word(0), word(4)))
}

/// The keys, or the counter and masks, with which a session guards its packets.
#[expect(clippy::large_enum_variant, reason = "sessions are boxed, and almost all are sealed")]
pub(crate) enum Guard {
    /// Keys of both directions.
    Sealed {
        sealer: Sealer,
        opener: Opener,
        /// Time at which the sending key is replaced because of its age. `None` at the responder, which follows the
        /// initiator.
        renew_at: Option<Time>,
    },
    /// A count of packets sent, and the masks of checksums.
    Insecure { next: u64, ours: Mask, theirs: Mask },
}

/// Mask that is combined with the checksums of one direction of an insecure session by exclusive or. It excludes old packets
/// of other sessions with the same number, and a host's own packets that return to it. It is no secret.
type Mask = [u8; CHECKSUM_BYTES];

/// Returns the masked checksum of an insecure packet. `body` is the packet without its checksum.
fn masked_checksum(mask: Mask, body: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let checksum = u32::from_ne_bytes(crc_32c(&body[authenticated_from(body)..]));
    (checksum ^ u32::from_ne_bytes(mask)).to_ne_bytes()
}

impl Guard {
    /// Creates the guard of a session with these secrets in its place: a guard that was moved would leave copies of the
    /// secrets on the stack. The initiator replaces its key at `renew_at` because of the key's age.
    pub(crate) fn start(
        place: &mut Option<Self>,
        mode: Mode,
        secrets: &Secrets,
        initiator: bool,
        renew_at: Time,
    ) {
        let (ours, theirs) = if initiator {
            (&secrets.initiator, &secrets.responder)
        } else {
            (&secrets.responder, &secrets.initiator)
        };
        let Some(cipher) = mode.cipher() else {
            let mask = |[a, b, c, d, ..]: [u8; 32]| [a, b, c, d];
            *place = Some(Self::Insecure { next: 0, ours: mask(*ours), theirs: mask(*theirs) });
            return;
        };
        let (sealer, opener) = (Sealer::blank(cipher), Opener::blank(cipher));
        let renew_at = initiator.then_some(renew_at);
        if let Self::Sealed { sealer, opener, .. } =
            place.insert(Self::Sealed { sealer, opener, renew_at })
        {
            sealer.start(ours);
            opener.start(theirs);
        }
    }

    /// Returns the guard of a session, for tests.
    #[cfg(test)]
    fn new(mode: Mode, secrets: &Secrets, initiator: bool, renew_at: Time) -> Self {
        let mut guard = None;
        Self::start(&mut guard, mode, secrets, initiator, renew_at);
        guard.expect("it was created")
    }

    /// Returns a fingerprint of the secret from which the sending keys are derived, and the number of a recently sealed
    /// packet.
    #[cfg(any(test, feature = "worlds"))]
    pub(crate) fn nonce_of(&self, packet: &[u8]) -> Option<(u64, u64)> {
        let Self::Sealed { sealer, .. } = self else { return None };
        let end = packet.len().checked_sub(NUMBERS_BYTES)?;
        Some((sealer.fingerprint, sealer.number_of(packet[..end].last_chunk()?)?))
    }

    /// Guards `packet`, whose header ends at `header_end`: copies the payload behind the header, sealed, and writes the guard
    /// behind it. `remote` is the peer's number for the session. Returns `false` if no packet numbers are left.
    #[inline]
    pub(crate) fn seal(
        &mut self,
        remote: u32,
        header_end: usize,
        payload: &[u8],
        packet: &mut [u8],
    ) -> bool {
        match self {
            Self::Sealed { sealer, .. } => {
                let Some(number) = sealer.next_number() else { return false };
                let (body, numbers) = packet.split_at_mut(packet.len() - NUMBERS_BYTES);
                let (header, payload_and_tag) = body.split_at_mut(header_end);
                sealer.seal(&header[authenticated_from(header)..], payload, payload_and_tag);
                write_numbers(numbers, remote, number);
            }
            Self::Insecure { next, ours, .. } => {
                if *next > LAST_NUMBER {
                    return false;
                }
                let (body, checksum) = packet.split_at_mut(packet.len() - CHECKSUM_BYTES);
                let payload_end = body.len() - NUMBERS_BYTES;
                body[header_end..payload_end].copy_from_slice(payload);
                write_numbers(&mut body[payload_end..], remote, *next);
                checksum.copy_from_slice(&masked_checksum(*ours, body));
                *next += 1;
            }
        }
        true
    }

    /// Opens a packet in place; `number` is its whole number. Returns `false` if the packet is not authentic, or is damaged.
    #[inline]
    pub(crate) fn open(&mut self, number: u64, header_end: usize, packet: &mut [u8]) -> bool {
        match self {
            Self::Sealed { opener, .. } => {
                let end = packet.len() - NUMBERS_BYTES;
                let (header, payload_and_tag) = packet[..end].split_at_mut(header_end);
                opener.open(number, &header[authenticated_from(header)..], payload_and_tag)
            }
            Self::Insecure { theirs, .. } => {
                let (body, checksum) = packet.split_at(packet.len() - CHECKSUM_BYTES);
                masked_checksum(*theirs, body) == checksum
            }
        }
    }

    /// Replaces the sending key. A peer that breaks the protocol may do so with each packet.
    #[cfg(test)]
    pub(crate) fn skip_key(&mut self) {
        if let Self::Sealed { sealer, .. } = self {
            sealer.skip_epoch();
        }
    }

    /// Returns the epochs of the sending and of the receiving key.
    #[cfg(test)]
    pub(crate) fn epochs(&self) -> [u64; 2] {
        match self {
            Self::Sealed { sealer, opener, .. } => [sealer.epoch(), opener.epoch()],
            Self::Insecure { .. } => [0; 2],
        }
    }

    /// Returns `true` if the packet with this number, provided that it is authentic, replaces the receiving key.
    pub(crate) fn is_under_new_key(&self, number: u64) -> bool {
        matches!(self, Self::Sealed { opener, .. } if epoch_of(number) > opener.epoch())
    }

    /// Follows the peer to a newer key, or renews a key that is too old. Returns `true` if the key changes.
    ///
    /// Only the initiator renews a key by age, and only while the responder uses a key of the same epoch. This shows that the
    /// responder has followed: it has received the current key and has derived the next one. If both sides renewed by age,
    /// the same epoch would not show this: during an outage, each side could renew without notice of the other's change.
    #[inline]
    pub(crate) fn renew(&mut self, now: Time, life: Span) -> bool {
        let Self::Sealed { sealer, opener, renew_at } = self else { return false };
        let behind = sealer.epoch() < opener.epoch();
        let known = sealer.epoch() == opener.epoch();
        let old = known && renew_at.is_some_and(|at| now >= at);
        if behind || old {
            sealer.skip_epoch();
            if let Some(at) = renew_at {
                *at = now.saturating_add(life);
            }
        }
        behind || old
    }
}

#[inline]
fn write_numbers(out: &mut [u8], session: u32, number: u64) {
    out[..4].copy_from_slice(&session.to_be_bytes());
    // The low half. The receiver knows the rest (see `window::expand`).
    out[4..].copy_from_slice(&(number as u32).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::cipher::Cipher;

    /// Fixed keys, header and payload, so that another implementation can be compared with these bytes. They stem from `seal`
    /// of an independent implementation (the ciphers' vectors are tested in `packet_key`).
    #[test]
    fn the_guard_is_laid_out_as_drawn() {
        let secrets = Secrets { initiator: [1; 32], responder: [2; 32] };
        let far = Time::from_ps(u64::MAX);
        for cipher in Cipher::available() {
            let mut guard = Guard::new(Mode::Sealed(cipher), &secrets, true, far);
            let mut packet = [b"\x02wwheader".as_slice(), b"payload", &[0xee; 24]].concat();
            assert!(guard.seal(0x0102_0304, 9, b"payload", &mut packet));
            assert_eq!(&packet[..9], b"\x02wwheader", "readable");
            assert_ne!(&packet[9..16], b"payload", "not readable");
            assert_eq!(packet[32..], [1, 2, 3, 4, 0, 0, 0, 0]);
            assert_eq!(numbers(true, &packet), Some((0x0102_0304, 0)));
            let mut peer = Guard::new(Mode::Sealed(cipher), &secrets, false, far);
            packet[1..3].fill(9); // a switch writes into the congestion extension
            for changed in [0, 3, 8, 9, 16] {
                let mut packet = packet.clone();
                packet[changed] ^= 1;
                assert!(
                    !peer.open(0, 9, &mut packet),
                    "byte {changed} is not a switch's to change"
                );
            }
            assert!(peer.open(0, 9, &mut packet));
            assert_eq!(&packet[9..16], b"payload");
            assert!(!guard.open(0, 9, &mut packet.clone()), "the other direction has another key");
        }

        let mut guard = Guard::new(Mode::Insecure, &secrets, true, far);
        let mut peer = Guard::new(Mode::Insecure, &secrets, false, far);
        let mut packet = [b"\x01wheader".as_slice(), b"payload", &[0xee; 12]].concat();
        assert!(guard.seal(0x0102_0304, 8, b"payload", &mut packet));
        assert_eq!(&packet[..15], b"\x01wheaderpayload");
        assert_eq!(packet[15..23], [1, 2, 3, 4, 0, 0, 0, 0]);
        assert_eq!(
            packet[23..],
            crc_32c(&packet[2..23]).map(|byte| byte ^ 1),
            "masked by the initiator's secret"
        );
        packet[1] = 9; // a switch writes into the congestion extension
        assert!(peer.open(0, 8, &mut packet));
        assert!(!guard.open(0, 8, &mut packet), "the other direction has another mask");
        packet[2] ^= 1;
        assert!(!peer.open(0, 8, &mut packet));
        assert_eq!(numbers(false, &[0; 11]), None);
        assert_eq!(numbers(true, &[0; 7]), None);
    }

    #[test]
    fn keys_are_renewed_by_age_once_the_peer_has_the_last_one() {
        let secrets = Secrets { initiator: [1; 32], responder: [2; 32] };
        let at = |s| Time::from_ps(0) + Span::from_secs(s);
        let life = Span::from_secs(120);
        let send = |from: &mut Guard, to: &mut Guard| {
            let mut packet = [b"\0header".as_slice(), &[0; 24]].concat();
            assert!(from.seal(0, 7, b"", &mut packet));
            let Guard::Sealed { sealer, .. } = from else { unreachable!("it is sealed") };
            assert!(to.open(sealer.next_number().unwrap() - 1, 7, &mut packet));
        };
        for cipher in Cipher::available() {
            let mut us = Guard::new(Mode::Sealed(cipher), &secrets, true, at(120));
            let mut peer = Guard::new(Mode::Sealed(cipher), &secrets, false, at(120));
            assert!(!us.renew(at(119), life));
            assert!(us.renew(at(120), life));
            send(&mut us, &mut peer);
            assert_eq!((us.epochs(), peer.epochs()), ([1, 0], [0, 1]));
            assert!(!us.renew(at(900), life), "the peer has not shown that it is there");
            assert!(peer.renew(at(121), life), "it follows");
            send(&mut peer, &mut us);
            assert_eq!((us.epochs(), peer.epochs()), ([1, 1], [1, 1]));
            assert!(!peer.renew(at(122), life));
            assert!(!peer.renew(at(899), life), "the responder only follows");
            assert!(us.renew(at(900), life));
        }
    }
}
