//! Application code that panics or stops its host in an engine's thread, and ops that no packet can express. Every wait ends,
//! with the true reason.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use crate::support::{PATIENCE, SHARED, config, drive, host, pattern};
use apus_udp::{
    Access, Bytes, Cause, Config, ConnectError, Connection, End, Host, Memory, Mode, OpError,
    Refusal, RegionKey, Request, SubmitError, async_channel,
};

const MODES: [Mode; 3] = [Mode::Shared, Mode::Spinning, Mode::Inline];

/// Returns the output of a future, and drives the hosts meanwhile.
fn finish<T>(hosts: &[&Host], what: &str, future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    let mut value = None;
    drive(hosts, what, || match future.as_mut().poll(&mut context) {
        Poll::Ready(ready) => {
            value = Some(ready);
            true
        }
        Poll::Pending => false,
    });
    value.expect("it is done")
}

/// Returns a host of this mode, its peer, which has threads, and both ends of the connection.
fn pair(mode: Mode) -> ([Host; 2], [Connection; 2]) {
    let hosts = [host(config(mode)), host(config(SHARED))];
    let [here, peer] = &hosts;
    let connecting = here.connect_async(peer.local_addr(), &[0; 2], None);
    let connection = finish(&[here], "a connection", connecting).expect("a peer");
    let there = peer.accept().expect("a connection");
    (hosts, [connection, there])
}

/// Memory that panics when it is accessed after it was armed.
struct Trap {
    bytes: Vec<u8>,
    armed: Arc<AtomicBool>,
}

impl Trap {
    fn check(&self) {
        assert!(!self.armed.load(Ordering::Relaxed), "a trap, as the test wants it");
    }
}

impl Memory for Trap {
    fn bytes(&self) -> &[u8] {
        self.check();
        &self.bytes
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self.check();
        &mut self.bytes
    }
}

#[test]
fn memory_that_panics_ends_ops_as_unknown_connections_by_name_and_all_waits() {
    for mode in MODES {
        let ([here, peer], [connection, there]) = pair(mode);
        let armed = Arc::new(AtomicBool::new(false));
        let mine = host_region(&here, &armed);
        let region = peer.register(vec![0; 1 << 20], Access::ALL).expect("memory");
        let ours = here.register(vec![0; 64], Access::ALL).expect("memory");

        // Waits of all kinds, in separate threads.
        let here = Arc::new(here);
        let waits = [
            spawn({
                let connection = connection.clone();
                move || assert_eq!(connection.receive().err(), Some(End::EngineFailed))
            }),
            spawn({
                let here = Arc::clone(&here);
                move || assert_eq!(here.accept().err(), Some(ConnectError::EngineFailed))
            }),
        ];
        let (queue, ends) = async_channel::bounded(100);
        let ops: Vec<_> = (0..70)
            .map(|i| {
                let bytes = pattern(i, 10_000);
                let write = Request::write(region.key(), i * 10_000, bytes)
                    .deadline(Duration::from_secs(3600));
                connection.submit_to((i % 2) as usize, write).expect("room")
            })
            .collect();
        for user in 0..20 {
            let read = Request::read(region.key(), 0, 50_000);
            connection.submit_queued(1, read, &queue, user).expect("room");
        }
        armed.store(true, Ordering::Relaxed);
        let writing = there.submit(Request::write(mine, 0, vec![1; 100])).expect("room");

        drive(&[&here], "its end", || connection.ended().is_some());
        assert_eq!(connection.ended(), Some(End::EngineFailed), "{mode:?}");
        let failed = OpError::Unknown(Cause::Ended(End::EngineFailed));
        for op in ops {
            match op.wait() {
                Ok(_) => {}
                Err(error) => assert_eq!(error, failed, "{mode:?}"),
            }
        }
        for _ in 0..20 {
            let end = finish(&[&here], "an end on the queue", ends.recv()).expect("one per op");
            assert!(end.result.is_ok() || end.result.err() == Some(failed), "{mode:?}");
        }
        waits.into_iter().for_each(|wait| wait.join().expect("a wait that ends as it should"));

        // Later calls end as well.
        let late = connection.submit(Request::message(vec![1]));
        assert_eq!(late.err(), Some(SubmitError::Ended(End::EngineFailed)));
        assert_eq!(connection.flow_state(0).err(), Some(End::EngineFailed));
        assert_eq!(connection.receive().err(), Some(End::EngineFailed));
        connection.close();
        let again = here.connect(peer.local_addr());
        assert_eq!(again.err(), Some(ConnectError::EngineFailed));
        ours.withdraw();
        assert!(ours.is_free(), "no engine uses it any more");
        // The peer is told, and its own write ends as unknown.
        drive(&[], "the peer hears of it", || there.ended() == Some(End::ClosedByPeer));
        let end = writing.wait().err();
        assert_eq!(end, Some(OpError::Unknown(Cause::Ended(End::ClosedByPeer))));
    }
}

/// Registers a trap that peers may write.
fn host_region(host: &Host, armed: &Arc<AtomicBool>) -> RegionKey {
    let trap = Trap { bytes: vec![0; 100], armed: Arc::clone(armed) };
    let region = host.register(trap, Access::WRITE).expect("memory");
    let key = region.key();
    std::mem::forget(region); // dropping it would withdraw it
    key
}

fn spawn(wait: impl FnOnce() + Send + 'static) -> thread::JoinHandle<()> {
    thread::spawn(wait)
}

/// Memory that panics when it is written to. Only an engine writes to it, when data arrive.
struct Unwritable([u8; 8]);

impl Memory for Unwritable {
    fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        panic!("memory that cannot be written, as the test wants it");
    }
}

#[test]
fn no_op_claims_not_to_have_been_sent_whose_bytes_are_at_the_peer() {
    for mode in MODES {
        let ([here, peer], [connection, _there]) = pair(mode);
        let region = peer.register(vec![0; 1 << 20], Access::ALL).expect("memory");
        let ops: Vec<_> = (0..70u64)
            .map(|i| {
                let write = Request::write(region.key(), i * 4096, vec![i as u8 + 1; 4096]);
                connection.submit_to((i % 2) as usize, write).expect("room")
            })
            .collect();
        let read = Request::read_into(region.key(), 0, Box::new(Unwritable([0; 8])));
        let trapped = connection.submit(read).expect("room");
        drive(&[&here], "its end", || connection.ended().is_some());
        let failed = Some(OpError::Unknown(Cause::Ended(End::EngineFailed)));
        assert_eq!(trapped.wait().err(), failed);
        for (i, op) in ops.into_iter().enumerate() {
            let end = op.wait();
            let there = region.read(|bytes| bytes[i * 4096..][..4096].iter().any(|&b| b > 0));
            let false_claim = there && matches!(end, Err(OpError::NotSent(_)));
            assert!(!false_claim, "{mode:?}: op {i} has bytes at the peer");
        }
    }
}

/// A waker that panics instead of waking a thread.
#[derive(Default)]
struct Panics(AtomicU32);

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
        panic!("a waker that panics, as the test wants it");
    }
}

/// A buffer whose destructor panics.
struct DropsBadly(Vec<u8>);

impl AsRef<[u8]> for DropsBadly {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for DropsBadly {
    fn drop(&mut self) {
        panic!("a destructor that panics, as the test wants it");
    }
}

#[test]
fn wakers_and_destructors_that_panic_leave_the_engine_and_other_waits_as_they_were() {
    for mode in [Mode::Shared, Mode::Spinning] {
        let ([here, peer], [connection, there]) = pair(mode);
        let region = peer.register(vec![0; 4096], Access::ALL).expect("memory");
        let panics = Arc::new(Panics::default());
        let waker = Waker::from(Arc::clone(&panics));
        let mut context = Context::from_waker(&waker);
        let wakes = || panics.0.load(Ordering::Relaxed);

        // Panic of a message's waker: the other wait for messages still gets the next one.
        let mut receiving = pin!(connection.receive_async());
        assert!(receiving.as_mut().poll(&mut context).is_pending());
        let mut accepting = pin!(here.accept_async());
        assert!(accepting.as_mut().poll(&mut context).is_pending());
        there.submit(Request::message(vec![1])).expect("room").wait().expect("delivered");
        drive(&[], "a waker is called", || wakes() >= 1);
        let message = finish(&[], "the message", receiving).expect("it is there");
        assert_eq!(message.bytes[..], [1]);

        // Panic of an op's waker, and of the waker of a queue that the application made itself.
        let (queue, ends) = async_channel::bounded(4);
        let before = wakes();
        // Forgotten afterwards: the channel belongs to the application, and its count of waits is no longer correct.
        let mut waits_for_queue = Box::pin(ends.recv());
        assert!(waits_for_queue.as_mut().poll(&mut context).is_pending());
        let read = Request::read(region.key(), 0, 4096);
        connection.submit_queued(0, read, &queue, 7).expect("room");
        drive(&[], "the queue's waker is called", || wakes() > before);
        assert_eq!(ends.try_recv().expect("an end").user, 7);
        std::mem::forget(waits_for_queue);

        // Panic of memory that the engine gives back.
        let bytes = Bytes::from_owner(DropsBadly(vec![9; 100]));
        let write = Request::write(region.key(), 0, bytes);
        connection.submit(write).expect("room").wait().expect("done all the same");
        assert!(region.read(|bytes| bytes[..100] == [9; 100]));

        assert_eq!(connection.ended(), None);
        let last = connection.submit(Request::message(vec![3])).expect("room");
        last.wait().expect("the engine goes on");
        connection.close();
        assert_eq!(connection.ended(), Some(End::ClosedHere));
    }
}

#[test]
fn an_address_beyond_2_to_the_64_is_refused_at_once_and_the_flow_goes_on() {
    for mode in MODES {
        let ([here, peer], [connection, _there]) = pair(mode);
        let region = peer.register(vec![5; 4096], Access::ALL).expect("memory");
        for address in [u64::MAX, u64::MAX - 9, u64::MAX - 10] {
            let requests = [
                Request::write(region.key(), address, vec![0; 10]),
                Request::read(region.key(), address, 10),
            ];
            for request in requests {
                let taken = connection.submit(request);
                if address.checked_add(10).is_none() {
                    let refused = SubmitError::AddressOverflow { address, length: 10 };
                    assert_eq!(taken.err(), Some(refused));
                    assert!(refused.to_string().contains("below"), "it says what would be right");
                } else {
                    // A packet can express this address, so the refusal comes from the end of the region.
                    let end = finish(&[&here], "a refusal", taken.expect("it can be said"));
                    assert_eq!(end.err(), Some(OpError::Refused(Refusal::OutOfBounds)));
                }
            }
        }
        let read = connection.submit(Request::read(region.key(), 0, 10)).expect("room");
        assert_eq!(finish(&[&here], "a read", read).expect("done").bytes, [5; 10]);
        finish(&[&here], "its end", connection.close_async());
        assert_eq!(connection.ended(), Some(End::ClosedHere));
    }
}

/// Memory whose length changes, in breach of its contract.
struct Changes {
    bytes: Vec<u8>,
    length: Arc<AtomicU32>,
}

impl Memory for Changes {
    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length.load(Ordering::Relaxed) as usize]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.length.load(Ordering::Relaxed) as usize]
    }
}

#[test]
fn memory_that_shrinks_ends_the_reads_of_it_by_name_and_nothing_counts_as_lost() {
    let ([here, peer], [connection, there]) = pair(SHARED);
    let length = Arc::new(AtomicU32::new(100_000));
    let memory = Changes { bytes: vec![4; 100_000], length: Arc::clone(&length) };
    let region = peer.register(memory, Access::READ).expect("memory");
    length.store(1000, Ordering::Relaxed);
    for _ in 0..3 {
        let read = connection.submit(Request::read(region.key(), 50_000, 10_000)).expect("room");
        assert_eq!(read.wait().err(), Some(OpError::Refused(Refusal::OutOfBounds)));
    }
    let read = connection.submit(Request::read(region.key(), 0, 1000)).expect("room");
    assert_eq!(read.wait().expect("what is there").bytes, [4; 1000]);
    // The refusals are confirmed, and the flow that answered has lost nothing.
    let (_, counters) = there.flow_state(0).expect("open");
    assert_eq!((counters.fast_losses, counters.timeout_losses, counters.timeouts), (0, 0, 0));

    // The destination memory of a read grows so much that a packet cannot express its last address any more.
    let length = Arc::new(AtomicU32::new(10));
    let target = Changes { bytes: vec![0; 100], length: Arc::clone(&length) };
    let inline = host(config(Mode::Inline));
    let connecting = inline.connect_async(peer.local_addr(), &[0], None);
    let second = finish(&[&inline], "a connection", connecting).expect("a peer");
    let read = Request::read_into(region.key(), u64::MAX - 50, Box::new(target));
    let op = second.submit(read).expect("it can be said so far");
    length.store(100, Ordering::Relaxed);
    let end = finish(&[&inline], "its end", op);
    assert_eq!(end.err(), Some(OpError::NotSent(Cause::Unsendable)));
    finish(&[&inline], "the close", second.close_async());
    connection.close();
    drop(here);
}

#[test]
fn failed_engine_of_three_leaves_connections_of_the_others_open() {
    let server = host(Config { engines: 3, ..config(Mode::Shared) });
    let armed = Arc::new(AtomicBool::new(false));
    let trap = host_region(&server, &armed);
    let connections = || server.stats().map(|stats| stats.connections.load(Ordering::Relaxed));
    // The kernel distributes the clients over the engines.
    let mut clients = Vec::new();
    while clients.len() < 12 || connections().any(|count| count == 0) {
        let client = host(config(Mode::Shared));
        let here = client.connect(server.local_addr()).expect("connect");
        let there = server.accept().expect("a client");
        clients.push((client, here, there));
    }
    armed.store(true, Ordering::Relaxed);
    let write = clients[0].1.submit(Request::write(trap, 0, vec![1; 100])).expect("room");
    drive(&[], "the engine has failed", || connections().any(|count| count == 0));
    assert!(write.wait().is_err());
    let (failed, open): (Vec<_>, Vec<_>) =
        clients.iter().partition(|(_, _, there)| there.ended().is_some());
    assert!(failed.iter().all(|(_, _, there)| there.ended() == Some(End::EngineFailed)));
    assert_eq!(open.len() as u64, connections().sum::<u64>());
    for (_, here, there) in &open {
        here.submit(Request::message(vec![1])).expect("room").wait().expect("delivered");
        assert_eq!(there.receive().expect("a message").bytes[..], [1]);
    }
}

/// Memory that stops its host some time after it was written to.
struct Stops {
    bytes: Vec<u8>,
    host: Arc<OnceLock<Arc<Host>>>,
    written: mpsc::Sender<()>,
}

impl Memory for Stops {
    fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self.written.send(()).expect("the test waits for it");
        // Time for the test's own call, which waits for this engine.
        thread::sleep(Duration::from_millis(200));
        self.host.get().expect("it is set").stop();
        &mut self.bytes
    }
}

#[test]
fn host_stopped_by_application_code_in_its_engine_and_by_another_thread_stops() {
    let (here, peer) = (Arc::new(host(config(SHARED))), host(config(SHARED)));
    let (tell, written) = mpsc::channel();
    let slot = Arc::new(OnceLock::new());
    let memory = Stops { bytes: vec![0; 100], host: Arc::clone(&slot), written: tell };
    let region = here.register(memory, Access::WRITE).expect("memory");
    assert!(slot.set(Arc::clone(&here)).is_ok());
    let connection = peer.connect(here.local_addr()).expect("connect");
    let _there = here.accept().expect("a peer");
    let _write = connection.submit(Request::write(region.key(), 0, vec![1; 100])).expect("room");
    written.recv_timeout(PATIENCE).expect("the write arrives");
    let (tell, stopped) = mpsc::channel();
    let stopping = Arc::clone(&here);
    thread::spawn(move || {
        stopping.stop();
        tell.send(())
    });
    stopped.recv_timeout(PATIENCE).expect("both calls return");
    assert_eq!(here.accept().err(), Some(ConnectError::Stopped));
}
