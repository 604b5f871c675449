//! Threads that hold the memory of a region, and grants: effects of one host's regions on another host.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use apus_udp::{
    Access, Cause, ConnectError, Connection, End, Grant, Host, Memory, Mode, OpError, Request,
};

use crate::support::{SHARED, config, host};

const MODES: [Mode; 3] = [SHARED, Mode::Spinning, Mode::Inline];

/// Returns a host in this mode, a host with a thread, and both ends of a connection that the first host opened.
fn connected(mode: Mode) -> ([Host; 2], [Connection; 2]) {
    let [here, there] = [mode, SHARED].map(|mode| host(config(mode)));
    let ours = here.connect(there.local_addr()).expect("a server");
    let theirs = there.accept().expect("a client");
    ([here, there], [ours, theirs])
}

#[test]
fn waits_are_refused_in_a_thread_that_holds_memory_of_the_host_and_not_otherwise() {
    for mode in MODES {
        let ([here, there], [ours, theirs]) = connected(mode);
        let region = here.register(vec![0; 8], Access::ALL).expect("room");
        let op = ours.submit(Request::message(vec![1])).expect("room");
        let write = Request::write(region.key(), 0, vec![1; 8]);
        let write = theirs.submit(write).expect("room");
        let refused = || {
            assert_eq!(ours.receive().err(), Some(End::WouldDeadlock), "{mode:?}");
            assert_eq!(ours.flow_state(0).err(), Some(End::WouldDeadlock));
            assert_eq!(ours.paths().err(), Some(End::WouldDeadlock));
            assert_eq!(here.accept().err(), Some(ConnectError::WouldDeadlock));
            let connect = here.connect(there.local_addr());
            assert_eq!(connect.err(), Some(ConnectError::WouldDeadlock));
            let connect = here.connect_to(there.local_addr(), "nobody", &[0]);
            assert_eq!(connect.err(), Some(ConnectError::WouldDeadlock));
            assert!(here.would_deadlock() && !there.would_deadlock());
            assert_eq!(here.block_on(async { 1 }, None), None);
            assert_eq!(ours.block_on(async { 1 }, None), None);
            assert!(!here.drain(Duration::from_secs(3600)));
        };
        region.write(|_| {
            refused();
            let unknown = OpError::Unknown(Cause::Ended(End::WouldDeadlock));
            assert_eq!(op.wait().err(), Some(unknown));
            // Waiting for another host is possible.
            theirs.flow_state(0).expect("open");
        });
        region.read(|_| refused());
        let guard = region.lock(None);
        refused();
        drop(guard);
        // Refused calls had no effect: the connection is open, and the host accepts connections.
        while write.try_take().is_none() {
            here.drive();
            there.block_on(std::future::pending::<()>(), Some(Duration::from_millis(1)));
        }
        ours.submit(Request::message(vec![2])).expect("open").wait().expect("delivered");
        assert_eq!(here.block_on(async { 1 }, None), Some(1));
    }
}

#[test]
fn a_future_that_keeps_memory_while_it_waits_ends_the_wait() {
    for mode in MODES {
        let ([here, there], [ours, _theirs]) = connected(mode);
        let region = here.register(vec![0; 8], Access::ALL).expect("room");
        let waits = async {
            let _guard = region.lock(None);
            std::future::pending::<()>().await;
        };
        assert_eq!(here.block_on(waits, None), None, "{mode:?}");
        let waits = async {
            let _guard = region.lock(None);
            std::future::pending::<()>().await;
        };
        assert_eq!(
            ours.block_on(waits, Instant::now().checked_add(Duration::from_secs(3600))),
            None
        );
        // Holding the memory of another host blocks nothing here.
        let other = there.register(vec![0; 8], Access::ALL).expect("room");
        let once = async {
            let _guard = other.lock(None);
            ours.flow_state_async(0).await.is_ok()
        };
        assert_eq!(here.block_on(once, None), Some(true));
    }
}

/// Memory that records when it is dropped.
struct Flagged(Vec<u8>, Arc<AtomicBool>);

impl Memory for Flagged {
    fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

impl Drop for Flagged {
    fn drop(&mut self) {
        self.1.store(true, Ordering::SeqCst);
    }
}

#[test]
fn a_host_that_is_dropped_gives_memory_back_though_memory_of_another_host_is_held() {
    for mode in MODES {
        let ([here, there], [ours, _theirs]) = connected(mode);
        let other = host(config(SHARED));
        let region = other.register(vec![0; 8], Access::ALL).expect("room");
        // No host answers, so the read stays outstanding.
        let peers = there.register(vec![0; 1 << 20], Access::ALL).expect("room");
        let dropped = Arc::new(AtomicBool::new(false));
        let target = Box::new(Flagged(vec![0; 1 << 20], Arc::clone(&dropped)));
        let _guard = peers.lock(None);
        let op = ours.submit(Request::read_into(peers.key(), 0, target)).expect("room");
        let _also = region.lock(None);
        drop((op, ours));
        drop(here);
        assert!(dropped.load(Ordering::SeqCst), "{mode:?}: the engine has ended");
    }
}

#[test]
fn a_grant_of_a_connection_is_for_regions_of_its_own_host() {
    let [first, second, client] = [(); 3].map(|()| host(config(SHARED)));
    let connect = |server: &Host| {
        let ours = client.connect(server.local_addr()).expect("a server");
        (ours, server.accept().expect("a client"))
    };
    let ((ours, theirs), (_beside, others)) = (connect(&first), connect(&second));
    // Both are the first connection of their host.
    let wrong = first.register_for(vec![0; 8], Access::ALL, Grant::connection(&others));
    assert_eq!(wrong.err().map(|error| error.kind()), Some(io::ErrorKind::InvalidInput));
    let region = first.register_for(vec![7; 8], Access::ALL, Grant::connection(&theirs));
    let region = region.expect("room");
    assert!(!region.set_grant(Grant::connection(&others)));
    let read = ours.submit(Request::read(region.key(), 0, 8)).expect("room").wait();
    assert_eq!(read.expect("it may").bytes, [7; 8], "the grant is as before");
    assert!(region.set_grant(Grant::connection(&theirs)));
}
