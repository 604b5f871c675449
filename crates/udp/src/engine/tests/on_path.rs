//! What an attacker on the path can change or forge because it is not authenticated: the TTL and the ECN marks of the IP
//! header, and signals of switches.

use std::collections::BTreeMap;

use apus_units::FlowId;
use apus_wire::{Header, SIGNAL_BYTES, SwitchView, decode_extended, open, seal};

use super::*;
use crate::sys::Meta;

/// Delivers all datagrams between two hosts until `patience` has passed, with `change` applied to their control messages.
fn run_with(pair: &mut Pair, patience: Span, change: fn(&mut Meta)) {
    let end = pair.hosts[0].engine.network.now.get() + patience;
    loop {
        let mut busy = false;
        for i in 0..2 {
            busy |= pair.hosts[i].engine.step(true);
            let [to, from] = [1 - i, i].map(|host| &pair.hosts[host].engine.network);
            for burst in from.sent.take() {
                for datagram in burst.datagrams {
                    let mut meta = VirtualNetwork::meta(from.local, datagram.len(), burst.tos);
                    change(&mut meta);
                    to.put_aggregate(meta, datagram);
                    busy = true;
                }
            }
        }
        let now = pair.hosts[0].engine.network.now.get();
        if now >= end {
            return;
        }
        if !busy {
            let timers = pair.hosts.iter_mut().map(|host| host.engine.next_due());
            let next = timers.min().unwrap_or(Time::MAX).max(now + Span::from_us(1)).min(end);
            pair.hosts.iter().for_each(|host| host.engine.network.now.set(next));
        }
    }
}

/// Returns the target of the fabric delay of the client's flow after a message of 100,000 bytes, which must arrive.
fn target_after(algorithm: &str, change: fn(&mut Meta)) -> Option<Span> {
    let mut config = config();
    config.set_algorithm(Some(algorithm), &[]).expect("defaults");
    let mut pair = Pair::connect(&config);
    let message = submit(&pair.client, OpKind::Message, Buffers::Payload(bytes(100_000).into()));
    run_with(&mut pair, Span::from_secs(10), change);
    message.try_recv().expect("ended").expect("delivered");
    assert_eq!((pair.client.state.ended(), pair.server.state.ended()), (None, None));
    let (reply, state) = oneshot::channel();
    pair.client.mailbox.ask(&pair.client.state, ConnectionCommand::Inspect { flow: 0, reply });
    run_with(&mut pair, Span::from_ms(1), change);
    state.try_recv().expect("a state").0.target_delay
}

/// A host sends with a TTL of 64, so a forged TTL gives at most 64 hops: 64 us with `hop_scale` of 1 us. Flow scaling adds up
/// to 100 us in either case, depending on the window.
#[test]
fn a_forged_ttl_raises_the_target_by_64_hops_at_most() {
    let honest = target_after("swift", |_| {}).expect("Swift has a target");
    let forged = target_after("swift", |meta| meta.ttl = Some(0)).expect("Swift has a target");
    let most = Span::from_us(64 + 100);
    assert!(forged > honest && forged <= honest + most, "{honest:?} became {forged:?}");
}

/// Treatment of ECN marks by the path.
#[derive(Clone, Copy, Debug)]
enum Marks {
    /// The link marks packets that find its queue long.
    Honest,
    /// An attacker marks all packets.
    Forged,
    /// An attacker removes all marks.
    Removed,
}

/// What happened to a message, and to the datagrams of its sender at the link.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    took: Span,
    sent: u64,
    dropped: u64,
}

/// Time that the link takes for a datagram.
const SERVICE: Span = Span::from_us(10);
/// Numbers of datagrams in the link's queue from which it marks, and from which it drops.
const MARKS_FROM: u64 = 8;
const DROPS_FROM: u64 = 32;

/// Sends a message of a million bytes over a link with a round trip of 100 us: ten datagrams. Returns after its delivery.
fn over_link(algorithm: &str, marks: Marks) -> Outcome {
    let mut config = config();
    config.set_algorithm(Some(algorithm), &[]).expect("defaults");
    let mut pair = Pair::connect(&config);
    let message = submit(&pair.client, OpKind::Message, Buffers::Payload(bytes(1_000_000).into()));
    let from = pair.hosts[0].engine.network.now.get();
    let mut flights: BTreeMap<(Time, u64), (usize, Meta, Vec<u8>)> = BTreeMap::new();
    let (mut count, mut free) = (0, from);
    let mut outcome = Outcome { took: Span::ZERO, sent: 0, dropped: 0 };
    loop {
        let now = pair.hosts[0].engine.network.now.get();
        while let Some(entry) = flights.first_entry().filter(|entry| entry.key().0 <= now) {
            let (to, meta, datagram) = entry.remove();
            pair.hosts[to].engine.network.put_aggregate(meta, datagram);
        }
        for i in 0..2 {
            let engine = &mut pair.hosts[i].engine;
            while engine.step(true) {}
            for burst in engine.network.sent.take() {
                for datagram in burst.datagrams {
                    let local = engine.network.local;
                    let mut meta = VirtualNetwork::meta(local, datagram.len(), burst.tos);
                    let mut at = now + Span::from_us(45);
                    if i == 0 {
                        let queue = free.max(now).since(now).as_ps() / SERVICE.as_ps();
                        outcome.sent += 1;
                        if queue >= DROPS_FROM {
                            outcome.dropped += 1;
                            continue;
                        }
                        if queue >= MARKS_FROM && meta.tos & 0b11 != 0 {
                            meta.tos |= 0b11;
                        }
                        free = free.max(now) + SERVICE;
                        at = free + Span::from_us(45);
                    }
                    match marks {
                        Marks::Honest => {}
                        Marks::Forged => meta.tos |= 0b11,
                        Marks::Removed => meta.tos &= !0b11,
                    }
                    count += 1;
                    flights.insert((at, count), (1 - i, meta, datagram));
                }
            }
        }
        assert_eq!((pair.client.state.ended(), pair.server.state.ended()), (None, None));
        if let Ok(end) = message.try_recv() {
            end.expect("delivered");
            outcome.took = now.since(from);
            return outcome;
        }
        let timers = pair.hosts.iter_mut().map(|host| host.engine.next_due());
        let next = timers.chain(flights.keys().map(|(at, _)| *at)).min().unwrap_or(Time::MAX);
        let next = next.max(now + Span::from_ns(100));
        assert!(next.since(from) < Span::from_secs(60), "{algorithm}: {outcome:?}");
        pair.hosts.iter().for_each(|host| host.engine.network.now.set(next));
    }
}

/// With a mark on each packet, windows fall to one packet per round trip, a tenth of what the link carries. Swift does not
/// follow marks.
#[test]
fn forged_ecn_marks_slow_a_flow_down_and_end_nothing() {
    for algorithm in ["dctcp", "hull", "cubic", "dcqcn"] {
        let [honest, forged] = [Marks::Honest, Marks::Forged].map(|m| over_link(algorithm, m));
        assert!(forged.took >= honest.took * 5, "{algorithm}: {honest:?} became {forged:?}");
    }
    let took = [Marks::Honest, Marks::Forged, Marks::Removed].map(|m| over_link("swift", m).took);
    assert!(took[0] == took[1] && took[1] == took[2], "{took:?}");
}

/// A constant window of 64 packets, of which 42 have room, loses a third of its packets. DCQCN reacts to marks only (§3).
#[test]
fn without_their_marks_windows_follow_losses_and_the_rate_of_dcqcn_does_not() {
    for algorithm in ["dctcp", "hull", "cubic"] {
        let removed = over_link(algorithm, Marks::Removed);
        let Outcome { sent, dropped, .. } = removed;
        assert!(dropped > 0 && dropped * 10 < sent, "{algorithm}: {removed:?}");
    }
    let constant = over_link("constant", Marks::Removed);
    assert!(constant.dropped * 4 > constant.sent, "{constant:?}");
    let dcqcn = over_link("dcqcn", Marks::Removed);
    assert!(dcqcn.dropped * 2 > dcqcn.sent, "{dcqcn:?}");
}

/// The client has flows 0 to 2, which are 1 to 3 at the server. A signal names a flow by the server's number.
#[test]
fn bolt_4_3_a_signal_takes_a_packet_from_the_window_of_the_flow_that_it_names() {
    let mut config = config();
    config
        .set_algorithm(Some("bolt"), &[("ai", "0"), ("min_rto", "60s"), ("max_rto", "60s")])
        .expect("valid");
    let mut hosts = [1, 2, 3].map(|n| VirtualHost::new([10, 0, 0, n], &config));
    let _third = hosts[2].connect(&hosts[1]);
    run(&mut hosts, Span::from_ms(1));
    let answer = hosts[0].connect_by(3, &hosts[1]);
    run(&mut hosts, Span::from_ms(1));
    let client = answer.try_recv().expect("answered").expect("connected");
    let payload = || Buffers::Payload(bytes(100).into());
    let _messages = [0, 1, 2].map(|flow| submit_to(&client, flow, OpKind::Message, payload()));
    let engine = &mut hosts[0].engine;
    while engine.step(true) {}
    let now = engine.network.now.get();
    let server: SocketAddr = ([10, 0, 0, 2], 7000).into();
    let mut signals = BTreeMap::new();
    for burst in engine.network.sent.take() {
        for mut datagram in burst.datagrams {
            let Ok(decoded) = decode_extended(&datagram) else { continue };
            let flow = decoded.header.flow.get();
            let view = SwitchView::new(&mut datagram).expect("it has fields of Bolt");
            let left = (now.since(Time::ZERO).as_ps() / 1_000) as u32;
            signals.insert(flow, view.signal(1 << 20, 6, left).expect("legal"));
        }
    }
    assert_eq!(signals.keys().copied().collect::<Vec<_>>(), [1, 2, 3]);
    let mut windows_after = |signal: [u8; SIGNAL_BYTES]| {
        engine.network.put_datagram(server, 0, signal.to_vec());
        while engine.step(true) {}
        [0, 1, 2].map(|flow| {
            let (reply, state) = oneshot::channel();
            client.mailbox.ask(&client.state, ConnectionCommand::Inspect { flow, reply });
            while engine.step(true) {}
            state.try_recv().expect("a state").0.cwnd
        })
    };
    // The server's flow 0 belongs to another connection, and it has no flow 4.
    for foreign in [0, 4] {
        let header = open(&signals[&1]).expect("whole").0;
        let header = Header { flow: FlowId::new(foreign), ..header };
        let mut signal = [0; SIGNAL_BYTES];
        seal(&header, &[], &mut signal).expect("room");
        assert_eq!(windows_after(signal), [64.0; 3], "flow {foreign}");
    }
    assert_eq!(windows_after(signals[&2]), [64.0, 63.0, 64.0]);
    assert_eq!(windows_after(signals[&3]), [64.0, 63.0, 63.0]);
    assert_eq!(windows_after(signals[&1]), [63.0; 3]);
    assert_eq!(windows_after(signals[&1]), [63.0; 3], "once per packet");
}
