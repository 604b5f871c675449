//! The ciphers of sealed packets: their names in settings and their bytes in handshakes.

use std::fmt;
use std::str::FromStr;

use apus_units::suggestion;

/// Cipher of a session's packets. Its number is in the mode byte of the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Cipher {
    /// AES-256-GCM (NIST SP 800-38D): keys of 256 bits.
    Aes256Gcm = 1,
    /// AEGIS-128X (RFC 10032): keys of 128 bits, several times as fast for long packets where the CPU has VAES. Payloads below
    /// 256 bytes use degree 1 (AEGIS-128L), longer ones degree 4 (AEGIS-128X4).
    Aegis128X = 2,
}

impl Cipher {
    /// All ciphers of the protocol, the default first.
    pub const ALL: [Self; 2] = [Self::Aes256Gcm, Self::Aegis128X];

    /// Returns `true` if this build has the cipher. AEGIS-128X needs the feature `aegis`.
    #[must_use]
    pub const fn is_available(self) -> bool {
        match self {
            Self::Aes256Gcm => true,
            Self::Aegis128X => cfg!(feature = "aegis"),
        }
    }

    /// Returns the ciphers of this build, the default first.
    pub fn available() -> impl Iterator<Item = Self> + Clone {
        Self::ALL.into_iter().filter(|cipher| cipher.is_available())
    }

    /// Returns the name of the cipher in settings.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Aes256Gcm => "aes-256-gcm",
            Self::Aegis128X => "aegis-128x",
        }
    }
}

impl fmt::Display for Cipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Cipher {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match Self::ALL.into_iter().find(|cipher| cipher.name() == text) {
            Some(cipher) if cipher.is_available() => Ok(cipher),
            Some(_) => Err(format!(
                "this build lacks the cipher `{text}`; choose {}, or build with the feature `aegis`",
                Self::Aes256Gcm
            )),
            None => {
                let hint = suggestion(text, Self::available().map(Self::name));
                Err(format!("unknown cipher `{text}`{hint}"))
            }
        }
    }
}

/// Set in the mode byte if both sides prove keys of their own.
const IDENTIFIED: u8 = 0x10;

/// Proofs of a session, and protection of its packets: the mode byte of its handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// No proof; a checksum protects packets.
    Insecure,
    /// Proof of a shared key.
    Sealed(Cipher),
    /// Proof of a shared key and of the keys of both sides.
    Identified(Cipher),
}

impl Mode {
    /// Returns the byte on the wire.
    pub(crate) const fn byte(self) -> u8 {
        match self {
            Self::Insecure => 0,
            Self::Sealed(cipher) => cipher as u8,
            Self::Identified(cipher) => IDENTIFIED | cipher as u8,
        }
    }

    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        let of = |number: u8| Cipher::ALL.into_iter().find(|&cipher| cipher as u8 == number);
        match byte {
            0 => Some(Self::Insecure),
            _ if byte & IDENTIFIED != 0 => of(byte & !IDENTIFIED).map(Self::Identified),
            _ => of(byte).map(Self::Sealed),
        }
    }

    pub(crate) const fn is_sealed(self) -> bool {
        !matches!(self, Self::Insecure)
    }

    pub(crate) const fn is_identified(self) -> bool {
        matches!(self, Self::Identified(_))
    }

    pub(crate) const fn cipher(self) -> Option<Cipher> {
        match self {
            Self::Insecure => None,
            Self::Sealed(cipher) | Self::Identified(cipher) => Some(cipher),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(not(feature = "aegis"))]
    use crate::session::Config;

    #[test]
    fn ciphers_are_found_by_name() {
        for cipher in Cipher::available() {
            assert_eq!(cipher.to_string().parse(), Ok(cipher));
        }
        let error = "des".parse::<Cipher>().unwrap_err();
        assert!(Cipher::available().all(|cipher| error.contains(cipher.name())), "{error}");
    }

    #[cfg(feature = "aegis")]
    #[test]
    fn a_misspelt_cipher_is_an_error_with_a_suggestion() {
        let error = "aegis-128l".parse::<Cipher>().unwrap_err();
        assert_eq!(error, "unknown cipher `aegis-128l`; did you mean `aegis-128x`?");
    }

    #[cfg(not(feature = "aegis"))]
    #[test]
    fn aegis_in_a_build_without_it_is_an_error_with_the_remedy() {
        let remedy = "choose aes-256-gcm, or build with the feature `aegis`";
        let error = "aegis-128x".parse::<Cipher>().unwrap_err();
        assert_eq!(error, format!("this build lacks the cipher `aegis-128x`; {remedy}"));

        let config = Config::default();
        assert_eq!(config.check(), Ok(()));
        let error = Config { cipher: Cipher::Aegis128X, ..config.clone() }.check().unwrap_err();
        assert!(error.starts_with("cipher ") && error.contains(remedy), "{error}");
        let accept_ciphers = Cipher::ALL.to_vec();
        let error = Config { accept_ciphers, ..config }.check().unwrap_err();
        assert!(error.starts_with("accept_ciphers ") && error.contains(remedy), "{error}");
    }

    #[test]
    fn the_mode_byte_is_0_to_2_or_17_or_18() {
        for byte in 0..=u8::MAX {
            let known = [0, 1, 2, 17, 18].contains(&byte);
            assert_eq!(Mode::from_byte(byte).map(Mode::byte), known.then_some(byte));
        }
        assert!(!Mode::Insecure.is_sealed() && Mode::Sealed(Cipher::Aegis128X).is_sealed());
    }
}
