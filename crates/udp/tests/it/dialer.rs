//! Peers by name: each attempt resolves the name again.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use apus_udp::{Access, DialError, Dialer, End, Request, Resolve, SystemResolver};

use crate::support::{PATIENCE, SHARED, config, host, until};

/// A resolver of the name `service`, whose addresses change.
#[derive(Clone, Default)]
struct Service {
    addresses: Arc<Mutex<Vec<SocketAddr>>>,
    asked: Arc<AtomicU32>,
}

impl Service {
    fn is_at(&self, addresses: &[SocketAddr]) {
        *self.addresses.lock().expect("addresses") = addresses.to_vec();
    }

    fn asked(&self) -> u32 {
        self.asked.load(Ordering::Relaxed)
    }
}

impl Resolve for Service {
    fn resolve(&self, name: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        assert_eq!(port, 48_700);
        self.asked.fetch_add(1, Ordering::Relaxed);
        if name != "service" {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(self.addresses.lock().expect("addresses").clone())
    }
}

#[test]
fn a_name_is_resolved_again_after_the_connection_has_ended_and_when_the_peer_drains() {
    let service = Service::default();
    let client = Arc::new(host(config(SHARED)));
    let dialer = Dialer::new(Arc::clone(&client), "service", 48_700).resolver(service.clone());
    assert!(matches!(dialer.connection(), Err(DialError::NoAddress(name)) if name == "service"));
    let [first, second, third] = [(); 3].map(|()| host(config(SHARED)));
    // A host at an IPv4 address cannot reach the first of these addresses, and tries the next.
    service.is_at(&["[::1]:48700".parse().expect("an address"), first.local_addr()]);
    let connection = dialer.connection().expect("connected");
    assert_eq!(connection.peer(), first.local_addr());
    assert_eq!(dialer.connection().expect("still").peer(), first.local_addr());
    assert_eq!(service.asked(), 2, "not resolved again while the connection is open");

    service.is_at(&[second.local_addr()]);
    drop(first);
    until("the end is known", || connection.ended() == Some(End::ClosedByPeer));
    let connection = dialer.connection().expect("connected anew");
    assert_eq!((connection.peer(), service.asked()), (second.local_addr(), 3));

    service.is_at(&[third.local_addr()]);
    // The second server keeps the connection until its application has received this message.
    connection.submit(Request::message(vec![1])).expect("room").wait().expect("delivered");
    let there = second.accept().expect("the client");
    std::thread::scope(|scope| {
        let drained = scope.spawn(|| second.drain(PATIENCE));
        until("the client is told", || connection.is_peer_draining());
        assert_eq!(dialer.connection().expect("another").peer(), third.local_addr());
        there.receive().expect("the message");
        assert!(drained.join().expect("no panic"));
    });

    let lost = Dialer::new(client, "elsewhere", 48_700).resolver(service);
    assert!(
        matches!(lost.connection(), Err(DialError::Lookup { name, .. }) if name == "elsewhere")
    );
}

#[test]
fn the_systems_resolver_takes_addresses_and_localhost() {
    let at = |name: &str| SystemResolver.resolve(name, 7).map_err(|error| error.to_string());
    assert_eq!(at("127.0.0.2"), Ok(vec!["127.0.0.2:7".parse().expect("an address")]));
    assert_eq!(at("::1"), Ok(vec!["[::1]:7".parse().expect("an address")]));
    assert!(at("localhost").expect("a host file").iter().all(|address| address.ip().is_loopback()));
}

/// A resolver that reports each request, and answers when it is allowed to.
struct Slow {
    asked: mpsc::Sender<()>,
    answers: Mutex<mpsc::Receiver<()>>,
}

impl Resolve for Slow {
    fn resolve(&self, _: &str, _: u16) -> io::Result<Vec<SocketAddr>> {
        self.asked.send(()).expect("the test");
        self.answers.lock().expect("answers").recv().expect("an answer");
        Ok(Vec::new())
    }
}

#[test]
fn a_thread_that_would_deadlock_does_not_wait_for_another_that_connects() {
    let client = Arc::new(host(config(SHARED)));
    let (asked, is_asked) = mpsc::channel();
    let (answer, answers) = mpsc::channel();
    let slow = Slow { asked, answers: Mutex::new(answers) };
    let dialer = Dialer::new(Arc::clone(&client), "service", 48_700).resolver(slow);
    let region = client.register(vec![0; 8], Access::ALL).expect("room");
    std::thread::scope(|scope| {
        let other = scope.spawn(|| dialer.connection());
        is_asked.recv().expect("the other thread connects");
        region.write(|_| assert!(matches!(dialer.connection(), Err(DialError::WouldDeadlock))));
        answer.send(()).expect("the resolver");
        assert!(matches!(other.join().expect("no panic"), Err(DialError::NoAddress(_))));
        // No thread is connecting now, and this thread must not connect.
        drop(answer);
        region.write(|_| assert!(matches!(dialer.connection(), Err(DialError::WouldDeadlock))));
    });
    is_asked.try_recv().expect_err("the name was looked up once");
}
