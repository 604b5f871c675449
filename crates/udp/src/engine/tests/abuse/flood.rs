//! Handshakes of a member of the group from several addresses, as fast as the server answers.

use super::world::{World, address, settings};
use super::*;
use crate::session::{Entry, EntryKey, KeyPair, SharedKey};
use crate::virtual_host::Connecting;

/// Number of addresses of the abuser. The rate limits of four addresses use up the rate limit of all addresses together.
const ADDRESSES: usize = 4;
/// Time after which a handshake without an answer is given up.
const PATIENCE: Span = Span::from_ms(2);

/// The flooding processes, one at each address.
pub(super) struct Flood {
    abuse: Abuse,
    asked: Vec<(Connecting, Time)>,
    /// Number of processes so far.
    count: u32,
    /// Connections that the server has accepted.
    accepted: Vec<Connection>,
}

impl Flood {
    pub(super) fn new(abuse: Abuse) -> Self {
        Self { abuse, asked: Vec::new(), count: 0, accepted: Vec::new() }
    }

    /// Starts a new process at each address whose process has got its answer, and lets it request a connection.
    pub(super) fn tick(&mut self, world: &mut World) {
        for n in 0..ADDRESSES {
            match self.asked.get(n) {
                Some((asked, until)) if world.now < *until && asked.try_take().is_none() => {}
                _ => self.ask(world, n),
            }
        }
        self.accepted.extend(std::iter::from_fn(|| world.machines[0].try_accept()));
    }

    fn ask(&mut self, world: &mut World, n: usize) {
        self.count += 1;
        let place = HONEST + 2 + n;
        let mut config = settings(place);
        let mut seed = [77; 32];
        seed[..4].copy_from_slice(&self.count.to_be_bytes());
        match self.abuse {
            Abuse::Holders => config.keys = group(),
            // One key pair for all processes, or another one for each process.
            Abuse::Members => config.keys = ring(KeyPair::new([77; 32])),
            _ => config.keys = ring(KeyPair::new(seed)),
        }
        let machine = Machine::start(&config, seed, world.now).expect("sound");
        let asked = (machine.connect(0, address(0), &[0]), world.now + PATIENCE);
        if place < world.machines.len() {
            (world.machines[place], self.asked[n]) = (machine, asked);
        } else {
            world.machines.push(machine);
            self.asked.push(asked);
        }
    }
}

/// The shared key alone.
pub(super) fn group() -> KeyRing {
    KeyRing::new([SharedKey::new([42; 32])]).expect("one key")
}

/// The ring of a host that lists the server. The server's own ring does not list this pair.
fn ring(pair: Option<KeyPair>) -> KeyRing {
    let server = settings(0).keys.own_keys().next().map(|(key, _)| key).expect("a pair");
    let keys = [
        EntryKey::Shared(SharedKey::new([42; 32])),
        EntryKey::Own("abuser".to_owned(), pair.expect("not zeros")),
        EntryKey::Peer("host-0".to_owned(), server),
    ];
    KeyRing::of(keys.map(Entry::new)).expect("sound")
}
