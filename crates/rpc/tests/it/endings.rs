//! Ends of connections, servers and hosts, and whether calls may have run.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use apus_rpc::{
    BodyError, CallError, Client, ClientOptions, ConnectError, Executed, Failure, Methods, Reply,
    Server,
};
use apus_udp::{Access, Dialer, End, Host};
use apus_units::Span;

use crate::pair::{Door, Pair, echo, pair, settings};
use crate::support::{Faults, PATIENCE, Relay, host, until};

fn counted(door: &Arc<Door>) -> (Methods, Arc<AtomicUsize>) {
    let (door, ran) = (Arc::clone(door), Arc::new(AtomicUsize::new(0)));
    let counts = Arc::clone(&ran);
    let methods = echo().with("wait", move |_| {
        counts.fetch_add(1, Ordering::SeqCst);
        door.pass();
        Ok(())
    });
    (methods, ran)
}

#[test]
fn call_whose_server_restarts_may_have_run_and_later_calls_did_not() {
    let mut config = settings();
    config.session.suspect_timeout = Span::from_ms(300);
    config.session.keepalive = Span::from_ms(300);
    let [first_host, second_host, client_host] = [(); 3].map(|()| Arc::new(host(config.clone())));
    let relay = Relay::new(first_host.local_addr(), Faults::default(), 1);
    let door = Door::new();
    let (methods, ran) = counted(&door);
    let first = Server::start(&first_host, methods).expect("a server");
    let client = Client::connect(&client_host, relay.address).expect("connected");
    let wait = client.method("wait").expect("the method");
    let call = client.call(wait, b"").start().expect("room");
    door.wait_for(1);
    // Another process takes over the address of the first one.
    let _second = Server::start(&second_host, echo()).expect("a server");
    relay.redirect(second_host.local_addr());
    let error = call.wait().expect_err("the server is gone");
    assert_eq!(error, CallError::Ended(End::PeerRestarted, Executed::MayHaveRun));
    let error = client.call(wait, b"").wait().expect_err("no connection");
    assert_eq!(error.executed(), Executed::NotRun);
    assert_eq!(client.ended(), Some(End::PeerRestarted));
    assert_eq!(ran.load(Ordering::SeqCst), 1);
    drop(client);
    let again = Client::connect(&client_host, relay.address).expect("connected");
    let echo = again.method("echo").expect("the method");
    assert_eq!(*again.call(echo, b"x").wait().expect("an answer"), *b"x");
    door.open();
    drop(first);
}

#[test]
fn calls_to_a_silent_server_may_have_run_unless_their_requests_were_never_sent() {
    let mut config = settings();
    config.session.idle_timeout = Span::from_ms(1500);
    config.session.keepalive = Span::from_ms(100);
    config.session.suspect_timeout = Span::from_ms(100);
    let client_host = Arc::new(host(config));
    let server_host = Arc::new(host(settings()));
    let relay = Relay::new(server_host.local_addr(), Faults::default(), 1);
    let server = Server::start(&server_host, echo()).expect("a server");
    let client = Client::connect(&client_host, relay.address).expect("connected");
    let echo = client.method("echo").expect("the method");
    client.call(echo, b"x").wait().expect("an answer");
    // The first further datagram passes, and no answer comes back.
    relay.cut_after(1);
    let calls: Vec<_> = (0..100).map(|_| client.call(echo, b"").start().expect("room")).collect();
    let mut may_have_run = 1;
    for call in calls {
        match call.wait().expect_err("the server is silent") {
            CallError::Ended(End::Silent, Executed::MayHaveRun) => may_have_run += 1,
            CallError::Ended(End::Silent, Executed::NotRun) => {}
            error => panic!("{error}"),
        }
    }
    // The window is 16 packets, and no packet was acknowledged. Every second timeout sends one new packet. The first 8
    // timeouts have equal length; from then on they double up to 20 ms, so there are fewer than 100 in 1.5 s.
    assert!(may_have_run <= 17 + 50, "{may_have_run} calls");
    assert!(server.metrics().received.load(Ordering::Relaxed) <= may_have_run);
    // The first call that was counted here was answered.
    let metrics = client.metrics();
    assert_eq!(metrics.may_have_run.load(Ordering::Relaxed), may_have_run - 1);
    assert_eq!(metrics.not_run.load(Ordering::Relaxed), 101 - may_have_run);
}

#[test]
fn dropped_server_ends_its_calls_and_its_connections() {
    let Pair { client, server, client_host, server_host } = pair(echo());
    let echo = client.method("echo").expect("the method");
    client.call(echo, b"x").wait().expect("an answer");
    drop(server);
    until("the connection has ended", || client.ended().is_some());
    assert_eq!(client.ended(), Some(End::ClosedByPeer));
    let error = client.call(echo, b"x").wait().expect_err("no server");
    assert_eq!(error, CallError::Ended(End::ClosedByPeer, Executed::NotRun));
    drop((client, client_host, server_host));
}

/// The future of the handler keeps the connection, and no event wakes it.
#[test]
fn dropped_server_ends_handlers_that_wait_for_nothing() {
    let begun = Arc::new(AtomicUsize::new(0));
    let begins = Arc::clone(&begun);
    let methods = Methods::new().with_async("forever", move |_| {
        begins.fetch_add(1, Ordering::SeqCst);
        std::future::pending::<Result<(), Failure>>()
    });
    let Pair { client, server, .. } = pair(methods);
    let forever = client.method("forever").expect("the method");
    let call = client.call(forever, b"").start().expect("room");
    until("the handler runs", || begun.load(Ordering::SeqCst) == 1);
    drop(server);
    let error = call.wait().expect_err("no server");
    assert_eq!(error, CallError::Cancelled(Executed::Ran));
    until("the connection has ended", || client.ended().is_some());
}

/// Neither client sends the rest of its body or reads the answer's body, and both continue to run.
#[test]
fn dropped_server_does_not_wait_for_the_bodies_of_its_clients() {
    let (ends, ended) = mpsc::channel();
    let of_reader = ends.clone();
    let methods = Methods::new()
        .with("reads", move |call| {
            let mut body = call.body().ok_or_else(|| Failure::new(1, "no body"))?;
            assert!(body.next_chunk()?.is_some());
            of_reader.send("begun").expect("the test waits");
            assert_eq!(body.next_chunk(), Err(BodyError::Ended(End::ClosedHere)));
            assert!(call.is_cancelled());
            Ok("the answer")
        })
        .with("writes", move |call| {
            let mut body = call.stream("", None)?;
            body.write(&vec![0; 2 << 20])?;
            ends.send("begun").expect("the test waits");
            assert_eq!(body.write(b"more"), Err(BodyError::Ended(End::ClosedHere)));
            Ok(Reply::streamed())
        });
    let Pair { client, server, client_host: _client_host, server_host: _server_host } =
        pair(methods);
    let [reads, writes] = ["reads", "writes"].map(|name| client.method(name).expect("it"));
    let mut reads = client.call(reads, b"").stream(None).start().expect("room");
    let mut body = reads.body().expect("its body");
    body.write(b"first").expect("room");
    body.flush();
    let _answer = client.call(writes, b"").wait().expect("an answer");
    for _ in 0..2 {
        ended.recv_timeout(PATIENCE).expect("both handlers run");
    }
    let (drops, dropped) = mpsc::channel();
    std::thread::spawn(move || {
        drop(server);
        let _ = drops.send(());
    });
    dropped.recv_timeout(PATIENCE).expect("the server waits for no body");
    assert_eq!(reads.wait().expect("an answer without a body is sent")[..], *b"the answer");
}

#[test]
fn calls_to_a_host_that_drains_do_not_run() {
    let door = Door::new();
    let (methods, _) = counted(&door);
    let Pair { client, server, server_host, .. } = pair(methods);
    let [wait, echo] = ["wait", "echo"].map(|name| client.method(name).expect("it"));
    let call = client.call(wait, b"").start().expect("room");
    door.wait_for(1);
    let drains = {
        let host = Arc::clone(&server_host);
        std::thread::spawn(move || host.drain(PATIENCE))
    };
    until("the client knows", || client.connection().is_peer_draining());
    let error = client.call(echo, b"x").wait().expect_err("the host drains");
    assert_eq!((&error, error.executed()), (&CallError::Stopping, Executed::NotRun));
    // Two consecutive checks, 100 ms apart, end a connection without calls.
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(client.ended(), None);
    door.open();
    call.wait().expect("it was finished");
    assert!(drains.join().expect("no panic"));
    drop(server);
}

/// The drop waits for a handler. A call that arrives meanwhile is answered at once, so it can be made at another server.
#[test]
fn calls_to_a_server_that_is_dropped_do_not_run() {
    let door = Door::new();
    let (methods, _) = counted(&door);
    let Pair { client, server, client_host: _client_host, server_host: _server_host } =
        pair(methods);
    let [wait, echo] = ["wait", "echo"].map(|name| client.method(name).expect("it"));
    let running = client.call(wait, b"").start().expect("room");
    door.wait_for(1);
    let drops = std::thread::spawn(move || drop(server));
    let stopping = || {
        let call = client.call(echo, b"x").deadline(PATIENCE);
        call.wait().err().filter(|error| *error == CallError::Stopping)
    };
    until("the drop has begun", || stopping().is_some());
    // The refusal still applies after the drop has given up the calls that it found.
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(stopping().map(|error| error.executed()), Some(Executed::NotRun));
    door.open();
    running.wait().expect("it was finished");
    drops.join().expect("no panic");
}

#[test]
fn host_that_drains_waits_for_the_calls_of_its_clients() {
    let door = Door::new();
    let (methods, _) = counted(&door);
    let Pair { client, server: _server, client_host, .. } = pair(methods);
    let wait = client.method("wait").expect("the method");
    let call = client.call(wait, b"").start().expect("room");
    door.wait_for(1);
    assert!(!client_host.drain(Duration::from_millis(500)), "a call is outstanding");
    door.open();
    call.wait().expect("an answer");
    assert!(client_host.drain(PATIENCE));
}

#[test]
fn two_methods_of_one_name_are_refused() {
    let host = Arc::new(host(settings()));
    let methods = echo().with("more", |_| Ok(())).with("echo", |_| Ok(()));
    let error = Server::start(&host, methods).map(drop).expect_err("two of a name");
    assert!(error.to_string().contains("`echo`"), "{error}");
}

#[test]
fn draining_server_finishes_what_runs_and_refuses_what_comes() {
    let door = Door::new();
    let (methods, _) = counted(&door);
    let pair = pair(methods);
    let [wait, echo] = ["wait", "echo"].map(|name| pair.client.method(name).expect("it"));
    let call = pair.client.call(wait, b"").start().expect("room");
    door.wait_for(1);
    assert!(!pair.server.drain(Duration::from_millis(1)), "a call runs");
    let error = pair.client.call(echo, b"x").wait().expect_err("it drains");
    assert_eq!((&error, error.executed()), (&CallError::Stopping, Executed::NotRun));
    door.open();
    assert!(pair.server.drain(PATIENCE));
    call.wait().expect("it was finished");
}

#[test]
fn stopped_hosts_end_all_waits() {
    let door = Door::new();
    let (methods, _) = counted(&door);
    let Pair { client, server, client_host, server_host } = pair(methods);
    let wait = client.method("wait").expect("the method");
    let call = client.call(wait, b"").start().expect("room");
    door.wait_for(1);
    let stops = std::thread::spawn(move || {
        client_host.stop();
        server_host.stop();
    });
    let error = call.wait().expect_err("the host has stopped");
    assert!(matches!(error, CallError::Ended(..)), "{error}");
    stops.join().expect("no panic");
    door.open();
    drop((server, client));
}

#[test]
fn peer_without_an_rpc_server_is_named() {
    let [server, client] = [(); 2].map(|()| Arc::new(host(settings())));
    let accepted = {
        let server = Arc::clone(&server);
        std::thread::spawn(move || server.accept().expect("a connection"))
    };
    let options =
        ClientOptions { handshake_timeout: Duration::from_millis(5), ..Default::default() };
    let error = Client::connect_with(&client, server.local_addr(), &options).map(drop);
    assert!(matches!(error, Err(ConnectError::NoServer)), "{error:?}");
    drop(accepted.join().expect("no panic"));
}

/// Connects through a dialer to a server with the methods of [`counted`].
fn dialled(door: &Arc<Door>) -> (Dialer, Client, Arc<Host>, Server) {
    let [server_host, client_host] = [(); 2].map(|()| Arc::new(host(settings())));
    let server = Server::start(&server_host, counted(door).0).expect("a server");
    let port = server_host.local_addr().port();
    let dialer = Dialer::new(Arc::clone(&client_host), "127.0.0.1", port);
    let connection = dialer.connection().expect("connected");
    let client = Client::on(&client_host, connection, &ClientOptions::default());
    (dialer, client.expect("a client"), client_host, server)
}

#[test]
fn second_client_on_a_connection_ends_the_first_one() {
    let door = Door::new();
    let (dialer, client, client_host, _server) = dialled(&door);
    let wait = client.method("wait").expect("the method");
    let call = client.call(wait, b"").start().expect("room");
    door.wait_for(1);
    let same = dialer.connection().expect("the connection");
    let error = Client::on(&client_host, same, &ClientOptions::default()).map(drop);
    assert!(matches!(error, Err(ConnectError::Ended(_))), "{error:?}");
    let ended = client_host.block_on(call, Some(PATIENCE)).expect("before the test gives up");
    assert!(matches!(ended, Err(CallError::Ended(_, Executed::MayHaveRun))), "{ended:?}");
    assert!(client.ended().is_some());
    door.open();
}

#[test]
fn connection_of_a_dialer_closes_with_its_client() {
    let (dialer, client, client_host, _server) = dialled(&Door::new());
    let connection = client.connection().clone();
    drop(client);
    for _ in 0..20 {
        let mut another = None;
        // Until the previous connection has closed, its address has a connection.
        until("another one", || {
            another = dialer.connection().ok();
            another.is_some()
        });
        let connection = another.expect("a connection");
        let client = Client::on(&client_host, connection, &ClientOptions::default());
        let client = client.expect("a client");
        let echo = client.method("echo").expect("the method");
        assert_eq!(*client.call(echo, b"x").wait().expect("an answer"), *b"x");
    }
    until("the connection has ended", || connection.ended().is_some());
}

/// The thread holds the memory of a region of its host.
#[test]
fn waits_of_a_thread_that_would_deadlock_are_refused_as_such() {
    let door = Door::new();
    let (dialer, client, client_host, server) = dialled(&door);
    let [echo, wait] = ["echo", "wait"].map(|name| client.method(name).expect("it"));
    let region = client_host.register(vec![0; 8], Access::READ).expect("room");
    let call = client.call(wait, b"").start().expect("room");
    door.wait_for(1);
    region.write(|_| {
        let error = client.call(echo, b"x").wait().expect_err("refused");
        assert_eq!(error, CallError::Ended(End::WouldDeadlock, Executed::NotRun));
        let error = call.wait().expect_err("refused");
        assert_eq!(error, CallError::Ended(End::WouldDeadlock, Executed::MayHaveRun));
        let mut call = client.call(echo, b"").stream(None).start().expect("room");
        let mut body = call.body().expect("its body");
        assert_eq!(body.write(b"x"), Err(BodyError::Ended(End::WouldDeadlock)));
        let connection = dialer.connection().expect("the connection");
        let error = Client::on(&client_host, connection, &ClientOptions::default()).map(drop);
        let refused = ConnectError::Transport(apus_udp::ConnectError::WouldDeadlock);
        assert_eq!(error.expect_err("refused").to_string(), refused.to_string());
    });
    door.open();
    client.call(echo, b"x").wait().expect("the client is as before");
    drop(server);
}

/// Uses a time limit that exceeds the range of the clock.
#[test]
fn longest_duration_is_no_limit() {
    let [server_host, client_host] = [(); 2].map(|()| Arc::new(host(settings())));
    let server = Server::start(&server_host, echo()).expect("a server");
    let options = ClientOptions { handshake_timeout: Duration::MAX, ..Default::default() };
    let address = server_host.local_addr();
    let client = Client::connect_with(&client_host, address, &options).expect("connected");
    let method = client.method("echo").expect("the method");
    client.call(method, b"x").deadline(Duration::MAX).wait().expect("an answer");
    let again = Client::connect_async(&client_host, address, &options);
    drop(client);
    client_host.block_on(again, None).expect("the host runs").expect("connected");
    assert!(server.drain(Duration::MAX));
}
