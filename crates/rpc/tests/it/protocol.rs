//! Peers that break the protocol.

use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};

use apus_rpc::envelope::{
    CallId, Grant, Header, LanePlace, Progress, Status, VERSION, decode, encode,
};
use apus_rpc::{
    BodyError, CallError, Client, ClientOptions, ConnectError, Executed, Failure, Reply, Server,
    ServerOptions,
};
use apus_udp::{Access, Connection, End, Request, SubmitError};

use crate::pair::{Door, echo, settings};
use crate::support::{PATIENCE, host, until};

fn send(connection: &Connection, bytes: Vec<u8>) {
    connection.submit(Request::message(bytes)).expect("room");
}

fn receive(connection: &Connection) -> (Header, Vec<u8>) {
    let message = connection.receive().expect("a message").bytes;
    let (header, payload) = decode(&message).expect("a message of the protocol");
    (header, message[payload..].to_vec())
}

const HELLO: Header = Header::Hello { min: VERSION, max: VERSION };

fn request(slot: u16, turn: u16) -> Header {
    let id = CallId { slot, turn };
    Header::Request { id, method: 0, remaining_us: None, place: None, grant: None }
}

#[test]
fn client_that_breaks_the_protocol_is_disconnected() {
    let [server_host, client_host] = [(); 2].map(|()| Arc::new(host(settings())));
    let server = Server::start(&server_host, echo()).expect("a server");
    let hello = encode(&HELLO, b"");
    let bad: [&[Vec<u8>]; 6] = [
        &[b"GET / HTTP/1.1".to_vec()],
        &[encode(&request(0, 0), b"before the Hello")],
        &[hello.clone(), hello.clone()],
        &[hello.clone(), encode(&request(10_000, 0), b"no such slot")],
        &[hello.clone(), encode(&request(0, 0), b"")[..5].to_vec()],
        &[hello, encode(&Header::Refusal { min: 1, max: 1 }, b"")],
    ];
    for (n, messages) in bad.into_iter().enumerate() {
        let connection = client_host.connect(server_host.local_addr()).expect("connected");
        messages.iter().for_each(|message| send(&connection, message.clone()));
        until("the server closes the connection", || connection.ended().is_some());
        assert_eq!(server.metrics().malformed.load(Ordering::Relaxed), n as u64 + 1);
    }
    let client = Client::connect(&client_host, server_host.local_addr()).expect("connected");
    let echo = client.method("echo").expect("the method");
    client.call(echo, b"x").wait().expect("other clients are served");
}

#[test]
fn client_that_breaks_the_protocol_is_disconnected_while_a_call_of_it_runs() {
    let [server_host, client_host] = [(); 2].map(|()| Arc::new(host(settings())));
    let door = Door::new();
    let waits = Arc::clone(&door);
    let methods = echo().with("wait", move |_| {
        waits.pass();
        Ok(())
    });
    let server = Server::start(&server_host, methods).expect("a server");
    let connection = client_host.connect(server_host.local_addr()).expect("connected");
    send(&connection, encode(&HELLO, b""));
    let id = CallId { slot: 0, turn: 0 };
    let wait = Header::Request { id, method: 1, remaining_us: None, place: None, grant: None };
    send(&connection, encode(&wait, b""));
    door.wait_for(1);
    send(&connection, encode(&HELLO, b""));
    until("the server closes the connection", || connection.ended().is_some());
    door.open();
    assert!(server.drain(PATIENCE));
    assert_eq!(server.metrics().malformed.load(Ordering::Relaxed), 1);
}

/// The client continues to call, so its answers would accumulate.
#[test]
fn client_that_takes_no_answers_is_served_no_longer() {
    let mut config = settings();
    config.max_ops = 4;
    let server_host = Arc::new(host(config.clone()));
    config.max_queued_messages = 1;
    let client_host = Arc::new(host(config));
    let options = ServerOptions { calls_per_connection: 1, ..Default::default() };
    let server = Server::start_with(&server_host, echo(), options).expect("a server");
    let connection = client_host.connect(server_host.local_addr()).expect("connected");
    send(&connection, encode(&HELLO, b""));
    let metrics = server.metrics();
    let answered = || metrics.answered.load(Ordering::Relaxed);
    let refused = || metrics.malformed.load(Ordering::Relaxed) == 1;
    let mut turn = 0;
    while !refused() {
        let call = Request::message(encode(&request(0, turn), b"x"));
        // The server closes the connection after the answers in the transport, which the client does not receive.
        match connection.submit(call) {
            Ok(op) => drop(op.wait()),
            Err(error) => assert_eq!(error, SubmitError::Ended(End::ClosedByPeer)),
        }
        turn += 1;
        until("it is answered", || answered() == u64::from(turn) || refused());
    }
    // The transport has 4 answers. Two more wait when the 7th call arrives, and the client has one slot.
    assert!((7..16).contains(&turn), "{turn} calls");
}

/// The client numbers the calls of a lane in a way that the protocol forbids.
#[test]
fn client_that_repeats_a_number_of_a_lane_is_disconnected() {
    let [server_host, client_host] = [(); 2].map(|()| Arc::new(host(settings())));
    let server = Server::start(&server_host, echo()).expect("a server");
    let in_lane = |slot, sequence| {
        let Header::Request { id, method, remaining_us, grant, .. } = request(slot, 0) else {
            panic!("a request");
        };
        let place = Some(LanePlace { lane: 0, sequence });
        encode(&Header::Request { id, method, remaining_us, place, grant }, b"x")
    };
    let connection = client_host.connect(server_host.local_addr()).expect("connected");
    let messages = [encode(&HELLO, b""), in_lane(0, 5), in_lane(1, 7), in_lane(2, 5)];
    messages.into_iter().for_each(|message| send(&connection, message));
    until("the server closes the connection", || connection.ended().is_some());
    assert_eq!(server.metrics().malformed.load(Ordering::Relaxed), 1);
    assert!(server.drain(PATIENCE), "the calls that waited do not count any more");
}

/// The region has the largest size that a grant can express.
#[test]
fn body_of_an_impossible_size_ends_its_call_only() {
    let [server_host, client_host] = [(); 2].map(|()| Arc::new(host(settings())));
    let methods = echo().with("body", |call| {
        let mut body = call.body().ok_or_else(|| Failure::new(1, "no body"))?;
        Ok(body.read_all(1 << 20)?)
    });
    let _server = Server::start(&server_host, methods).expect("a server");
    let connection = client_host.connect(server_host.local_addr()).expect("connected");
    send(&connection, encode(&HELLO, b""));
    receive(&connection);
    let region = client_host.register(vec![7; 8], Access::READ).expect("a region");
    let id = CallId { slot: 0, turn: 0 };
    let grant = Grant {
        region: region.key().get(),
        capacity: u64::MAX,
        length: Some(u64::MAX - 1),
        whole: false,
    };
    let header =
        Header::Request { id, method: 1, remaining_us: None, place: None, grant: Some(grant) };
    send(&connection, encode(&header, b""));
    let advance = |position| Header::Advance { id, position, progress: Progress::More };
    send(&connection, encode(&advance(8), b""));
    // A position beyond the end of the region.
    send(&connection, encode(&advance(u64::MAX - 1), b""));
    loop {
        match receive(&connection) {
            (Header::Response { status, .. }, _) => break assert_eq!(status, Status::Failed),
            (Header::Consumed { .. }, _) => {}
            (other, _) => panic!("{other:?}"),
        }
    }
}

/// The client reuses the slot of a call without reading the answer's body to its end, or gives up the next call in the slot
/// before it begins that call.
#[test]
fn handler_that_makes_a_body_is_told_when_the_next_call_has_its_place() {
    let next = CallId { slot: 0, turn: 1 };
    for message in [request(0, 1), Header::Cancel { id: next }] {
        let [server_host, client_host] = [(); 2].map(|()| Arc::new(host(settings())));
        let (ends, ended) = mpsc::channel();
        let methods = echo().with("stream", move |call| {
            let mut body = call.stream(b"head", None)?;
            ends.send(body.write(&vec![0; 4 << 20])).expect("the test waits");
            Ok(Reply::streamed())
        });
        let server = Server::start(&server_host, methods).expect("a server");
        let connection = client_host.connect(server_host.local_addr()).expect("connected");
        send(&connection, encode(&HELLO, b""));
        receive(&connection);
        let id = CallId { slot: 0, turn: 0 };
        let stream =
            Header::Request { id, method: 1, remaining_us: None, place: None, grant: None };
        send(&connection, encode(&stream, b""));
        let (answer, _) = receive(&connection);
        assert!(matches!(answer, Header::Response { grant: Some(_), .. }), "{answer:?}");
        send(&connection, encode(&message, b""));
        let end = ended.recv_timeout(PATIENCE).expect("the writer waits no longer");
        assert_eq!(end, Err(BodyError::GivenUp));
        assert!(server.drain(PATIENCE), "both calls are over");
    }
}

#[test]
fn server_answers_by_the_documented_messages() {
    let [server_host, client_host] = [(); 2].map(|()| Arc::new(host(settings())));
    let _server = Server::start(&server_host, echo()).expect("a server");
    let connection = client_host.connect(server_host.local_addr()).expect("connected");
    send(&connection, encode(&HELLO, b""));
    let (welcome, table) = receive(&connection);
    assert_eq!(welcome, Header::Welcome { version: VERSION, calls: 256, lanes: 16 });
    assert_eq!(table, *b"\x00\x00\x04echo");
    send(&connection, encode(&request(3, 0), b"hi"));
    let id = CallId { slot: 3, turn: 0 };
    let done = Header::Response { id, status: Status::Done, grant: None };
    assert_eq!(receive(&connection), (done, b"hi".to_vec()));
    // A cancellation that overtakes its request.
    let id = CallId { slot: 3, turn: 1 };
    send(&connection, encode(&Header::Cancel { id }, b""));
    connection.flow_state(0).expect("it was sent");
    send(&connection, encode(&request(3, 1), b"hi"));
    let (answer, _) = receive(&connection);
    let Header::Response { id: answered, status, .. } = answer else { panic!("{answer:?}") };
    // Messages have no order.
    assert!(answered == id && matches!(status, Status::CancelledBefore | Status::Done));
}

#[test]
fn version_without_overlap_is_refused() {
    let [server_host, client_host] = [(); 2].map(|()| Arc::new(host(settings())));
    let _server = Server::start(&server_host, echo()).expect("a server");
    let connection = client_host.connect(server_host.local_addr()).expect("connected");
    send(&connection, encode(&Header::Hello { min: VERSION + 1, max: 15 }, b""));
    assert_eq!(receive(&connection).0, Header::Refusal { min: VERSION, max: VERSION });
}

#[test]
fn client_names_what_its_peer_answers() {
    for (answer, text) in [
        (b"HTTP/1.1 400".to_vec(), "does not speak the RPC protocol"),
        (encode(&Header::Refusal { min: 2, max: 3 }, b""), "speaks versions 2 to 3"),
        (encode(&Header::Welcome { version: 9, calls: 1, lanes: 0 }, b""), "unknown version 9"),
        (encode(&request(0, 0), b""), "does not belong to the handshake"),
    ] {
        let [server_host, client_host] = [(); 2].map(|()| Arc::new(host(settings())));
        let address = server_host.local_addr();
        let serves = std::thread::spawn(move || {
            let connection = server_host.accept().expect("a connection");
            assert_eq!(receive(&connection).0, HELLO);
            send(&connection, answer);
            let _ = connection.receive();
        });
        let error = Client::connect_with(&client_host, address, &ClientOptions::default());
        let error: ConnectError = error.map(drop).expect_err(text);
        assert!(error.to_string().contains(text), "{error}");
        serves.join().expect("no panic");
    }
}

#[test]
fn client_disconnects_a_server_that_breaks_the_protocol() {
    let [server_host, client_host] = [(); 2].map(|()| Arc::new(host(settings())));
    let address = server_host.local_addr();
    let serves = std::thread::spawn(move || {
        let connection = server_host.accept().expect("a connection");
        assert_eq!(receive(&connection).0, HELLO);
        let welcome = Header::Welcome { version: VERSION, calls: 1, lanes: 0 };
        send(&connection, encode(&welcome, b"\x00\x00\x04echo"));
        assert!(matches!(receive(&connection).0, Header::Request { .. }));
        send(&connection, b"HTTP/1.1 400".to_vec());
        until("the client closes the connection", || connection.ended().is_some());
    });
    let client = Client::connect(&client_host, address).expect("connected");
    let echo = client.method("echo").expect("the method");
    let error = client.call(echo, b"x").wait().expect_err("no answer");
    assert_eq!(error, CallError::Ended(End::ClosedHere, Executed::MayHaveRun));
    assert_eq!(client.metrics().malformed.load(Ordering::Relaxed), 1);
    serves.join().expect("no panic");
}
