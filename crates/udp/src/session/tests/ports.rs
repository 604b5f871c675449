//! Further ports of a session: which peers can prove one, and the treatment of packets from other ports.

use super::*;

/// A session whose opener may use four ports. Tests deliver its packets from any address.
struct Ports {
    world: World,
    ours: SessionId,
    theirs: SessionId,
}

/// Packets that a table sends: source and destination with the port number, and the bytes.
type Sent = Vec<(Peer, Vec<u8>)>;

/// The address and port at which host 0's port `number` is seen.
fn outside(number: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], 9000 + u16::from(number)))
}

impl Ports {
    fn new() -> Self {
        let (mut world, ours, theirs) = World::connected();
        world.hosts[0].table.use_ports(ours, 4, 1);
        world.hosts[1].table.use_ports(theirs, 1, 4);
        world.settle();
        Self { world, ours, theirs }
    }

    fn join(&mut self, number: u8, length: usize) -> Vec<u8> {
        let mut packet = vec![0; length];
        assert!(self.world.hosts[0].table.seal_join(
            self.world.now,
            self.ours,
            number,
            &mut packet
        ));
        packet
    }

    /// Delivers a datagram to port `port` of a host, as if sent from `from`.
    fn hand(
        &mut self,
        host: usize,
        from: SocketAddr,
        port: u8,
        bytes: &[u8],
    ) -> Result<(), Dropped> {
        let (now, mut bytes) = (self.world.now, bytes.to_vec());
        let from = Peer { port, ..Peer::from(from) };
        match self.world.hosts[host].table.receive(now, from, &mut bytes) {
            Received::Dropped(why) => Err(why),
            _ => Ok(()),
        }
    }

    /// Takes the packets that a host has to send.
    fn sent(&mut self, host: usize) -> Sent {
        let (now, mut out) = (self.world.now, [0; MAX_HANDSHAKE_BYTES]);
        let table = &mut self.world.hosts[host].table;
        let next = || table.poll_transmit(now, &mut out).map(|(to, n)| (to, out[..n].to_vec()));
        std::iter::from_fn(next).collect()
    }

    /// Proves port `number` of host 0, which is seen at `from`. Returns `true` if the port is confirmed.
    fn prove(&mut self, number: u8, from: SocketAddr) -> bool {
        let join = self.join(number, 1200);
        let server = self.world.address(1);
        self.hand(1, from, 0, &join).expect("a request");
        for _ in 0..2 {
            for (to, bytes) in self.sent(1) {
                assert_eq!((to.address, to.port), (from, 0));
                let (now, mut bytes) = (self.world.now, bytes);
                let back = Peer { port: number, ..Peer::from(server) };
                match self.world.hosts[0].table.receive(now, back, &mut bytes) {
                    Received::Joined { number: joined, length, .. } => {
                        assert_eq!((joined, length), (number, 1200));
                        return true;
                    }
                    other => assert_eq!(other, Received::Own),
                }
            }
            for (to, bytes) in self.sent(0) {
                assert_eq!((to.address, to.port), (server, number), "from the same port");
                self.hand(1, from, 0, &bytes).expect("a proof");
            }
        }
        false
    }

    /// Sends a packet of the transport from `from`. Returns the number of the port to which the receiver attributes it.
    fn packet(&mut self, seq: u64, from: SocketAddr) -> Result<u8, Dropped> {
        let mut bytes = self.world.sealed(0, self.ours, seq, b"data").bytes;
        match self.world.hosts[1].table.receive(self.world.now, from, &mut bytes) {
            Received::Packet { path, session, .. } if session == self.theirs => Ok(path),
            Received::Dropped(why) => Err(why),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn packets_come_from_a_port_only_after_it_has_been_proved() {
    let mut ports = Ports::new();
    assert_eq!(ports.packet(0, outside(2)), Err(Dropped::Address));
    assert!(ports.prove(2, outside(2)));
    assert_eq!(ports.packet(1, outside(2)), Ok(2));
    assert_eq!(ports.packet(2, outside(3)), Err(Dropped::Address));
    let first = ports.world.address(0);
    assert_eq!(ports.packet(3, first), Ok(0));
    let to = ports.world.hosts[1].table.at_port(ports.theirs, 2).expect("connected");
    assert_eq!(to.address, outside(2));
    let to = ports.world.hosts[1].table.at_port(ports.theirs, 3).expect("connected");
    assert_eq!(to.address, first, "not proved");
}

#[test]
fn a_port_of_another_address_is_never_taken() {
    let mut ports = Ports::new();
    let join = ports.join(1, 1200);
    let elsewhere: SocketAddr = "10.6.6.6:9001".parse().unwrap();
    assert_eq!(ports.hand(1, elsewhere, 0, &join), Err(Dropped::Address));
    assert!(ports.sent(1).is_empty());
    // The packet was not opened, so it is still accepted from the right address.
    assert_eq!(ports.hand(1, outside(1), 0, &join), Ok(()));
}

/// A host that shares the address of a peer, such as another process behind the same NAT, intercepts a request and sends it
/// from a port of its own.
#[test]
fn a_request_that_another_port_has_sent_proves_nothing() {
    let mut ports = Ports::new();
    let thief: SocketAddr = "10.0.0.1:6666".parse().unwrap();
    let join = ports.join(1, 1200);
    ports.hand(1, thief, 0, &join).expect("it is authentic");
    let answers = ports.sent(1);
    assert_eq!(answers.len(), 1);
    assert!(answers[0].1.len() < join.len(), "nothing is amplified");
    let shortest = ports.join(2, ports.world.hosts[0].table.least_join());
    ports.hand(1, thief, 0, &shortest).expect("it is authentic");
    let short_answers = ports.sent(1);
    assert_eq!(short_answers.len(), 1);
    assert!(short_answers[0].1.len() <= shortest.len());
    assert_eq!(ports.hand(1, thief, 0, &join), Err(Dropped::Replay), "once");
    // The thief cannot read the token, and has no key to send the token under.
    assert_eq!(ports.packet(0, thief), Err(Dropped::Address));
    let mut guess = answers[0].1.clone();
    guess[3] = 10;
    assert!(ports.hand(1, thief, 0, &guess).is_err());
    assert!(ports.sent(1).iter().all(|(_, bytes)| bytes.len() <= guess.len()));
    assert_eq!(ports.packet(1, thief), Err(Dropped::Address));
    // The owner's own request replaces the thief's.
    assert!(ports.prove(1, outside(1)));
    assert_eq!(ports.packet(2, outside(1)), Ok(1));
}

#[test]
fn a_nat_may_change_a_port_and_the_port_before_counts_no_more() {
    let mut ports = Ports::new();
    assert!(ports.prove(1, outside(1)));
    let changed: SocketAddr = "10.0.0.1:31234".parse().unwrap();
    assert_eq!(ports.packet(0, changed), Err(Dropped::Address));
    assert!(ports.prove(1, changed));
    assert_eq!(ports.packet(1, changed), Ok(1));
    assert_eq!(ports.packet(2, outside(1)), Err(Dropped::Address));
    // If a NAT maps two ports to the same port, they count as one port.
    assert!(ports.prove(2, changed));
    assert_eq!(ports.packet(3, changed), Ok(2));
}

#[test]
fn ports_beyond_those_agreed_on_and_answers_without_end_are_not_taken() {
    let mut ports = Ports::new();
    let join = ports.join(4, 1200);
    ports.hand(1, outside(4), 0, &join).expect("authentic, without effect");
    assert!(ports.sent(1).is_empty());
    for _ in 0..2000 {
        let join = ports.join(1, 1200);
        ports.hand(1, outside(1), 0, &join).expect("authentic");
    }
    assert_eq!(ports.sent(1).len(), usize::from(MAX_PORTS));
    // A session without further ports.
    let (mut world, ours, _) = World::connected();
    let mut join = vec![0; 1200];
    assert!(world.hosts[0].table.seal_join(world.now, ours, 1, &mut join));
    let received = world.hosts[1].table.receive(world.now, outside(1), &mut join);
    assert_eq!(received, Received::Dropped(Dropped::Address));
}

#[test]
fn the_last_of_256_ports_can_be_proved() {
    let mut ports = Ports::new();
    let (ours, theirs) = (ports.ours, ports.theirs);
    ports.world.hosts[0].table.use_ports(ours, MAX_PORTS, 1);
    ports.world.hosts[1].table.use_ports(theirs, 1, MAX_PORTS);
    assert!(ports.prove(255, outside(255)));
    assert_eq!(ports.packet(0, outside(255)), Ok(255));
}

#[test]
fn no_session_begins_at_a_further_port() {
    let (world, ..) = World::connected();
    let mut ports = Ports::new();
    for datagram in world.seen.iter().filter(|d| (0x40..0x45).contains(&d.bytes[2])) {
        let got = ports.hand(1, datagram.from, 1, &datagram.bytes);
        assert_eq!(got, Err(Dropped::Address));
    }
    // Packets of the session are not accepted at a port that this side does not use either.
    let bytes = ports.world.sealed(0, ports.ours, 9, b"data").bytes;
    let from = ports.world.address(0);
    assert_eq!(ports.hand(1, from, 1, &bytes), Err(Dropped::Address));
}

#[test]
fn a_silent_peer_is_pinged_from_every_confirmed_port() {
    let mut ports = Ports::new();
    assert!(ports.prove(1, outside(1)) && ports.prove(3, outside(3)));
    let mut from = Vec::new();
    for _ in 0..600 {
        ports.world.now += Span::from_ms(100);
        let now = ports.world.now;
        ports.world.hosts[0].table.handle_timeout(now);
        from.extend(ports.sent(0).into_iter().map(|(to, _)| to.port));
        if from.len() >= 3 {
            break;
        }
    }
    assert_eq!(from[..3], [0, 1, 3]);
    // The answer goes to the address from which the ping came.
    let mut ping = [0; 64];
    let now = ports.world.now;
    let table = &mut ports.world.hosts[0].table;
    let length = table.seal_control(now, ports.ours, packet::Command::Ping, &[], &mut ping);
    ports.hand(1, outside(3), 0, &ping[..length.expect("room")]).expect("a ping");
    let pongs = ports.sent(1);
    assert_eq!(pongs.last().map(|(to, _)| to.address), Some(outside(3)));
}
