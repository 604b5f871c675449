//! Handlers that continue after they have answered with the head of a body.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Poll, Waker};
use std::time::Duration;

use apus_rpc::{BodyError, ClientOptions, Incoming, Methods, Reply, Response, ServerOptions};

use crate::pair::{Pair, echo, pair, pair_with};
use crate::support::{PATIENCE, until};

/// Sets a flag when it is dropped.
struct Told(Arc<AtomicBool>);

impl Drop for Told {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Returns methods whose handler answers with the head of a body and runs until it is told to give up. The flags show whether
/// it was told.
fn endless() -> [(Methods, Arc<AtomicBool>); 2] {
    let [flag, of_future] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
    let told = Arc::clone(&flag);
    let blocking = Methods::new().with("endless", move |call| {
        let _body = call.stream(b"head", None)?;
        until("the handler is told", || call.is_cancelled());
        told.store(true, Ordering::SeqCst);
        Ok(Reply::streamed())
    });
    // The test holds the waker, so the future exists as long as the server keeps it.
    let (told, wakers) = (Arc::clone(&of_future), Arc::new(Mutex::new(Vec::new())));
    let future = Methods::new().with_async("endless", move |mut call: Incoming| {
        let (told, wakers) = (Told(Arc::clone(&told)), Arc::clone(&wakers));
        async move {
            let _body = call.stream(b"head", None)?;
            poll_fn(|context| {
                wakers.lock().expect("no panic").push(context.waker().clone());
                Poll::<()>::Pending
            })
            .await;
            drop(told);
            Ok(Reply::streamed())
        }
    });
    [(blocking, flag), (future, of_future)]
}

/// Calls both kinds of handlers with a deadline, and expects that they are told to give up after `ends`.
fn is_told(deadline: Option<Duration>, ends: impl Fn(Option<Response>, Pair)) {
    for (methods, told) in endless() {
        let pair = pair(methods);
        let method = pair.client.method("endless").expect("the method");
        let mut call = pair.client.call(method, b"");
        if let Some(deadline) = deadline {
            call = call.deadline(deadline);
        }
        // The deadline may pass before the answer arrives.
        let answer = call.wait().ok();
        assert!(answer.is_some() || deadline.is_some());
        assert!(deadline.is_some() || !told.load(Ordering::SeqCst));
        ends(answer, pair);
        until("the handler was told", || told.load(Ordering::SeqCst));
    }
}

/// Keeps a value until the test has ended.
fn keep<T>(kept: &Mutex<Vec<T>>, value: T) {
    kept.lock().expect("no panic").push(value);
}

#[test]
fn handler_that_has_streamed_is_told_when_the_client_reads_no_further() {
    let pairs = Mutex::default();
    is_told(None, |answer, pair| {
        drop(answer);
        keep(&pairs, pair);
    });
}

#[test]
fn handler_that_has_streamed_is_told_when_its_deadline_passes() {
    let pairs = Mutex::default();
    is_told(Some(Duration::from_millis(50)), |answer, pair| keep(&pairs, (answer, pair)));
}

#[test]
fn handler_that_has_streamed_is_told_when_its_connection_ends() {
    let servers = Mutex::default();
    is_told(None, |answer, pair| {
        let Pair { client, server, client_host, server_host } = pair;
        client_host.stop();
        drop((answer, client));
        keep(&servers, (server, server_host));
    });
}

/// A blocking call has waited for the answer, and no call waits for its body. The handler does not give up by itself.
#[test]
fn deadline_of_a_body_passes_in_a_future() {
    let streams = Arc::new(Mutex::new(Vec::new()));
    let keeps = Arc::clone(&streams);
    let methods = Methods::new().with_answer("endless", move |mut call| {
        let body = call.stream(b"head", None);
        keep(&keeps, (call, body));
    });
    let pair = pair(methods);
    let method = pair.client.method("endless").expect("the method");
    // With a growing deadline, the head eventually arrives in time.
    let answer = (1..).find_map(|n| {
        pair.client.call(method, b"").deadline(Duration::from_millis(50 * n)).wait().ok()
    });
    let mut body = answer.expect("an answer").body().expect("a body");
    let next = pair.client_host.block_on(body.next_chunk_async(), Some(PATIENCE));
    assert_eq!(next, Some(Err(BodyError::Deadline)));
    streams.lock().expect("no panic").clear();
}

/// The handler has answered with the head of a body, reads no byte of the request's body, and its server is dropped.
#[test]
fn writer_of_a_request_that_was_answered_is_told_when_its_connection_ends() {
    let methods = Methods::new().with("endless", |call| {
        let _bodies = (call.body(), call.stream(b"head", None)?);
        until("the handler is told", || call.is_cancelled());
        Ok(Reply::streamed())
    });
    let pair = pair(methods);
    let method = pair.client.method("endless").expect("the method");
    let mut call = pair.client.call(method, b"").stream(None).start().expect("room");
    let mut body = call.body().expect("its body");
    let _answer = call.wait().expect("an answer");
    body.write(&vec![0; 2 << 20]).expect("room in the ring");
    let (ends, ended) = mpsc::channel();
    std::thread::spawn(move || {
        let _ = ends.send(body.write(b"more"));
    });
    pair.server_host.stop();
    let end = ended.recv_timeout(PATIENCE).expect("the writer waits no longer");
    assert!(matches!(end, Err(BodyError::Ended(_))), "{end:?}");
}

/// The client has read the whole body, and its next call has the same slot. The handler still runs to its end.
#[test]
fn handler_whose_body_was_read_runs_to_its_end() {
    let (ended, dropped) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let waker = Arc::new(Mutex::new(None::<Waker>));
    let (ends, drops, wakes) = (Arc::clone(&ended), Arc::clone(&dropped), Arc::clone(&waker));
    let methods = echo().with_async("stream", move |mut call: Incoming| {
        let (ends, told, wakes) = (Arc::clone(&ends), Told(Arc::clone(&drops)), Arc::clone(&wakes));
        async move {
            let mut body = call.stream(b"head", None)?;
            body.write_async(b"all").await?;
            body.finish()?;
            let mut polled = false;
            poll_fn(|context| {
                *wakes.lock().expect("no panic") = Some(context.waker().clone());
                if std::mem::replace(&mut polled, true) { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
            assert!(!call.is_cancelled());
            ends.store(true, Ordering::SeqCst);
            drop(told);
            Ok(Reply::streamed())
        }
    });
    let client = ClientOptions { max_calls: 1, ..Default::default() };
    let pair = pair_with(methods, ServerOptions::default(), &client);
    let [echo, stream] = ["echo", "stream"].map(|name| pair.client.method(name).expect("it"));
    let mut answer = pair.client.call(stream, b"").wait().expect("an answer");
    let mut body = answer.body().expect("a body");
    assert_eq!(body.read_all(3).expect("all"), b"all");
    drop(body);
    pair.client.call(echo, b"x").wait().expect("an answer");
    let asleep = || waker.lock().expect("no panic").is_some();
    until("the handler waits", asleep);
    assert!(!dropped.load(Ordering::SeqCst));
    waker.lock().expect("no panic").take().expect("the waker").wake();
    until("the handler has ended", || dropped.load(Ordering::SeqCst));
    assert!(ended.load(Ordering::SeqCst));
}
