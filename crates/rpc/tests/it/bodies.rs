//! Bodies in both directions.

use std::future::Future;
use std::io::Write as _;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Wake, Waker};
use std::thread::ThreadId;

use apus_rpc::envelope::{CallId, Header, Progress, VERSION, decode, encode};
use apus_rpc::{BodyError, Bytes, CallError, Client, Executed, Methods, Reply, Server};
use apus_udp::{Access, Cause, Connection, OpError, Refusal, RegionKey, Request};

use crate::pair::{Door, pair, settings};
use crate::support::{Faults, PATIENCE, Relay, host, pattern, until};

const LONG: usize = 9_000_001;

/// Returns methods that receive a body, return a body in memory, and return a body that is produced while it is sent.
fn methods() -> Methods {
    Methods::new()
        .with("sum", |call| {
            let mut body = call.body().ok_or(apus_rpc::Failure::new(1, "no body"))?;
            let (mut sum, mut length) = (0u64, 0u64);
            while let Some(chunk) = body.next_chunk()? {
                sum += chunk.iter().map(|&byte| u64::from(byte)).sum::<u64>();
                length += chunk.len() as u64;
            }
            Ok([length.to_be_bytes(), sum.to_be_bytes()].concat())
        })
        .with("memory", |call| {
            let length = u32::from_be_bytes(call.payload()[..].try_into()?) as usize;
            Ok(Reply::with_body("head", pattern(length as u64, length)))
        })
        .with("stream", |call| {
            let length = u32::from_be_bytes(call.payload()[..].try_into()?) as usize;
            let mut body = call.stream("head", None)?;
            for piece in pattern(length as u64, length).chunks(70_001) {
                body.write_all(piece)?;
            }
            body.finish()?;
            Ok(Reply::streamed())
        })
        .with("copy", |call| {
            let mut from = call.body().ok_or(apus_rpc::Failure::new(1, "no body"))?;
            let mut to = call.stream("", from.length())?;
            while let Some(chunk) = from.next_chunk()? {
                to.write(&chunk)?;
            }
            to.finish()?;
            Ok(Reply::streamed())
        })
}

fn sum(bytes: &[u8]) -> Vec<u8> {
    let sum = bytes.iter().map(|&byte| u64::from(byte)).sum::<u64>();
    [(bytes.len() as u64).to_be_bytes(), sum.to_be_bytes()].concat()
}

fn check(client: &Client, lengths: &[usize]) {
    let method = |name| client.method(name).expect("the method");
    for &length in lengths {
        let bytes = pattern(length as u64, length);
        let answer = client.call(method("sum"), b"").body(bytes.clone()).wait();
        assert_eq!(answer.expect("a sum")[..], sum(&bytes), "{length} B in memory");

        let mut call = client.call(method("sum"), b"").stream(None).start().expect("room");
        let mut body = call.body().expect("its body");
        bytes.chunks(50_001).for_each(|piece| body.write(piece).expect("a reader"));
        body.finish().expect("a reader");
        assert_eq!(call.wait().expect("a sum")[..], sum(&bytes), "{length} B as a stream");

        for (name, known) in [("memory", Some(length as u64)), ("stream", None)] {
            let payload = (length as u32).to_be_bytes();
            let mut answer = client.call(method(name), &payload).wait().expect("an answer");
            assert_eq!(answer[..], *b"head");
            let mut body = answer.body().expect("a body");
            assert_eq!(body.length(), known);
            assert!(body.read_all(length).expect("all") == bytes, "{length} B, {name}");
        }
    }
}

#[test]
fn bodies_of_any_length_arrive_in_both_directions() {
    check(&pair(methods()).client, &[0, 1, 262_144, 262_145, LONG]);
}

/// Both bodies are longer than the two rings, so neither side can send all bytes before it reads.
#[test]
fn body_and_answer_flow_at_the_same_time() {
    let pair = pair(methods());
    let copy = pair.client.method("copy").expect("the method");
    let bytes = pattern(1, LONG);
    let mut call = pair.client.call(copy, b"").stream(Some(LONG as u64)).start().expect("room");
    let mut body = call.body().expect("its body");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            bytes.chunks(100_000).for_each(|piece| body.write(piece).expect("a reader"));
            body.finish().expect("a reader");
        });
        let mut answer = call.wait().expect("an answer");
        let mut body = answer.body().expect("a body");
        assert_eq!(body.length(), Some(LONG as u64));
        assert!(body.read_all(LONG).expect("all") == bytes);
    });
}

#[test]
fn bodies_arrive_over_a_faulty_network() {
    let faults = Faults { loss: 10, duplication: 10, corruption: 10, reordering: 10 };
    let mut settings = settings();
    // A relay has no buffer for jumbo bursts.
    settings.max_mtu = 1500;
    let [server, client] = [(); 2].map(|()| Arc::new(host(settings.clone())));
    let relay = Relay::new(server.local_addr(), faults, 5);
    let _server = Server::start(&server, methods()).expect("a server");
    let client = Client::connect(&client, relay.address).expect("connected");
    check(&client, &[1, 300_000]);
}

#[test]
fn writer_waits_while_the_reader_is_a_ring_behind() {
    let door = Door::new();
    let at_door = Arc::clone(&door);
    let methods = Methods::new().with("slow", move |call| {
        at_door.pass();
        let mut body = call.body().ok_or(apus_rpc::Failure::new(1, "no body"))?;
        Ok(body.read_all(LONG)?.len().to_string())
    });
    let pair = pair(methods);
    let slow = pair.client.method("slow").expect("the method");
    let mut call = pair.client.call(slow, b"").stream(None).start().expect("room");
    let mut body = call.body().expect("its body");
    door.wait_for(1);
    let ring = 2 << 20;
    body.write(&vec![1; ring]).expect("room in the ring");
    let more = body.write_async(b"more");
    let timeout = std::time::Duration::from_millis(20);
    assert_eq!(pair.client_host.block_on(more, Some(timeout)), None, "the ring is full");
    door.open();
    body.write(b"rest").expect("the reader reads");
    body.finish().expect("a reader");
    assert_eq!(call.wait().expect("an answer")[..], *(ring + 4).to_string().as_bytes());
}

#[test]
fn reader_that_stops_ends_the_writer_and_the_other_way_round() {
    let methods = methods().with("stops", |call| {
        let mut body = call.body().ok_or(apus_rpc::Failure::new(1, "no body"))?;
        body.next_chunk()?;
        Ok("enough")
    });
    let pair = pair(methods);
    let method = |name| pair.client.method(name).expect("the method");
    // The handler reads a part of the body and answers.
    let mut call = pair.client.call(method("stops"), b"").stream(None).start().expect("room");
    let mut body = call.body().expect("its body");
    let error = (0..1000).find_map(|_| body.write(&[0; 100_000]).err()).expect("it has stopped");
    assert_eq!(error, BodyError::GivenUp);
    assert_eq!(*call.wait().expect("an answer"), *b"enough");
    // The caller gives up its body.
    let mut call = pair.client.call(method("sum"), b"").stream(None).start().expect("room");
    drop(call.body());
    let error = call.wait().expect_err("no body").to_string();
    assert!(error.contains("given up"), "{error}");
    // The caller reads a part of the answer's body.
    let payload = (LONG as u32).to_be_bytes();
    for name in ["memory", "stream"] {
        let mut answer = pair.client.call(method(name), &payload).wait().expect("an answer");
        let mut body = answer.body().expect("a body");
        assert!(body.next_chunk().expect("bytes").is_some());
        drop(body);
        // The caller reads no byte of the answer's body.
        drop(pair.client.call(method(name), &payload).wait().expect("an answer"));
    }
    let metrics = pair.server.metrics();
    until("no call is left", || {
        let _ = pair.server.metrics();
        metrics.current.load(Ordering::Relaxed) == 0
    });
}

#[test]
fn cancelled_call_ends_the_waits_for_its_body() {
    let pair = pair(methods());
    let method = pair.client.method("sum").expect("the method");
    let mut call = pair.client.call(method, b"").stream(None).start().expect("room");
    let mut body = call.body().expect("its body");
    body.write(b"first").expect("room");
    body.flush();
    let running = || pair.server.metrics().current.load(Ordering::Relaxed) == 1;
    until("the call has arrived", running);
    call.cancel();
    let error = call.wait().expect_err("cancelled");
    assert!(matches!(error, CallError::Cancelled(Executed::Ran | Executed::NotRun)), "{error}");
    assert_eq!(body.write(b"more"), Err(BodyError::Cancelled));
}

/// Another thread answers for the handler while the body is being read.
#[test]
fn reader_of_a_request_that_outlives_the_answer_is_told() {
    let (ends, ended) = mpsc::channel();
    let methods = Methods::new().with_answer("answers first", move |mut call| {
        let (ends, mut body) = (ends.clone(), call.body().expect("a body"));
        std::thread::spawn(move || {
            body.next_chunk().expect("bytes");
            call.answer(Ok(()));
            ends.send(body.next_chunk()).expect("the test waits");
        });
    });
    let pair = pair(methods);
    let method = pair.client.method("answers first").expect("the method");
    let mut call = pair.client.call(method, b"").stream(None).start().expect("room");
    let mut body = call.body().expect("its body");
    body.write(b"first").expect("room");
    body.flush();
    call.wait().expect("an answer");
    let end = ended.recv_timeout(PATIENCE).expect("the reader waits no longer");
    assert_eq!(end, Err(BodyError::GivenUp));
}

/// Memory of an answer's body.
struct Watched(Vec<u8>, Arc<AtomicBool>);

impl AsRef<[u8]> for Watched {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.1.store(true, Ordering::SeqCst);
    }
}

/// The client reports that it reads no further, and acknowledges none of the bytes that the server has sent.
#[test]
fn memory_of_a_body_is_free_although_the_client_acknowledges_nothing() {
    let freed = Arc::new(AtomicBool::new(false));
    let frees = Arc::clone(&freed);
    let methods = Methods::new().with("memory", move |_| {
        let memory = Watched(vec![7; 4000], Arc::clone(&frees));
        Ok(Reply::with_body("", Bytes::from_owner(memory)))
    });
    let [server_host, client_host] = [(); 2].map(|()| Arc::new(host(settings())));
    let relay = Relay::new(server_host.local_addr(), Faults::default(), 1);
    let _server = Server::start(&server_host, methods).expect("a server");
    let connection = client_host.connect(relay.address).expect("connected");
    let send = |header| connection.submit(Request::message(encode(&header, b""))).expect("room");
    let receive = || {
        let message = connection.receive().expect("a message").bytes;
        decode(&message).expect("a message of the protocol").0
    };
    send(Header::Hello { min: VERSION, max: VERSION });
    assert!(matches!(receive(), Header::Welcome { .. }));
    let id = CallId { slot: 0, turn: 0 };
    send(Header::Request { id, method: 0, remaining_us: None, place: None, grant: None });
    let Header::Response { grant: Some(grant), .. } = receive() else { panic!("a body") };
    // The relay drops the packets of the body, but forwards requests and acknowledgements.
    relay.drop_longer(250);
    let read = Request::read(RegionKey::new(grant.region), 0, 4000);
    let read = connection.submit(read).expect("room");
    send(Header::Consumed { id, position: 0, end: true });
    until("the memory is free", || freed.load(Ordering::SeqCst));
    // The read is refused if its request arrived last, because its first datagram was lost.
    let end = read.wait().map(drop);
    let withdrawn = Err(OpError::Unknown(Cause::Withdrawn));
    assert!(end == withdrawn || matches!(end, Err(OpError::Refused(_))), "{end:?}");
}

/// The other client holds the same shared key, and has read the region's key on the wire. Bodies are in memory, or produced
/// while they are sent; their bytes differ.
#[test]
fn a_body_is_of_no_use_to_another_connection() {
    const LENGTH: usize = 1000;
    for is_made in [false, true] {
        let methods = Methods::new().with("body", move |call| {
            let bytes = pattern(is_made.into(), LENGTH);
            if !is_made {
                return Ok(Reply::with_body("", bytes));
            }
            let mut body = call.stream("", None)?;
            body.write_all(&bytes)?;
            body.finish()?;
            Ok(Reply::streamed())
        });
        let [server_host, one, two] = [(); 3].map(|()| Arc::new(host(settings())));
        let _server = Server::start(&server_host, methods).expect("a server");
        let [reader, other] =
            [&one, &two].map(|host| host.connect(server_host.local_addr()).expect("connected"));
        let send = |header| reader.submit(Request::message(encode(&header, b""))).expect("room");
        let receive = || {
            let message = reader.receive().expect("a message").bytes;
            decode(&message).expect("a message of the protocol").0
        };
        send(Header::Hello { min: VERSION, max: VERSION });
        assert!(matches!(receive(), Header::Welcome { .. }));
        let id = CallId { slot: 0, turn: 0 };
        send(Header::Request { id, method: 0, remaining_us: None, place: None, grant: None });
        // The messages of a body that is produced while it is sent may arrive in any order.
        let (mut grant, mut is_there) = (None, !is_made);
        while grant.is_none() || !is_there {
            match receive() {
                Header::Response { grant: given, .. } => grant = given,
                Header::Advance { progress, .. } => is_there |= progress == Progress::End,
                other => panic!("{other:?}"),
            }
        }
        let key = RegionKey::new(grant.expect("a body").region);
        let read = |connection: &Connection| {
            let read = connection.submit(Request::read(key, 0, LENGTH)).expect("room");
            read.wait().map(|done| done.bytes)
        };
        assert_eq!(read(&other), Err(OpError::Refused(Refusal::NoRegion)), "made: {is_made}");
        assert_eq!(read(&reader), Ok(pattern(is_made.into(), LENGTH)), "made: {is_made}");
    }
}

/// Distinguishes wake-ups by the thread of the test from other wake-ups.
struct Woken {
    test: ThreadId,
    by_test: AtomicBool,
    by_others: AtomicBool,
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        let here = std::thread::current().id() == self.test;
        if here { &self.by_test } else { &self.by_others }.store(true, Ordering::SeqCst);
    }
}

/// Ops of the application fill the connection, and the peer delays them.
#[test]
fn reader_without_room_on_the_connection_sleeps_until_there_is_some() {
    let mut config = settings();
    let server_host = Arc::new(host(config.clone()));
    config.max_ops = 4;
    let client_host = Arc::new(host(config));
    let _server = Server::start(&server_host, methods()).expect("a server");
    let client = Client::connect(&client_host, server_host.local_addr()).expect("connected");
    let memory = client.method("memory").expect("the method");
    let mut answer = client.call(memory, &1000u32.to_be_bytes()).wait().expect("an answer");
    let mut body = answer.body().expect("a body");
    let region = server_host.register(vec![0; 8], Access::ALL).expect("a region");
    let door = Door::new();
    std::thread::scope(|scope| {
        scope.spawn(|| region.write(|_| door.pass()));
        door.wait_for(1);
        let read = || client.connection().submit(Request::read(region.key(), 0, 8));
        let ops: Vec<_> = std::iter::from_fn(|| read().ok()).collect();
        let woken = Arc::new(Woken {
            test: std::thread::current().id(),
            by_test: AtomicBool::new(false),
            by_others: AtomicBool::new(false),
        });
        let waker = Waker::from(Arc::clone(&woken));
        let mut next = pin!(body.next_chunk_async());
        assert!(next.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        assert!(!woken.by_test.load(Ordering::SeqCst), "it is polled again at once");
        until("it tries again", || woken.by_others.load(Ordering::SeqCst));
        door.open();
        let chunk = client_host.block_on(next, Some(PATIENCE)).expect("room again");
        assert_eq!(chunk.expect("bytes").expect("bytes").len(), 1000);
        ops.into_iter().for_each(|op| drop(op.wait().expect("the word")));
    });
}
