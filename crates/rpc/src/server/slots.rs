//! The calls of one connection at its server, without I/O and clock.
//!
//! The client chooses the slots. It reuses a slot only after the server has answered the call in it. Messages may arrive in
//! any order: a cancellation can arrive before its request, and the next request of a slot before the last message of the
//! previous call.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Instant;

use apus_udp::End;

use crate::body::{Early, Receiving, Sending};
use crate::envelope::{CallId, Grant, Progress, Status};
use crate::error::BodyError;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No call.
    Idle,
    /// A cancellation has arrived before its request.
    CancelledBefore,
    /// A call waits for its handler.
    Waiting,
    /// The handler of a call runs.
    Running,
    /// The handler has answered, and the client reads the body of the answer.
    Sending,
}

/// Reason why a handler should give up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    Cancelled,
    Expired,
    Ended(End),
    /// The server is being dropped, and its connection afterwards.
    Stopping,
}

impl Why {
    fn error(self) -> BodyError {
        match self {
            Self::Cancelled => BodyError::Cancelled,
            Self::Expired => BodyError::Deadline,
            Self::Ended(end) => BodyError::Ended(end),
            Self::Stopping => BodyError::Ended(End::ClosedHere),
        }
    }

    /// Returns the status of a call that gave up for this reason.
    pub(super) fn status(self, ran: bool) -> Status {
        match (self, ran) {
            (Self::Cancelled | Self::Ended(_), false) => Status::CancelledBefore,
            (Self::Stopping, false) => Status::Stopping,
            (Self::Cancelled | Self::Ended(_) | Self::Stopping, true) => Status::Cancelled,
            (Self::Expired, false) => Status::Expired,
            (Self::Expired, true) => Status::ExpiredRunning,
        }
    }
}

struct Slot {
    /// The number of the call that used the slot last.
    turn: u16,
    phase: Phase,
    why: Option<Why>,
    deadline: Option<Instant>,
    /// Wakes the future of an asynchronous handler.
    waker: Option<Waker>,
    receiving: Option<Arc<Receiving>>,
    sending: Option<Arc<Sending>>,
    /// Announcements of the body of the next call, if they arrived before its request, and the turn of that call.
    early: Option<(u16, Option<Early>)>,
}

/// The bodies of a call that was answered with a body, once the client reads no further. They are ended after the lock of the
/// slot is released.
struct Former {
    receiving: Option<Arc<Receiving>>,
    sending: Option<Arc<Sending>>,
    waker: Option<Waker>,
}

impl Former {
    fn of(slot: &mut Slot) -> Self {
        Self {
            receiving: slot.receiving.take(),
            sending: slot.sending.take(),
            waker: slot.waker.take(),
        }
    }

    /// Ends the waits of the handler for the bodies, and tells the handler to give up if the client has not read all.
    fn end(self) {
        if let Some(receiving) = self.receiving {
            receiving.fail(BodyError::GivenUp);
        }
        let Some(sending) = self.sending else { return };
        sending.close();
        if let Some(waker) = self.waker.filter(|_| sending.has_failed()) {
            waker.wake();
        }
    }
}

/// Result of the arrival of a request.
pub(super) enum Arrived {
    /// The call must run. `freed` states whether the arrival has ended the previous call of the slot.
    Accepted { freed: bool, body: Option<Arc<Receiving>> },
    /// The call was cancelled before its request arrived.
    Cancelled,
    /// The client breaks the protocol.
    Violation,
}

/// A message that this side must send, or a change of the number of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    None,
    /// The call has ended without running and must be answered. It is still in a queue.
    Answer(Why),
    /// The call has ended. It was answered before.
    Freed,
}

/// The calls of one connection.
pub(super) struct Slots {
    slots: Box<[Mutex<Slot>]>,
}

/// Returns `true` if `turn` was used before `other`, modulo 2^16.
fn is_before(turn: u16, other: u16) -> bool {
    turn != other && other.wrapping_sub(turn) < 1 << 15
}

impl Slots {
    pub(super) fn new(count: u16) -> Self {
        let slot = || {
            Mutex::new(Slot {
                turn: u16::MAX,
                phase: Phase::Idle,
                why: None,
                deadline: None,
                waker: None,
                receiving: None,
                sending: None,
                early: None,
            })
        };
        Self { slots: (0..count).map(|_| slot()).collect() }
    }

    /// Returns `true` if a call waits, runs, or has an answer whose body is being read.
    pub(super) fn is_busy(&self) -> bool {
        let busy = |phase| matches!(phase, Phase::Waiting | Phase::Running | Phase::Sending);
        (0..self.slots.len() as u16)
            .any(|slot| self.slot(slot).is_some_and(|slot| busy(slot.phase)))
    }

    /// Returns the number of calls that the connection may have.
    pub(super) fn count(&self) -> usize {
        self.slots.len()
    }

    fn slot(&self, index: u16) -> Option<MutexGuard<'_, Slot>> {
        let slot = self.slots.get(usize::from(index))?;
        Some(slot.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the slot of a call, if the call still occupies it.
    fn slot_of(&self, id: CallId) -> Option<MutexGuard<'_, Slot>> {
        self.slot(id.slot).filter(|slot| slot.turn == id.turn)
    }

    /// Handles a request.
    pub(super) fn arrive(
        &self,
        id: CallId,
        deadline: Option<Instant>,
        grant: Option<Grant>,
    ) -> Arrived {
        let Some(mut slot) = self.slot(id.slot) else { return Arrived::Violation };
        match slot.phase {
            Phase::CancelledBefore if slot.turn == id.turn => {
                slot.phase = Phase::Idle;
                return Arrived::Cancelled;
            }
            // A client that cancels a call may not have sent its request.
            Phase::Idle | Phase::Sending | Phase::CancelledBefore
                if is_before(slot.turn, id.turn) => {}
            _ => return Arrived::Violation,
        }
        let freed = slot.phase == Phase::Sending;
        let former = Former::of(&mut slot);
        slot.turn = id.turn;
        slot.phase = Phase::Waiting;
        let early = slot.early.take().filter(|(turn, _)| *turn == id.turn);
        let body = grant.map(|grant| Receiving::new(grant, early.and_then(|(_, early)| early)));
        (slot.why, slot.deadline) = (None, deadline);
        slot.receiving.clone_from(&body);
        drop(slot);
        former.end();
        Arrived::Accepted { freed, body }
    }

    /// Marks a waiting call as running. Returns `true` if its handler must run now.
    pub(super) fn start(&self, id: CallId) -> bool {
        let Some(mut slot) = self.slot_of(id) else { return false };
        let starts = slot.phase == Phase::Waiting;
        if starts {
            slot.phase = Phase::Running;
        }
        starts
    }

    /// Sets the waker for the case that the handler of a call should give up. The caller must check [`Slots::why`]
    /// afterwards, and [`Sending::has_failed`] of the answer's body.
    pub(super) fn set_waker(&self, id: CallId, waker: Waker) {
        let runs = |phase| matches!(phase, Phase::Running | Phase::Sending);
        if let Some(mut slot) = self.slot_of(id).filter(|slot| runs(slot.phase)) {
            slot.waker = Some(waker);
        }
    }

    /// Ends a call that waits or runs; the caller must answer it. With `sending`, the client then reads a body. Returns
    /// `None` if the call was answered before, otherwise the reason why its handler should have given up, if any.
    pub(super) fn finish(&self, id: CallId, sending: Option<&Arc<Sending>>) -> Option<Option<Why>> {
        let mut slot = self.slot_of(id)?;
        if !matches!(slot.phase, Phase::Waiting | Phase::Running) {
            return None;
        }
        let why = slot.why.take();
        slot.phase = match sending {
            Some(_) if why.is_none() => Phase::Sending,
            _ => Phase::Idle,
        };
        slot.sending = sending.filter(|_| why.is_none()).cloned();
        // A handler that sends the body of its answer may still read the body of the request, and may have to give up.
        let ended = slot.phase == Phase::Idle;
        let waker = slot.waker.take_if(|_| ended);
        let receiving = slot.receiving.take_if(|_| ended);
        drop(slot);
        drop(waker);
        if let Some(receiving) = receiving {
            receiving.fail(BodyError::GivenUp);
        }
        Some(why)
    }

    /// Gives up a call. A waiting call ends; a running handler is told.
    fn give_up(mut slot: MutexGuard<'_, Slot>, why: Why) -> Effect {
        let effect = match slot.phase {
            Phase::Waiting => {
                slot.phase = Phase::Idle;
                Effect::Answer(why)
            }
            Phase::Sending => {
                slot.phase = Phase::Idle;
                Effect::Freed
            }
            Phase::Running if slot.why.is_none() => {
                slot.why = Some(why);
                Effect::None
            }
            Phase::Running | Phase::Idle | Phase::CancelledBefore => return Effect::None,
        };
        slot.deadline = None;
        let (waker, sending) = (slot.waker.take(), slot.sending.take());
        let receiving = slot.receiving.clone();
        drop(slot);
        if let Some(sending) = sending {
            sending.fail(why.error());
        }
        if let Some(receiving) = receiving {
            receiving.fail(why.error());
        }
        if let Some(waker) = waker {
            waker.wake();
        }
        effect
    }

    /// Handles a cancellation.
    pub(super) fn cancel(&self, id: CallId) -> Effect {
        let Some(mut slot) = self.slot(id.slot) else { return Effect::None };
        if slot.turn == id.turn {
            return Self::give_up(slot, Why::Cancelled);
        }
        let idle = matches!(slot.phase, Phase::Idle | Phase::Sending | Phase::CancelledBefore);
        let freed = slot.phase == Phase::Sending;
        // A late cancellation of a previous call has no effect.
        if idle && is_before(slot.turn, id.turn) {
            slot.turn = id.turn;
            slot.phase = Phase::CancelledBefore;
            let former = Former::of(&mut slot);
            drop(slot);
            former.end();
            return if freed { Effect::Freed } else { Effect::None };
        }
        Effect::None
    }

    /// Returns the reason why the handler of an unanswered call should give up, if there is one.
    pub(super) fn why(&self, id: CallId) -> Option<Why> {
        self.slot_of(id)?.why
    }

    /// Handles an announcement by the sender of a request's body.
    pub(super) fn on_advance(&self, id: CallId, position: u64, progress: Progress) {
        let Some(mut slot) = self.slot(id.slot) else { return };
        if slot.turn != id.turn {
            if is_before(slot.turn, id.turn) {
                let early = slot.early.get_or_insert((id.turn, None));
                if is_before(early.0, id.turn) {
                    *early = (id.turn, None);
                }
                if early.0 == id.turn {
                    Early::add(&mut early.1, position, progress);
                }
            }
            return;
        }
        let receiving = slot.receiving.clone();
        drop(slot);
        if let Some(receiving) = receiving {
            receiving.on_advance(position, progress);
        }
    }

    /// Handles a report by the receiver of an answer's body.
    pub(super) fn on_consumed(&self, id: CallId, position: u64, end: bool) -> Effect {
        let sending = self.slot_of(id).and_then(|slot| slot.sending.clone());
        let Some(sending) = sending else { return Effect::None };
        if !sending.on_consumed(position, end) {
            return Effect::None;
        }
        let Some(mut slot) = self.slot_of(id).filter(|slot| slot.phase == Phase::Sending) else {
            return Effect::None;
        };
        slot.phase = Phase::Idle;
        let former = Former::of(&mut slot);
        drop(slot);
        former.end();
        Effect::Freed
    }

    /// Gives up the calls whose deadline has passed, and calls `effect` for each of them. Returns the next deadline.
    pub(super) fn expire(
        &self,
        now: Instant,
        mut effect: impl FnMut(CallId, Effect),
    ) -> Option<Instant> {
        let mut next = None;
        for index in 0..self.slots.len() as u16 {
            let Some(slot) = self.slot(index) else { continue };
            let active = !matches!(slot.phase, Phase::Idle | Phase::CancelledBefore);
            let Some(at) = slot.deadline.filter(|_| active) else { continue };
            if at <= now {
                let id = CallId { slot: index, turn: slot.turn };
                effect(id, Self::give_up(slot, Why::Expired));
            } else {
                next = Some(next.map_or(at, |next: Instant| next.min(at)));
            }
        }
        next
    }

    /// Gives up all calls, and calls `effect` for each.
    pub(super) fn end(&self, why: Why, mut effect: impl FnMut(CallId, Effect)) {
        for index in 0..self.slots.len() as u16 {
            let Some(slot) = self.slot(index) else { continue };
            let id = CallId { slot: index, turn: slot.turn };
            effect(id, Self::give_up(slot, why));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn id(slot: u16, turn: u16) -> CallId {
        CallId { slot, turn }
    }

    /// Returns whether a request is accepted and must run; `None` for a violation of the protocol.
    fn arrive(slots: &Slots, id: CallId) -> Option<bool> {
        match slots.arrive(id, None, None) {
            Arrived::Accepted { freed, body } => {
                assert!(!freed && body.is_none());
                Some(true)
            }
            Arrived::Cancelled => Some(false),
            Arrived::Violation => None,
        }
    }

    #[test]
    fn call_is_answered_once_and_its_slot_used_again() {
        let slots = Slots::new(2);
        assert_eq!(arrive(&slots, id(0, 0)), Some(true));
        assert_eq!(arrive(&slots, id(0, 1)), None, "not answered");
        assert_eq!(arrive(&slots, id(2, 0)), None, "no such slot");
        assert!(slots.start(id(0, 0)) && !slots.start(id(0, 0)));
        assert_eq!(slots.finish(id(0, 0), None), Some(None));
        assert_eq!(slots.finish(id(0, 0), None), None);
        assert_eq!(arrive(&slots, id(0, 0)), None, "a former turn");
        assert_eq!(arrive(&slots, id(0, 1)), Some(true));
    }

    #[test]
    fn cancellation_ends_a_waiting_call_and_is_seen_by_a_running_one() {
        let slots = Slots::new(1);
        slots.arrive(id(0, 0), None, None);
        assert_eq!(slots.cancel(id(0, 0)), Effect::Answer(Why::Cancelled));
        assert!(!slots.start(id(0, 0)), "it has ended");
        slots.arrive(id(0, 1), None, None);
        assert!(slots.start(id(0, 1)));
        assert_eq!(slots.why(id(0, 1)), None);
        assert_eq!(slots.cancel(id(0, 1)), Effect::None);
        assert_eq!(slots.why(id(0, 1)), Some(Why::Cancelled));
        assert_eq!(slots.finish(id(0, 1), None), Some(Some(Why::Cancelled)));
        assert_eq!(slots.cancel(id(0, 1)), Effect::None, "too late");
        assert_eq!(arrive(&slots, id(0, 2)), Some(true));
    }

    #[test]
    fn cancellation_that_overtakes_its_request_prevents_it() {
        let slots = Slots::new(1);
        assert_eq!(slots.cancel(id(0, 0)), Effect::None);
        assert_eq!(arrive(&slots, id(0, 0)), Some(false));
        assert_eq!(arrive(&slots, id(0, 1)), Some(true));
        slots.start(id(0, 1));
        slots.finish(id(0, 1), None);
        // A late cancellation of the previous call.
        assert_eq!(slots.cancel(id(0, 0)), Effect::None);
        assert_eq!(arrive(&slots, id(0, 2)), Some(true));
    }

    /// The deadline of a call may pass while the client finds that its connection has no room for the request.
    #[test]
    fn cancellation_of_a_call_that_was_never_sent_does_not_prevent_the_next_one() {
        let slots = Slots::new(1);
        assert_eq!(slots.cancel(id(0, 0)), Effect::None);
        assert_eq!(slots.cancel(id(0, 1)), Effect::None);
        assert_eq!(arrive(&slots, id(0, 1)), Some(false));
        assert_eq!(slots.cancel(id(0, 2)), Effect::None);
        assert_eq!(arrive(&slots, id(0, 3)), Some(true));
        assert_eq!(arrive(&slots, id(0, 2)), None, "a former turn");
    }

    #[test]
    fn turns_wrap() {
        assert!(is_before(u16::MAX, 0) && !is_before(0, u16::MAX) && !is_before(3, 3));
        let slots = Slots::new(1);
        for turn in 0..=u16::MAX {
            assert_eq!(arrive(&slots, id(0, turn)), Some(true));
            slots.finish(id(0, turn), None);
        }
        assert_eq!(arrive(&slots, id(0, 0)), Some(true));
    }

    #[test]
    fn passed_deadlines_end_waiting_calls_and_are_seen_by_running_ones() {
        let (slots, now) = (Slots::new(3), Instant::now());
        let at = |ms| now + Duration::from_millis(ms);
        for (slot, ms) in [(0, 10), (1, 20), (2, 30)] {
            slots.arrive(id(slot, 0), Some(at(ms)), None);
        }
        slots.start(id(1, 0));
        let mut effects = Vec::new();
        assert_eq!(slots.expire(at(9), |id, effect| effects.push((id, effect))), Some(at(10)));
        assert_eq!(slots.expire(at(20), |id, effect| effects.push((id, effect))), Some(at(30)));
        assert_eq!(effects, [(id(0, 0), Effect::Answer(Why::Expired)), (id(1, 0), Effect::None)]);
        assert_eq!(slots.finish(id(1, 0), None), Some(Some(Why::Expired)));
        assert_eq!(Why::Expired.status(true), Status::ExpiredRunning);
    }

    #[test]
    fn end_of_the_connection_ends_waiting_calls_at_once() {
        let slots = Slots::new(3);
        slots.arrive(id(0, 0), None, None);
        slots.arrive(id(1, 0), None, None);
        slots.start(id(1, 0));
        let (why, mut effects) = (Why::Ended(End::ClosedByPeer), Vec::new());
        slots.end(why, |id, effect| effects.push((id, effect)));
        let none = (id(2, u16::MAX), Effect::None);
        assert_eq!(effects, [(id(0, 0), Effect::Answer(why)), (id(1, 0), Effect::None), none]);
        assert!(!slots.start(id(0, 0)), "it has ended");
        assert_eq!(slots.why(id(1, 0)), Some(why));
    }

    #[test]
    fn announcements_that_overtake_their_request_are_kept() {
        let slots = Slots::new(1);
        slots.on_advance(id(0, 0), 5, Progress::End);
        slots.on_advance(id(0, 0), 3, Progress::More);
        let grant = Grant { region: 1, capacity: 10, length: None, whole: false };
        let Arrived::Accepted { body, .. } = slots.arrive(id(0, 0), None, Some(grant)) else {
            panic!("the call");
        };
        assert_eq!(body.expect("a body").announced(), (5, true));
        slots.finish(id(0, 0), None);
        // Announcements of a previous call have no effect.
        slots.on_advance(id(0, 1), 1, Progress::End);
        slots.on_advance(id(0, 2), 2, Progress::More);
        slots.on_advance(id(0, 1), 3, Progress::End);
        let Arrived::Accepted { body, .. } = slots.arrive(id(0, 2), None, Some(grant)) else {
            panic!("the call");
        };
        assert_eq!(body.expect("a body").announced(), (2, false));
    }
}
