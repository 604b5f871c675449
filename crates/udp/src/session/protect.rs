//! Packets under a session's keys: sealed and opened where they lie.
//!
//! AES-256-GCM; every 2^[`EPOCH_PACKETS_LOG2`] packets the key is replaced by one derived from it, and the
//! old one is forgotten. A packet's number says its epoch, so that a change of key needs no message
//! and loses nothing: the receiver holds the key before, the present one and the next.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::hkdf;
use zeroize::Zeroizing;

/// Bytes of an AEAD's tag.
pub(crate) const TAG_BYTES: usize = 16;

/// Packets under one key, as log2: 2^22 packets of 2^16 bytes are 2^34 blocks, which keeps an
/// adversary's advantage below 2^-60 (RFC 9001, App. B.1: l^2 q^2 / 2^129 with the blocks in all).
const EPOCH_PACKETS_LOG2: u32 = 22;

/// The epoch of a packet's number.
pub(crate) const fn epoch_of(number: u64) -> u64 {
    number >> EPOCH_PACKETS_LOG2
}

/// The last number that a session may use; 2^62 packets are 100,000 years at a million a second.
pub(crate) const LAST_NUMBER: u64 = 1 << 62;

/// The secret from which an epoch's key, and the next epoch's secret, are derived.
struct EpochSecret(Zeroizing<[u8; 32]>);

/// HKDF's output length.
struct Bytes(usize);

impl hkdf::KeyType for Bytes {
    fn len(&self) -> usize {
        self.0
    }
}

impl EpochSecret {
    /// HKDF-Expand (RFC 5869) of this secret under `label`.
    fn expand<const N: usize>(&self, label: &[u8]) -> Zeroizing<[u8; N]> {
        let prk = hkdf::Prk::new_less_safe(hkdf::HKDF_SHA256, &self.0[..]);
        let mut bytes = Zeroizing::new([0; N]);
        prk.expand(&[label], Bytes(N))
            .and_then(|okm| okm.fill(&mut bytes[..]))
            .expect("HKDF gives up to 8160 bytes");
        bytes
    }

    fn next(&self) -> Self {
        Self(self.expand(b"apus next"))
    }

    fn key(&self) -> PacketKey {
        let key = self.expand::<32>(b"apus key");
        PacketKey::new(&key, *self.expand(b"apus iv"))
    }
}

/// The key of one epoch and direction.
struct PacketKey {
    key: LessSafeKey,
    iv: [u8; NONCE_LEN],
}

impl PacketKey {
    fn new(key: &[u8; 32], iv: [u8; NONCE_LEN]) -> Self {
        let key = UnboundKey::new(&AES_256_GCM, key).expect("the key has 32 bytes");
        Self { key: LessSafeKey::new(key), iv }
    }

    /// The initialisation vector with the packet's number mixed in (RFC 9001 §5.3).
    #[inline]
    fn nonce(&self, number: u64) -> Nonce {
        let mut nonce = self.iv;
        for (byte, n) in nonce[NONCE_LEN - 8..].iter_mut().zip(number.to_be_bytes()) {
            *byte ^= n;
        }
        Nonce::assume_unique_for_key(nonce)
    }

    #[inline]
    fn seal(&self, number: u64, readable: &[u8], payload: &mut [u8], tag: &mut [u8]) {
        let made = self
            .key
            .seal_in_place_separate_tag(self.nonce(number), Aad::from(readable), payload)
            .expect("a packet is far below the cipher's limit");
        tag.copy_from_slice(made.as_ref());
    }

    /// As [`Self::seal`], with the payload from elsewhere: encrypting copies it.
    #[inline]
    fn seal_from(&self, number: u64, readable: &[u8], payload: &[u8], payload_and_tag: &mut [u8]) {
        self.key
            .seal_in_place_scatter(
                self.nonce(number),
                Aad::from(readable),
                &mut [],
                payload,
                payload_and_tag,
            )
            .expect("a packet is far below the cipher's limit, and there is room for its tag");
    }

    #[inline]
    fn open(&self, number: u64, readable: &[u8], payload_and_tag: &mut [u8]) -> bool {
        self.key.open_in_place(self.nonce(number), Aad::from(readable), payload_and_tag).is_ok()
    }
}

/// What one direction of a session sends with. Each number is used once: the sealer counts them.
pub(crate) struct Sealer {
    key: PacketKey,
    secret: EpochSecret,
    epoch: u64,
    next: u64,
}

impl Sealer {
    pub(crate) fn new(secret: [u8; 32]) -> Self {
        let secret = EpochSecret(Zeroizing::new(secret));
        Self { key: secret.key(), secret, epoch: 0, next: 0 }
    }

    /// The number of the next packet; `None` if there is none left.
    #[inline]
    pub(crate) fn next_number(&self) -> Option<u64> {
        (self.next <= LAST_NUMBER).then_some(self.next)
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Seals the packet with number [`Self::next_number`], which is thereby used up.
    #[inline]
    pub(crate) fn seal(&mut self, readable: &[u8], payload: &mut [u8], tag: &mut [u8]) {
        let number = self.take_number();
        self.key.seal(number, readable, payload, tag);
    }

    /// As [`Self::seal`], with the payload from elsewhere; `payload_and_tag` is as long as both.
    #[inline]
    pub(crate) fn seal_from(
        &mut self,
        readable: &[u8],
        payload: &[u8],
        payload_and_tag: &mut [u8],
    ) {
        let number = self.take_number();
        self.key.seal_from(number, readable, payload, payload_and_tag);
    }

    /// Uses up the next number, and changes to the key of its epoch.
    #[inline]
    fn take_number(&mut self) -> u64 {
        let number = self.next;
        while self.epoch < epoch_of(number) {
            self.secret = self.secret.next();
            self.key = self.secret.key();
            self.epoch += 1;
        }
        self.next = number + 1;
        number
    }

    /// Leaves the rest of this epoch's numbers unused: the next packet goes under a new key.
    pub(crate) fn skip_epoch(&mut self) {
        self.next = self.next.max((self.epoch + 1) << EPOCH_PACKETS_LOG2);
    }
}

/// What one direction of a session receives with.
pub(crate) struct Opener {
    before: Option<PacketKey>,
    present: PacketKey,
    next: PacketKey,
    /// The secret of `next`.
    next_secret: EpochSecret,
    /// The epoch of `present`.
    epoch: u64,
}

impl Opener {
    pub(crate) fn new(secret: [u8; 32]) -> Self {
        let secret = EpochSecret(Zeroizing::new(secret));
        let next_secret = secret.next();
        Self { before: None, present: secret.key(), next: next_secret.key(), next_secret, epoch: 0 }
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Opens a packet in place. False if it is not authentic: then the payload is not to be used
    /// (it may be overwritten), and nothing else has changed.
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
        // The peer has changed its key. The old one stays for packets that were overtaken.
        let secret = self.next_secret.next();
        let present = core::mem::replace(&mut self.next, secret.key());
        self.before = Some(core::mem::replace(&mut self.present, present));
        self.next_secret = secret;
        self.epoch = epoch;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EPOCH_PACKETS: u64 = 1 << EPOCH_PACKETS_LOG2;

    fn hex<const N: usize>(digits: &str) -> [u8; N] {
        core::array::from_fn(|i| u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).unwrap())
    }

    fn pair() -> (Sealer, Opener) {
        (Sealer::new([5; 32]), Opener::new([5; 32]))
    }

    fn sealed(sealer: &mut Sealer) -> (u64, Vec<u8>) {
        let number = sealer.next_number().unwrap();
        let mut bytes = b"the payload".to_vec();
        let mut tag = [0; TAG_BYTES];
        sealer.seal(b"the header", &mut bytes, &mut tag);
        bytes.extend_from_slice(&tag);
        (number, bytes)
    }

    fn opens(opener: &mut Opener, (number, bytes): &(u64, Vec<u8>)) -> bool {
        let mut bytes = bytes.clone();
        let good = opener.open(*number, b"the header", &mut bytes);
        good && &bytes[..11] == b"the payload"
    }

    /// McGrew and Viega, "The Galois/Counter Mode of Operation", App. B, test case 16. The number
    /// mixed into the vector is 0, so that the nonce is the vector's own.
    #[test]
    fn gcm_specification_test_case_16() {
        let key = hex("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308");
        let key = PacketKey::new(&key, hex("cafebabefacedbaddecaf888"));
        let readable = hex::<20>("feedfacedeadbeeffeedfacedeadbeefabaddad2");
        let mut bytes: [u8; 60] = hex(concat!(
            "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72",
            "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39"
        ));
        let (plain, mut tag) = (bytes, [0; 16]);
        let mut elsewhere = [0; 76];
        key.seal_from(0, &readable, &bytes, &mut elsewhere);
        key.seal(0, &readable, &mut bytes, &mut tag);
        assert_eq!(elsewhere, *[bytes.as_slice(), &tag].concat());
        let expected: [u8; 60] = hex(concat!(
            "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa",
            "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662"
        ));
        assert_eq!(bytes, expected);
        assert_eq!(tag, hex("76fc6ece0f4e1768cddf8853bb2d551b"));
        let mut both = [bytes.as_slice(), &tag].concat();
        assert!(key.open(0, &readable, &mut both));
        assert_eq!(both[..60], plain);
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

    /// RFC 9001 §5.3 and App. A.5: the vector with packet number 654360564 mixed in.
    #[test]
    fn rfc_9001_the_number_is_mixed_into_the_vector() {
        let key = PacketKey::new(&[0; 32], hex("e0459b3474bdd0e44a41c144"));
        let nonce = key.nonce(654_360_564);
        assert_eq!(nonce.as_ref(), &hex::<12>("e0459b3474bdd0e46d417eb0"));
    }

    #[test]
    fn nothing_passes_under_another_number_header_or_tag() {
        let (mut sealer, mut opener) = pair();
        let (number, bytes) = sealed(&mut sealer);
        assert!(opens(&mut opener, &(number, bytes.clone())));
        assert!(!opens(&mut opener, &(number + 1, bytes.clone())));
        assert!(!opener.open(number, b"another header", &mut bytes.clone()));
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(!opener.open(number, b"the header", &mut bytes), "bit {bit}");
        }
    }

    #[test]
    fn a_change_of_key_loses_nothing() {
        let (mut sealer, mut opener) = pair();
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

    #[test]
    fn the_last_packet_of_an_epoch_and_the_first_of_the_next() {
        let (mut sealer, mut opener) = pair();
        sealer.next = EPOCH_PACKETS - 1;
        let (last, first) = (sealed(&mut sealer), sealed(&mut sealer));
        assert_eq!((last.0, first.0), (EPOCH_PACKETS - 1, EPOCH_PACKETS));
        assert!(opens(&mut opener, &first), "the last was overtaken");
        assert!(opens(&mut opener, &last));
    }

    #[test]
    fn forged_numbers_of_other_epochs_change_nothing() {
        let (mut sealer, mut opener) = pair();
        let good = sealed(&mut sealer);
        for epoch in [1, 2, 3, 1 << 20, u64::MAX >> EPOCH_PACKETS_LOG2] {
            assert!(!opens(&mut opener, &(epoch << EPOCH_PACKETS_LOG2, good.1.clone())));
        }
        assert_eq!(opener.epoch(), 0);
        assert!(opens(&mut opener, &good));
    }

    #[test]
    fn numbers_run_out_instead_of_coming_again() {
        let (mut sealer, _) = pair();
        sealer.next = LAST_NUMBER + 1;
        assert_eq!(sealer.next_number(), None);
    }
}
