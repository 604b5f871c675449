//! Limits of calls, deadlines and cancellation.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use apus_rpc::{CallError, Client, ClientOptions, Executed, Methods, Server, ServerOptions};
use apus_udp::{Access, Request};

use crate::pair::{Door, echo, pair, pair_with, settings};
use crate::support::{PATIENCE, host, until};

/// Returns a method whose handler counts its calls and waits at a door.
fn waiting(door: &Arc<Door>) -> (Methods, Arc<AtomicUsize>) {
    let (door, ran) = (Arc::clone(door), Arc::new(AtomicUsize::new(0)));
    let counts = Arc::clone(&ran);
    let methods = echo().with("wait", move |call| {
        counts.fetch_add(1, Ordering::SeqCst);
        door.pass();
        Ok(call.payload().clone())
    });
    (methods, ran)
}

#[test]
fn overloaded_server_answers_at_once_and_the_call_did_not_run() {
    let door = Door::new();
    let (methods, ran) = waiting(&door);
    let options = ServerOptions { workers: 1, max_calls: 3, ..Default::default() };
    let pair = pair_with(methods, options, &ClientOptions::default());
    let wait = pair.client.method("wait").expect("the method");
    let calls: Vec<_> =
        (0..3).map(|n| pair.client.call(wait, &[n]).start().expect("room")).collect();
    door.wait_for(1);
    // The only worker is busy.
    until("the calls have arrived", || pair.server.metrics().received.load(Ordering::Relaxed) == 3);
    let error = pair.client.call(wait, b"more").wait().expect_err("too many");
    assert_eq!((&error, error.executed()), (&CallError::Overloaded, Executed::NotRun));
    door.open();
    for (n, call) in calls.into_iter().enumerate() {
        assert_eq!(*call.wait().expect("an answer"), [n as u8]);
    }
    assert_eq!(*pair.client.call(wait, b"again").wait().expect("room again"), *b"again");
    assert_eq!(ran.load(Ordering::SeqCst), 4);
    assert_eq!(pair.server.metrics().overloaded.load(Ordering::Relaxed), 1);
}

#[test]
fn client_at_its_limit_refuses_at_once_and_the_lower_limit_of_both_sides_holds() {
    for (server_limit, client_limit) in [(2, 10), (10, 2)] {
        let door = Door::new();
        let options = ServerOptions { calls_per_connection: server_limit, ..Default::default() };
        let client = ClientOptions { max_calls: client_limit, ..Default::default() };
        let pair = pair_with(waiting(&door).0, options, &client);
        let wait = pair.client.method("wait").expect("the method");
        let calls = [(); 2].map(|()| pair.client.call(wait, b"").start().expect("room"));
        let error = pair.client.call(wait, b"").start().map(drop).expect_err("too many");
        assert_eq!((&error, error.executed()), (&CallError::Busy { limit: 2 }, Executed::NotRun));
        door.open();
        calls.into_iter().for_each(|call| drop(call.wait().expect("an answer")));
        pair.client.call(wait, b"").wait().expect("room again");
    }
}

#[test]
fn payload_beyond_a_message_is_refused_here_and_an_answer_beyond_it_there() {
    let methods = echo().with("long", |_| Ok(vec![0; 2 << 20]));
    let pair = pair(methods);
    let [echo, long] = ["echo", "long"].map(|name| pair.client.method(name).expect("it"));
    let limit = pair.client.max_payload();
    let most = vec![7; limit];
    assert!(pair.client.call(echo, &most).wait().expect("an answer")[..] == most);
    let error = pair.client.call(echo, &vec![0; limit + 1]).wait().expect_err("too long");
    assert_eq!(error, CallError::TooLong { length: limit + 1, limit });
    assert_eq!(pair.client.call(long, b"").wait().expect_err("long"), CallError::AnswerTooLong);
}

/// Ops of the application fill the connection, and a caller tries until the numbers of calls have wrapped around.
#[test]
fn calls_that_a_full_connection_refuses_do_not_count_for_the_server() {
    let server_host = Arc::new(host(settings()));
    let mut config = settings();
    config.max_ops = 4;
    let client_host = Arc::new(host(config));
    let server = Server::start(&server_host, echo()).expect("a server");
    let client = Client::connect(&client_host, server_host.local_addr()).expect("connected");
    let echo = client.method("echo").expect("the method");
    client.call(echo, b"x").wait().expect("an answer");
    let region = server_host.register(vec![0; 8], Access::ALL).expect("a region");
    let door = Door::new();
    std::thread::scope(|scope| {
        // The server's engine waits for the region.
        scope.spawn(|| region.write(|_| door.pass()));
        door.wait_for(1);
        let read = || client.connection().submit(Request::read(region.key(), 0, 8));
        let reads: Vec<_> = std::iter::from_fn(|| read().ok()).collect();
        for _ in 0..40_000 {
            let error = client.call(echo, b"x").start().map(drop).expect_err("no room");
            assert_eq!(error, CallError::Busy { limit: 4 });
        }
        door.open();
        reads.into_iter().for_each(|op| drop(op.wait().expect("the word")));
    });
    assert_eq!(*client.call(echo, b"y").wait().expect("an answer"), *b"y");
    assert_eq!(server.metrics().malformed.load(Ordering::Relaxed), 0);
}

/// A cancelled call that waits keeps its room in the server, so that its queue is bounded.
#[test]
fn cancelled_calls_count_until_a_worker_comes_to_them() {
    let one_worker = ServerOptions { workers: 1, ..Default::default() };
    for options in [
        ServerOptions { max_calls: 4, ..one_worker.clone() },
        ServerOptions { calls_per_connection: 4, ..one_worker },
    ] {
        let door = Door::new();
        let pair = pair_with(waiting(&door).0, options, &ClientOptions::default());
        let wait = pair.client.method("wait").expect("the method");
        let first = pair.client.call(wait, b"").start().expect("room");
        door.wait_for(1);
        let mut refused = 0;
        for number in 2..22 {
            let call = pair.client.call(wait, b"").start().expect("room");
            let received = || pair.server.metrics().received.load(Ordering::Relaxed);
            until("the call has arrived", || received() == number);
            call.cancel();
            match call.wait().expect_err("no worker is free") {
                CallError::Cancelled(Executed::NotRun) => {}
                CallError::Overloaded => refused += 1,
                error => panic!("{error}"),
            }
        }
        assert!(refused >= 17, "{refused} of 20 refused, and the server has room for 3");
        door.open();
        first.wait().expect("an answer");
        until("there is room again", || pair.client.call(wait, b"").wait().is_ok());
        assert!(pair.server.drain(PATIENCE), "all calls were counted");
    }
}

/// Other workers run the calls behind a long one, although the method took little time before.
#[test]
fn calls_behind_one_that_takes_longer_than_before_are_run_meanwhile() {
    let door = Door::new();
    let waits = Arc::clone(&door);
    let methods = Methods::new().with("wait", move |call| {
        if call.payload()[..] == *b"wait" {
            waits.pass();
        }
        Ok(())
    });
    let pair = pair(methods);
    let wait = pair.client.method("wait").expect("the method");
    for _ in 0..10 {
        let short: Vec<_> =
            (0..100).map(|_| pair.client.call(wait, b"").start().expect("room")).collect();
        short.into_iter().for_each(|call| drop(call.wait().expect("an answer")));
    }
    // The calls arrive together.
    let [first, second] = [(); 2].map(|()| pair.client.call(wait, b"wait").start().expect("room"));
    let others: Vec<_> =
        (0..50).map(|_| pair.client.call(wait, b"").start().expect("room")).collect();
    others.into_iter().for_each(|call| drop(call.wait().expect("an answer")));
    door.open();
    first.wait().expect("an answer");
    second.wait().expect("an answer");
}

/// The handler sees at most the caller's remaining time.
#[test]
fn deadline_travels_as_remaining_time() {
    let methods = Methods::new().with("remaining", |call| {
        Ok(call.remaining().map_or(Vec::new(), |left| left.as_micros().to_be_bytes().to_vec()))
    });
    let pair = pair(methods);
    let remaining = pair.client.method("remaining").expect("the method");
    assert_eq!(*pair.client.call(remaining, b"").wait().expect("an answer"), *b"");
    let answer = pair.client.call(remaining, b"").deadline(PATIENCE).wait().expect("an answer");
    let left = u128::from_be_bytes(answer[..].try_into().expect("a number"));
    assert!(0 < left && left <= PATIENCE.as_micros(), "{left} us");
}

#[test]
fn call_past_its_deadline_ends_here_and_does_not_begin_there() {
    let door = Door::new();
    let (methods, ran) = waiting(&door);
    let options = ServerOptions { workers: 1, ..Default::default() };
    let pair = pair_with(methods, options, &ClientOptions::default());
    let [wait, echo] = ["wait", "echo"].map(|name| pair.client.method(name).expect("it"));
    let first = pair.client.call(wait, b"").start().expect("room");
    door.wait_for(1);
    // The only worker is busy until the door opens, so this call cannot begin in time.
    let error = pair.client.call(wait, b"").deadline(Duration::from_millis(5)).wait();
    let error = error.expect_err("a deadline");
    assert!(matches!(error, CallError::Deadline(Executed::MayHaveRun | Executed::NotRun)));
    let ended = || {
        let metrics = pair.server.metrics();
        metrics.expired.load(Ordering::Relaxed) + metrics.cancelled.load(Ordering::Relaxed) == 1
    };
    until("the server has dropped the call", ended);
    door.open();
    first.wait().expect("an answer");
    pair.client.call(echo, b"").wait().expect("the worker is free");
    assert_eq!(ran.load(Ordering::SeqCst), 1, "the late call did not run");
}

#[test]
fn deadline_of_a_future_passes_without_a_runtime() {
    let door = Door::new();
    let pair = pair(waiting(&door).0);
    let wait = pair.client.method("wait").expect("the method");
    let call = pair.client.call(wait, b"").deadline(Duration::from_millis(5)).start();
    let call = call.expect("room");
    let ended = pair.client_host.block_on(call, Some(PATIENCE)).expect("before the test gives up");
    assert!(matches!(ended, Err(CallError::Deadline(_))), "{ended:?}");
    door.open();
}

/// Returns a method whose handler runs until it is told to stop.
fn patient() -> (Methods, Arc<AtomicUsize>, Arc<AtomicBool>) {
    let (begun, stopped) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let (begins, stops) = (Arc::clone(&begun), Arc::clone(&stopped));
    let methods = echo().with("patient", move |call| {
        begins.fetch_add(1, Ordering::SeqCst);
        until("the call is cancelled", || call.is_cancelled());
        stops.store(true, Ordering::SeqCst);
        Err::<(), _>(apus_rpc::Failure::new(1, "stopped"))
    });
    (methods, begun, stopped)
}

#[test]
fn cancellation_reaches_a_handler_that_runs() {
    let (methods, begun, stopped) = patient();
    let pair = pair(methods);
    let patient = pair.client.method("patient").expect("the method");
    let call = pair.client.call(patient, b"").start().expect("room");
    until("the handler runs", || begun.load(Ordering::SeqCst) == 1);
    call.cancel();
    call.cancel();
    assert_eq!(call.wait().expect_err("cancelled"), CallError::Cancelled(Executed::Ran));
    assert!(stopped.load(Ordering::SeqCst));
}

#[test]
fn dropped_call_is_cancelled_and_its_place_is_free_again() {
    let (methods, begun, stopped) = patient();
    let client = ClientOptions { max_calls: 1, ..Default::default() };
    let pair = pair_with(methods, ServerOptions::default(), &client);
    let [patient, echo] = ["patient", "echo"].map(|name| pair.client.method(name).expect("it"));
    let call = pair.client.call(patient, b"").start().expect("room");
    until("the handler runs", || begun.load(Ordering::SeqCst) == 1);
    drop(call);
    until("the handler was told", || stopped.load(Ordering::SeqCst));
    until("the place is free", || pair.client.call(echo, b"").wait().is_ok());
}

#[test]
fn call_that_waits_for_a_worker_is_cancelled_before_it_runs() {
    let door = Door::new();
    let (methods, ran) = waiting(&door);
    let options = ServerOptions { workers: 1, ..Default::default() };
    let pair = pair_with(methods, options, &ClientOptions::default());
    let wait = pair.client.method("wait").expect("the method");
    let first = pair.client.call(wait, b"").start().expect("room");
    door.wait_for(1);
    let second = pair.client.call(wait, b"").start().expect("room");
    second.cancel();
    assert_eq!(second.wait().expect_err("cancelled"), CallError::Cancelled(Executed::NotRun));
    door.open();
    first.wait().expect("an answer");
    pair.client.call(wait, b"").wait().expect("an answer");
    assert_eq!(ran.load(Ordering::SeqCst), 2);
}

#[test]
fn future_of_a_handler_is_dropped_when_its_call_is_cancelled() {
    struct Told(Arc<AtomicBool>);
    impl Drop for Told {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let (begun, dropped) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (begins, drops) = (Arc::clone(&begun), Arc::clone(&dropped));
    let methods = Methods::new().with_async("forever", move |_| {
        let told = Told(Arc::clone(&drops));
        begins.store(true, Ordering::SeqCst);
        async move {
            std::future::pending::<()>().await;
            drop(told);
            Ok("")
        }
    });
    let pair = pair(methods);
    let forever = pair.client.method("forever").expect("the method");
    let call = pair.client.call(forever, b"").start().expect("room");
    until("the handler runs", || begun.load(Ordering::SeqCst));
    call.cancel();
    assert_eq!(call.wait().expect_err("cancelled"), CallError::Cancelled(Executed::Ran));
    assert!(dropped.load(Ordering::SeqCst));
}

/// If a call has ended, its handler does not begin; this includes the part that returns the future.
#[test]
fn asynchronous_handler_does_not_begin_after_its_call_was_cancelled() {
    let (door, begun) = (Door::new(), Arc::new(AtomicUsize::new(0)));
    let (waits, begins) = (Arc::clone(&door), Arc::clone(&begun));
    let methods = waiting(&door).0.with_async("begin", move |_| {
        begins.fetch_add(1, Ordering::SeqCst);
        async { Ok(()) }
    });
    let options = ServerOptions { workers: 1, ..Default::default() };
    let pair = pair_with(methods, options, &ClientOptions::default());
    let [wait, begin] = ["wait", "begin"].map(|name| pair.client.method(name).expect("it"));
    let first = pair.client.call(wait, b"").start().expect("room");
    waits.wait_for(1);
    let second = pair.client.call(begin, b"").start().expect("room");
    second.cancel();
    assert_eq!(second.wait().expect_err("cancelled"), CallError::Cancelled(Executed::NotRun));
    door.open();
    first.wait().expect("an answer");
    pair.client.call(begin, b"").wait().expect("an answer");
    assert_eq!(begun.load(Ordering::SeqCst), 1);
}

/// A future whose destructor panics.
#[test]
fn panic_of_a_futures_destructor_ends_its_call_and_no_worker() {
    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("on purpose");
        }
    }
    let methods = echo().with_async("forever", |_| {
        let panics = Panics;
        async move {
            std::future::pending::<()>().await;
            drop(panics);
            Ok(())
        }
    });
    let options = ServerOptions { workers: 1, ..Default::default() };
    let pair = pair_with(methods, options, &ClientOptions::default());
    let [echo, forever] = ["echo", "forever"].map(|name| pair.client.method(name).expect("it"));
    let call = pair.client.call(forever, b"").start().expect("room");
    call.cancel();
    let error = call.wait().expect_err("cancelled");
    assert!(matches!(error, CallError::Cancelled(_)), "{error}");
    assert_eq!(*pair.client.call(echo, b"x").wait().expect("the worker runs on"), *b"x");
}
