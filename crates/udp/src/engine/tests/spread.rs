//! Connections of several source ports over networks that treat the ports differently.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;

use super::super::virtual_network::Sent;
use super::*;
use crate::report::Paths;
use crate::spreading::{AckPath, OnePort};
use crate::sys::Meta;

/// Settings with four ports in turn, a window of 64 packets, and timeouts.
fn spreading(max_mtu: u32) -> Config {
    let mut config = config();
    config.max_mtu = max_mtu;
    let settings = [("window", "64"), ("min_rto", "10ms"), ("initial_rto", "10ms")];
    config.set_algorithm(Some("constant"), &settings).expect("constant");
    config.set_balancer(Some("oblivious form=round-robin"), Some(4)).expect("a policy");
    config
}

/// A network: for a burst that host `from` sends by a port, returns the port from which it seems to come, or `None` if it is
/// lost.
type Network = fn(usize, &Sent, u16) -> Option<u16>;

/// All datagrams arrive.
const OPEN: Network = |_, _, port| Some(port);

thread_local! {
    /// Requests of the first host to accept packets from a port: the port, and the length in bytes.
    static JOINS: RefCell<Vec<(u8, usize)>> = RefCell::default();
    /// The next data packets by port 3 that are lost, as bits; the lowest bit stands for the next packet.
    static TO_LOSE: Cell<u32> = const { Cell::new(0) };
    /// Whether the network loses all datagrams.
    static IS_OUT: Cell<bool> = const { Cell::new(false) };
}

/// Records requests to accept packets from a port. All datagrams arrive unless the network is out.
const NOTED: Network = |from, burst, port| {
    for datagram in burst.datagrams.iter().filter(|d| from == 0 && d[2..4] == [0x46, 8]) {
        JOINS.with_borrow_mut(|joins| joins.push((burst.to.port, datagram.len())));
    }
    (!IS_OUT.get()).then_some(port)
};

/// As [`NOTED`], but loses data packets of the first host by port 3.
const LOSSY: Network = |from, burst, port| {
    let is_data = burst.datagrams.iter().any(|datagram| datagram.len() > 1000);
    if from == 0 && burst.to.port == 3 && is_data {
        let is_lost = TO_LOSE.get() & 1 == 1;
        TO_LOSE.set(TO_LOSE.get() >> 1);
        if is_lost {
            return None;
        }
    }
    NOTED(from, burst, port)
};

/// Packets by port 3 that are lost, as in `TO_LOSE`, and the ports that are then requested again: those that are not used until
/// the peer confirms them.
const LOSSES: [(u32, &[u8]); 3] = [(0b1, &[]), (0b101, &[]), (0b11, &[3])];

/// Returns the requests since the last call.
fn joins() -> Vec<(u8, usize)> {
    JOINS.take()
}

/// Exchanges datagrams over a network for this time.
fn run_over(hosts: &mut [VirtualHost; 2], network: Network, patience: Span) {
    let end = hosts[0].engine.network.now.get() + patience;
    loop {
        let mut busy = true;
        while busy {
            busy = false;
            for from in 0..2 {
                busy |= hosts[from].engine.step(true);
                busy |= deliver(hosts, from, network);
            }
        }
        let now = hosts[0].engine.network.now.get();
        if now >= end {
            return;
        }
        let next = hosts.iter_mut().map(|host| host.engine.next_due()).min().unwrap_or(Time::MAX);
        let next = next.max(now + Span::from_us(1)).min(end);
        hosts.iter().for_each(|host| host.engine.network.now.set(next));
    }
}

/// Delivers the datagrams that one host has sent to the other host. Returns `true` if there were any.
fn deliver(hosts: &mut [VirtualHost; 2], from: usize, path: Network) -> bool {
    let [sender, receiver] = [from, 1 - from].map(|host| &hosts[host].engine.network);
    let sent = sender.sent.take();
    let any = !sent.is_empty();
    for burst in sent {
        let own = sender.address(burst.to.port);
        let Some(port) = path(from, &burst, own.port()) else { continue };
        let seen = SocketAddr::new(own.ip(), port);
        // A change of the port by the network on the way out is reversed on the way in.
        let to = burst.to.address;
        let number = (0..4u8).find(|&number| {
            let address = receiver.address(number);
            let probe =
                Sent { to: crate::session::Peer { port: number, ..own.into() }, ..burst.clone() };
            usize::from(number) < receiver.ports()
                && (address == to || path(1 - from, &probe, address.port()) == Some(to.port()))
        });
        for datagram in burst.datagrams {
            let meta = VirtualNetwork::meta(seen, datagram.len(), burst.tos);
            receiver.put_aggregate(Meta { port: number.unwrap_or(0), ..meta }, datagram);
        }
    }
    any
}

/// Opens a connection over a network. The kernels know this MTU.
fn connect(config: &Config, mtu: u32, network: Network) -> Pair {
    connect_to(config, |_| (), mtu, network)
}

/// As [`connect`], to a host with changed settings.
fn connect_to(config: &Config, change: fn(&mut Config), mtu: u32, network: Network) -> Pair {
    let mut other = config.clone();
    change(&mut other);
    let mut hosts =
        [VirtualHost::new([10, 0, 0, 1], config), VirtualHost::new([10, 0, 0, 2], &other)];
    hosts.iter().for_each(|host| host.engine.network.mtu.set(Some(mtu)));
    let answer = hosts[0].connect_by(2, &hosts[1]);
    run_over(&mut hosts, network, Span::from_secs(2));
    let client = answer.try_recv().expect("answered").expect("connected");
    let server = hosts[1].accepted.try_recv().expect("accepted").connection;
    Pair { hosts, client, server }
}

/// Sends a message of 100 kB, within `patience`; returns the state of the ports afterwards.
fn message(pair: &mut Pair, network: Network, patience: Span) -> Paths {
    message_by(0, pair, network, patience)
}

/// As [`message`], on one of the two flows.
fn message_by(flow: usize, pair: &mut Pair, network: Network, patience: Span) -> Paths {
    let sent = bytes(100_000);
    let payload = Buffers::Payload(sent.clone().into());
    let op = submit_to(&pair.client, flow, OpKind::Message, payload);
    run_over(&mut pair.hosts, network, patience);
    op.try_recv().expect("ended").expect("delivered");
    assert!(pair.server.messages.try_recv().expect("a message").bytes == sent);
    paths(pair)
}

fn paths(pair: &Pair) -> Paths {
    let protocol = &pair.hosts[0].engine.protocol;
    let session = pair.client.state.session;
    protocol.connections.paths(session, &protocol.ops.endpoint).expect("connected")
}

fn sent_by(paths: &Paths) -> Vec<u64> {
    paths.ports.iter().map(|port| port.counters.sent).collect()
}

#[test]
fn packets_leave_by_all_ports_in_turn() {
    let mut pair = connect(&spreading(1280), 1280, OPEN);
    let paths = message(&mut pair, OPEN, Span::from_secs(1));
    assert_eq!(paths.one_port, None);
    // 100,000 bytes in packets of at most 1280 - 28 bytes are at least 80 packets, 20 by each port.
    let sent = sent_by(&paths);
    assert!(sent.iter().all(|&sent| sent >= 20), "{sent:?}");
    assert!(sent.iter().max().unwrap() - sent.iter().min().unwrap() <= 1, "{sent:?}");
    assert_eq!(paths.ports.iter().map(|port| port.counters.lost).sum::<u64>(), 0);
}

#[test]
fn behind_a_firewall_that_knows_the_first_port_all_packets_leave_by_it() {
    let firewall: Network = |from, burst, port| (from == 1 || burst.to.port == 0).then_some(port);
    let mut pair = connect(&spreading(1280), 1280, firewall);
    let paths = message(&mut pair, firewall, Span::from_secs(1));
    assert_eq!(paths.one_port, Some(OnePort::Unconfirmed));
    assert_eq!(sent_by(&paths)[1..], [0; 3]);
}

/// Each port has another number outside, as behind a NAT.
#[test]
fn ports_that_a_nat_changes_are_used_as_they_are_seen() {
    let nat: Network = |from, _, port| Some(if from == 0 { 33_000 + port % 7001 } else { port });
    let mut pair = connect(&spreading(1280), 1280, nat);
    let paths = message(&mut pair, nat, Span::from_secs(1));
    assert_eq!(paths.one_port, None);
    assert!(sent_by(&paths).iter().all(|&sent| sent >= 20), "{paths:?}");
}

#[test]
fn a_path_that_carries_no_full_packets_is_not_used() {
    let narrow: Network = |from, burst, port| {
        let longest = burst.datagrams.iter().map(Vec::len).max().unwrap_or(0);
        (from == 1 || burst.to.port != 2 || longest <= 1400).then_some(port)
    };
    let mut pair = connect(&spreading(4000), 4000, narrow);
    let paths = message(&mut pair, narrow, Span::from_secs(1));
    let usable: Vec<bool> = paths.ports.iter().map(|port| port.usable).collect();
    assert_eq!(usable, [true, true, false, true]);
    assert_eq!(sent_by(&paths)[2], 0, "{paths:?}");
    assert_eq!(paths.ports.iter().map(|port| port.counters.lost).sum::<u64>(), 0);
}

#[test]
fn losses_are_those_of_the_path_that_is_cut_and_then_it_is_left() {
    let mut pair = connect(&spreading(1280), 1280, OPEN);
    message(&mut pair, OPEN, Span::from_secs(1));
    let cut: Network = |from, burst, port| (from == 1 || burst.to.port != 3).then_some(port);
    let paths = message(&mut pair, cut, Span::from_secs(1));
    for (number, port) in paths.ports.iter().enumerate() {
        let hurt = port.counters.lost + port.counters.timeouts > 0;
        assert_eq!(hurt, number == 3, "{paths:?}");
    }
    // No packet arrives by that port within the keepalive time of 10 s.
    run_over(&mut pair.hosts, cut, Span::from_secs(11));
    let before = message(&mut pair, cut, Span::from_secs(2));
    let paths = message(&mut pair, cut, Span::from_secs(1));
    assert!(!paths.ports[3].usable);
    assert_eq!(before.ports[3].counters, paths.ports[3].counters, "no packet more");
}

/// A single packet may be lost to congestion. With a window of one packet, the next packet is sent after the timeout of the
/// previous one.
#[test]
fn one_lost_packet_keeps_a_port_and_two_in_a_row_end_its_use() {
    let mut config = spreading(1280);
    let settings = [("window", "1"), ("min_rto", "10ms"), ("initial_rto", "10ms")];
    config.set_algorithm(Some("constant"), &settings).expect("constant");
    for (lost, asked) in LOSSES {
        let mut pair = connect(&config, 1280, LOSSY);
        joins();
        TO_LOSE.set(lost);
        let paths = message(&mut pair, LOSSY, Span::from_ms(100));
        let counters = paths.ports[3].counters;
        assert_eq!(TO_LOSE.get(), 0);
        assert_eq!(counters.timeouts, u64::from(lost.count_ones()), "{paths:?}");
        let ports: Vec<u8> = joins().iter().map(|&(port, _)| port).collect();
        assert_eq!(ports, asked, "lost: {lost:b}");
    }
}

/// Each message is one packet. The next one leaves 6 ms later: a packet is declared lost once a packet that left 5 ms later is
/// acknowledged.
#[test]
fn one_packet_declared_lost_keeps_a_port_and_two_in_a_row_end_its_use() {
    let mut config = spreading(1280);
    let settings =
        [("window", "64"), ("min_rto", "60s"), ("max_rto", "60s"), ("initial_rto", "60s")];
    config.set_algorithm(Some("constant"), &settings).expect("constant");
    for (lost, asked) in LOSSES {
        let mut pair = connect(&config, 1280, LOSSY);
        joins();
        TO_LOSE.set(lost);
        for _ in 0..24 {
            let payload = Buffers::Payload(bytes(1_100).into());
            let _end = submit(&pair.client, OpKind::Message, payload);
            run_over(&mut pair.hosts, LOSSY, Span::from_ms(6));
        }
        let paths = paths(&pair);
        let counters = paths.ports[3].counters;
        assert_eq!(TO_LOSE.get(), 0);
        let count = u64::from(lost.count_ones());
        assert_eq!([counters.lost, counters.timeouts], [count, 0], "{paths:?}");
        let ports: Vec<u8> = joins().iter().map(|&(port, _)| port).collect();
        assert_eq!(ports, asked, "lost: {lost:b}");
    }
}

/// The path of the first port is cut in both directions.
#[test]
fn a_connection_outlives_the_path_that_it_was_opened_by() {
    let cut: Network = |_, burst, port| {
        let first = burst.to.port == 0 && burst.to.address.port() == 7000;
        (!first).then_some(port)
    };
    let one_port = |config: &mut Config| config.spreading = None;
    for change in [|_: &mut Config| (), one_port] {
        let mut pair = connect_to(&spreading(1280), change, 1280, OPEN);
        message(&mut pair, OPEN, Span::from_secs(1));
        run_over(&mut pair.hosts, cut, Span::from_secs(40));
        assert_eq!((pair.client.state.ended(), pair.server.state.ended()), (None, None));
        let paths = message(&mut pair, cut, Span::from_secs(2));
        assert_eq!((paths.ports[0].usable, paths.one_port), (false, None), "{paths:?}");
    }
}

/// Packets of different paths are acknowledged separately, so that the policy learns of each path.
#[test]
fn each_port_hears_of_its_packets() {
    let mut pair = connect(&spreading(1280), 1280, OPEN);
    let paths = message(&mut pair, OPEN, Span::from_secs(1));
    for port in &paths.ports {
        let c = port.counters;
        assert!(
            c.good * 8 >= c.sent,
            "[R]: with an acknowledgement of 8 packets REPS keeps its lead: {c:?}"
        );
    }
}

/// All acknowledgements take one path to the first port. They still report packets of each port.
#[test]
fn an_acknowledgement_is_for_the_port_of_the_packet_that_it_reports() {
    let own = |config: &mut Config| config.ack_path = AckPath::Own;
    let mut pair = connect_to(&spreading(1280), own, 1280, NOTED);
    joins();
    for _ in 0..10 {
        let paths = message(&mut pair, NOTED, Span::from_secs(3));
        assert!(paths.ports.iter().all(|port| port.usable), "{paths:?}");
    }
    assert_eq!(joins(), [], "for 30 s, three keepalive times");
}

/// Requests of idle ports consist of 4 bytes of a control packet, 9 of a proof and 8 of an insecure guard, instead of 1252
/// bytes.
#[test]
fn ports_of_an_idle_connection_cost_nothing_and_then_a_short_request_each() {
    let mut pair = connect(&spreading(1280), 1280, NOTED);
    message(&mut pair, NOTED, Span::from_secs(1));
    assert_eq!(joins(), [(1, 1252), (2, 1252), (3, 1252)], "at the beginning, full packets");
    run_over(&mut pair.hosts, NOTED, Span::from_secs(60));
    assert_eq!(joins(), [], "while it is idle");
    let paths = message(&mut pair, NOTED, Span::from_secs(1));
    assert!(paths.ports.iter().skip(1).all(|port| port.usable), "{paths:?}");
    let joins = joins();
    assert!((3..=4).contains(&joins.len()), "one for each port: {joins:?}");
    assert!(joins.iter().all(|&(_, bytes)| bytes < 64), "{joins:?}");
}

/// No datagram arrives for 3 s, so all ports are lost at the same time. They are used again within 0.4 s, not only after the
/// keepalive time of 10 s.
#[test]
fn all_ports_are_used_again_soon_after_all_were_lost() {
    let mut pair = connect(&spreading(1280), 1280, NOTED);
    run_over(&mut pair.hosts, NOTED, Span::from_secs(11));
    message(&mut pair, NOTED, Span::from_ms(100)); // its packets ask for the ports, which have been idle
    message(&mut pair, NOTED, Span::from_ms(100));
    IS_OUT.set(true);
    let op = submit(&pair.client, OpKind::Message, Buffers::Payload(bytes(100_000).into()));
    run_over(&mut pair.hosts, NOTED, Span::from_secs(3));
    assert!(paths(&pair).ports.iter().all(|port| !port.usable), "{:?}", paths(&pair));
    IS_OUT.set(false);
    run_over(&mut pair.hosts, NOTED, Span::from_ms(200));
    op.try_recv().expect("ended").expect("delivered");
    message(&mut pair, NOTED, Span::from_ms(200));
    let before = sent_by(&paths(&pair));
    let paths = message(&mut pair, NOTED, Span::from_secs(1));
    let used = sent_by(&paths).iter().zip(before).all(|(after, before)| *after >= before + 15);
    assert!(used && paths.one_port.is_none(), "{paths:?}");
}

/// Two flows lose packets by a port. Once the peer has confirmed the port again, both flows use it at once.
#[test]
fn what_other_flows_lost_by_a_port_is_forgotten_when_the_peer_confirms_it() {
    let cut: Network = |from, burst, port| {
        let port = NOTED(from, burst, port);
        port.filter(|_| from == 1 || burst.to.port != 3)
    };
    let mut pair = connect(&spreading(1280), 1280, NOTED);
    let ops = [0, 1].map(|flow| {
        let payload = Buffers::Payload(bytes(100_000).into());
        submit_to(&pair.client, flow, OpKind::Message, payload)
    });
    run_over(&mut pair.hosts, cut, Span::from_secs(1));
    for op in ops {
        op.try_recv().expect("ended").expect("delivered");
    }
    assert!(!paths(&pair).ports[3].usable);
    for _ in 0..3 {
        message(&mut pair, NOTED, Span::from_secs(1));
    }
    assert!(paths(&pair).ports[3].usable, "confirmed again");
    joins();
    for flow in [1, 0] {
        let paths = message_by(flow, &mut pair, NOTED, Span::from_secs(1));
        assert!(paths.ports[3].usable, "{paths:?}");
    }
    assert_eq!(joins(), []);
}

/// Each confirmation is valid: the peer answers a request that the engine does not know of. If a confirmation caused a check
/// of all connections, the next timeout would be due at once.
#[test]
fn confirmations_that_were_not_asked_for_cost_no_look_at_all_connections() {
    let mut pair = connect(&spreading(1280), 1280, OPEN);
    let [client, server] = &mut pair.hosts;
    let now = client.engine.network.now.get();
    let Engine { transmitter, protocol, network, .. } = &mut client.engine;
    let due = protocol.connections.next_timeout();
    assert!(due > now);
    for _ in 0..3 {
        let sessions = &mut protocol.connections.sessions;
        let mut join = vec![0; sessions.least_join()];
        assert!(sessions.seal_join(now, pair.client.state.session, 0, &mut join));
        server.engine.network.put_datagram(network.local, 0, join);
        while server.engine.step(true) {}
        let answers = server.engine.network.sent.take();
        let answers: Vec<_> = answers.into_iter().flat_map(|burst| burst.datagrams).collect();
        assert_eq!(answers.len(), 1);
        for mut answer in answers {
            let meta = VirtualNetwork::meta(server.engine.network.local, answer.len(), 0);
            let locked = &mut LockedRegion::new(None);
            let delivery = Delivery { meta: &meta, locked, outbox: transmitter.outbox() };
            protocol.handle_datagram(now, delivery, &mut answer, network);
            assert_eq!(protocol.connections.next_timeout(), due);
        }
    }
}
