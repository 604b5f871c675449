//! Threads that drive an engine: blocking calls in turn, or a thread of the host while no call waits.

use std::future::pending;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{SHARED, host, pattern, steady};
use apus_udp::{
    Access, Connection, End, Host, Message, MessageReceiver, Request, Stats, async_channel,
};

/// Returns two hosts in the default mode, and both ends of the connection.
fn pair() -> ([Host; 2], [Connection; 2]) {
    let hosts = [(); 2].map(|()| host(steady(SHARED)));
    let here = hosts[0].connect(hosts[1].local_addr()).expect("a peer");
    let there = hosts[1].accept().expect("a connection");
    (hosts, [here, there])
}

#[test]
fn op_of_a_thread_that_does_not_wait_for_it_is_sent() {
    let (_hosts, [here, there]) = pair();
    for n in 0..20 {
        // A thread that has waited before is expected to wait again.
        let first = here.submit(Request::message(pattern(n, 100))).expect("room");
        first.wait().expect("delivered");
        drop(here.submit(Request::message(pattern(n + 100, 100))).expect("room"));
        for seed in [n, n + 100] {
            assert_eq!(there.receive().expect("a message").bytes, pattern(seed, 100));
        }
    }
}

#[test]
fn peers_are_answered_while_no_call_waits() {
    let (hosts, [here, _there]) = pair();
    let bytes = pattern(1, 100_000);
    let region = hosts[1].register(bytes.clone(), Access::READ).expect("memory");
    for _ in 0..20 {
        let read = here.submit(Request::read(region.key(), 0, bytes.len())).expect("room");
        assert!(read.wait().expect("the region").bytes == bytes);
    }
}

/// A thread that answers promptly is expected to continue to do so. Acknowledgements that are held for its answer must also
/// be sent without the answer.
#[test]
fn peers_are_answered_though_a_prompt_thread_stops_waiting() {
    let (hosts, [here, there]) = pair();
    let region = hosts[1].register(vec![7; 100], Access::READ).expect("memory");
    let (stopped, go_on) = std::sync::mpsc::channel();
    let server = thread::spawn(move || {
        for n in 0..300 {
            let message = there.receive().expect("a message");
            if n % 100 == 99 {
                // This thread neither waits for the host nor submits.
                go_on.recv().expect("the peer has got its answers");
            }
            there.submit(Request::message(message.bytes)).expect("room");
        }
    });
    for n in 0..300 {
        let limit = Duration::from_secs(20);
        let message = Request::message(pattern(n, 64)).deadline(limit);
        let op = here.submit(message).expect("room");
        if n % 100 == 99 {
            op.wait().expect("acknowledged");
            let read = here.submit(Request::read(region.key(), 0, 100).deadline(limit));
            assert_eq!(read.expect("room").wait().expect("read").bytes, [7; 100]);
            stopped.send(()).expect("it waits");
        }
        assert_eq!(here.receive().expect("an echo").bytes, pattern(n, 64));
    }
    server.join().expect("no failure");
}

#[test]
fn calls_of_many_threads_end_while_they_drive_in_turns() {
    let (hosts, [here, there]) = pair();
    let region = hosts[1].register(vec![0; 8 << 12], Access::ALL).expect("memory");
    let key = region.key();
    let hosts = hosts.map(Arc::new);
    // Calls that wait all the time: one of them drives the engine first.
    let waiting: Vec<_> = hosts
        .iter()
        .map(|host| {
            let host = Arc::clone(host);
            thread::spawn(move || host.accept().map(drop))
        })
        .collect();
    let echo = thread::spawn(move || {
        while let Ok(message) = there.receive() {
            there.submit(Request::message(message.bytes)).expect("room");
        }
    });
    let writers: Vec<_> = (0..8)
        .map(|place| {
            let here = here.clone();
            thread::spawn(move || {
                for n in 0..100 {
                    let (bytes, at) = (pattern(n, 4096), place << 12);
                    let write = here.submit(Request::write(key, at, bytes.clone())).expect("room");
                    write.wait().expect("written");
                    let read = here.submit(Request::read(key, at, 4096)).expect("room");
                    assert!(read.wait().expect("read").bytes == bytes);
                }
            })
        })
        .collect();
    for n in 0..300 {
        drop(here.submit(Request::message(pattern(n, 50))).expect("room"));
        assert_eq!(here.receive().expect("an echo").bytes, pattern(n, 50));
    }
    writers.into_iter().for_each(|writer| writer.join().expect("no failure"));
    hosts.iter().for_each(|host| host.stop());
    for wait in waiting {
        assert!(wait.join().expect("no panic").is_err(), "the host has stopped");
    }
    echo.join().expect("no failure");
}

#[test]
fn block_on_ends_with_the_future_or_with_the_time() {
    let (hosts, [here, _there]) = pair();
    let region = hosts[1].register(vec![0; 64], Access::WRITE).expect("memory");
    let (queue, ends) = async_channel::bounded(1);
    for user in 0..20 {
        let write = Request::write(region.key(), 0, vec![1; 64]);
        here.submit_queued(0, write, &queue, user).expect("room");
        let end = hosts[0].block_on(ends.recv(), None).expect("no time limit").expect("open");
        assert_eq!(end.user, user);
    }
    for timeout in [Duration::ZERO, Duration::from_millis(1)] {
        assert_eq!(hosts[0].block_on(pending::<()>(), Some(timeout)), None);
    }
}

#[test]
fn host_runs_on_after_a_future_has_panicked_in_block_on() {
    let (hosts, [here, there]) = pair();
    let panics = || hosts[0].block_on(async { panic!("a panic, as the test wants it") }, None);
    let ended: thread::Result<Option<()>> = catch_unwind(AssertUnwindSafe(panics));
    assert!(ended.is_err());
    // Both without a waiting call and with one.
    there.submit(Request::message(vec![1])).expect("room").wait().expect("delivered");
    assert_eq!(here.receive().expect("a message").bytes[..], [1]);
    here.submit(Request::message(vec![2])).expect("room").wait().expect("delivered");
}

#[test]
fn future_of_block_on_may_wait_and_may_stop_its_host() {
    let (hosts, [here, there]) = pair();
    let echo = thread::spawn(move || {
        while let Ok(message) = there.receive() {
            there.submit(Request::message(message.bytes)).expect("room");
        }
    });
    let waits = async {
        here.submit(Request::message(vec![7])).expect("room").wait().expect("delivered");
        here.receive().expect("an echo").bytes
    };
    assert_eq!(hosts[0].block_on(waits, None).expect("no time limit")[..], [7]);
    hosts[0].block_on(async { hosts[0].stop() }, None);
    assert!(here.receive().is_err(), "the host has stopped");
    echo.join().expect("no failure");
}

/// The peer reads the region all the time, so an engine that sent packets in this call would wait for the region's memory.
#[test]
fn ops_may_be_submitted_while_the_memory_of_a_region_is_held() {
    let (hosts, [here, there]) = pair();
    let region = hosts[0].register(vec![0; 1 << 16], Access::ALL).expect("memory");
    let (key, over) = (region.key(), Arc::new(AtomicBool::new(false)));
    let reads = thread::spawn({
        let (there, over) = (there.clone(), Arc::clone(&over));
        move || {
            while !over.load(Ordering::Relaxed) {
                let read = there.submit(Request::read(key, 0, 1 << 16)).expect("room");
                read.wait().expect("the region");
            }
        }
    });
    for n in 0..200 {
        let op = region.write(|bytes| {
            bytes[0] = n as u8;
            here.submit(Request::message(vec![n as u8])).expect("room")
        });
        if n % 2 == 0 {
            op.wait().expect("delivered");
        }
        assert_eq!(there.receive().expect("a message").bytes[..], [n as u8]);
    }
    over.store(true, Ordering::Relaxed);
    reads.join().expect("no failure");
}

#[test]
fn ops_of_several_threads_on_one_flow_are_sent_though_none_waits_for_the_host() {
    let (_hosts, [here, there]) = pair();
    for round in 0..100u64 {
        let (queue, ends) = async_channel::bounded(2);
        thread::scope(|scope| {
            for user in 0..2 {
                let (here, queue) = (&here, &queue);
                scope.spawn(move || {
                    here.submit_queued(0, Request::message(pattern(round, 64)), queue, user)
                });
            }
        });
        for _ in 0..2 {
            // This wait does not drive the engine.
            let end = ends.recv_blocking().expect("an end");
            end.result.expect("delivered");
            there.receive().expect("a message");
        }
    }
}

/// Repeats a measurement that another thread may disturb, until it holds, for at most a minute.
fn holds_at_last(what: &str, mut measure: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !measure() {
        assert!(Instant::now() < until, "{what}");
    }
}

/// Returns a counter of a host.
fn count(host: &Host, counter: impl Fn(&Stats) -> &AtomicU64) -> u64 {
    host.stats().map(|stats| counter(stats).load(Ordering::Relaxed)).sum()
}

/// Longer than the time within which a thread that waits again keeps its engine.
const PAUSE: Duration = Duration::from_micros(400);

/// Time after which a timer takes the engine from a thread that does not wait again.
const TIMER_MS: u64 = 4;

#[test]
#[ignore = "a busy machine exceeds the time within which a thread keeps its engine: run it alone on an idle machine"]
fn answer_to_an_op_is_left_to_the_thread_that_waits_for_each_op() {
    let (hosts, [here, _there]) = pair();
    let region = hosts[1].register(vec![0; 64], Access::WRITE).expect("memory");
    let write = || here.submit(Request::write(region.key(), 0, vec![1; 64])).expect("room");
    let received = || count(&hosts[0], |stats| &stats.datagrams_received);
    let sent = || count(&hosts[1], |stats| &stats.datagrams_sent);
    let is_left = || {
        for _ in 0..20 {
            thread::sleep(PAUSE);
            write().wait().expect("written");
        }
        thread::sleep(PAUSE);
        let (answers, read) = (sent(), received());
        let op = write();
        while sent() == answers {
            thread::yield_now();
        }
        thread::sleep(PAUSE);
        let left = received() == read;
        op.wait().expect("written");
        left
    };
    holds_at_last("the background thread reads answers", || {
        (0..10).filter(|_| is_left()).count() >= 4
    });
}

#[test]
#[ignore = "the scheduler decides about wake-ups: run it alone on an idle machine with two cores"]
fn op_wakes_each_side_about_once() {
    let (hosts, [here, there]) = pair();
    let region = hosts[1].register(vec![0; 64], Access::WRITE).expect("memory");
    let server = thread::spawn(move || there.receive().map(drop));
    let sleeps = || [0, 1].map(|side: usize| count(&hosts[side], |stats| &stats.sleeps));
    holds_at_last("an op takes more than 1.2 wake-ups of a side, apart from timers", || {
        let (before, from) = (sleeps(), Instant::now());
        for _ in 0..100 {
            thread::sleep(PAUSE);
            let write = here.submit(Request::write(region.key(), 0, vec![1; 64])).expect("room");
            write.wait().expect("written");
        }
        let (after, timers) = (sleeps(), from.elapsed().as_millis() as u64 / TIMER_MS);
        [0, 1].iter().all(|&side| after[side] - before[side] <= 120 + timers)
    });
    hosts.iter().for_each(Host::stop);
    assert!(server.join().expect("no panic").is_err(), "the host has stopped");
}

/// Answers every message.
struct Echo(Connection);

impl MessageReceiver for Echo {
    fn receive(&mut self, message: Message) {
        let answer = Request::message(message.bytes);
        self.0.submit_unreported(message.flow, answer).expect("room");
    }

    fn ended(&mut self, _: End) {}
}

#[test]
fn answer_of_a_receiver_leaves_with_the_acknowledgement_of_its_message() {
    let (hosts, [here, there]) = pair();
    there.receive_with(Echo(there.clone()));
    let sends = || count(&hosts[1], |stats| &stats.send_calls);
    let mut seed = 0;
    holds_at_last("an answer takes more than 1.1 sends", || {
        let before = sends();
        for _ in 0..100 {
            seed += 1;
            let message = Request::message(pattern(seed, 64));
            here.submit_unreported(0, message).expect("room");
            assert_eq!(here.receive().expect("an echo").bytes, pattern(seed, 64));
        }
        sends() - before <= 110
    });
}
