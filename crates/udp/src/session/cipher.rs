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
    /// All ciphers, the default first.
    pub const ALL: [Self; 2] = [Self::Aes256Gcm, Self::Aegis128X];

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
        Self::ALL.into_iter().find(|cipher| cipher.name() == text).ok_or_else(|| {
            let hint = suggestion(text, Self::ALL.iter().map(|cipher| cipher.name()));
            format!("there is no cipher `{text}`{hint}")
        })
    }
}

/// A set of ciphers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ciphers(u8);

impl Ciphers {
    /// All ciphers.
    pub const ALL: Self = Self(Self::bit(Cipher::Aes256Gcm) | Self::bit(Cipher::Aegis128X));

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

    #[test]
    fn ciphers_are_found_by_name() {
        for cipher in Cipher::ALL {
            assert_eq!(cipher.to_string().parse(), Ok(cipher));
        }
        let error = "aegis-128l".parse::<Cipher>().unwrap_err();
        assert_eq!(error, "there is no cipher `aegis-128l`; did you mean `aegis-128x`?");
        let error = "des".parse::<Cipher>().unwrap_err();
        assert!(error.contains("aes-256-gcm") && error.contains("aegis-128x"), "{error}");
    }

    #[test]
    fn a_set_has_what_was_put_in() {
        for cipher in Cipher::ALL {
            let only: Ciphers = [cipher].into_iter().collect();
            assert_eq!(
                Cipher::ALL.map(|other| only.contains(other)),
                Cipher::ALL.map(|c| c == cipher)
            );
            assert!(Ciphers::ALL.contains(cipher) && !only.is_empty());
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
