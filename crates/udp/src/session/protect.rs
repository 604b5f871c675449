//! Seals and opens packets under a session's keys.
//!
//! With each [`Cipher`], every 2^[`EPOCH_PACKETS_LOG2`] packets the key is replaced by one derived from it, and the old key
//! is wiped. The epoch of a key follows from the packet's number, so a change of key needs no message and loses no packet:
//! the receiver keeps the previous, the current and the next key.

#[cfg(any(test, feature = "worlds"))]
use std::collections::VecDeque;

use apus_units::planted::{Bug, is_planted};
use aws_lc_rs::hkdf;
use zeroize::Zeroizing;

use super::cipher::Cipher;
use super::packet_key::PacketKey;

/// Number of packets under one key, as log2. For AES-256-GCM, 2^22 packets of 2^16 bytes are 2^34 blocks. This keeps an
/// adversary's advantage below 2^-60 (RFC 9001, App. B.1: l^2 q^2 / 2^129 with the blocks in all). AEGIS-128X allows more:
/// its nonces have 16 bytes, and with random nonces 2^48 messages are safe under a key (RFC 10032, "Key and Nonce
/// Selection"); here no nonce occurs twice. Both ciphers use the same count, so that the epoch follows from a number in one
/// way.
const EPOCH_PACKETS_LOG2: u32 = 22;

/// Returns the epoch of a packet's number.
pub(crate) const fn epoch_of(number: u64) -> u64 {
    number >> EPOCH_PACKETS_LOG2
}

/// Last number that a session may use; 2^62 packets are 100,000 years at a million per second.
pub(crate) const LAST_NUMBER: u64 = 1 << 62;

/// The secret from which the key of an epoch and the secret of the next one are derived. Wiped when dropped.
struct EpochSecret(Zeroizing<[u8; 32]>);

/// Output length for HKDF.
struct Bytes(usize);

impl hkdf::KeyType for Bytes {
    fn len(&self) -> usize {
        self.0
    }
}

impl EpochSecret {
    fn blank() -> Self {
        Self(Zeroizing::new([0; 32]))
    }

    /// Returns HKDF-Expand (RFC 5869) of this secret under `label`.
    #[cfg(any(test, feature = "worlds"))]
    fn expand<const N: usize>(&self, label: &[u8]) -> Zeroizing<[u8; N]> {
        let mut bytes = Zeroizing::new([0; N]);
        self.expand_into(label, &mut bytes[..]);
        bytes
    }

    /// Fills `out` with HKDF-Expand (RFC 5869) of this secret under `label`.
    fn expand_into(&self, label: &[u8], out: &mut [u8]) {
        let prk = hkdf::Prk::new_less_safe(hkdf::HKDF_SHA256, &self.0[..]);
        prk.expand(&[label], Bytes(out.len()))
            .and_then(|okm| okm.fill(out))
            .expect("HKDF gives up to 8160 bytes");
    }

    /// Replaces this secret by that of the next epoch. A secret that was moved would leave copies on the stack.
    fn advance(&mut self) {
        let mut next = Zeroizing::new([0; 32]);
        self.expand_into(b"apus next", &mut next[..]);
        self.0.copy_from_slice(&next[..]);
    }

    /// Puts the key of this epoch into the place of another one.
    fn put_key(&self, key: &mut PacketKey) {
        key.replace(|label, out| self.expand_into(label, out));
    }
}

/// Number of sealed packets that are remembered: more than an engine sends in one step.
#[cfg(any(test, feature = "worlds"))]
const SEALED: usize = 1024;

/// The sending side of a session's keys. It counts packets, so that each number is used once.
pub(crate) struct Sealer {
    key: PacketKey,
    secret: EpochSecret,
    epoch: u64,
    pub(crate) next: u64,
    /// Fingerprint of the first epoch's secret.
    #[cfg(any(test, feature = "worlds"))]
    pub(crate) fingerprint: u64,
    /// Last bytes of the tags of the packets that were sealed last, and the packets' numbers.
    #[cfg(any(test, feature = "worlds"))]
    sealed: VecDeque<([u8; 8], u64)>,
}

impl Sealer {
    /// Returns a sealer without secrets. Call [`Sealer::start`] once it has its place.
    pub(crate) fn blank(cipher: Cipher) -> Self {
        Self {
            key: PacketKey::blank(cipher),
            secret: EpochSecret::blank(),
            epoch: 0,
            next: 0,
            #[cfg(any(test, feature = "worlds"))]
            fingerprint: 0,
            #[cfg(any(test, feature = "worlds"))]
            sealed: VecDeque::new(),
        }
    }

    /// Begins with the secret of the first epoch.
    pub(crate) fn start(&mut self, secret: &[u8; 32]) {
        self.secret.0.copy_from_slice(secret);
        self.secret.put_key(&mut self.key);
        #[cfg(any(test, feature = "worlds"))]
        {
            self.fingerprint = u64::from_be_bytes(*self.secret.expand(b"apus fingerprint"));
        }
    }

    /// Returns the number of the next packet; `None` if all are used.
    #[inline]
    pub(crate) fn next_number(&self) -> Option<u64> {
        (self.next <= LAST_NUMBER).then_some(self.next)
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Seals the packet with number [`Self::next_number`], and uses up that number. `payload_and_tag` has the length of
    /// payload and tag.
    #[inline]
    pub(crate) fn seal(&mut self, readable: &[u8], payload: &[u8], payload_and_tag: &mut [u8]) {
        let number = self.take_number();
        self.key.seal(number, readable, payload, payload_and_tag);
        #[cfg(any(test, feature = "worlds"))]
        if let Some(end) = payload_and_tag.last_chunk() {
            self.sealed.truncate(SEALED - 1);
            self.sealed.push_front((*end, number));
        }
    }

    /// Returns the number of a recently sealed packet, found by the end of its tag.
    #[cfg(any(test, feature = "worlds"))]
    pub(crate) fn number_of(&self, end: &[u8; 8]) -> Option<u64> {
        self.sealed.iter().find(|(sealed, _)| sealed == end).map(|(_, number)| *number)
    }

    /// Uses up the next number, and changes to the key of that number's epoch.
    #[inline]
    fn take_number(&mut self) -> u64 {
        let number = self.next;
        while self.epoch < epoch_of(number) {
            self.secret.advance();
            self.secret.put_key(&mut self.key);
            self.epoch += 1;
        }
        self.next = number + 1;
        number
    }

    /// Skips the remaining numbers of this epoch: the next packet is sealed with a new key.
    pub(crate) fn skip_epoch(&mut self) {
        if is_planted(Bug::NonceAgain) {
            self.next = self.next.saturating_sub(1);
            return;
        }
        self.next = self.next.max((self.epoch + 1) << EPOCH_PACKETS_LOG2);
    }
}

/// The receiving side of a session's keys.
pub(crate) struct Opener {
    cipher: Cipher,
    before: Option<PacketKey>,
    present: PacketKey,
    next: PacketKey,
    /// The secret of `next`.
    next_secret: EpochSecret,
    /// The epoch of `present`.
    epoch: u64,
}

impl Opener {
    /// Returns an opener without secrets. Call [`Opener::start`] once it has its place.
    pub(crate) fn blank(cipher: Cipher) -> Self {
        let [present, next] = [(); 2].map(|()| PacketKey::blank(cipher));
        let next_secret = EpochSecret::blank();
        Self { cipher, before: None, present, next, next_secret, epoch: 0 }
    }

    /// Begins with the secret of the first epoch.
    pub(crate) fn start(&mut self, secret: &[u8; 32]) {
        self.next_secret.0.copy_from_slice(secret);
        self.next_secret.put_key(&mut self.present);
        self.next_secret.advance();
        self.next_secret.put_key(&mut self.next);
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Opens a packet in place. Returns `false` if it is not authentic. Its payload may then have been overwritten, but
    /// nothing else has changed.
    #[inline]
    pub(crate) fn open(
        &mut self,
        number: u64,
        readable: &[u8],
        payload_and_tag: &mut [u8],
    ) -> bool {
        let epoch = epoch_of(number);
        if epoch == self.epoch {
            return self.present.open(number, readable, payload_and_tag);
        }
        if epoch.checked_add(1) == Some(self.epoch) {
            return self.before.as_ref().is_some_and(|k| k.open(number, readable, payload_and_tag));
        }
        if epoch != self.epoch + 1 || !self.next.open(number, readable, payload_and_tag) {
            return false;
        }
        // The peer has changed its key. The old key is kept for reordered packets.
        let before = self.before.get_or_insert_with(|| PacketKey::blank(self.cipher));
        core::mem::swap(before, &mut self.present);
        core::mem::swap(&mut self.present, &mut self.next);
        self.next_secret.advance();
        self.next_secret.put_key(&mut self.next);
        self.epoch = epoch;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::packet_key::TAG_BYTES;
    use crate::session::packet_key::tests::hex;

    const EPOCH_PACKETS: u64 = 1 << EPOCH_PACKETS_LOG2;

    fn pair(cipher: Cipher) -> (Sealer, Opener) {
        let mut sealer = Sealer::blank(cipher);
        sealer.start(&[5; 32]);
        (sealer, opener(cipher, &[5; 32]))
    }

    fn opener(cipher: Cipher, secret: &[u8; 32]) -> Opener {
        let mut opener = Opener::blank(cipher);
        opener.start(secret);
        opener
    }

    fn sealed_payload(sealer: &mut Sealer, payload: &[u8]) -> (u64, Vec<u8>) {
        let number = sealer.next_number().unwrap();
        let mut bytes = vec![0xee; payload.len() + TAG_BYTES];
        sealer.seal(b"the header", payload, &mut bytes);
        (number, bytes)
    }

    fn sealed(sealer: &mut Sealer) -> (u64, Vec<u8>) {
        sealed_payload(sealer, b"the payload")
    }

    fn opens(opener: &mut Opener, (number, bytes): &(u64, Vec<u8>)) -> bool {
        let mut bytes = bytes.clone();
        let good = opener.open(*number, b"the header", &mut bytes);
        good && &bytes[..11] == b"the payload"
    }

    /// RFC 5869, App. A.1: HKDF-Expand from the PRK given there.
    #[test]
    fn rfc_5869_expand() {
        let prk = "077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5";
        let okm =
            EpochSecret(Zeroizing::new(hex(prk))).expand::<42>(&hex::<10>("f0f1f2f3f4f5f6f7f8f9"));
        let expected = hex(concat!(
            "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf",
            "34007208d5b887185865"
        ));
        assert_eq!(*okm, expected);
    }

    /// Uses payloads on both sides of the length at which AEGIS-128X changes its degree.
    #[test]
    fn nothing_passes_under_another_number_header_or_tag() {
        for (cipher, length) in Cipher::available().flat_map(|c| [(c, 11), (c, 300)]) {
            let (mut sealer, mut opener) = pair(cipher);
            let payload = vec![0xa5; length];
            let (number, bytes) = sealed_payload(&mut sealer, &payload);
            assert!(!opener.open(number + 1, b"the header", &mut bytes.clone()));
            assert!(!opener.open(number, b"another header", &mut bytes.clone()));
            for bit in 0..bytes.len() * 8 {
                let mut bytes = bytes.clone();
                bytes[bit / 8] ^= 1 << (bit % 8);
                assert!(!opener.open(number, b"the header", &mut bytes), "{cipher}, bit {bit}");
            }
            for cut in 0..bytes.len() {
                let mut bytes = bytes[..cut].to_vec();
                assert!(!opener.open(number, b"the header", &mut bytes), "{cipher}, {cut} bytes");
            }
            let mut whole = bytes.clone();
            assert!(opener.open(number, b"the header", &mut whole));
            assert_eq!(whole[..length], payload);
        }
    }

    #[cfg(feature = "aegis")]
    #[test]
    fn nothing_passes_under_another_cipher() {
        let [aes, aegis] = Cipher::ALL;
        for (one, other) in [(aes, aegis), (aegis, aes)] {
            for length in [0, 300] {
                let packet = sealed_payload(&mut pair(one).0, &vec![7; length]);
                assert!(!opens(&mut pair(other).1, &packet));
            }
        }
    }

    #[test]
    fn a_change_of_key_loses_nothing() {
        for cipher in Cipher::available() {
            let (mut sealer, mut opener) = pair(cipher);
            let mut late = sealed(&mut sealer);
            assert_eq!(late.0, 0);
            let mut earlier = Vec::new();
            for epoch in 0..5 {
                assert!(opens(&mut opener, &sealed(&mut sealer)));
                assert_eq!((sealer.epoch(), opener.epoch()), (epoch, epoch));
                let overtaken = sealed(&mut sealer);
                sealer.skip_epoch();
                let first = sealed(&mut sealer);
                assert_eq!(first.0, (epoch + 1) * EPOCH_PACKETS);
                assert!(opens(&mut opener, &first));
                assert!(opens(&mut opener, &overtaken), "sent under the key before");
                if epoch == 0 {
                    assert!(opens(&mut opener, &late));
                } else {
                    assert!(!opens(&mut opener, &late), "its key is forgotten");
                }
                earlier.push(overtaken);
                late.0 = 0;
            }
            assert!(earlier[..4].iter().all(|packet| !opens(&mut opener, packet)));
        }
    }

    /// Tests one packet of each of six epochs.
    #[test]
    fn a_receiver_opens_the_next_epoch_and_the_one_before_and_no_other() {
        for cipher in Cipher::available() {
            let (mut sealer, mut opener) = pair(cipher);
            let packets: Vec<_> = (0..6)
                .map(|_| {
                    let packet = sealed(&mut sealer);
                    sealer.skip_epoch();
                    packet
                })
                .collect();
            for packet in &packets[..3] {
                assert!(opens(&mut opener, packet), "{cipher}: from one to the next");
            }
            assert_eq!(opener.epoch(), 2);
            assert!(opens(&mut opener, &packets[1]), "{cipher}: the one before");
            for other in [0, 4, 5] {
                assert!(!opens(&mut opener, &packets[other]), "{cipher}: {other} of 2");
            }
            assert_eq!(opener.epoch(), 2, "they have changed nothing");
            assert!(opens(&mut opener, &packets[3]), "{cipher}: the next one");
            assert!(opens(&mut opener, &packets[2]) && !opens(&mut opener, &packets[1]));
        }
    }

    /// The secret of an epoch is HKDF-Expand of the secret before it, and nothing else: no message and no Diffie-Hellman
    /// exchange. A thief that copies a secret therefore derives all later keys. The copied memory of both sides holds no
    /// secret and no key from before the second-to-last change of key, and HKDF is not invertible.
    #[test]
    fn a_copied_secret_gives_all_later_keys_and_no_memory_holds_older_ones() {
        for cipher in Cipher::available() {
            let (mut sealer, mut receiver) = pair(cipher);
            // The secrets, by definition (RFC 5869 §2.3), with one block of output.
            let secrets: Vec<[u8; 32]> = (0..8)
                .scan([5; 32], |secret, _| {
                    let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, &*secret);
                    let next = aws_lc_rs::hmac::sign(&key, b"apus next\x01");
                    Some(std::mem::replace(secret, next.as_ref().try_into().unwrap()))
                })
                .collect();
            let mut packets = Vec::new();
            let mut send = |sealer: &mut Sealer| {
                packets.push(sealed(sealer));
                sealer.skip_epoch();
            };
            for secret in &secrets[..4] {
                send(&mut sealer);
                assert_eq!(*sealer.secret.0, *secret);
            }
            // The thief copies the secret of epoch 3, before later packets are sealed.
            let mut thief = Opener { epoch: 3, ..opener(cipher, &sealer.secret.0) };
            for _ in 4..8 {
                send(&mut sealer);
            }
            for (epoch, packet) in packets.iter().enumerate().skip(3) {
                assert!(opens(&mut thief, packet), "{cipher}: epoch {epoch}");
            }
            let mut thief = Opener { epoch: 3, ..opener(cipher, &secrets[3]) };
            assert!(packets[..3].iter().all(|packet| !opens(&mut thief, packet)), "{cipher}");

            // All that the memory of the two sides holds: these patterns name each field.
            packets[..4].iter().for_each(|packet| assert!(opens(&mut receiver, packet)));
            let Sealer { key, secret, epoch: 7, next: _, fingerprint: _, sealed: _ } = sealer
            else {
                panic!("epoch 7")
            };
            assert_eq!(*secret.0, secrets[7]);
            let Opener { cipher: _, before, present, next, next_secret, epoch: 3 } = receiver
            else {
                panic!("epoch 3")
            };
            assert_eq!(*next_secret.0, secrets[4]);
            let keys = [(before, 2), (Some(present), 3), (Some(next), 4), (Some(key), 7)];
            for (key, of) in keys {
                for (epoch, (number, bytes)) in packets.iter().enumerate() {
                    let key = key.as_ref().expect("a key");
                    let opened = key.open(*number, b"the header", &mut bytes.clone());
                    assert_eq!(opened, epoch == of, "{cipher}: key of {of}, packet of {epoch}");
                }
            }
        }
    }

    #[test]
    fn the_last_packet_of_an_epoch_and_the_first_of_the_next() {
        for cipher in Cipher::available() {
            let (mut sealer, mut opener) = pair(cipher);
            sealer.next = EPOCH_PACKETS - 1;
            let (last, first) = (sealed(&mut sealer), sealed(&mut sealer));
            assert_eq!((last.0, first.0), (EPOCH_PACKETS - 1, EPOCH_PACKETS));
            assert!(opens(&mut opener, &first), "the last was overtaken");
            assert!(opens(&mut opener, &last));
        }
    }

    #[test]
    fn forged_numbers_of_other_epochs_change_nothing() {
        for cipher in Cipher::available() {
            let (mut sealer, mut opener) = pair(cipher);
            let good = sealed(&mut sealer);
            for epoch in [1, 2, 3, 1 << 20, u64::MAX >> EPOCH_PACKETS_LOG2] {
                assert!(!opens(&mut opener, &(epoch << EPOCH_PACKETS_LOG2, good.1.clone())));
            }
            assert_eq!(opener.epoch(), 0);
            assert!(opens(&mut opener, &good));
        }
    }

    #[test]
    fn numbers_run_out_instead_of_coming_again() {
        let (mut sealer, _) = pair(Cipher::Aes256Gcm);
        sealer.next = LAST_NUMBER + 1;
        assert_eq!(sealer.next_number(), None);
    }
}
