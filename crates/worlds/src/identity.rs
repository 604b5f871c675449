//! Keys of hosts: key rings, key pairs that are replaced, and rights of peers, which faults revoke for a time.

use std::collections::BTreeMap;

use apus_udp::session::{Entry, EntryKey, KeyPair, KeyRing, PeerKey, SharedKey};
use apus_udp::{Connection, Grant};
use apus_units::Span;
use apus_units::random::mix;

use crate::draw::Draw;
use crate::fault::Trouble;
use crate::machine::shared_key;
use crate::memory::Frozen;
use crate::plan::Plan;
use crate::world::{Event, World};

/// Key pairs of the hosts of a world.
pub(crate) struct Identities(Vec<Pairs>);

/// Key pairs of a host.
struct Pairs {
    /// The current pair, or the new one during a replacement.
    new: KeyPair,
    /// All earlier ones; the last of them may still be in use.
    earlier: Vec<KeyPair>,
    stage: Stage,
}

/// Stage of the replacement of a key pair (docs/operations.md, "Rotate keys").
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// No replacement is in progress.
    Done,
    /// The host has both pairs and opens sessions under the earlier one. Its peers list both.
    Both,
    /// The host and its peers have retired the earlier pair.
    Retired,
}

impl Stage {
    /// Returns whether the earlier pair is retired, if it is in use.
    fn retired(self) -> Option<bool> {
        (self != Self::Done).then_some(self == Self::Retired)
    }
}

/// Returns the name of a host in key rings.
pub(crate) fn name(host: usize) -> String {
    format!("host-{host}")
}

/// Returns the key pair of this number of a host.
fn pair(seed: u64, host: usize, number: usize) -> Option<KeyPair> {
    let mut secret = [0; 32];
    for (word, place) in secret.chunks_exact_mut(8).zip(1..) {
        let number = mix(seed) ^ mix((number as u64) << 32 | (host as u64) << 8 | place);
        word.copy_from_slice(&mix(number).to_le_bytes());
    }
    KeyPair::new(secret)
}

/// Draws which peers (second index) may write to the slots of a host (first index); most of them may.
pub(crate) fn rights(draw: &mut Draw, hosts: usize) -> Vec<Vec<bool>> {
    (0..hosts).map(|_| (0..hosts).map(|_| draw.chance(850)).collect()).collect()
}

impl Identities {
    /// Returns the key pairs of a plan's hosts; `None` if the hosts only have a shared key.
    pub(crate) fn of(plan: &Plan) -> Option<Self> {
        plan.rights.as_ref()?;
        let first = |host| {
            let new = pair(plan.seed, host, 0)?;
            Some(Pairs { new, earlier: Vec::new(), stage: Stage::Done })
        };
        (0..plan.hosts.len()).map(first).collect::<Option<_>>().map(Self)
    }

    /// Returns the public keys that a host has, or had: the current one first.
    fn keys(&self, host: usize) -> impl Iterator<Item = PeerKey> + '_ {
        let pairs = &self.0[host];
        std::iter::once(&pairs.new).chain(&pairs.earlier).map(KeyPair::public)
    }

    /// Returns the entries of a host's key ring: its own key pairs, and the peers that it lists.
    fn entries(&self, host: usize, lists: impl Fn(usize) -> bool) -> Vec<Entry> {
        let pairs = &self.0[host];
        let own = |pair: &KeyPair| EntryKey::Own(name(host), pair.clone());
        let mut entries = vec![Entry::new(own(&pairs.new))];
        if let (Some(retired), Some(earlier)) = (pairs.stage.retired(), pairs.earlier.last()) {
            // Sessions are opened under the first one that is not retired.
            entries.insert(0, Entry { key: own(earlier), retired });
        }
        for peer in (0..self.0.len()).filter(|&peer| peer != host && lists(peer)) {
            let pairs = &self.0[peer];
            let key = |name, pair: &KeyPair| EntryKey::Peer(name, pair.public());
            entries.push(Entry::new(key(name(peer), &pairs.new)));
            if let (Some(retired), Some(earlier)) = (pairs.stage.retired(), pairs.earlier.last()) {
                let name = format!("{}-earlier", name(peer));
                entries.push(Entry { key: key(name, earlier), retired });
            }
        }
        entries
    }

    /// Returns `true` while a host replaces its key pair.
    pub(crate) fn is_replacing(&self, host: usize) -> bool {
        self.0[host].stage != Stage::Done
    }
}

impl World<'_> {
    fn has_active(&self, wanted: &Trouble) -> bool {
        let mut active = self.active.iter().zip(&self.plan.faults);
        active.any(|(&active, fault)| active && fault.what == *wanted)
    }

    /// Returns the current key ring of a host.
    pub(crate) fn ring(&self, host: usize) -> KeyRing {
        if !self.plan.sealed {
            return KeyRing::insecure();
        }
        let shared: Vec<SharedKey> = if self.machines[host].keyless {
            vec![shared_key(self.plan.seed, u64::MAX - host as u64)]
        } else {
            let (present, both) = self.key;
            let before = both.then(|| shared_key(self.plan.seed, present.wrapping_sub(1)));
            [shared_key(self.plan.seed, present)].into_iter().chain(before).collect()
        };
        let lists = |peer: usize| !self.has_active(&Trouble::Unlist(host, peer));
        let hosts = self.identities.iter().flat_map(|all| all.entries(host, lists));
        let shared = shared.into_iter().map(|key| Entry::new(EntryKey::Shared(key)));
        // An empty key ring would be an error of this crate; every op would then fail.
        KeyRing::of(shared.chain(hosts)).unwrap_or_else(|_| KeyRing::insecure())
    }

    /// Returns `true` if a peer may currently write to the slots of a host.
    pub(crate) fn may_write(&self, host: usize, peer: usize) -> bool {
        let rights = self.plan.rights.as_ref();
        // Without rights, a fault that revokes them has no effect.
        rights.is_none_or(|of| of[host][peer] && !self.has_active(&Trouble::Deny(host, peer)))
    }

    /// Returns the current grant of a host's slots; `None` if all peers may write to them.
    pub(crate) fn grant(&self, host: usize) -> Option<Grant> {
        let identities = self.identities.as_ref()?;
        let hosts = 0..self.machines.len();
        let peers = hosts.filter(|&peer| peer != host && self.may_write(host, peer));
        Some(Grant::keys(peers.flat_map(|peer| identities.keys(peer))))
    }

    /// Begins to replace the key pair of a host. The later stages follow after `pause` each.
    pub(crate) fn replace_pair(&mut self, host: usize, pause: Span) {
        let Some(identities) = &mut self.identities else { return };
        let pairs = &mut identities.0[host];
        let next = pair(self.plan.seed, host, pairs.earlier.len() + 1);
        let Some(next) = next.filter(|_| pairs.stage == Stage::Done) else { return };
        pairs.earlier.push(std::mem::replace(&mut pairs.new, next));
        pairs.stage = Stage::Both;
        for other in 0..self.machines.len() {
            if other != host && self.machines[other].host.is_some() {
                self.set_grant(other, host);
            }
        }
        self.give_keys();
        self.push(self.now + pause, Event::NextStage(host, pause));
    }

    /// Continues the replacement of a key pair.
    pub(crate) fn next_stage(&mut self, host: usize, pause: Span) {
        let Some(identities) = &mut self.identities else { return };
        let stage = &mut identities.0[host].stage;
        match stage {
            Stage::Both => {
                *stage = Stage::Retired;
                self.push(self.now + pause, Event::NextStage(host, pause));
            }
            Stage::Retired => *stage = Stage::Done,
            Stage::Done => return,
        }
        self.give_keys();
    }

    /// Ends all replacements of key pairs.
    pub(crate) fn end_replacements(&mut self) {
        let Some(identities) = &mut self.identities else { return };
        if identities.0.iter().all(|pairs| pairs.stage == Stage::Done) {
            return;
        }
        identities.0.iter_mut().for_each(|pairs| pairs.stage = Stage::Done);
        self.give_keys();
    }

    /// Checks that every open connection is under the current keys of its hosts.
    pub(crate) fn check_current_keys(&mut self) {
        let Some(identities) = &self.identities else { return };
        let mut old = None;
        for machine in self.machines.iter().filter(|machine| machine.host.is_some()) {
            for (&peer, connections) in &machine.app.connections {
                let current = identities.keys(peer).next();
                let mut open = connections.iter().filter(|c| c.ended().is_none());
                if open.any(|connection| connection.peer_key() != current) {
                    old = Some((machine.number, peer));
                }
            }
        }
        let checked = old.map_or(Ok(()), |(host, peer)| {
            Err(format!("host {host} has a connection with {peer} under a key that is withdrawn"))
        });
        self.check("identity", checked);
    }

    /// Sets the current grant of a host's slots, and records it for the ops of a peer.
    fn set_grant(&mut self, host: usize, peer: usize) {
        let (Some(grant), of) = (self.grant(host), self.machines[host].of()) else { return };
        let set =
            self.ledger.regions.get(&of).is_some_and(|regions| regions.slots.set_grant(grant));
        self.check("grant", if set { Ok(()) } else { Err("a grant cannot be set".to_owned()) });
        self.ledger.on_grant(of, peer, self.may_write(host, peer));
    }

    /// Revokes a peer's right to write to the slots of a host.
    pub(crate) fn deny(&mut self, fault: usize, host: usize, peer: usize) {
        if self.identities.is_none() {
            return;
        }
        if self.machines[host].host.is_some() {
            self.set_grant(host, peer);
        }
        let frozen = self.ledger.freeze(self.machines[host].of(), peer);
        self.frozen.insert(fault, frozen);
    }

    /// Restores a peer's right, and checks that it wrote nothing in the meantime.
    pub(crate) fn end_denial(&mut self, fault: usize, host: usize, peer: usize) {
        let Some(frozen) = self.frozen.remove(&fault) else { return };
        let of = self.machines[host].of();
        let checked = self.ledger.check_frozen(&frozen);
        let checked = checked.and_then(|()| self.ledger.check_barred(of, peer));
        self.check("grant", checked);
        if self.machines[host].host.is_some() {
            self.set_grant(host, peer);
        }
    }

    /// Lists a peer in a host's key ring again, and checks that they had no connection until now.
    pub(crate) fn end_unlisting(&mut self, host: usize, peer: usize) {
        let machine = &self.machines[host];
        let Some(up) = machine.host.as_ref().filter(|_| self.identities.is_some()) else { return };
        // Engines that have not run since then do not know the change yet.
        let know = (0..up.engines()).all(|engine| !up.has_commands(engine));
        let mut of_peer = machine.app.connections.get(&peer).into_iter().flatten();
        let open = know && of_peer.any(|connection| connection.ended().is_none());
        let told =
            || Err(format!("host {host} has a connection with {peer}, which it does not list"));
        self.check("identity", if open { told() } else { Ok(()) });
        self.give_keys();
    }

    /// Checks that the peer of a connection holds the key of the host that it claims to be.
    pub(crate) fn check_identity(&mut self, host: usize, peer: usize, connection: &Connection) {
        let Some(identities) = &self.identities else { return };
        let proved = connection.peer_key();
        // The application may take a connection after its key was replaced.
        let same = identities.keys(peer).any(|key| proved == Some(key));
        let told = || Err(format!("host {host} takes {proved:?} for the key of host {peer}"));
        self.check("identity", if same { Ok(()) } else { told() });
    }
}

/// Slots of ops, by the fault that revoked the right.
pub(crate) type FrozenSlots = BTreeMap<usize, Vec<Frozen>>;
