//! Servers that are dropped while calls wait, run, or are held by the application.

use std::future::{pending, poll_fn};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Poll, Waker};
use std::thread::{self, ThreadId};

use apus_rpc::{
    Call, CallError, Client, ClientOptions, Executed, Failure, Incoming, Methods, Response, Server,
    ServerOptions,
};
use apus_udp::{End, Host};

use crate::pair::{Door, Pair, echo, pair, pair_with};
use crate::support::{PATIENCE, until};

/// Waits for a call, for at most a minute.
fn wait(host: &Host, call: Call) -> Result<Response, CallError> {
    host.block_on(call, Some(PATIENCE)).expect("the call ends")
}

/// Drops a server in another thread. Returns a channel that reports when the drop has ended.
fn drop_elsewhere(server: Server) -> mpsc::Receiver<()> {
    let (drops, dropped) = mpsc::channel();
    thread::spawn(move || {
        drop(server);
        let _ = drops.send(());
    });
    dropped
}

/// Returns a method whose handler waits at a door.
fn waiting(door: &Arc<Door>) -> Methods {
    let door = Arc::clone(door);
    echo().with("wait", move |_| {
        door.pass();
        Ok(())
    })
}

fn one_worker() -> ServerOptions {
    ServerOptions { workers: 1, ..Default::default() }
}

#[test]
fn calls_that_wait_did_not_run_and_those_whose_handler_is_a_future_are_cancelled() {
    let door = Door::new();
    let methods =
        waiting(&door).with_async("forever", |_| async { pending::<Result<(), Failure>>().await });
    let Pair { client, server, client_host, server_host: _server_host } =
        pair_with(methods, one_worker(), &ClientOptions::default());
    let [echo, waits, forever] =
        ["echo", "wait", "forever"].map(|name| client.method(name).expect("it"));
    let future = client.call(forever, b"").start().expect("room");
    let [first, second] = [(); 2].map(|()| client.lane().expect("a lane"));
    let running = client.call(waits, b"").lane(&first).start().expect("room");
    door.wait_for(1);
    let waiting = [
        client.call(echo, b"").start().expect("room"),
        client.call(echo, b"").lane(&first).start().expect("room"),
        client.call(echo, b"").lane(&second).start().expect("room"),
        client.call(echo, b"").lane(&second).start().expect("room"),
    ];
    until("the calls have arrived", || server.metrics().received.load(Ordering::Relaxed) == 6);
    let dropped = drop_elsewhere(server);
    for call in waiting {
        assert_eq!(wait(&client_host, call).map(drop), Err(CallError::Stopping));
    }
    let cancelled = Err(CallError::Cancelled(Executed::Ran));
    assert_eq!(wait(&client_host, future).map(drop), cancelled);
    door.open();
    assert!(wait(&client_host, running).is_ok(), "it was finished");
    dropped.recv_timeout(PATIENCE).expect("the server is dropped");
    until("the connection has ended", || client.ended() == Some(End::ClosedByPeer));
}

/// Idle workers end as soon as the server begins to stop, before the calls have their answers.
#[test]
fn calls_have_the_same_ends_if_all_workers_are_idle() {
    const CALLS: usize = 100;
    let begun = Arc::new(AtomicUsize::new(0));
    let begins = Arc::clone(&begun);
    let methods = echo().with_async("forever", move |_| {
        begins.fetch_add(1, Ordering::SeqCst);
        pending::<Result<(), Failure>>()
    });
    let Pair { client, server, client_host, server_host: _server_host } = pair(methods);
    let [echo, forever] = ["echo", "forever"].map(|name| client.method(name).expect("it"));
    let lane = client.lane().expect("a lane");
    let begin = |_| client.call(forever, b"").start().expect("room");
    let mut futures: Vec<Call> = (1..CALLS).map(begin).collect();
    futures.push(client.call(forever, b"").lane(&lane).start().expect("room"));
    let behind = client.call(echo, b"").lane(&lane).start().expect("room");
    until("the handlers run", || begun.load(Ordering::SeqCst) == CALLS);
    until("the calls have arrived", || {
        server.metrics().received.load(Ordering::Relaxed) == CALLS as u64 + 1
    });
    drop(server);
    for call in futures {
        let cancelled = Err(CallError::Cancelled(Executed::Ran));
        assert_eq!(wait(&client_host, call).map(drop), cancelled);
    }
    assert_eq!(wait(&client_host, behind).map(drop), Err(CallError::Stopping));
    until("the connection has ended", || client.ended() == Some(End::ClosedByPeer));
}

#[test]
fn call_that_the_application_has_taken_ends_with_its_connection() {
    let taken = Arc::new(Mutex::new(Vec::new()));
    let takes = Arc::clone(&taken);
    let methods = echo().with_answer("later", move |call| {
        takes.lock().expect("no panic").push(call);
    });
    let Pair { client, server, client_host, server_host: _server_host } = pair(methods);
    let [echo, later] = ["echo", "later"].map(|name| client.method(name).expect("it"));
    let call = client.call(later, b"").start().expect("room");
    until("the application has it", || taken.lock().expect("no panic").len() == 1);
    drop(server);
    let ended = Err(CallError::Ended(End::ClosedByPeer, Executed::MayHaveRun));
    assert_eq!(wait(&client_host, call).map(drop), ended);
    let error = client.call(echo, b"").wait().expect_err("no connection");
    assert_eq!(error, CallError::Ended(End::ClosedByPeer, Executed::NotRun));
    // The connection has ended, so no client receives the answer.
    taken.lock().expect("no panic").pop().expect("the call").answer(Ok(()));
}

#[test]
fn handler_that_drops_its_server_is_answered() {
    let kept = Arc::new(Mutex::new(None::<Server>));
    let take = |kept: &Mutex<Option<Server>>| kept.lock().expect("no panic").take();
    let [blocking, future] = [(); 2].map(|()| Arc::clone(&kept));
    let methods = || {
        let (blocking, future) = (Arc::clone(&blocking), Arc::clone(&future));
        Methods::new()
            .with("blocking", move |_| {
                drop(take(&blocking));
                Ok("dropped")
            })
            .with_async("future", move |_| {
                let future = Arc::clone(&future);
                async move {
                    drop(take(&future));
                    Ok("dropped")
                }
            })
    };
    for name in ["blocking", "future"] {
        let Pair { client, server, client_host, server_host: _server_host } = pair(methods());
        *kept.lock().expect("no panic") = Some(server);
        let method = client.method(name).expect("the method");
        let call = client.call(method, b"").start().expect("room");
        assert_eq!(wait(&client_host, call).expect("an answer")[..], *b"dropped");
        until("the connection has ended", || client.ended() == Some(End::ClosedByPeer));
    }
}

/// The only worker polls a future that was woken meanwhile. The future continues when the test tells it to.
#[test]
fn server_is_dropped_while_a_future_is_polled_that_was_woken() {
    let (polls, polled) = mpsc::channel();
    let methods = Methods::new().with_async("wakes", move |call: Incoming| {
        let polls = polls.clone();
        poll_fn(move |context| {
            context.waker().wake_by_ref();
            polls.send(()).expect("the test waits");
            until("the handler is told", || call.is_cancelled());
            Poll::<Result<(), Failure>>::Pending
        })
    });
    let Pair { client, server, client_host, server_host: _server_host } =
        pair_with(methods, one_worker(), &ClientOptions::default());
    let wakes = client.method("wakes").expect("the method");
    let call = client.call(wakes, b"").start().expect("room");
    polled.recv_timeout(PATIENCE).expect("the handler runs");
    let dropped = drop_elsewhere(server);
    let cancelled = Err(CallError::Cancelled(Executed::Ran));
    assert_eq!(wait(&client_host, call).map(drop), cancelled);
    dropped.recv_timeout(PATIENCE).expect("the server is dropped");
}

/// Reports the thread in which it is dropped, then waits at a door.
struct Dropped(mpsc::Sender<ThreadId>, Arc<Door>);

impl Drop for Dropped {
    fn drop(&mut self) {
        let _ = self.0.send(thread::current().id());
        self.1.pass();
    }
}

/// Begins a call whose handler stores its waker and sleeps.
fn asleep(client: &Client, name: &str, wakers: &Mutex<Vec<Waker>>) -> Call {
    let before = wakers.lock().expect("no panic").len();
    let method = client.method(name).expect("the method");
    let call = client.call(method, b"").start().expect("room");
    until("the handler sleeps", || wakers.lock().expect("no panic").len() > before);
    call
}

/// A thread that wakes a handler may hold a lock that the destructors of the handler's future need.
#[test]
fn future_of_a_handler_is_not_dropped_by_the_thread_that_wakes_it() {
    let [door, first, second] = [(); 3].map(|()| Door::new());
    let (drops, dropped) = mpsc::channel();
    let wakers = Arc::new(Mutex::new(Vec::new()));
    let sleeps = |methods: Methods, name: &str, door: &Arc<Door>| {
        let (drops, door, wakers) = (drops.clone(), Arc::clone(door), Arc::clone(&wakers));
        methods.with_async(name, move |_| {
            let told = Dropped(drops.clone(), Arc::clone(&door));
            let wakers = Arc::clone(&wakers);
            async move {
                poll_fn(|context| {
                    wakers.lock().expect("no panic").push(context.waker().clone());
                    Poll::<()>::Pending
                })
                .await;
                drop(told);
                Ok(())
            }
        })
    };
    let methods = sleeps(sleeps(waiting(&door), "first", &first), "second", &second);
    let Pair { client, server, client_host, server_host: _server_host } =
        pair_with(methods, one_worker(), &ClientOptions::default());
    let calls = ["first", "second"].map(|name| asleep(&client, name, &wakers));
    let [wake_first, wake_second] = [0, 1].map(|n| wakers.lock().expect("no panic")[n].clone());
    let waits = client.method("wait").expect("the method");
    let running = client.call(waits, b"").start().expect("room");
    door.wait_for(1);
    // No worker is free, so the handler waits in the queue.
    wake_first.wake();
    let server = drop_elsewhere(server);
    let by = dropped.recv_timeout(PATIENCE).expect("the first future is being dropped");
    assert_ne!(by, thread::current().id());
    second.open();
    wake_second.wake();
    first.open();
    let by = dropped.recv_timeout(PATIENCE).expect("the second future is dropped");
    assert_ne!(by, thread::current().id());
    for call in calls {
        let cancelled = Err(CallError::Cancelled(Executed::Ran));
        assert_eq!(wait(&client_host, call).map(drop), cancelled);
    }
    door.open();
    running.wait().expect("it was finished");
    server.recv_timeout(PATIENCE).expect("the server is dropped");
}

/// Thousands of calls wait for one another in a lane, and the thread that drops the server has a small stack.
#[test]
fn calls_of_a_long_lane_are_refused_on_a_small_stack() {
    const CALLS: u16 = 10_000;
    let door = Door::new();
    let options = ServerOptions { calls_per_connection: CALLS + 1, ..one_worker() };
    let options = ServerOptions { max_calls: usize::from(CALLS) + 1, ..options };
    let client = ClientOptions { max_calls: CALLS + 1, ..Default::default() };
    let Pair { client, server, client_host, server_host: _server_host } =
        pair_with(waiting(&door), options, &client);
    let [echo, waits] = ["echo", "wait"].map(|name| client.method(name).expect("it"));
    let running = client.call(waits, b"").start().expect("room");
    door.wait_for(1);
    let lane = client.lane().expect("a lane");
    let mut calls = Vec::new();
    until("all calls have begun", || {
        while calls.len() < usize::from(CALLS) {
            // The connection has room for only some calls at a time.
            let Ok(call) = client.call(echo, b"").lane(&lane).start() else { return false };
            calls.push(call);
        }
        true
    });
    let received = || server.metrics().received.load(Ordering::Relaxed);
    until("they have arrived", || received() == u64::from(CALLS) + 1);
    let drops = thread::Builder::new().stack_size(256 << 10).spawn(move || drop(server));
    let drops = drops.expect("a thread");
    for call in calls {
        assert_eq!(wait(&client_host, call).map(drop), Err(CallError::Stopping));
    }
    door.open();
    wait(&client_host, running).expect("it was finished");
    drops.join().expect("no panic");
}
