//! Reasons of a refusal. The initiator receives them under the session's keys, so no third party can read or forge them.

/// Maximum length of a reason in bytes of UTF-8.
pub const MAX_REASON_BYTES: usize = 200;

/// Reason of a refusal, as the peer stated it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// The peer's application refused the session, for this reason.
    Application(Box<str>),
    /// The peer's key ring does not list this host's key.
    Unlisted,
    /// This host's key has as many sessions or handshakes as its quota allows. If the peer's key ring does not list this
    /// host's key, the quota may also be that of all unlisted keys together.
    Quota,
}

impl Told {
    /// Returns a reason of the application, cut to [`MAX_REASON_BYTES`].
    pub(crate) fn application(reason: &str) -> Self {
        Self::Application(printable(&reason[..reason.floor_char_boundary(MAX_REASON_BYTES)]))
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Application(text) => [&[1], text.as_bytes()].concat(),
            Self::Unlisted => vec![2],
            Self::Quota => vec![3],
        }
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        match bytes.split_first()? {
            (1, text) if text.len() <= MAX_REASON_BYTES => {
                Some(Self::Application(printable(std::str::from_utf8(text).ok()?)))
            }
            (2, []) => Some(Self::Unlisted),
            (3, []) => Some(Self::Quota),
            _ => None,
        }
    }
}

/// Replaces control characters, which would break a log line.
fn printable(text: &str) -> Box<str> {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_understood_and_nothing_else() {
        for told in [Told::application("not on Sundays"), Told::Unlisted, Told::Quota] {
            assert_eq!(Told::decode(&told.encode()), Some(told));
        }
        assert_eq!(Told::application("a\nb\u{1b}c"), Told::Application("a?b?c".into()));
        let long = Told::application(&"\u{fc}".repeat(150));
        assert_eq!(long, Told::Application("\u{fc}".repeat(100).into()), "200 bytes");
        let too_long = [&[1][..], &[b'a'; 201]].concat();
        for bytes in [&[][..], &[0], &[2, 0], &[3, 1], &[4], &[1, 0xff], &too_long] {
            assert_eq!(Told::decode(bytes), None, "{bytes:?}");
        }
    }
}
