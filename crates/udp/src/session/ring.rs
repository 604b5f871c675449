//! Key rings: the keys that a host proves to its peers, and the peers that it accepts.
//!
//! A key file is text. Lines that are empty or begin with `#` are skipped. The other lines are
//!
//! ```text
//! apus-key-1 SECRET          a key that a group of hosts shares
//! apus-self-1 NAME SECRET    the key pair of this host, by its private half
//! apus-peer-1 NAME PUBLIC    the public key of a peer
//! ```
//!
//! A secret or public key has 32 bytes and is written as 64 hexadecimal digits. If there is a line `apus-self-1`, every
//! session proves the keys of both sides in addition to a shared key, and only the listed peers may open sessions
//! ([`Config::accept_unlisted`](super::Config::accept_unlisted)). If the word `retired` precedes a line, open sessions under
//! this key continue, but no more are opened.

use std::fmt::Write;
use std::sync::Arc;

use thiserror::Error;
use zeroize::Zeroizing;

use super::identity::{KeyPair, PeerKey, push_hex, read_hex};
use super::key::{Credential, KeyId, Level, MARK, SharedKey};

const SELF_MARK: &str = "apus-self-1";
const PEER_MARK: &str = "apus-peer-1";
const RETIRED: &str = "retired";

/// Maximum number of shared keys, of own key pairs and of peers in a ring, each.
/// deviation: no source; a thousand groups of peers are many.
pub const MAX_KEYS: usize = 1024;

/// Maximum number of credentials: each shared key with each own pair and peer. Rationale: each takes about 300 bytes.
const MAX_CREDENTIALS: usize = 16_384;

/// Maximum length of a peer's name.
const MAX_NAME_BYTES: usize = 64;

/// Entry of a key ring: a line of a key file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Key of the entry.
    pub key: EntryKey,
    /// Whether the key opens no more sessions. Open sessions continue.
    pub retired: bool,
}

/// Key of an [`Entry`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryKey {
    /// A key that a group of hosts shares.
    Shared(SharedKey),
    /// The key pair of this host, with its name.
    Own(String, KeyPair),
    /// The public key of a peer, with its name.
    Peer(String, PeerKey),
}

impl Entry {
    /// Returns an entry that is in use (not retired).
    #[must_use]
    pub fn new(key: EntryKey) -> Self {
        Self { key, retired: false }
    }

    /// Returns the entry that peers need, if this is the key pair of this host.
    #[must_use]
    pub fn public(&self) -> Option<Self> {
        let EntryKey::Own(name, pair) = &self.key else { return None };
        Some(Self { key: EntryKey::Peer(name.clone(), pair.public()), retired: self.retired })
    }

    /// Returns the line of the entry in a key file. Keep the line secret, unless it is that of a peer. It is wiped when dropped.
    #[must_use]
    pub fn to_line(&self) -> Zeroizing<String> {
        let mut line = Zeroizing::new(String::with_capacity(256));
        if self.retired {
            line.push_str(RETIRED);
            line.push(' ');
        }
        match &self.key {
            EntryKey::Shared(key) => line.push_str(&key.to_line()),
            EntryKey::Own(name, pair) => {
                let _ = write!(line, "{SELF_MARK} {name} ");
                push_hex(&mut line, pair.secret());
            }
            EntryKey::Peer(name, key) => _ = write!(line, "{PEER_MARK} {name} {key}"),
        }
        line
    }

    /// Reads a line; `None` if it is not an entry.
    fn parse(line: &str) -> Option<Self> {
        let (retired, rest) = match line.strip_prefix(RETIRED) {
            Some(rest) => (true, rest.strip_prefix(char::is_whitespace)?.trim_start()),
            None => (false, line),
        };
        let mut words = rest.split_whitespace();
        let (mark, first) = (words.next()?, words.next()?);
        let key = if mark == MARK {
            // A secret of zeros belongs to the insecure mode.
            let secret = read_hex(first).filter(|secret| **secret != [0; 32])?;
            EntryKey::Shared(SharedKey::new(*secret))
        } else {
            let (name, digits) = (name(first)?, read_hex(words.next()?)?);
            match mark {
                SELF_MARK => EntryKey::Own(name, KeyPair::new(*digits)?),
                PEER_MARK => EntryKey::Peer(name, PeerKey::new(*digits)?),
                _ => return None,
            }
        };
        words.next().is_none().then_some(Self { key, retired })
    }
}

/// Returns a name if it is one: letters, digits, `.`, `_` and `-`.
fn name(text: &str) -> Option<String> {
    let of_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    ((1..=MAX_NAME_BYTES).contains(&text.len()) && text.chars().all(of_name))
        .then(|| text.to_owned())
}

/// A peer that the ring lists.
#[derive(Clone, Debug)]
struct Listed {
    key: PeerKey,
    name: String,
    retired: bool,
}

#[derive(Debug, Default)]
struct Inner {
    /// By public name.
    credentials: Vec<Credential>,
    /// Public names in the order of the entries, those that open sessions from here first.
    order: Vec<KeyId>,
    /// Public keys of this host.
    own: Vec<(PeerKey, String)>,
    /// By key.
    peers: Vec<Listed>,
    insecure: bool,
}

/// Key ring: the keys that a process accepts and offers. In the insecure mode there are none. Clones share the keys.
#[derive(Clone, Debug)]
pub struct KeyRing(Arc<Inner>);

impl KeyRing {
    /// Returns a key ring of these shared keys. A holder of one of them can act as any other holder.
    ///
    /// # Errors
    /// If there is no key, there are too many keys, or a key occurs twice.
    pub fn new(keys: impl IntoIterator<Item = SharedKey>) -> Result<Self, KeyError> {
        Self::of(keys.into_iter().map(|key| Entry::new(EntryKey::Shared(key))))
    }

    /// Returns a key ring of these entries. With a key pair of this host, every session proves the keys of both sides.
    ///
    /// A vector that is passed by value is freed with copies of the secrets in it. Pass `entries.iter().cloned()` instead; the
    /// entries are then wiped in place.
    ///
    /// # Errors
    /// If no shared key is in use, there are too many entries, a key or name occurs twice, a name is invalid, or there are keys
    /// of hosts but no key pair of this host is in use.
    pub fn of(entries: impl IntoIterator<Item = Entry>) -> Result<Self, KeyError> {
        // Full capacity at once: if the vectors grew, copies of secrets would remain in memory.
        let mut shared = Vec::with_capacity(MAX_KEYS);
        let mut own = Vec::with_capacity(MAX_KEYS);
        let mut peers = Vec::<Listed>::new();
        for Entry { key, retired } in entries {
            // Beyond their capacity the vectors would grow and leave copies of secrets in memory.
            let of_its_kind = match &key {
                EntryKey::Shared(_) => shared.len(),
                EntryKey::Own(..) => own.len(),
                EntryKey::Peer(..) => peers.len(),
            };
            if of_its_kind == MAX_KEYS {
                return Err(KeyError::TooMany);
            }
            match key {
                EntryKey::Shared(key) if shared.iter().any(|(other, _)| *other == key) => {
                    return Err(KeyError::Twice(key.id()));
                }
                EntryKey::Shared(key) => shared.push((key, retired)),
                EntryKey::Own(name, pair) => own.push((name, pair, retired)),
                EntryKey::Peer(name, key) => peers.push(Listed { key, name, retired }),
            }
        }
        if !shared.iter().any(|(_, retired)| !retired) {
            return Err(KeyError::None);
        }
        check_names(&own, &peers)?;
        let first_own = own.iter().find(|(.., retired)| !retired).map(|(_, pair, _)| pair.clone());
        if first_own.is_none() && !(own.is_empty() && peers.is_empty()) {
            return Err(KeyError::NoOwn);
        }
        if shared.len() * (own.len() + peers.len()) > MAX_CREDENTIALS {
            return Err(KeyError::TooMany);
        }
        let all = shared.len() * (own.len() + peers.len()).max(1);
        let mut credentials = Vec::with_capacity(all);
        for (key, shared_retired) in &shared {
            let mut add = |level, retired: bool| {
                credentials.push(Credential::new(key, level, *shared_retired || retired));
            };
            let Some(first) = &first_own else {
                add(Level::Shared, false);
                continue;
            };
            for Listed { key, retired, .. } in &peers {
                add(Level::Peer { own: first.clone(), peer: *key }, *retired);
            }
            for (_, pair, retired) in &own {
                add(Level::Own(pair.clone()), *retired);
            }
        }
        let order = credentials.iter().map(|c| c.id).collect();
        credentials.sort_unstable_by_key(|c| c.id);
        if let Some(two) = credentials.windows(2).find(|two| two[0].id == two[1].id) {
            return Err(KeyError::Twice(two[0].id));
        }
        peers.sort_unstable_by_key(|peer| peer.key);
        // The original pairs stay in place and are wiped there.
        let own = own.iter().map(|(name, pair, _)| (pair.public(), name.clone())).collect();
        Ok(Self(Arc::new(Inner { credentials, order, own, peers, insecure: false })))
    }

    /// Returns the key ring of the insecure mode: packets have a checksum against damage, and any host may be a peer. For
    /// benchmarks on a network that is trusted as a whole.
    #[must_use]
    pub fn insecure() -> Self {
        let credentials = vec![Credential::insecure()];
        let order = vec![KeyId::INSECURE];
        Self(Arc::new(Inner { credentials, order, insecure: true, ..Inner::default() }))
    }

    /// Parses the text of a key file: lines of `apus-key-1`, `apus-self-1` and `apus-peer-1`.
    ///
    /// # Errors
    /// If a line is invalid (the first such line), or [`KeyRing::of`] refuses the entries.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        // Clones are moved; the entries are wiped in place.
        Self::of(entries(text)?.iter().cloned())
    }

    /// Returns `true` in the insecure mode.
    #[must_use]
    pub fn is_insecure(&self) -> bool {
        self.0.insecure
    }

    /// Returns `true` if every session proves the keys of both sides.
    #[must_use]
    pub fn is_identified(&self) -> bool {
        !self.0.own.is_empty()
    }

    /// Returns the public names of the credentials, in the order of the entries. With keys of peers, the credentials for
    /// connections to peers come first.
    pub fn ids(&self) -> impl Iterator<Item = KeyId> + '_ {
        self.0.order.iter().copied()
    }

    /// Returns the public keys of this host, with their names.
    pub fn own_keys(&self) -> impl Iterator<Item = (PeerKey, &str)> {
        self.0.own.iter().map(|(key, name)| (*key, name.as_str()))
    }

    /// Returns the public keys of the listed peers, with their names.
    pub fn peers(&self) -> impl Iterator<Item = (PeerKey, &str)> {
        self.0.peers.iter().map(|peer| (peer.key, peer.name.as_str()))
    }

    /// Returns the name of a peer by its key. Returns `None` if the key is not listed.
    #[must_use]
    pub fn name_of(&self, key: &PeerKey) -> Option<&str> {
        self.listed(key).map(|peer| peer.name.as_str())
    }

    /// Returns the credential to prove for a session with the peer of this name. Without a name, returns that of the first shared
    /// key or, with keys of peers, of the only peer in use.
    ///
    /// # Errors
    /// If no peer in use has this name, there are several peers and no name, or the keys have no names.
    pub fn towards(&self, name: Option<&str>) -> Result<KeyId, PeerNameError> {
        let in_use = |c: &&Credential| !c.retired;
        let ordered = || self.ids().filter_map(|id| self.get(id)).filter(in_use);
        let Some(name) = name else {
            let mut callable = ordered().filter(|c| !matches!(c.level, Level::Own(_)));
            let first = callable.next().ok_or(PeerNameError::NoPeer)?;
            let another = |c: &Credential| match (&c.level, &first.level) {
                (Level::Peer { peer, .. }, Level::Peer { peer: first, .. }) => peer != first,
                _ => false,
            };
            return if callable.any(another) { Err(PeerNameError::Which) } else { Ok(first.id) };
        };
        if !self.is_identified() {
            return Err(PeerNameError::NoNames);
        }
        let key = self.0.peers.iter().find(|p| p.name == name && !p.retired).map(|p| p.key);
        let is_it =
            |c: &&Credential| matches!(&c.level, Level::Peer { peer, .. } if Some(*peer) == key);
        ordered().find(is_it).map(|c| c.id).ok_or_else(|| PeerNameError::Unknown(name.to_owned()))
    }

    /// Returns a function that returns `true` while a copy of the ring exists.
    #[cfg(test)]
    pub(crate) fn watch(&self) -> impl Fn() -> bool + use<> {
        let inner = Arc::downgrade(&self.0);
        move || inner.strong_count() > 0
    }

    pub(crate) fn get(&self, id: KeyId) -> Option<&Credential> {
        let credentials = &self.0.credentials;
        let place = credentials.binary_search_by_key(&id, |c| c.id).ok()?;
        credentials.get(place)
    }

    /// Returns `true` if the ring lists this peer. Only peers `in_use` may open sessions.
    pub(crate) fn lists(&self, key: &PeerKey, in_use: bool) -> bool {
        self.listed(key).is_some_and(|peer| !(in_use && peer.retired))
    }

    /// Returns `true` if the ring has an own pair with this public key.
    pub(crate) fn has_own(&self, key: &PeerKey) -> bool {
        self.0.own.iter().any(|(own, _)| own == key)
    }

    fn listed(&self, key: &PeerKey) -> Option<&Listed> {
        let peers = &self.0.peers;
        let place = peers.binary_search_by_key(key, |peer| peer.key).ok()?;
        peers.get(place)
    }
}

/// Parses the entries of a key file.
///
/// # Errors
/// If a line is invalid (the first such line).
pub fn entries(text: &str) -> Result<Vec<Entry>, KeyError> {
    let lines = text.lines().map(str::trim).enumerate();
    let lines = lines.filter(|(_, line)| !(line.is_empty() || line.starts_with('#')));
    // Full capacity at once, as in [`KeyRing::of`].
    let mut entries = Vec::with_capacity(lines.clone().count());
    for (i, line) in lines {
        entries.push(Entry::parse(line).ok_or(KeyError::Line(i + 1))?);
    }
    Ok(entries)
}

/// Checks that no key and no name of a host occurs twice.
fn check_names(own: &[(String, KeyPair, bool)], peers: &[Listed]) -> Result<(), KeyError> {
    let mut names: Vec<&str> = peers.iter().map(|peer| peer.name.as_str()).collect();
    let mut keys: Vec<PeerKey> = peers.iter().map(|peer| peer.key).collect();
    keys.extend(own.iter().map(|(_, pair, _)| pair.public()));
    names.sort_unstable();
    keys.sort_unstable();
    let own = own.iter().map(|(name, ..)| name.as_str());
    if let Some(wrong) = own.chain(names.iter().copied()).find(|text| name(text).is_none()) {
        return Err(KeyError::Name(wrong.to_owned()));
    }
    if let Some(two) = names.windows(2).find(|two| two[0] == two[1]) {
        return Err(KeyError::NameTwice(two[0].to_owned()));
    }
    match keys.windows(2).find(|two| two[0] == two[1]) {
        Some(two) => Err(KeyError::HostTwice(two[0])),
        None => Ok(()),
    }
}

/// Reason why a key ring is invalid. No message contains a secret.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum KeyError {
    /// This line, counted from 1, is not a key.
    #[error(
        "line {0} is not a key; write `{MARK}`, `{SELF_MARK} NAME` or `{PEER_MARK} NAME` and 64 hexadecimal \
         digits, not all 0; a name has up to {MAX_NAME_BYTES} letters, digits, `.`, `_` and `-`"
    )]
    Line(usize),
    /// No shared key is in use.
    #[error("no key found; write a line of `{MARK}` and 64 hexadecimal digits")]
    None,
    /// There are keys of hosts, but no key pair of this host is in use.
    #[error(
        "no key pair of this host is in use, so that it cannot prove itself to the listed peers; add a line \
         `{SELF_MARK}` (`apus key --name`)"
    )]
    NoOwn,
    /// This shared key occurs twice.
    #[error("key {0} occurs twice; remove one of them")]
    Twice(KeyId),
    /// This key of a host occurs twice.
    #[error("the key of a host occurs twice: {0}; remove one of the lines")]
    HostTwice(PeerKey),
    /// The name contains characters that are not allowed, or is too long.
    #[error("`{0}` is not a name; use 1 to {MAX_NAME_BYTES} letters, digits, `.`, `_` and `-`")]
    Name(String),
    /// Two peers have this name.
    #[error("two peers are called `{0}`; give each a name of its own")]
    NameTwice(String),
    /// There are more than [`MAX_KEYS`] of a kind, or more than 16384 pairs of a shared key and a host.
    #[error(
        "more than {MAX_KEYS} keys of a kind, or {MAX_CREDENTIALS} pairs of a shared key and a host; divide the \
         peers among several hosts"
    )]
    TooMany,
}

/// Reason why a peer cannot be found by name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PeerNameError {
    /// No peer in use has this name.
    #[error("no peer in use is called `{0}`; add its line `{PEER_MARK}` to the key file")]
    Unknown(String),
    /// Several peers are listed, and no name is given.
    #[error("the key file lists several peers; name the one to connect to")]
    Which,
    /// No peer is listed.
    #[error("the key file lists no peer in use; add the server's line `{PEER_MARK}`")]
    NoPeer,
    /// The key ring has shared keys only.
    #[error(
        "peers have no names without keys of their own; add lines `{SELF_MARK}` and `{PEER_MARK}`"
    )]
    NoNames,
}

#[cfg(test)]
#[path = "tests/ring.rs"]
mod tests;
