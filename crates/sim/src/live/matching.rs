//! Matching of receives and messages.

use std::collections::{BTreeMap, VecDeque};

/// Key by which messages and receives match: sender, receiver and tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The sending rank.
    pub from: u32,
    /// The receiving rank.
    pub to: u32,
    /// The tag.
    pub tag: u64,
}

/// A receive that waits for its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Receive {
    pub(super) bytes: u64,
    pub(super) token: u64,
}

/// Messages and receives that have no counterpart yet. The n-th receive of a key takes the n-th message that
/// was sent with it, independent of the order of arrival.
#[derive(Debug, Default)]
pub(super) struct Matching {
    waiting: BTreeMap<Key, Waiting>,
}

/// Of one key, either messages or receives wait.
#[derive(Debug)]
enum Waiting {
    Messages(VecDeque<u32>),
    Receives(VecDeque<Receive>),
}

impl Matching {
    /// Returns the receive that takes the next message of a key, if it is already posted.
    pub(super) fn next_receive(&self, key: Key) -> Option<Receive> {
        match self.waiting.get(&key)? {
            Waiting::Receives(receives) => receives.front().copied(),
            Waiting::Messages(_) => None,
        }
    }

    /// Returns the message that the next receive of a key takes, if it is already sent.
    pub(super) fn next_message(&self, key: Key) -> Option<u32> {
        match self.waiting.get(&key)? {
            Waiting::Messages(messages) => messages.front().copied(),
            Waiting::Receives(_) => None,
        }
    }

    /// Adds a message: returns the receive that takes it, or keeps the message.
    pub(super) fn send(&mut self, key: Key, message: u32) -> Option<Receive> {
        match self.waiting.get_mut(&key) {
            Some(Waiting::Messages(messages)) => {
                messages.push_back(message);
                None
            }
            Some(Waiting::Receives(receives)) => {
                let receive = receives.pop_front();
                if receives.is_empty() {
                    self.waiting.remove(&key);
                }
                receive
            }
            None => {
                self.waiting.insert(key, Waiting::Messages([message].into()));
                None
            }
        }
    }

    /// Adds a receive: returns the message that it takes, or keeps the receive.
    pub(super) fn receive(&mut self, key: Key, receive: Receive) -> Option<u32> {
        match self.waiting.get_mut(&key) {
            Some(Waiting::Receives(receives)) => {
                receives.push_back(receive);
                None
            }
            Some(Waiting::Messages(messages)) => {
                let message = messages.pop_front();
                if messages.is_empty() {
                    self.waiting.remove(&key);
                }
                message
            }
            None => {
                self.waiting.insert(key, Waiting::Receives([receive].into()));
                None
            }
        }
    }

    /// Returns the receives that wait, in the order of their keys.
    pub(super) fn receives(&self) -> impl Iterator<Item = (Key, Receive)> + '_ {
        self.waiting.iter().flat_map(|(key, waiting)| {
            let receives = match waiting {
                Waiting::Receives(receives) => Some(receives),
                Waiting::Messages(_) => None,
            };
            receives.into_iter().flatten().map(|receive| (*key, *receive))
        })
    }
}
