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

/// Stage of the replacement of a key pair of a host that opens and accepts sessions (docs/operations.md, "Rotate keys").
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// No replacement is in progress.
    Done,
    /// The host has both pairs, and opens sessions under the earlier one.
    OwnAdded,
    /// The peers list both keys.
    PeersAdded,
    /// The host has retired the earlier pair, and opens sessions under the new one.
    OwnRetired,
    /// The peers have retired the earlier key.
    PeersRetired,
    /// One side has removed the earlier key.
    FirstRemoved,
}

impl Stage {
    fn next(self) -> Self {
        match self {
            Self::Done | Self::FirstRemoved => Self::Done,
            Self::OwnAdded => Self::PeersAdded,
            Self::PeersAdded => Self::OwnRetired,
            Self::OwnRetired => Self::PeersRetired,
            Self::PeersRetired => Self::FirstRemoved,
        }
    }
}

impl Pairs {
    /// Returns whether the host itself removes the earlier key before its peers do.
    fn own_first(&self) -> bool {
        self.earlier.len().is_multiple_of(2)
    }

    /// Returns the earlier pair, and whether it is retired, if the host has it.
    fn own_earlier(&self) -> Option<(&KeyPair, bool)> {
        let retired = match self.stage {
            Stage::Done => return None,
            Stage::OwnAdded | Stage::PeersAdded => false,
            Stage::OwnRetired | Stage::PeersRetired => true,
            Stage::FirstRemoved if self.own_first() => return None,
            Stage::FirstRemoved => true,
        };
        Some((self.earlier.last()?, retired))
    }

    /// Returns the keys that a peer lists: the name, the key, and whether it is retired.
    fn listed(&self, name: String) -> Vec<(String, PeerKey, bool)> {
        let Some(earlier) = self.earlier.last().map(KeyPair::public) else {
            return vec![(name, self.new.public(), false)];
        };
        if self.stage == Stage::OwnAdded {
            return vec![(name, earlier, false)];
        }
        let retired = match self.stage {
            Stage::Done => None,
            Stage::FirstRemoved if !self.own_first() => None,
            stage => Some(matches!(stage, Stage::PeersRetired | Stage::FirstRemoved)),
        };
        let earlier = retired.map(|retired| (earlier_name(&name), earlier, retired));
        [(name, self.new.public(), false)].into_iter().chain(earlier).collect()
    }
}

/// Returns the name of a host's earlier key while the name of the host means the new one.
fn earlier_name(name: &str) -> String {
    format!("{name}-earlier")
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

    /// Returns the keys under which a host may have sessions: the current one, and the earlier one while it is replaced.
    fn keys_in_use(&self, host: usize) -> impl Iterator<Item = PeerKey> + '_ {
        self.keys(host).take(1).chain(self.earlier_in_use(host))
    }

    fn earlier_in_use(&self, host: usize) -> Option<PeerKey> {
        let pairs = &self.0[host];
        pairs.earlier.last().filter(|_| pairs.stage != Stage::Done).map(KeyPair::public)
    }

    /// Returns the entries of a host's key ring: its own key pairs, and the peers that it lists.
    fn entries(&self, host: usize, lists: impl Fn(usize) -> bool) -> Vec<Entry> {
        let pairs = &self.0[host];
        let own = |pair: &KeyPair| EntryKey::Own(name(host), pair.clone());
        // Sessions are opened under the first pair that is not retired.
        let earlier = pairs.own_earlier().map(|(pair, retired)| Entry { key: own(pair), retired });
        let mut entries: Vec<Entry> =
            earlier.into_iter().chain([Entry::new(own(&pairs.new))]).collect();
        for peer in (0..self.0.len()).filter(|&peer| peer != host && lists(peer)) {
            let listed = self.0[peer].listed(name(peer)).into_iter();
            entries.extend(
                listed
                    .map(|(name, key, retired)| Entry { key: EntryKey::Peer(name, key), retired }),
            );
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
        pairs.stage = Stage::OwnAdded;
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
        let Some(identities) = &self.identities else { return };
        let stage = identities.0[host].stage;
        if stage == Stage::FirstRemoved {
            self.check_removed(host);
        }
        let Some(identities) = &mut self.identities else { return };
        identities.0[host].stage = stage.next();
        if stage == Stage::Done {
            return;
        }
        self.give_keys();
        if stage != Stage::FirstRemoved {
            self.push(self.now + pause, Event::NextStage(host, pause));
        }
    }

    /// Checks that no peer has a session under the earlier key of a host, if the peers have removed it first.
    fn check_removed(&mut self, host: usize) {
        let Some(identities) = self.identities.as_ref().filter(|all| !all.0[host].own_first())
        else {
            return;
        };
        let earlier = identities.earlier_in_use(host);
        let mut open = None;
        for machine in self.machines.iter().filter(|machine| machine.knows_commands()) {
            let mut connections = machine.app.connections.get(&host).into_iter().flatten();
            if connections.any(|c| c.ended().is_none() && c.peer_key() == earlier) {
                open = Some(machine.number);
            }
        }
        let checked = open.map_or(Ok(()), |of| {
            Err(format!("host {of} has a connection with {host} under a key that it removed"))
        });
        self.check("identity", checked);
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
        if machine.host.is_none() || self.identities.is_none() {
            return;
        }
        let know = machine.knows_commands();
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
        // The application may take a connection after it has ended because its key was replaced.
        let late = connection.ended().is_some() || !self.machines[host].knows_commands();
        let has_key = identities.keys_in_use(peer).any(|key| proved == Some(key))
            || late && identities.keys(peer).any(|key| proved == Some(key));
        let has_name = connection
            .peer_name()
            .is_some_and(|listed| listed == name(peer) || listed == earlier_name(&name(peer)));
        let same = has_key && has_name;
        let told = || Err(format!("host {host} takes {proved:?} for the key of host {peer}"));
        self.check("identity", if same { Ok(()) } else { told() });
    }
}

/// Slots of ops, by the fault that revoked the right.
pub(crate) type FrozenSlots = BTreeMap<usize, Vec<Frozen>>;
