//! Calls and their answers, blocking and as futures.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use apus_rpc::{CallError, Client, ClientOptions, Executed, Failure, Methods, Server};
use apus_udp::{Dialer, Mode};

use crate::pair::{echo, pair, settings};
use crate::support::{config, host, pattern, steady, until};

#[test]
fn thousand_calls_of_eight_threads_get_their_own_answers() {
    let pair = pair(echo());
    let echo = pair.client.method("echo").expect("the method");
    thread::scope(|scope| {
        for number in 0..8 {
            let client = pair.client.clone();
            scope.spawn(move || {
                for n in 0..125 {
                    let bytes = pattern(number * 1000 + n, 1 + n as usize * 61);
                    let answer = client.call(echo, &bytes).wait().expect("an answer");
                    assert!(answer[..] == bytes, "call {n} of thread {number}");
                }
            });
        }
    });
    assert_eq!(pair.client.metrics().answered.load(Ordering::Relaxed), 1000);
    assert_eq!(pair.server.metrics().answered.load(Ordering::Relaxed), 1000);
    assert_eq!(pair.client.metrics().latency.count(), 1000);
    let page = pair.client.metrics().page() + &pair.server.metrics().page();
    assert!(page.contains("apus_rpc_client_answered_total 1000\n"), "{page}");
    assert!(page.contains("apus_rpc_server_received_total 1000\n"), "{page}");
}

#[test]
fn many_calls_of_one_thread_are_outstanding_at_once() {
    let pair = pair(echo());
    let echo = pair.client.method("echo").expect("the method");
    let limit = pair.client.max_calls();
    for round in 0..20 {
        let payload = |n| pattern(round * 1000 + n as u64, 64);
        let calls: Vec<_> = (0..limit)
            .map(|n| pair.client.call(echo, &payload(n)).start().expect("room"))
            .collect();
        for (n, call) in calls.into_iter().enumerate() {
            assert!(call.wait().expect("an answer")[..] == payload(n));
        }
    }
}

#[test]
fn methods_have_numbers_of_their_own_and_unknown_names_are_errors() {
    let constant = |text: &'static str| move |_: &mut apus_rpc::Incoming| Ok(text);
    let pair = pair(Methods::new().with("first", constant("1")).with("second", constant("2")));
    assert_eq!(pair.client.methods().collect::<Vec<_>>(), ["first", "second"]);
    for (name, answer) in [("second", "2"), ("first", "1")] {
        let method = pair.client.method(name).expect("the method");
        assert_eq!(*pair.client.call(method, b"").wait().expect("an answer"), *answer.as_bytes());
    }
    let error = pair.client.method("third").expect_err("unknown").to_string();
    assert!(error.contains("`third`") && error.contains("first, second"), "{error}");
}

#[test]
fn failed_handler_reports_code_and_text() {
    let methods = Methods::new()
        .with("code", |_| Err::<(), _>(Failure::new(7, "no such key")))
        .with("error", |call| {
            let text = std::str::from_utf8(call.payload())?;
            Ok(text.parse::<u32>()?.to_string())
        });
    let pair = pair(methods);
    let [code, error] = ["code", "error"].map(|name| pair.client.method(name).expect("it"));
    let failed = pair.client.call(code, b"").wait().expect_err("a failure");
    assert_eq!(failed, CallError::Failed(Failure::new(7, "no such key")));
    assert_eq!(failed.executed(), Executed::Ran);
    assert_eq!(*pair.client.call(error, b"17").wait().expect("a number"), *b"17");
    let failed = pair.client.call(error, b"x").wait().expect_err("no number").to_string();
    assert!(failed.contains("invalid digit"), "{failed}");
}

#[test]
fn handler_that_panics_answers_an_error_and_the_server_lives() {
    let methods = echo()
        .with("panics", |call| match call.payload().len() {
            0 => Ok(()),
            _ => panic!("a panic, as the test wants it"),
        })
        .with_async("panics later", async |_| {
            let payload: Result<(), Failure> = Err(Failure::new(0, ""));
            payload.map_err(|_| panic!("a panic, as the test wants it")).map(|()| "")
        })
        .with_answer("panics first", |_| panic!("a panic, as the test wants it"))
        .with_answer("forgets", drop);
    let pair = pair(methods);
    let method = |name| pair.client.method(name).expect("the method");
    for _ in 0..10 {
        for name in ["panics", "panics later", "panics first"] {
            let error = pair.client.call(method(name), b"x").wait().expect_err("a panic");
            assert_eq!((&error, error.executed()), (&CallError::Panicked, Executed::Ran), "{name}");
        }
        let error = pair.client.call(method("forgets"), b"x").wait().expect_err("no answer");
        assert_eq!(error, CallError::NoAnswer);
        assert_eq!(*pair.client.call(method("echo"), b"y").wait().expect("alive"), *b"y");
    }
    assert_eq!(pair.server.metrics().panicked.load(Ordering::Relaxed), 30);
}

#[test]
fn call_may_be_answered_later_by_another_thread() {
    let (sender, calls) = std::sync::mpsc::channel();
    let sender = std::sync::Mutex::new(sender);
    let methods = Methods::new().with_answer("later", move |call| {
        sender.lock().expect("no panic").send(call).expect("the thread");
    });
    let pair = pair(methods);
    let answers = thread::spawn(move || {
        for call in calls.into_iter().take(3) {
            let answer = call.payload().clone();
            call.answer(Ok(answer));
        }
    });
    let later = pair.client.method("later").expect("the method");
    for n in 0..3 {
        assert_eq!(*pair.client.call(later, &[n]).wait().expect("an answer"), [n]);
    }
    answers.join().expect("no panic");
}

/// Wakes the thread of a minimal runtime of a few lines, which stands for any runtime.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn run<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return value;
        }
        thread::park();
    }
}

#[test]
fn calls_are_futures_of_any_runtime() {
    let hosts = [(); 2].map(|()| Arc::new(host(steady(Mode::Shared))));
    // The handlers are futures too: the second one calls the first one through its own client.
    let methods = Methods::new().with_async("echo", async |call| Ok(call.payload().clone()));
    let _server = Server::start(&hosts[0], methods).expect("a server");
    run(async {
        let address = hosts[0].local_addr();
        let options = ClientOptions::default();
        let client = Client::connect_async(&hosts[1], address, &options).await.expect("connected");
        let echo = client.method("echo").expect("the method");
        for n in 0..100u8 {
            let calls: Vec<_> =
                (0..4).map(|k| client.call(echo, &[n, k]).start().expect("room")).collect();
            for (k, call) in (0..4).zip(calls) {
                assert_eq!(*call.await.expect("an answer"), [n, k]);
            }
            assert_eq!(*client.call(echo, b"builder").await.expect("an answer"), *b"builder");
        }
    });
}

#[test]
fn calls_work_in_every_mode() {
    for mode in [Mode::Shared, Mode::Spinning, Mode::Inline] {
        // With an inline engine, calls of the server's workers drive it: one worker is enough.
        let [server, client] = [(); 2].map(|()| Arc::new(host(config(mode))));
        let options = apus_rpc::ServerOptions { workers: 1, ..Default::default() };
        let _server = Server::start_with(&server, echo(), options).expect("a server");
        let client = Client::connect(&client, server.local_addr()).expect("connected");
        let echo = client.method("echo").expect("the method");
        for n in 0..50 {
            assert_eq!(*client.call(echo, &[n]).wait().expect("an answer"), [n], "{mode:?}");
        }
    }
}

#[test]
fn client_calls_a_server_by_its_name() {
    let [server_host, client_host] = [(); 2].map(|()| Arc::new(host(settings())));
    let server = Server::start(&server_host, echo()).expect("a server");
    let port = server_host.local_addr().port();
    let dialer = Dialer::new(Arc::clone(&client_host), "localhost", port);
    let connection = dialer.connection().expect("connected");
    let client = Client::on(&client_host, connection, &ClientOptions::default()).expect("a server");
    let method = client.method("echo").expect("the method");
    assert_eq!(*client.call(method, b"x").wait().expect("an answer"), *b"x");
    drop(server);
    until("the connection has ended", || client.ended().is_some());
    let _server = Server::start(&server_host, echo()).expect("a server");
    let connection = dialer.connection().expect("connected again");
    let client = Client::on(&client_host, connection, &ClientOptions::default()).expect("a server");
    let method = client.method("echo").expect("the method");
    assert_eq!(*client.call(method, b"y").wait().expect("an answer"), *b"y");
}
