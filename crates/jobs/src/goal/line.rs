//! Words of a line of GOAL text.

use alloc::format;
use alloc::string::{String, ToString};

use apus_units::shorten;

/// A word of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word<'a> {
    /// A letter, then letters, digits and `_`.
    Name(&'a str),
    Number(&'a str),
    /// `-1`
    Any,
    Colon,
    Open,
    Close,
    /// `//`
    Comment,
    /// `/*`
    LongComment,
    End,
}

impl Word<'_> {
    fn describe(self) -> String {
        match self {
            Self::Name(text) | Self::Number(text) => format!("`{}`", shorten(text)),
            Self::Any => "`-1`".to_string(),
            Self::Colon => "`:`".to_string(),
            Self::Open => "`{`".to_string(),
            Self::Close => "`}`".to_string(),
            Self::Comment => "`//`, which may only begin a line".to_string(),
            Self::LongComment => "`/*`, which may only begin a line".to_string(),
            Self::End => "the end of the line".to_string(),
        }
    }
}

/// The unread rest of a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'a>(pub(super) &'a str);

impl<'a> Line<'a> {
    /// Takes the next word.
    pub(super) fn next(&mut self) -> Result<Word<'a>, String> {
        let text = self.0.trim_start_matches([' ', '\t', '\r']);
        let Some(first) = text.bytes().next() else {
            self.0 = text;
            return Ok(Word::End);
        };
        let run = |within: fn(&u8) -> bool| {
            let length = text.bytes().take_while(within).count();
            text.split_at(length)
        };
        let (word, rest) = match first {
            b'0'..=b'9' => {
                let (number, rest) = run(u8::is_ascii_digit);
                (Word::Number(number), rest)
            }
            b'a'..=b'z' | b'A'..=b'Z' => {
                let (name, rest) = run(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
                (Word::Name(name), rest)
            }
            b':' => (Word::Colon, &text[1..]),
            b'{' => (Word::Open, &text[1..]),
            b'}' => (Word::Close, &text[1..]),
            _ if text.starts_with("-1") => (Word::Any, &text[2..]),
            _ if text.starts_with("//") => (Word::Comment, &text[2..]),
            _ if text.starts_with("/*") => (Word::LongComment, &text[2..]),
            _ => return Err(format!("`{}` has no meaning here", shorten(text))),
        };
        self.0 = rest;
        Ok(word)
    }

    /// Takes the next word, which must be this name.
    pub(super) fn name(&mut self, name: &str) -> Result<(), String> {
        match self.next()? {
            Word::Name(found) if found == name => Ok(()),
            other => Err(format!("expected `{name}`, found {}", other.describe())),
        }
    }

    /// Takes a number of at most `most`.
    pub(super) fn number(&mut self, what: &str, most: u64) -> Result<u64, String> {
        self.number_or_any(what, most)?.ok_or_else(|| format!("{what} cannot be -1"))
    }

    /// Takes a number of at most `most`, or -1, which gives `None`.
    pub(super) fn number_or_any(&mut self, what: &str, most: u64) -> Result<Option<u64>, String> {
        match self.next()? {
            Word::Any => Ok(None),
            Word::Number(digits) => match digits.parse().ok().filter(|number| *number <= most) {
                Some(number) => Ok(Some(number)),
                None => Err(format!("{what} is {}; it must be at most {most}", shorten(digits))),
            },
            other => Err(format!("expected {what}, found {}", other.describe())),
        }
    }

    /// Takes a label.
    pub(super) fn label(&mut self) -> Result<&'a str, String> {
        match self.next()? {
            Word::Name(name) => Ok(name),
            other => Err(format!("expected a label, found {}", other.describe())),
        }
    }

    /// Checks that the line ends here.
    pub(super) fn end(&mut self) -> Result<(), String> {
        self.expect(Word::End)
    }

    /// Takes the next word, which must be equal to `word`.
    pub(super) fn expect(&mut self, word: Word<'_>) -> Result<(), String> {
        match self.next()? {
            found if found == word => Ok(()),
            found => Err(format!("expected {}, found {}", word.describe(), found.describe())),
        }
    }
}
