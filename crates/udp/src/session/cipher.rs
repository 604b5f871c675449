//! The ciphers of sealed packets, by name and as the handshake says them.

use std::fmt;
use std::str::FromStr;

use apus_units::suggestion;

/// The cipher of a session's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cipher {
    /// AES-256-GCM (NIST SP 800-38D): keys of 256 bits.
    Aes256Gcm,
    /// AEGIS-128X (RFC 10032): keys of 128 bits, several times as fast for long packets where the CPU has
    /// VAES. Payloads below 256 bytes go under its degree 1 (AEGIS-128L), longer ones under degree 4 (AEGIS-128X4).
    Aegis128X,
}

impl Cipher {
    /// All ciphers of the protocol, the default first.
    pub const ALL: [Self; 2] = [Self::Aes256Gcm, Self::Aegis128X];

    /// Returns `true` if this build has the cipher: AEGIS-128X needs the feature `aegis`.
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

    /// Returns its name in settings.
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

/// A set of ciphers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ciphers(u8);

impl Ciphers {
    /// The ciphers of this build.
    pub const AVAILABLE: Self = {
        let aegis = if Cipher::Aegis128X.is_available() { Self::bit(Cipher::Aegis128X) } else { 0 };
        Self(Self::bit(Cipher::Aes256Gcm) | aegis)
    };

    const fn bit(cipher: Cipher) -> u8 {
        match cipher {
            Cipher::Aes256Gcm => 1,
            Cipher::Aegis128X => 2,
        }
    }

    /// Returns `true` if `cipher` is in the set.
    #[must_use]
    pub const fn contains(self, cipher: Cipher) -> bool {
        self.0 & Self::bit(cipher) != 0
    }

    /// Returns `true` if this build has every cipher of the set.
    #[must_use]
    pub const fn is_available(self) -> bool {
        self.0 & !Self::AVAILABLE.0 == 0
    }

    /// Returns `true` if the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl FromIterator<Cipher> for Ciphers {
    fn from_iter<I: IntoIterator<Item = Cipher>>(ciphers: I) -> Self {
        Self(ciphers.into_iter().fold(0, |all, cipher| all | Self::bit(cipher)))
    }
}

/// The protection of a session's packets: the mode byte of its handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Insecure,
    Sealed(Cipher),
}

impl Mode {
    /// Returns the byte on the wire.
    pub(crate) const fn byte(self) -> u8 {
        match self {
            Self::Insecure => 0,
            Self::Sealed(Cipher::Aes256Gcm) => 1,
            Self::Sealed(Cipher::Aegis128X) => 2,
        }
    }

    pub(crate) const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::Insecure),
            1 => Some(Self::Sealed(Cipher::Aes256Gcm)),
            2 => Some(Self::Sealed(Cipher::Aegis128X)),
            _ => None,
        }
    }

    pub(crate) const fn is_sealed(self) -> bool {
        matches!(self, Self::Sealed(_))
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
        let error = Config { cipher: Cipher::Aegis128X, ..config }.check().unwrap_err();
        assert!(error.starts_with("cipher ") && error.contains(remedy), "{error}");
        let accept_ciphers = Cipher::ALL.into_iter().collect();
        let error = Config { accept_ciphers, ..config }.check().unwrap_err();
        assert!(error.starts_with("accept_ciphers ") && error.contains(remedy), "{error}");
    }

    #[test]
    fn a_set_has_what_was_put_in() {
        for cipher in Cipher::ALL {
            let only: Ciphers = [cipher].into_iter().collect();
            assert_eq!(
                Cipher::ALL.map(|other| only.contains(other)),
                Cipher::ALL.map(|c| c == cipher)
            );
            assert_eq!(Ciphers::AVAILABLE.contains(cipher), cipher.is_available());
            assert_eq!(only.is_available(), cipher.is_available());
            assert!(!only.is_empty());
        }
        assert!(Ciphers::from_iter([]).is_empty());
    }

    #[test]
    fn the_mode_byte_is_0_1_or_2() {
        for byte in 0..=u8::MAX {
            assert_eq!(Mode::from_byte(byte).map(Mode::byte), (byte < 3).then_some(byte));
        }
        assert!(!Mode::Insecure.is_sealed() && Mode::Sealed(Cipher::Aegis128X).is_sealed());
    }
}
