use std::sync::Weak;
use std::task::Wake;
use std::time::Duration;

use super::*;

fn table(limit: u16) -> (Table, Instant) {
    let now = Instant::now();
    (Table::new(limit, now, Arc::default()), now)
}

fn begin(table: &Table, now: Instant, deadline: Option<Instant>) -> CallId {
    table.begin(table.reserve().expect("a free slot"), now, deadline, None)
}

fn answer(table: &Table, now: Instant, id: CallId) -> bool {
    table.on_response(now, id, Status::Done, None, Bytes::from_static(b"hi"))
}

fn taken(table: &Table, id: CallId) -> Result<Bytes, CallError> {
    match table.take(id, Waker::noop()).expect("an outcome") {
        Outcome::Answered(answer) => Ok(answer.payload),
        Outcome::Failed(error) => Err(error),
        Outcome::Ended(end, _) => Err(CallError::Ended(end, Executed::MayHaveRun)),
    }
}

#[test]
fn slot_is_free_again_when_the_answer_was_taken() {
    let (table, now) = table(2);
    let [a, b] = [(); 2].map(|()| begin(&table, now, None));
    assert_eq!(table.reserve(), None);
    assert!(table.take(a, Waker::noop()).is_none());
    assert!(answer(&table, now, a) && !answer(&table, now, a), "one answer per call");
    assert_eq!(table.reserve(), None, "the caller has not taken the answer");
    assert_eq!(taken(&table, a).as_deref(), Ok(&b"hi"[..]));
    let again = begin(&table, now, None);
    assert_eq!((again.slot, again.turn), (a.slot, a.turn + 1));
    assert!(!answer(&table, now, a), "the former call of the slot");
    assert!(answer(&table, now, b));
}

/// Calls that find no room on the connection, as in a loop that tries until there is room.
#[test]
fn call_that_was_not_sent_uses_no_turn() {
    let (table, now) = table(1);
    let slot = table.reserve().expect("a free slot");
    let first = table.begin(slot, now, None, None);
    table.revert(first);
    for _ in 0..1 << 16 {
        let again = table.begin(slot, now, None, None);
        assert_eq!(again, first);
        table.revert(again);
    }
}

#[test]
fn call_that_was_not_sent_uses_its_turn_if_the_server_was_told_of_its_end() {
    let (table, now) = table(1);
    let slot = table.reserve().expect("a free slot");
    let first = table.begin(slot, now, Some(now), None);
    let mut told = Vec::new();
    table.expire(now, |id| told.push(id));
    assert_eq!(told, [first]);
    table.revert(first);
    let second = table.begin(slot, now, None, None);
    assert_eq!(second.turn, first.turn.wrapping_add(1));
    assert!(table.take(second, Waker::noop()).is_none(), "the end is that of the first call");
}

/// A waker of the application. Its destructor uses the client.
struct Shy(Weak<Table>);

impl Wake for Shy {
    fn wake(self: Arc<Self>) {}
}

impl Drop for Shy {
    fn drop(&mut self) {
        let table = self.0.upgrade().expect("the table");
        assert!(table.slots[0].try_lock().is_ok(), "the slot is locked");
    }
}

#[test]
fn waker_of_a_call_that_was_given_up_is_dropped_while_its_slot_is_unlocked() {
    let (table, now) = table(1);
    let table = Arc::new(table);
    let id = begin(&table, now, None);
    let waker = Waker::from(Arc::new(Shy(Arc::downgrade(&table))));
    assert!(table.take(id, &waker).is_none());
    drop(waker);
    assert!(table.give_up(id, CallError::Cancelled(Executed::MayHaveRun)).is_some());
    assert!(table.on_response(now, id, Status::CancelledBefore, None, Bytes::new()));
}

#[test]
fn given_up_call_keeps_its_slot_until_the_server_has_ended_it() {
    let (table, now) = table(1);
    let id = begin(&table, now, None);
    let (outcome, tell) =
        table.give_up(id, CallError::Cancelled(Executed::MayHaveRun)).expect("the call");
    assert!(tell && matches!(outcome, Outcome::Failed(CallError::Cancelled(_))));
    assert_eq!(table.reserve(), None);
    assert!(table.on_response(now, id, Status::CancelledBefore, None, Bytes::new()));
    assert!(table.reserve().is_some());
}

#[test]
fn deadline_ends_the_call_for_the_caller_and_tells_the_server_once() {
    let (table, now) = table(4);
    let at = |ms| now + Duration::from_millis(ms);
    let [first, second] = [10, 20].map(|ms| begin(&table, now, Some(at(ms))));
    let none = begin(&table, now, None);
    let mut told = Vec::new();
    assert_eq!(table.expire(at(9), |id| told.push(id)), Some(at(10)));
    assert!(told.is_empty());
    assert_eq!(table.expire(at(10), |id| told.push(id)), Some(at(20)));
    assert_eq!(told, [first]);
    assert_eq!(taken(&table, first), Err(CallError::Deadline(Executed::MayHaveRun)));
    assert!(!table.cancel(first) && table.cancel(second) && !table.cancel(second));
    assert!(answer(&table, now, second));
    assert_eq!(table.expire(at(30), |id| told.push(id)), None, "it was answered in time");
    assert_eq!((told.len(), taken(&table, second).is_ok()), (1, true));
    assert!(table.take(none, Waker::noop()).is_none(), "no deadline");
}

#[test]
fn end_of_the_connection_ends_all_calls() {
    let (table, now) = table(4);
    let [answered, held, given_up] = [(); 3].map(|()| begin(&table, now, None));
    answer(&table, now, answered);
    table.give_up(given_up, CallError::Cancelled(Executed::MayHaveRun));
    table.end(End::PeerRestarted);
    assert_eq!(table.ended(), Some(End::PeerRestarted));
    assert!(taken(&table, answered).is_ok());
    let ended = Err(CallError::Ended(End::PeerRestarted, Executed::MayHaveRun));
    assert_eq!(taken(&table, held), ended);
    assert_eq!(table.free().slots.len(), 4);
}

#[test]
fn every_status_says_whether_the_call_ran() {
    use Executed::{NotRun, Ran};
    use Status::{
        Abandoned, Cancelled, CancelledBefore, Expired, ExpiredRunning, Failed, Overloaded,
        Panicked, Stopping, TooLong, UnknownMethod,
    };
    for (status, executed) in [
        (Overloaded, NotRun),
        (Expired, NotRun),
        (UnknownMethod, NotRun),
        (CancelledBefore, NotRun),
        (Stopping, NotRun),
        (Failed, Ran),
        (ExpiredRunning, Ran),
        (Cancelled, Ran),
        (Panicked, Ran),
        (Abandoned, Ran),
        (TooLong, Ran),
    ] {
        let error = outcome(status, Bytes::new(), None).expect_err("a failure");
        assert_eq!(error.executed(), executed, "{status:?}");
    }
}
