//! The socket of the peer that sends most: engines, and wires between them, that one thread drives in turn.

mod support;

use std::future::Future;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};

use apus_udp::{Access, Connection, End, Host, Mode, Op, OpError, Region, Request};
use apus_units::Span;
use support::{any, host, pattern, steady};

/// Rounds without progress that are too many: each takes microseconds.
const TOO_MANY: usize = 20_000_000;

/// A client as the server knows it: a socket at an address that a restart keeps, and that goes away at once.
struct Wire {
    front: UdpSocket,
    back: UdpSocket,
    client: Option<SocketAddr>,
    bytes: Vec<u8>,
}

impl Wire {
    fn new(at: SocketAddr, server: SocketAddr) -> Self {
        let [front, back] = [any(), at].map(|at| {
            let socket = UdpSocket::bind(at).expect("a wire");
            socket.set_nonblocking(true).expect("nonblocking");
            socket
        });
        back.connect(server).expect("connect");
        Self { front, back, client: None, bytes: vec![0; 65_536] }
    }

    /// Takes what the client has sent.
    fn take(&mut self, taken: &mut Vec<Vec<u8>>) {
        while let Ok((length, from)) = self.front.recv_from(&mut self.bytes) {
            self.client = Some(from);
            taken.push(self.bytes[..length].to_vec());
        }
    }

    /// Hands the client what the server has sent.
    fn hand_back(&mut self) {
        while let Ok(length) = self.back.recv(&mut self.bytes) {
            let _ = self.client.map(|client| self.front.send_to(&self.bytes[..length], client));
        }
    }
}

struct Client {
    wire: Wire,
    host: Host,
    connection: Connection,
    /// The server's end.
    there: Connection,
}

struct Server {
    host: Host,
    region: Region,
}

impl Server {
    fn start(bind: SocketAddr) -> Self {
        let mut config = steady(Mode::Inline);
        config.bind = bind;
        // On a busy machine a peer that is gone may have been silent for long.
        config.session.idle_timeout = Span::from_secs(600);
        let host = host(config);
        let region = host.register(vec![0; 1 << 20], Access::ReadWrite).expect("memory");
        Self { host, region }
    }

    fn address(&self) -> SocketAddr {
        self.host.local_addr()
    }

    /// How often a peer has got the socket.
    fn given(&self) -> u64 {
        given(&self.host)
    }

    /// Drives everything until a future is done; the server looks in vain just before datagrams come to it.
    fn until<T>(&self, wire: &mut Wire, host: &Host, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        let mut context = Context::from_waker(Waker::noop());
        let mut taken = Vec::new();
        for _ in 0..TOO_MANY {
            if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
                return value;
            }
            host.drive();
            wire.take(&mut taken);
            for _ in 0..20 {
                self.host.drive();
            }
            for bytes in taken.drain(..) {
                let _ = wire.back.send(&bytes);
                self.host.drive();
            }
            wire.hand_back();
        }
        panic!("no progress");
    }

    /// A client whose datagrams come from `at`.
    fn connect(&self, at: SocketAddr) -> Client {
        let mut wire = Wire::new(at, self.address());
        let host = host(steady(Mode::Inline));
        let address = wire.front.local_addr().expect("bound");
        let connection = self.until(&mut wire, &host, host.connect_async(address, 1, None));
        let there = self.until(&mut wire, &host, self.host.accept_async()).expect("a client");
        Client { wire, host, connection: connection.expect("a server"), there }
    }

    /// A small write, and its acknowledgement.
    fn write(&self, client: &mut Client, n: u64) {
        let bytes = pattern(n, 64);
        let op =
            submit(&client.connection, Request::write(self.region.key(), n % 1000, bytes.clone()));
        self.until(&mut client.wire, &client.host, op).expect("written");
        let at = (n % 1000) as usize;
        assert!(self.region.read(|stored| stored[at..at + 64] == bytes));
    }

    /// Small writes one by one until the client has got the socket.
    fn write_until_given(&self, client: &mut Client) {
        let before = self.given();
        for n in 0..1_000_000 {
            self.write(client, n);
            if self.given() > before {
                return;
            }
        }
        panic!("the only client that sends does not get the socket");
    }
}

fn given(host: &Host) -> u64 {
    host.stats().map(|stats| stats.busiest_peers.load(Ordering::Relaxed)).sum()
}

fn submit(connection: &Connection, request: Request) -> Op {
    connection.submit(request).expect("room")
}

#[test]
fn its_socket_carries_all_kinds_of_ops_and_is_given_up_where_many_datagrams_come_at_once() {
    let v4: SocketAddr = (Ipv4Addr::LOCALHOST, 0).into();
    let v6: SocketAddr = (Ipv6Addr::LOCALHOST, 0).into();
    for (bind, at) in [
        (v4, v4),
        ((Ipv4Addr::UNSPECIFIED, 0).into(), v4),
        (v6, v6),
        ((Ipv6Addr::UNSPECIFIED, 0).into(), v6),
    ] {
        let server = Server::start(bind);
        let to = SocketAddr::new(at.ip(), server.address().port());
        let mut config = steady(Mode::Inline);
        config.bind = at;
        let client = host(config);
        let mut idle = Wire::new(at, to);
        let connection = server.until(&mut idle, &client, client.connect_async(to, 1, None));
        let connection = connection.expect("a server");
        let there = server.until(&mut idle, &client, server.host.accept_async()).expect("a client");
        for round in 1..=3 {
            // One by one, until both ends have it.
            let (mut small, before) = (0, [given(&client), server.given()]);
            while given(&client) == before[0] || server.given() == before[1] {
                let request = Request::write(server.region.key(), small % 1000, vec![1; 64]);
                server.until(&mut idle, &client, submit(&connection, request)).expect("written");
                small += 1;
                assert!(small < 1_000_000, "round {round}: nobody has it");
            }
            assert!(round > 1 || small >= 64, "64 datagrams come first, not {small}");
            let bytes = pattern(round, 100_000);
            let write = Request::write(server.region.key(), 0, bytes.clone());
            server.until(&mut idle, &client, submit(&connection, write)).expect("written");
            assert!(server.region.read(|stored| stored[..bytes.len()] == bytes));
            let read = Request::read(server.region.key(), 0, bytes.len());
            let read = server.until(&mut idle, &client, submit(&connection, read)).expect("read");
            assert!(read.bytes == bytes);
            let message = submit(&there, Request::message(pattern(round, 10)));
            server.until(&mut idle, &client, message).expect("delivered");
            let message = connection.try_receive().expect("open").expect("a message");
            assert_eq!(message.bytes, pattern(round, 10));
        }
    }
}

#[test]
fn of_two_peers_that_send_by_turns_none_gets_it() {
    let server = Server::start(any());
    let mut clients = [(); 2].map(|()| server.connect(any()));
    for n in 0..2000 {
        for client in &mut clients {
            server.write(client, n);
        }
    }
    assert_eq!(server.given(), 0);
    // The other is heard while one has it, and gets it when it sends more.
    for n in 0..4 {
        let [one, other] = &mut clients;
        let (one, other) = if n % 2 == 0 { (one, other) } else { (other, one) };
        server.write_until_given(one);
        for n in 0..10 {
            server.write(other, n);
            server.write(one, n);
        }
    }
}

/// Its host does not say good-bye: its socket is gone, and the kernel says so to whoever sends there (ICMP).
#[test]
fn when_it_is_gone_nothing_else_ends_and_it_may_come_back_to_the_same_port() {
    let server = Server::start(any());
    let mut first = server.connect(any());
    let mut second = server.connect(any());
    server.write_until_given(&mut first);
    let Client { wire, host, connection, there: gone } = first;
    let at = wire.back.local_addr().expect("bound");
    drop(wire);
    let lost = submit(&gone, Request::message(pattern(1, 64)));

    // The other one is heard at once, and gets the socket in time; what goes to the first is refused meanwhile.
    server.write_until_given(&mut second);
    assert_eq!(gone.ended(), None, "an answer of ICMP proves nothing");
    let failures = server.host.stats().map(|stats| stats.send_failures.load(Ordering::Relaxed));
    assert_eq!(failures.sum::<u64>(), 0);

    // The same address, another process.
    drop((host, connection));
    let mut again = server.connect(at);
    assert_eq!(again.there.peer(), at);
    let end = server.until(&mut again.wire, &again.host, lost);
    assert!(matches!(end, Err(OpError::Unknown(_))), "{end:?}");
    assert!(matches!(gone.ended(), Some(End::PeerRestarted | End::Replaced)), "{:?}", gone.ended());
    server.write_until_given(&mut again);
    for n in 0..100 {
        server.write(&mut again, n);
        server.write(&mut second, n);
    }
}
