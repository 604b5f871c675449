//! Tests of the executor.

use alloc::sync::Arc;
use alloc::vec::Vec;

use apus_units::{Span, Time};

use super::{Done, Message, Progress, Rank, Unexpected};
use crate::graph::{ANY, Op, ProgramBuilder};

fn at(ns: u64) -> Time {
    Time::ZERO + Span::from_ns(ns)
}

fn rank(done: Done, ops: &[Op], requires: &[(u32, u32)], irequires: &[(u32, u32)]) -> Rank {
    let mut builder = ProgramBuilder::new(0, 4);
    for op in ops {
        builder.push(*op).expect("op");
    }
    for (op, awaited) in requires {
        builder.requires(*op, *awaited);
    }
    for (op, awaited) in irequires {
        builder.irequires(*op, *awaited);
    }
    Rank::new(Arc::new(builder.finish().expect("program")), done).with_times()
}

fn sent(rank: &mut Rank) -> Vec<u32> {
    core::iter::from_fn(|| rank.poll_message()).map(|message| message.op).collect()
}

#[test]
fn a_send_is_done_when_the_setting_says() {
    for (done, ends) in [(Done::Local, 10), (Done::Delivered, 20), (Done::Acknowledged, 30)] {
        let mut rank = rank(done, &[Op::send(1, 100, 7)], &[], &[]);
        rank.start(at(5));
        let message = Message { op: 0, to: 1, bytes: 100, tag: 7, nic: 0 };
        assert_eq!(rank.poll_message(), Some(message));
        rank.on_sent(at(10), 0);
        rank.on_delivered(at(20), 0);
        rank.on_acknowledged(at(30), 0);
        let times = rank.times().expect("times")[0];
        assert_eq!((times.start, times.end, rank.is_done()), (at(5), at(ends), true), "{done:?}");
        let ended = if done == Done::Acknowledged { at(ends) } else { Time::ZERO };
        assert_eq!(rank.ended_at(), ended);
    }
}

#[test]
fn requires_waits_for_the_end_and_irequires_for_the_start() {
    let compute = |ns| Op::compute(Span::from_ns(ns));
    let ops = [compute(100), Op::send(1, 1, 0).on_cpu(1), Op::send(1, 1, 1).on_cpu(1)];
    let mut rank = rank(Done::Local, &ops, &[(1, 0)], &[(2, 0)]);
    rank.start(at(0));
    assert_eq!(sent(&mut rank), [2]);
    assert_eq!(rank.next_timeout(), at(100));
    rank.handle_timeout(at(100));
    assert_eq!(sent(&mut rank), [1]);
}

#[test]
fn a_computation_holds_its_stream_and_no_other_one() {
    let compute = |ns, cpu| Op::compute(Span::from_ns(ns)).on_cpu(cpu);
    let ops = [compute(100, 0), compute(50, 0), Op::send(1, 1, 0), compute(30, 1)];
    let mut rank = rank(Done::Local, &ops, &[], &[]);
    rank.start(at(0));
    assert_eq!(sent(&mut rank), []);
    for ends in [30, 100, 150] {
        assert_eq!(rank.next_timeout(), at(ends));
        rank.handle_timeout(at(ends));
    }
    assert_eq!(sent(&mut rank), [2]);
    assert_eq!(rank.times().expect("times")[2].start, at(150));
}

#[test]
fn early_messages_wait_for_their_receive_and_leftovers_are_listed() {
    let ops = [Op::compute(Span::from_ns(10)), Op::receive(2, 5, 1), Op::receive(ANY, 5, 9)];
    let mut rank = rank(Done::Local, &ops, &[(1, 0)], &[]);
    rank.start(at(0));
    rank.on_arrival(at(1), (2, 0), 1, 5);
    rank.on_arrival(at(2), (3, 4), 1, 6);
    rank.handle_timeout(at(10));
    assert_eq!(rank.progress(1), Progress::Done);
    assert_eq!(rank.times().expect("times")[1].end, at(10));
    assert_eq!((rank.source(1), rank.source(2)), (Some((2, 0)), None));
    assert_eq!(rank.stuck().collect::<Vec<_>>(), [2]);
    let left = Unexpected { from: 3, tag: 1, bytes: 6 };
    assert_eq!(rank.unexpected().collect::<Vec<_>>(), [left]);
    assert_eq!(rank.program().describe(2), "op 2: receive 5 B from rank any, tag 9");
}
