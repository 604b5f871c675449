//! Byte layouts of the packets of the session layer. Their kinds are above those of `apus_wire`.
//!
//! ```text
//! offset size
//!      0    1  bytes that switches may write = 0
//!      1    1  version, as `apus_wire`'s
//!      2    1  kind: 0x40 Hello, 0x41 Cookie, 0x42 Init, 0x43 Response, 0x44 Refused
//!      3    1  mode: 0 insecure; sealed under a shared key: 1 with AES-256-GCM, 2 with AEGIS-128X; 17 and 18: as 1
//!              and 2, and both sides prove keys of their own; answers repeat it
//!      4    8  key: the public name of the shared key; in modes 17 and 18, of it with the responder's key
//!     12    4  session: the initiator's number for it
//!     16    .  Hello: 32 zeros, so that it is longer than its answer
//!              Cookie, Init: 16 of cookie
//!              Init, Response: the Noise message
//!              Refused: 1 of reason; behind reason 5, a Noise message with the reason in words
//!      .   16  proof: HMAC-SHA256 under the shared key (in modes 17 and 18: and the responder's key) of all before, cut
//!              to 16 bytes
//! ```
//!
//! Two kinds have other layouts:
//!
//! * 0x45 Unknown, 16 bytes: the first 4 as above, session and number of the packet whose session is unknown, and 4 zeros.
//!   It has no proof. Its mode is that of its sender: 0, or 1 for any cipher. An Unknown also answers a Hello of the other mode,
//!   with the initiator's number and 0.
//! * 0x46 Control: the first 3 bytes as above, and 1 byte of command (1 ping, 2 pong, 3 close, 4 probe, 5 answer to a probe,
//!   6 draining, 7 idle, 8 join, 9 challenge, 10 prove, 11 joined), guarded like a data packet. A probe is filled with zeros up
//!   to the probed length. Its answer has 2 more bytes, the total length of the probe. Commands 8 to 11 concern a port of their
//!   sender or receiver (`ports`), whose number is the next byte. After the number, 9 and 10 have the 8 random bytes of the
//!   challenge, 8 has at least 8 zeros, and 11 has the total length of the join (2 bytes).

use apus_wire::VERSION;

use super::cipher::Mode;
use super::cookie::Cookie;
use super::key::{Credential, KeyId, MAC_BYTES};
use super::noise::NOISE_OVERHEAD;
use super::ports::{JOINED_BYTES, PROOF_BYTES};

/// Kind bytes.
pub(crate) mod kind {
    pub(crate) const HELLO: u8 = 0x40;
    pub(crate) const COOKIE: u8 = 0x41;
    pub(crate) const INIT: u8 = 0x42;
    pub(crate) const RESPONSE: u8 = 0x43;
    pub(crate) const REFUSED: u8 = 0x44;
    pub(crate) const UNKNOWN: u8 = 0x45;
    pub(crate) const CONTROL: u8 = 0x46;
}

/// Returns `true` if a kind byte is that of one of the session's own packets.
#[inline]
pub(crate) fn is_own(kind: u8) -> bool {
    (kind::HELLO..=kind::CONTROL).contains(&kind)
}

/// Offset of the kind byte: these packets have no congestion extension.
pub(crate) const KIND_AT: usize = 2;
/// Bytes before a control packet's guard.
pub(crate) const CONTROL_BYTES: usize = 4;
/// A probe of an address that does not answer (`sys::reach`). If the port there is closed, the probe causes an ICMP error. No
/// packet is as short as the probe, and no host answers it.
pub(crate) const REACH_PROBE: [u8; 1] = [0];
/// Bytes of an Unknown.
pub(crate) const UNKNOWN_BYTES: usize = 16;

const COMMON_BYTES: usize = 16;
const HELLO_PADDING: usize = 32;
const COOKIE_BYTES: usize = 16;

/// Reason why the peer may not open a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The table is full.
    Full,
    /// The application refused the session.
    Application,
    /// The proposed cipher is not accepted.
    Cipher,
    /// The host drains.
    Draining,
}

/// The kind of a handshake packet, with the fields that only this kind has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message<'a> {
    Hello,
    Cookie(Cookie),
    Init {
        cookie: Cookie,
        noise: &'a [u8],
    },
    Response {
        noise: &'a [u8],
    },
    Refused(Refusal),
    /// Refused, with the reason sealed for the initiator.
    Told {
        noise: &'a [u8],
    },
}

/// A handshake packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Handshake<'a> {
    pub(crate) mode: Mode,
    pub(crate) key: KeyId,
    /// The initiator's number for the session.
    pub(crate) initiator: u32,
    pub(crate) message: Message<'a>,
}

impl<'a> Handshake<'a> {
    /// Reads a packet whose kind is one of the handshake's; `None` if it is not well formed. The packet is not proven yet:
    /// see [`proven`].
    pub(crate) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let body = bytes.len().checked_sub(MAC_BYTES)?;
        let (common, rest) = bytes[..body].split_first_chunk::<COMMON_BYTES>()?;
        let &[0, VERSION, kind, mode, ..] = common else { return None };
        let mode = Mode::from_byte(mode)?;
        let message = match kind {
            kind::HELLO => (rest == [0; HELLO_PADDING]).then_some(Message::Hello)?,
            kind::COOKIE => Message::Cookie(Cookie(rest.try_into().ok()?)),
            kind::INIT => {
                let (cookie, noise) = rest.split_first_chunk::<COOKIE_BYTES>()?;
                Message::Init { cookie: Cookie(*cookie), noise }
            }
            kind::RESPONSE => Message::Response { noise: rest },
            kind::REFUSED => match rest {
                [1] => Message::Refused(Refusal::Full),
                [2] => Message::Refused(Refusal::Application),
                [3] => Message::Refused(Refusal::Cipher),
                [4] => Message::Refused(Refusal::Draining),
                [5, noise @ ..] if noise.len() >= NOISE_OVERHEAD => Message::Told { noise },
                _ => return None,
            },
            _ => return None,
        };
        let key = u64::from_be_bytes(common[4..12].try_into().ok()?);
        let initiator = u32::from_be_bytes(common[12..16].try_into().ok()?);
        Some(Self { mode, key: KeyId::new(key), initiator, message })
    }

    /// Writes the packet to the start of `out` and returns its length; `None` if `out` is too short.
    pub(crate) fn write(&self, credential: &Credential, out: &mut [u8]) -> Option<usize> {
        let (kind, parts): (u8, [&[u8]; 2]) = match &self.message {
            Message::Hello => (kind::HELLO, [&[0; HELLO_PADDING], &[]]),
            Message::Cookie(cookie) => (kind::COOKIE, [&cookie.0, &[]]),
            Message::Init { cookie, noise } => (kind::INIT, [&cookie.0, noise]),
            Message::Response { noise } => (kind::RESPONSE, [noise, &[]]),
            Message::Refused(Refusal::Full) => (kind::REFUSED, [&[1], &[]]),
            Message::Refused(Refusal::Application) => (kind::REFUSED, [&[2], &[]]),
            Message::Refused(Refusal::Cipher) => (kind::REFUSED, [&[3], &[]]),
            Message::Refused(Refusal::Draining) => (kind::REFUSED, [&[4], &[]]),
            Message::Told { noise } => (kind::REFUSED, [&[5], noise]),
        };
        let body = COMMON_BYTES + parts[0].len() + parts[1].len();
        let out = out.get_mut(..body + MAC_BYTES)?;
        out[..4].copy_from_slice(&[0, VERSION, kind, self.mode.byte()]);
        out[4..12].copy_from_slice(&self.key.get().to_be_bytes());
        out[12..16].copy_from_slice(&self.initiator.to_be_bytes());
        out[COMMON_BYTES..][..parts[0].len()].copy_from_slice(parts[0]);
        out[COMMON_BYTES + parts[0].len()..body].copy_from_slice(parts[1]);
        let (proven, mac) = out.split_at_mut(body);
        mac.copy_from_slice(&credential.mac(proven));
        Some(body + MAC_BYTES)
    }
}

/// Returns `true` if a handshake packet was made by a holder of the key.
pub(crate) fn proven(bytes: &[u8], credential: &Credential) -> bool {
    let Some((body, mac)) = bytes.split_last_chunk::<MAC_BYTES>() else { return false };
    credential.proves(body, mac)
}

/// The command of a control packet, with its byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Command {
    /// Requests a pong.
    Ping = 1,
    /// Shows that the peer is running.
    Pong = 2,
    /// Ends the session.
    Close = 3,
    /// Shows by its arrival that packets of its length arrive.
    Probe = 4,
    /// Confirms the arrival of a probe.
    ProbeAnswer = 5,
    /// Asks the peer to submit no more ops, and to answer by `Idle` once none of its ops is outstanding.
    Draining = 6,
    /// Answers `Draining`: no op of this side is outstanding.
    Idle = 7,
    /// Asks to accept packets from the address from which this packet comes.
    Join = 8,
    /// Asks for a proof that a Join came from its sender.
    Challenge = 9,
    /// Answers `Challenge` from the same port.
    Prove = 10,
    /// States that packets from the address of the Join are accepted.
    Joined = 11,
}

impl Command {
    const ALL: [Self; 11] = [
        Self::Ping,
        Self::Pong,
        Self::Close,
        Self::Probe,
        Self::ProbeAnswer,
        Self::Draining,
        Self::Idle,
        Self::Join,
        Self::Challenge,
        Self::Prove,
        Self::Joined,
    ];

    pub(crate) fn header(self) -> [u8; CONTROL_BYTES] {
        [0, VERSION, kind::CONTROL, self as u8]
    }

    pub(crate) fn parse(header: &[u8]) -> Option<Self> {
        let &[0, VERSION, kind::CONTROL, byte] = header else { return None };
        Self::of(byte)
    }

    /// Returns the command of a byte.
    pub(crate) fn of(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|&command| command as u8 == byte)
    }

    /// Returns `true` if a packet with this command may have this number of bytes between header and guard.
    pub(crate) fn may_carry(self, bytes: usize) -> bool {
        match self {
            Self::Ping | Self::Pong | Self::Close | Self::Draining | Self::Idle => bytes == 0,
            Self::Probe => true,
            Self::ProbeAnswer => bytes == 2,
            Self::Join => bytes >= PROOF_BYTES,
            Self::Challenge | Self::Prove => bytes == PROOF_BYTES,
            Self::Joined => bytes == JOINED_BYTES,
        }
    }
}

/// Returns an Unknown: the session and the short number of the packet that it answers.
pub(crate) fn write_unknown(sealed: bool, session: u32, number: u32) -> [u8; UNKNOWN_BYTES] {
    let mut bytes = [0; UNKNOWN_BYTES];
    bytes[..4].copy_from_slice(&[0, VERSION, kind::UNKNOWN, u8::from(sealed)]);
    bytes[4..8].copy_from_slice(&session.to_be_bytes());
    bytes[8..12].copy_from_slice(&number.to_be_bytes());
    bytes
}

/// Returns session and short number of an Unknown.
pub(crate) fn parse_unknown(bytes: &[u8]) -> Option<(u32, u32)> {
    let bytes: &[u8; UNKNOWN_BYTES] = bytes.try_into().ok()?;
    let [0, VERSION, kind::UNKNOWN, 0 | 1, a, b, c, d, e, f, g, h, 0, 0, 0, 0] = *bytes else {
        return None;
    };
    Some((u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h])))
}

/// Returns `true` if the sender of an Unknown has keys.
pub(crate) fn unknown_is_sealed(bytes: &[u8]) -> bool {
    bytes.get(3) == Some(&1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::session::cipher::Cipher;
    use crate::session::key::SharedKey;
    use crate::session::ring::KeyRing;

    fn ring() -> KeyRing {
        KeyRing::new([SharedKey::new([7; 32])]).unwrap()
    }

    fn packets() -> Vec<Handshake<'static>> {
        let cookie = Cookie([0xc0; 16]);
        [
            Message::Hello,
            Message::Cookie(cookie),
            Message::Init { cookie, noise: &[1; 48] },
            Message::Response { noise: &[2; 50] },
            Message::Refused(Refusal::Full),
            Message::Refused(Refusal::Application),
            Message::Refused(Refusal::Cipher),
            Message::Refused(Refusal::Draining),
            Message::Told { noise: &[3; 50] },
        ]
        .map(|message| Handshake {
            mode: Mode::Sealed(Cipher::Aegis128X),
            key: KeyId::new(0x0102_0304_0506_0708),
            initiator: 0xaabb_ccdd,
            message,
        })
        .to_vec()
    }

    #[test]
    fn the_layout_is_the_one_drawn_above() {
        let ring = ring();
        let credential = ring.get(ring.ids().next().unwrap()).unwrap();
        let mut bytes = [0xee; 128];
        let cookie = packets()[1];
        let length = cookie.write(credential, &mut bytes).unwrap();
        let drawn =
            [&[0, 1, 0x41, 2, 1, 2, 3, 4, 5, 6, 7, 8, 0xaa, 0xbb, 0xcc, 0xdd][..], &[0xc0; 16]]
                .concat();
        assert_eq!((length, &bytes[..32]), (48, &drawn[..]));
        assert_eq!(bytes[32..48], credential.mac(&drawn));
        let hello = packets()[0].write(credential, &mut bytes).unwrap();
        assert!(hello >= length, "an answer is never longer than what asks for it");
        assert_eq!(bytes[48], credential.mac(&bytes[..48])[0]);
    }

    #[test]
    fn every_kind_survives_the_round_trip_and_nothing_else_is_read() {
        let ring = ring();
        let credential = ring.get(ring.ids().next().unwrap()).unwrap();
        for packet in packets() {
            let mut bytes = [0; 128];
            let length = packet.write(credential, &mut bytes).unwrap();
            let bytes = &bytes[..length];
            assert_eq!(Handshake::parse(bytes), Some(packet));
            assert!(is_own(bytes[KIND_AT]) && proven(bytes, credential));
            assert!(packet.write(credential, &mut vec![0; length - 1]).is_none());
            for bit in 0..length * 8 {
                let mut changed = bytes.to_vec();
                changed[bit / 8] ^= 1 << (bit % 8);
                assert!(!proven(&changed, credential), "bit {bit}");
            }
            for cut in 0..length {
                assert!(!proven(&bytes[..cut], credential));
            }
        }
        for command in Command::ALL {
            assert_eq!(Command::parse(&command.header()), Some(command));
        }
        let unknown = write_unknown(true, 0x0102_0304, 0x0506_0708);
        assert_eq!(unknown, [0, 1, 0x45, 1, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0]);
        assert_eq!(parse_unknown(&unknown), Some((0x0102_0304, 0x0506_0708)));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_is_read_is_written_to_the_same_bytes(
            kind in 0x3fu8..0x48, mode in prop::sample::select(vec![0u8, 1, 2, 3, 16, 17, 18, 19]), rest in prop::collection::vec(any::<u8>(), 0..90),
        ) {
            let ring = ring();
            let credential = ring.get(ring.ids().next().unwrap()).unwrap();
            let bytes = [&[0, 1, kind, mode], &rest[..]].concat();
            let _ = (parse_unknown(&bytes), Command::parse(&bytes), proven(&bytes, credential));
            if let Some(packet) = Handshake::parse(&bytes) {
                let mut out = [0; 128];
                let length = packet.write(credential, &mut out).unwrap();
                prop_assert_eq!(length, bytes.len());
                prop_assert_eq!(&out[..length - MAC_BYTES], &bytes[..length - MAC_BYTES]);
            }
        }
    }
}
