//! Ordered lanes.

use std::pin::pin;
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Wake, Waker};

use apus_rpc::{Call, Client, ClientOptions, Lane, Method, Methods, ServerOptions};
use apus_udp::{Access, Request};

use crate::pair::{Door, echo, pair, pair_with};
use crate::support::PATIENCE;

#[test]
fn calls_of_a_lane_run_one_by_one_in_order() {
    let log = Arc::new(Mutex::new(Vec::new()));
    let (logs, running) = (Arc::clone(&log), Mutex::new(()));
    let methods = Methods::new().with("log", move |call| {
        let alone = running.try_lock();
        assert!(alone.is_ok(), "another call of the lane runs");
        let n = u32::from_be_bytes(call.payload()[..].try_into()?);
        logs.lock().expect("no panic").push(n);
        // A failed call does not stop the calls after it.
        if n.is_multiple_of(3) { Err(apus_rpc::Failure::new(n, "")) } else { Ok(()) }
    });
    let pair = pair(methods);
    let log_method = pair.client.method("log").expect("the method");
    let lane = pair.client.lane().expect("a lane");
    for round in 0..5u32 {
        let calls: Vec<_> = (0..200u32)
            .map(|n| {
                let payload = (round * 200 + n).to_be_bytes();
                pair.client.call(log_method, &payload).lane(&lane).start().expect("room")
            })
            .collect();
        for (n, call) in calls.into_iter().enumerate() {
            let failed = (round as usize * 200 + n).is_multiple_of(3);
            assert_eq!(call.wait().is_err(), failed, "call {n}");
        }
    }
    assert!(log.lock().expect("no panic").iter().copied().eq(0..1000));
}

#[test]
fn cancelled_calls_of_a_lane_let_the_others_run() {
    let log = Arc::new(Mutex::new(Vec::new()));
    let logs = Arc::clone(&log);
    let methods = Methods::new().with("log", move |call| {
        logs.lock().expect("no panic").push(call.payload()[0]);
        Ok(())
    });
    let pair = pair(methods);
    let method = pair.client.method("log").expect("the method");
    let lane = pair.client.lane().expect("a lane");
    let mut ran = Vec::new();
    for n in 0..250u8 {
        let call = pair.client.call(method, &[n]).lane(&lane).start().expect("room");
        if n.is_multiple_of(2) {
            call.cancel();
        }
        match call.wait() {
            Ok(_) => ran.push(n),
            Err(error) => assert_eq!(error.executed(), apus_rpc::Executed::NotRun),
        }
    }
    assert_eq!(*log.lock().expect("no panic"), ran);
    assert!(ran.len() >= 125);
}

#[test]
fn lanes_are_as_many_as_the_server_allows_and_are_used_again() {
    let options = ServerOptions { lanes: 2, ..Default::default() };
    let pair = pair_with(echo(), options, &ClientOptions::default());
    let echo = pair.client.method("echo").expect("the method");
    let [first, second] = [(); 2].map(|()| pair.client.lane().expect("a lane"));
    assert!(pair.client.lane().is_none());
    for lane in [&first, &second, &first] {
        pair.client.call(echo, b"x").lane(lane).wait().expect("an answer");
    }
    drop(first);
    let again = pair.client.lane().expect("a lane");
    pair.client.call(echo, b"x").lane(&again).wait().expect("an answer");
}

/// A handler runs until it returns, even after it has answered with the head of a body.
#[test]
fn call_of_a_lane_does_not_begin_while_the_one_before_makes_its_body() {
    let door = Door::new();
    let waits = Arc::clone(&door);
    let methods = echo().with("stream", move |call| {
        let body = call.stream(b"head", None)?;
        waits.pass();
        body.finish()?;
        Ok(apus_rpc::Reply::streamed())
    });
    let pair = pair(methods);
    let [stream, echo] = ["stream", "echo"].map(|name| pair.client.method(name).expect("it"));
    let lane = pair.client.lane().expect("a lane");
    let calls = [(); 3].map(|()| pair.client.call(stream, b"").lane(&lane).start().expect("room"));
    door.wait_for(1);
    // A lane's call that had begun earlier would have been taken from the queue before these calls.
    for _ in 0..10 {
        pair.client.call(echo, b"x").wait().expect("an answer");
    }
    assert_eq!(door.came(), 1);
    door.open();
    for call in calls {
        let mut answer = call.wait().expect("an answer");
        let mut body = answer.body().expect("a body");
        assert_eq!(body.read_all(0).expect("an empty body"), []);
    }
}

/// The waker of a task that runs within the wake-up, and begins a call of a lane.
struct Begins {
    client: Client,
    method: Method,
    lane: Arc<Lane>,
    calls: mpsc::Sender<Call>,
}

impl Wake for Begins {
    fn wake(self: Arc<Self>) {
        let call = self.client.call(self.method, b"woken").lane(&self.lane).start();
        self.calls.send(call.expect("room")).expect("the test waits");
    }
}

/// The thread that begins a call of a lane usually runs the engine then. It thereby calls the waker of an op that was given
/// up.
#[test]
fn waker_of_an_op_begins_a_call_of_a_lane_whose_next_call_is_being_submitted() {
    let client = ClientOptions { classes: vec![0, 0], ..Default::default() };
    let pair = pair_with(echo(), ServerOptions::default(), &client);
    let region = pair.server_host.register(vec![0; 8 << 20], Access::ALL).expect("a region");
    let (client, key) = (pair.client.clone(), region.key());
    let method = client.method("echo").expect("the method");
    let lane = Arc::new(client.lane().expect("a lane"));
    let (ends, ended) = mpsc::channel();
    std::thread::spawn(move || {
        let (calls, begun) = mpsc::channel();
        let begins = Begins { client: client.clone(), method, lane: Arc::clone(&lane), calls };
        let waker = Waker::from(Arc::new(begins));
        for _ in 0..20 {
            let write = Request::write(key, 0, vec![1; 8 << 20]);
            let mut op = pin!(client.connection().submit_to(1, write).expect("room"));
            let waits = op.as_mut().poll(&mut Context::from_waker(&waker)).is_pending();
            op.cancel();
            let call = client.call(method, b"call").lane(&lane).start().expect("room");
            assert_eq!(*call.wait().expect("an answer"), *b"call");
            // On a busy machine the op may have ended earlier.
            if waits {
                let woken = begun.recv_timeout(PATIENCE).expect("the op has ended");
                assert_eq!(*woken.wait().expect("an answer"), *b"woken");
            }
        }
        ends.send(()).expect("the test waits");
    });
    ended.recv_timeout(PATIENCE).expect("no thread waits for itself");
}
