//! The interface of futures: both sides are tasks of one thread. A minimal runtime of a few lines stands for any runtime.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use crate::support::{host, pattern, steady};
use apus_udp::{Access, Cause, End, Host, Mode, OpError, RegionKey, Request};

/// Wakes the thread of the runtime, and counts the wake-ups.
struct Waking(Thread, AtomicU64);

impl Wake for Waking {
    fn wake(self: Arc<Self>) {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.unpark();
    }
}

/// Runs a future on this thread, which sleeps until it is woken. Returns the output, and the number of polls.
fn run<F: Future>(future: F) -> (F::Output, u64) {
    let mut future = pin!(future);
    let waking = Arc::new(Waking(thread::current(), AtomicU64::new(0)));
    let waker = Waker::from(Arc::clone(&waking));
    let mut polls = 0;
    loop {
        polls += 1;
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return (value, polls);
        }
        thread::park();
    }
}

/// Runs both futures concurrently.
async fn both(first: impl Future<Output = ()>, second: impl Future<Output = ()>) {
    let (mut first, mut second) = (pin!(first), pin!(second));
    let mut done = [false; 2];
    poll_fn(|context| {
        done[0] = done[0] || first.as_mut().poll(context).is_ready();
        done[1] = done[1] || second.as_mut().poll(context).is_ready();
        if done == [true; 2] { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

const ROUNDS: u64 = 30;

/// Sends each message back, until the peer closes.
async fn serve(server: &Host, region: RegionKey) {
    let there = server.accept_async().await.expect("accept");
    let key = region.get().to_be_bytes().to_vec();
    there.submit(Request::message(key)).expect("room").await.expect("delivered");
    loop {
        match there.receive_async().await {
            Ok(message) => {
                there.submit(Request::message(message.bytes)).expect("room").await.expect("back");
            }
            Err(end) => return assert_eq!(end, End::ClosedByPeer),
        }
    }
}

async fn use_it(client: &Host, server: &Host) {
    let here = client.connect_async(server.local_addr(), &[0], None).await.expect("connect");
    let greeting = here.receive_async().await.expect("the region");
    let region = RegionKey::new(u64::from_be_bytes(greeting.bytes[..].try_into().expect("a key")));
    for n in 0..ROUNDS {
        let bytes = pattern(n, 1 + n as usize * 997);
        let write = here.submit(Request::write(region, 0, bytes.clone())).expect("room");
        write.await.expect("written");
        let read = here.submit(Request::read(region, 0, bytes.len())).expect("room");
        assert!(read.await.expect("read").bytes == bytes, "round {n}");
        here.submit(Request::message(bytes.clone())).expect("room").await.expect("delivered");
        assert!(here.receive_async().await.expect("back").bytes == bytes, "round {n}");
    }
    let beyond = here.submit(Request::read(region, 1 << 20, 1)).expect("room").await;
    assert!(matches!(beyond.err(), Some(OpError::Refused(_))));
    let late = Request::write(region, 0, vec![0; 1 << 20]).deadline(Duration::ZERO);
    let late = here.submit(late).expect("room").await.err();
    assert!(
        matches!(late, Some(OpError::NotSent(why) | OpError::Unknown(why)) if why == Cause::Deadline)
    );
    let (state, _) = here.flow_state_async(0).await.expect("connected");
    assert_eq!(state.cwnd, 16.0, "the window of `steady`");
    here.close_async().await;
    assert_eq!(here.ended(), Some(End::ClosedHere));
}

#[test]
fn both_sides_are_tasks_of_one_thread_in_every_mode() {
    for mode in [Mode::Shared, Mode::Inline] {
        let (server, client) = (host(steady(mode)), host(steady(mode)));
        let region = server.register(vec![0; 1 << 20], Access::ALL).expect("region");
        let ((), polls) = run(both(serve(&server, region.key()), use_it(&client, &server)));
        // In the other modes, an engine's thread wakes the task a few times for each op, not continuously.
        let most = if mode == Mode::Inline { u64::MAX } else { ROUNDS * 5 * 10 };
        assert!(polls <= most, "{polls} polls in {mode:?}");
    }
}
