//! Keys of hosts: key rings, and rights of peers, which faults revoke for a time.

use std::collections::BTreeMap;

use apus_udp::session::{Entry, EntryKey, KeyPair, KeyRing, PeerKey, SharedKey};
use apus_udp::{Connection, Grant};
use apus_units::random::mix;

use crate::draw::Draw;
use crate::fault::Trouble;
use crate::machine::shared_key;
use crate::memory::Frozen;
use crate::plan::Plan;
use crate::world::World;

/// Key pairs of the hosts of a world.
pub(crate) struct Identities(Vec<KeyPair>);

/// Returns the name of a host in key rings.
pub(crate) fn name(host: usize) -> String {
    format!("host-{host}")
}

/// Draws which peers (second index) may write to the slots of a host (first index); most of them may.
pub(crate) fn rights(draw: &mut Draw, hosts: usize) -> Vec<Vec<bool>> {
    (0..hosts).map(|_| (0..hosts).map(|_| draw.chance(850)).collect()).collect()
}

impl Identities {
    /// Returns the key pairs of a plan's hosts; `None` if the hosts only have a shared key.
    pub(crate) fn of(plan: &Plan) -> Option<Self> {
        plan.rights.as_ref()?;
        let pair = |host: usize| {
            let mut secret = [0; 32];
            for (word, place) in secret.chunks_exact_mut(8).zip(1..) {
                let number = mix(plan.seed) ^ mix((host as u64) << 8 | place);
                word.copy_from_slice(&mix(number).to_le_bytes());
            }
            KeyPair::new(secret)
        };
        (0..plan.hosts.len()).map(pair).collect::<Option<_>>().map(Self)
    }

    /// Returns the public key of a host.
    pub(crate) fn key(&self, host: usize) -> PeerKey {
        self.0[host].public()
    }

    /// Returns the entries of a host's key ring: its own key pair, and the peers that it lists.
    fn entries(&self, host: usize, lists: impl Fn(usize) -> bool) -> Vec<Entry> {
        let mut entries = vec![Entry::new(EntryKey::Own(name(host), self.0[host].clone()))];
        let peers = (0..self.0.len()).filter(|&peer| peer != host && lists(peer));
        entries.extend(peers.map(|p| Entry::new(EntryKey::Peer(name(p), self.key(p)))));
        entries
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
        Some(Grant::keys(peers.map(|peer| identities.key(peer))))
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
        let same = proved == Some(identities.key(peer));
        let told = || Err(format!("host {host} takes {proved:?} for the key of host {peer}"));
        self.check("identity", if same { Ok(()) } else { told() });
    }
}

/// Slots of ops, by the fault that revoked the right.
pub(crate) type FrozenSlots = BTreeMap<usize, Vec<Frozen>>;
