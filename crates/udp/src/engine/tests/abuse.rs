//! Goodput of honest peers during each kind of abuse, in virtual time.

mod flood;
mod greedy;
mod world;

use std::sync::atomic::Ordering;

use apus_units::{FlowId, OpId, PacketNumber};
use apus_wire::{Body, Header, SIGNAL_BYTES, Segment, SegmentKind, Signal};

use flood::Flood;
use greedy::Greedy;
use world::{HONEST, TICK, World, address, settings};

use super::*;
use crate::connection::{Connection, Request};
use crate::virtual_host::VirtualHost as Machine;

/// Interval in which each honest peer submits a write of 64 bytes. Four peers take 60 % of the core.
const INTERVAL: Span = Span::from_us(20);
/// Time for which each run lasts by default, half of it before the measurement.
const RUN_MS: u64 = 120;
/// Time after which a process of `Abuse::Handshakes` is replaced, in ticks.
const PROCESS_TICKS: u64 = 7;
/// Length of a read of the abuser in bytes.
const READ: u64 = 4096;

/// Kind of abuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Abuse {
    Nothing,
    /// Random datagrams.
    Noise,
    /// Handshake packets under an unknown key.
    UnknownKey,
    /// The first packets of its own handshakes, proved.
    Hellos,
    /// First messages of handshakes that cost a Diffie-Hellman, from one address. Each is of a new process, which is replaced
    /// after 70 us, so that hardly any handshake is completed.
    Handshakes,
    /// Handshakes of a member of the group that is not listed, from four addresses.
    Members,
    /// Handshakes under a shared key alone, from four addresses.
    Holders,
    /// Handshakes of a member of the group from four addresses, each with a key pair of its own. The server accepts unlisted
    /// peers.
    Unlisted,
    /// Damaged packets of its own.
    Forged,
    /// Repeated packets of its own.
    Replayed,
    /// Forged signals of a switch from the address of a connection with as many flows as a connection may have. They need
    /// no key. They name the last flow, and a packet that is not in flight.
    Signals,
    /// Valid packets of ops on a region that is not its own, without congestion control.
    Refused,
    /// As `Refused`, with messages that no application receives.
    Messages,
    /// As `Refused`, with atomic ops.
    Atomics,
    /// As `Refused`, with reads of 4096 bytes.
    Reads,
    /// As `Refused`, with acknowledgements of packets that were not sent.
    Acks,
    /// As `Messages`; each packet that the server receives is sealed under another key.
    NewKeys,
}

/// Returns a valid packet of the abuser's session; it belongs to op `number`, and has the same packet number.
fn packet(abuse: Abuse, number: u64, region: RegionKey) -> Header {
    let (kind, length, op_length) = match abuse {
        Abuse::Refused => (SegmentKind::Write { region, address: 0 }, 64, 64),
        Abuse::Atomics => (SegmentKind::FetchAdd { region, address: 0 }, 8, 8),
        Abuse::Reads => (SegmentKind::ReadRequest { region, address: 0 }, 0, READ),
        _ => (SegmentKind::Message, 64, 64),
    };
    let segment =
        Segment { op: OpId::new(number), kind, offset: 0, length, op_length, attached: None };
    let body =
        if abuse == Abuse::Acks { Body::Ack(greedy::ack(number)) } else { Body::Data(segment) };
    Header { flow: FlowId::new(0), seq: PacketNumber::new(number), body }
}

/// Returns a forged signal for the flow with this number at the receiver of its packets.
fn signal(flow: u32) -> Vec<u8> {
    let body = Body::Signal(Signal { queue: 1 << 20, link_rate: 6, sent: 1 });
    let header = Header { flow: FlowId::new(flow), seq: PacketNumber::new(1 << 20), body };
    let mut bytes = vec![0; SIGNAL_BYTES];
    assert_eq!(apus_wire::seal(&header, &[], &mut bytes), Ok(SIGNAL_BYTES));
    bytes
}

impl Abuse {
    /// Valid packets that break the rules of the transport.
    const VALID: [Self; 5] =
        [Self::Refused, Self::Messages, Self::Atomics, Self::Reads, Self::Acks];

    /// Handshakes from four addresses.
    const FLOODS: [Self; 3] = [Self::Members, Self::Holders, Self::Unlisted];

    /// Returns the settings of host `n`.
    fn settings(self, n: usize) -> Config {
        let mut config = settings(n);
        match self {
            Self::Holders => config.keys = flood::group(),
            Self::Unlisted => config.session.accept_unlisted = true,
            _ => {}
        }
        config
    }

    /// Datagrams per second, in addition to handshakes.
    fn rate(self) -> f64 {
        match self {
            Self::Nothing | Self::Handshakes | Self::Members | Self::Holders | Self::Unlisted => {
                0.0
            }
            Self::Hellos | Self::Forged => 100_000.0,
            Self::Noise | Self::UnknownKey | Self::Replayed => 400_000.0,
            Self::Signals
            | Self::Refused
            | Self::Messages
            | Self::Atomics
            | Self::Reads
            | Self::Acks
            | Self::NewKeys => 250_000.0,
        }
    }
}

/// Work that a server has done.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    /// Writes of the honest peers that were completed in 60 ms.
    done: u64,
    /// Work for the abuser in 120 ms: refusals that it has received, messages that wait, atomic ops executed, reads answered,
    /// keys replaced for answers, handshakes computed, Cookies sent, acknowledgements opened, runs of flow numbers compared with
    /// those of signals, or packets dropped by the check that they are meant for.
    served: u64,
    /// Handshakes beyond the rates, dropped in 120 ms.
    dropped_rate: u64,
}

/// Runs an abuser that sends `rate` datagrams per second.
fn outcome(abuse: Abuse, rate: f64) -> Outcome {
    outcome_after(Span::from_ms(RUN_MS / 2), abuse, rate)
}

/// As [`outcome`], but measures the 60 ms that follow `warm_up` after the start of the abuse.
fn outcome_after(warm_up: Span, abuse: Abuse, rate: f64) -> Outcome {
    let mut world = World::with(|n| abuse.settings(n));
    let mut flood = Abuse::FLOODS.contains(&abuse).then(|| Flood::new(abuse));
    let region = world.machines[0].register(vec![0; 4096], Access::ALL).expect("room");
    let closed = crate::Grant::nobody();
    let closed = world.machines[0].register_for(vec![0; 64], Access::ALL, closed).expect("room");
    let honest: Vec<Connection> = (1..=HONEST).map(|n| world.connect(n)).collect();
    let abuser = HONEST + 1;
    let flows = if abuse == Abuse::Signals { settings(0).max_flows as usize } else { 1 };
    let own = world.connect_by(abuser, flows);
    let accepted: Vec<Connection> = std::iter::from_fn(|| world.machines[0].try_accept()).collect();
    assert_eq!(accepted.len(), HONEST + 1);
    let (sender, ends) = async_channel::unbounded();
    let theirs = FlowId::new(HONEST as u32); // the server's flow of the last connection
    let (mut done, mut number, mut sample) = (0, 0, None);
    let target = if abuse == Abuse::Refused { closed.key() } else { region.key() };
    let greedy = abuse == Abuse::NewKeys || Abuse::VALID.contains(&abuse);
    world.greedy = greedy.then(|| Greedy::new(abuse, target, theirs));
    let last = accepted.last().expect("that of the abuser");
    world.new_keys = (abuse == Abuse::NewKeys).then(|| [own.session().0, last.session().0]);
    let (from, per_tick) = (world.now, TICK.as_ps() as f64 / 1e12);
    let (mut owed, mut process, mut next) = (0.0, 0u32, world.now);
    let (before, handshakes) = (world.server_counters(), world.handshakes);
    (world.cookies, world.opened) = (0, 0);
    let measured = Span::from_ms(RUN_MS / 2);
    while world.now < from + warm_up + measured {
        while world.now >= next {
            next += INTERVAL;
            for connection in &honest {
                let write = Request::write(region.key(), 0, vec![1; 64]);
                // If the ops of a peer do not end, it has no room for more.
                let _ = connection.submit_queued(0, write, &sender, 0);
            }
        }
        owed += rate * per_tick;
        while owed >= 1.0 {
            owed -= 1.0;
            number += 1;
            let header = match &mut world.greedy {
                Some(greedy) => greedy.packet(),
                None => Header { flow: theirs, ..packet(abuse, number, target) },
            };
            let payload = vec![7; header.payload_len()];
            let mut forge = || {
                let sealed = world.machines[abuser].forge(&own, &header, &payload);
                sealed.expect("connected").1
            };
            let bytes = match abuse {
                Abuse::Noise => vec![0xa5; 200],
                Abuse::UnknownKey => {
                    let mut hello = vec![0; 64];
                    hello[..4].copy_from_slice(&[0, 1, 0x40, 0x11]);
                    hello[4] = number as u8;
                    hello
                }
                Abuse::Replayed => sample.get_or_insert_with(forge).clone(),
                Abuse::Forged => {
                    let mut bytes = forge();
                    let last = bytes.len() - 9;
                    bytes[last] ^= 1;
                    bytes
                }
                Abuse::Signals => signal(flows as u32 - 1),
                Abuse::Hellos => sample
                    .get_or_insert_with(|| {
                        let fresh = Machine::start(&settings(abuser), [99; 32], world.now);
                        let mut fresh = fresh.expect("sound");
                        let _asked = fresh.connect(0, address(0), &[0]);
                        fresh.step(0);
                        fresh.take_sent(0).remove(0).datagrams.remove(0)
                    })
                    .clone(),
                _ => forge(),
            };
            world.send(0, abuser, bytes);
        }
        if abuse == Abuse::Handshakes {
            // A new process at the same address requests a connection again and again. The answers arrive at the new process.
            process += 1;
            let mut seed = [88; 32];
            seed[..4].copy_from_slice(&process.to_be_bytes());
            world.machines[abuser] =
                Machine::start(&settings(abuser), seed, world.now).expect("sound");
            let asked = world.machines[abuser].connect(0, address(0), &[0]);
            for _ in 1..PROCESS_TICKS {
                world.tick();
            }
            drop(asked);
        }
        if let Some(flood) = &mut flood {
            flood.tick(&mut world);
        }
        world.tick();
        while let Ok(end) = ends.try_recv() {
            done += u64::from(end.result.is_ok() && world.now >= from + warm_up);
        }
    }
    let atomics = &world.machines[0].engines[0].mailbox.status.stats.atomics_executed;
    let atomics = atomics.load(Ordering::Relaxed);
    let waiting = std::iter::from_fn(|| last.try_receive().ok().flatten()).count();
    let after = world.server_counters();
    let served = match (abuse, &world.greedy) {
        (Abuse::Refused, Some(greedy)) => greedy.refusals,
        (Abuse::Messages, _) => waiting as u64,
        (Abuse::Atomics, _) => atomics,
        (Abuse::Reads, Some(greedy)) => greedy.answered / READ,
        (Abuse::Handshakes | Abuse::Members | Abuse::Holders | Abuse::Unlisted, _) => {
            world.handshakes - handshakes
        }
        (Abuse::Hellos, _) => world.cookies,
        (Abuse::Noise, _) => after.dropped_malformed - before.dropped_malformed,
        (Abuse::UnknownKey, _) => after.dropped_unknown_key - before.dropped_unknown_key,
        (Abuse::Forged, _) => after.dropped_forged - before.dropped_forged,
        (Abuse::Replayed, _) => after.dropped_replay - before.dropped_replay,
        (Abuse::NewKeys, _) => after.key_changes - before.key_changes,
        (Abuse::Signals, _) => world.compared,
        (Abuse::Acks, _) => world.opened,
        (Abuse::Nothing | Abuse::Refused | Abuse::Reads, _) => 0,
    };
    drop((accepted, own));
    Outcome { done, served, dropped_rate: after.dropped_rate - before.dropped_rate }
}

impl Outcome {
    /// Asserts that the server has executed at least this many of the valid refused ops, atomic ops and reads, and opened this
    /// many acknowledgements. Datagrams that are not valid have reached the check that they are meant for.
    fn check(self, abuse: Abuse, [refusals, atomics, reads, acks]: [u64; 4]) -> Self {
        let least = match abuse {
            Abuse::Refused => refusals,
            Abuse::Atomics => atomics,
            Abuse::Reads => reads,
            Abuse::Acks => acks,
            // The maximum number of waiting messages: no application receives them.
            Abuse::Messages => u64::from(settings(0).max_queued_messages),
            // The server follows each change of key with its answers.
            Abuse::NewKeys => 1_000,
            // A burst of four refused handshakes at each of four addresses: each counts 16 times.
            Abuse::Members => 16,
            // In 120 ms an address may have 64 handshakes at once, and 30 more at 256 per second.
            Abuse::Handshakes => 90,
            // Nearly all datagrams. Signals reach the search for their flow.
            Abuse::Noise
            | Abuse::UnknownKey
            | Abuse::Replayed
            | Abuse::Hellos
            | Abuse::Forged
            | Abuse::Signals => (abuse.rate() * RUN_MS as f64 / 1e3 * 0.97) as u64,
            Abuse::Nothing | Abuse::Holders | Abuse::Unlisted => 0,
        };
        assert!(self.served >= least, "{abuse:?}: {self:?}");
        if abuse == Abuse::Handshakes {
            // At least half of the processes get their Cookie in time for their first message: 7,000 per second. The messages
            // that are not computed are beyond the rate.
            let processes = RUN_MS * 1_000 / (PROCESS_TICKS * 10);
            let arrived = self.served + self.dropped_rate;
            assert!(arrived >= processes / 2 && self.dropped_rate > 0, "{self:?}");
        }
        self
    }
}

/// An abuser beyond its share has most of its packets dropped, and congestion control answers it slowly. It still gets more
/// than the 1024 ops of a flow that need no acknowledgement from it, and more reads than one window of answers. Of its
/// acknowledgements it gets an equal part: dropping 36,000 packets takes 32 of 120 ms, and a fifth of the rest is 5,800 packets
/// of 3 us.
const OVERLOADED: [u64; 4] = [1_025, 1_025, 10, 5_800];

/// Prints the part of their goodput that honest peers keep, for docs/security.md.
#[expect(clippy::print_stderr, reason = "the documentation quotes the numbers")]
fn print(abuse: Abuse, rate: f64, beside: u64, alone: u64) {
    eprintln!("{abuse:?}, {rate} per second: {:.1} %", 100.0 * beside as f64 / alone as f64);
}

#[test]
fn no_abuse_costs_other_peers_a_tenth_of_their_goodput() {
    let alone = outcome(Abuse::Nothing, 0.0).done;
    // Four peers, one op per 20 us each, for 60 ms.
    assert!((11_500..=12_100).contains(&alone), "{alone}");
    let others = [
        Abuse::Noise,
        Abuse::UnknownKey,
        Abuse::Hellos,
        Abuse::Handshakes,
        Abuse::Members,
        Abuse::Forged,
        Abuse::Replayed,
        Abuse::Signals,
        Abuse::NewKeys,
    ];
    let mut costs = Vec::new();
    for abuse in others.into_iter().chain(Abuse::VALID) {
        let beside = outcome(abuse, abuse.rate()).check(abuse, OVERLOADED).done;
        print(abuse, abuse.rate(), beside, alone);
        if beside * 10 < alone * 9 {
            costs.push((abuse, beside));
        }
    }
    assert!(costs.is_empty(), "of {alone}: {costs:?}");
}

/// Dropping 300,000 packets takes 27 % of the core, and the honest peers need 60 %.
#[test]
fn beside_300_000_valid_packets_per_second_others_keep_three_quarters() {
    let alone = outcome(Abuse::Nothing, 0.0).done;
    let shares = Abuse::VALID.map(|abuse| {
        let beside = outcome(abuse, 300_000.0).check(abuse, OVERLOADED).done;
        print(abuse, 300_000.0, beside, alone);
        beside as f64 / alone as f64
    });
    assert!(shares.iter().all(|&share| share >= 0.75), "{shares:?}");
}

/// The engine can handle this abuser in addition to the honest peers, and does all that it requests. Of its 9600 packets,
/// every second one cancels an op, or every fifth one acknowledges answers. The four answers to a read are sent later, as
/// congestion control allows.
#[test]
fn beside_80_000_valid_packets_per_second_others_keep_99_percent() {
    let alone = outcome(Abuse::Nothing, 0.0).done;
    for abuse in Abuse::VALID {
        let beside = outcome(abuse, 80_000.0).check(abuse, [4_500, 7_000, 1_000, 9_500]).done;
        assert!(beside * 100 >= alone * 99, "{abuse:?}: {beside} of {alone}");
    }
}

/// A peer that has a key sends packets on a flow of another peer.
#[test]
fn packets_for_flows_of_another_connection_are_dropped() {
    let mut world = World::new();
    let [first, second] = [1, 2].map(|n| world.connect(n));
    let accepted: Vec<Connection> = std::iter::from_fn(|| world.machines[0].try_accept()).collect();
    // The server numbers its flows in the order of its connections.
    for (flow, of_second) in [(0, false), (1, true)] {
        let header =
            Header { flow: FlowId::new(flow), ..packet(Abuse::Replayed, 0, RegionKey::new(0)) };
        let (_, bytes) = world.machines[2].forge(&second, &header, &[7; 64]).expect("connected");
        world.send(0, 2, bytes);
        for _ in 0..10 {
            world.tick();
        }
        let got = accepted.iter().any(|c| c.try_receive().expect("open").is_some());
        assert_eq!(got, of_second, "flow {flow}");
    }
    drop(first);
}

/// Handshakes that cost a Diffie-Hellman: a burst of 256, and 1024 per second after it. All but eight wait for their turn,
/// 1 ms each, so they take a fifth of the core. Honest peers need 60 %.
#[test]
fn beside_all_handshakes_that_four_addresses_may_have_others_keep_nine_tenths() {
    let alone = outcome(Abuse::Nothing, 0.0).done;
    // During the burst, and after it.
    for (begun, handshakes) in [(60, 120), (300, 200)] {
        for abuse in [Abuse::Holders, Abuse::Unlisted] {
            let beside = outcome_after(Span::from_ms(begun), abuse, 0.0);
            assert!(beside.served >= handshakes, "{abuse:?}: {beside:?}");
            assert!(beside.done * 10 >= alone * 9, "{abuse:?}: {beside:?} of {alone}");
        }
    }
}
