//! The outstanding calls of a client, without I/O and clock.
//!
//! A slot is in use from the beginning of its call until the call's handle is dropped, the server has answered, and the body
//! of the answer has been read. A call that its caller has given up therefore counts until the server has ended it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;
use std::time::Instant;

use apus_udp::{End, Op, OpError};
use apus_units::Span;
use bytes::Bytes;

use crate::body::{Early, Receiving, Sending};
use crate::envelope::{CallId, Grant, Progress, Status, decode_failure};
use crate::error::{BodyError, CallError, Executed, Failure};
use crate::metrics::ClientMetrics;

/// The answer of a handler.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) payload: Bytes,
    pub(crate) body: Option<Arc<Receiving>>,
}

impl std::fmt::Debug for Receiving {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Receiving")
    }
}

/// End of a call for its caller.
pub(crate) enum Outcome {
    Answered(Answer),
    Failed(CallError),
    /// The connection ended. The end of the request's op shows whether the server may have seen the request.
    Ended(End, Option<Op>),
}

struct Slot {
    turn: u16,
    /// Whether the caller has a handle.
    held: bool,
    /// Whether the server has not answered yet.
    pending: bool,
    /// Whether the server was told that the call is cancelled.
    cancelled: bool,
    result: Option<Result<Answer, CallError>>,
    begun: Instant,
    deadline: Option<Instant>,
    waker: Option<Waker>,
    /// The op that sends the request.
    op: Option<Op>,
    sending: Option<Arc<Sending>>,
    receiving: Option<Arc<Receiving>>,
    /// Announcements of a body that arrived before the answer.
    early: Option<Early>,
}

impl Slot {
    fn is_over(&self) -> bool {
        !self.held && !self.pending && self.receiving.is_none()
    }

    /// Returns `true` if the deadline of the call still matters.
    fn waits(&self) -> bool {
        self.held && self.result.is_none() || self.receiving.is_some()
    }
}

#[derive(Default)]
struct Free {
    slots: Vec<u16>,
    waiters: Vec<Waker>,
}

/// Work that must be done after a slot is unlocked, because it may run the engine.
#[derive(Default)]
struct After {
    wakers: Vec<Waker>,
    waker: Option<Waker>,
    sending: Option<(Arc<Sending>, BodyError)>,
    receiving: Option<(Arc<Receiving>, BodyError)>,
    /// Values to drop. Their destructors may run any code.
    op: Option<Op>,
    unused: Option<Waker>,
}

impl After {
    fn run(self) {
        if let Some((sending, error)) = self.sending {
            sending.fail(error);
        }
        if let Some((receiving, error)) = self.receiving {
            receiving.fail(error);
        }
        self.waker.into_iter().chain(self.wakers).for_each(Waker::wake);
        drop((self.op, self.unused));
    }
}

/// The table of calls.
pub(crate) struct Table {
    slots: Box<[Mutex<Slot>]>,
    free: Mutex<Free>,
    has_waiters: AtomicBool,
    ended: OnceLock<End>,
    pub(crate) metrics: Arc<ClientMetrics>,
}

impl Table {
    pub(crate) fn new(limit: u16, now: Instant, metrics: Arc<ClientMetrics>) -> Self {
        let slot = || {
            Mutex::new(Slot {
                turn: u16::MAX,
                held: false,
                pending: false,
                cancelled: false,
                result: None,
                begun: now,
                deadline: None,
                waker: None,
                op: None,
                sending: None,
                receiving: None,
                early: None,
            })
        };
        let slots = (0..limit).map(|_| slot()).collect();
        // The slot freed last is used next, so that few slots occupy the caches.
        let free = Free { slots: (0..limit).rev().collect(), waiters: Vec::new() };
        let (free, has_waiters) = (Mutex::new(free), AtomicBool::new(false));
        Self { slots, free, has_waiters, ended: OnceLock::new(), metrics }
    }

    /// Returns the maximum number of outstanding calls.
    pub(crate) fn limit(&self) -> usize {
        self.slots.len()
    }

    fn free(&self) -> MutexGuard<'_, Free> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn slot(&self, index: u16) -> Option<MutexGuard<'_, Slot>> {
        let slot = self.slots.get(usize::from(index))?;
        Some(slot.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the slot of a call, if the call still occupies it.
    fn slot_of(&self, id: CallId) -> Option<MutexGuard<'_, Slot>> {
        self.slot(id.slot).filter(|slot| slot.turn == id.turn)
    }

    /// Returns how the connection ended, if it has ended.
    pub(crate) fn ended(&self) -> Option<End> {
        self.ended.get().copied()
    }

    /// Returns `true` if the server has calls that it has not answered, or the body of an answer is being read.
    pub(crate) fn is_busy(&self) -> bool {
        let busy = |slot: MutexGuard<'_, Slot>| slot.pending || slot.receiving.is_some();
        (0..self.slots.len() as u16).any(|index| self.slot(index).is_some_and(busy))
    }

    /// Takes a free slot.
    pub(crate) fn reserve(&self) -> Option<u16> {
        self.free().slots.pop()
    }

    /// Takes a free slot, or registers a waker for the next one.
    #[cfg(feature = "tower")]
    pub(crate) fn reserve_or_wait(&self, waker: &Waker) -> Option<u16> {
        let mut free = self.free();
        let slot = free.slots.pop();
        if slot.is_none() {
            free.waiters.retain(|other| !other.will_wake(waker));
            free.waiters.push(waker.clone());
            self.has_waiters.store(true, Ordering::Release);
        }
        slot
    }

    /// Gives a slot that [`Table::reserve`] has taken back to the free slots.
    pub(crate) fn unreserve(&self, slot: u16) {
        let mut free = self.free();
        free.slots.push(slot);
        let waiters = self.waiters(&mut free);
        drop(free);
        waiters.into_iter().for_each(Waker::wake);
    }

    fn waiters(&self, free: &mut Free) -> Vec<Waker> {
        if !self.has_waiters.load(Ordering::Acquire) {
            return Vec::new();
        }
        self.has_waiters.store(false, Ordering::Release);
        std::mem::take(&mut free.waiters)
    }

    /// Begins a call in a reserved slot.
    pub(crate) fn begin(
        &self,
        index: u16,
        now: Instant,
        deadline: Option<Instant>,
        sending: Option<Arc<Sending>>,
    ) -> CallId {
        let Some(mut slot) = self.slot(index) else { return CallId { slot: index, turn: 0 } };
        slot.turn = slot.turn.wrapping_add(1);
        (slot.held, slot.pending, slot.cancelled) = (true, true, false);
        (slot.begun, slot.deadline, slot.sending, slot.early) = (now, deadline, sending, None);
        CallId { slot: index, turn: slot.turn }
    }

    /// Stores the op of the request.
    pub(crate) fn set_op(&self, id: CallId, op: Op) {
        let before = self.slot_of(id).and_then(|mut slot| slot.op.replace(op));
        drop(before);
    }

    /// Ends a call whose request the connection did not accept. Its slot stays reserved. The next call in this slot has the
    /// same turn, unless the server was told that this call is cancelled. Turns must not be skipped at will, because the
    /// server can order turns only if they differ by less than 2^15.
    pub(crate) fn revert(&self, id: CallId) {
        let Some(mut slot) = self.slot_of(id) else { return };
        (slot.held, slot.pending, slot.result) = (false, false, None);
        if !slot.cancelled {
            slot.turn = slot.turn.wrapping_sub(1);
        }
        let (op, sending) = (slot.op.take(), slot.sending.take());
        drop(slot);
        drop((op, sending));
    }

    /// Frees a slot if its call is over.
    fn settle(&self, index: u16, slot: &mut Slot, after: &mut After) {
        if !slot.is_over() {
            return;
        }
        slot.result = None;
        slot.deadline = None;
        (after.op, after.unused) = (slot.op.take(), slot.waker.take());
        if let Some(sending) = slot.sending.take() {
            after.sending = Some((sending, BodyError::GivenUp));
        }
        let mut free = self.free();
        free.slots.push(index);
        after.wakers = self.waiters(&mut free);
    }

    /// Handles the server's answer to a call. Returns `false` if there is no such call.
    pub(crate) fn on_response(
        &self,
        now: Instant,
        id: CallId,
        status: Status,
        grant: Option<Grant>,
        payload: Bytes,
    ) -> bool {
        let Some(mut slot) = self.slot_of(id).filter(|slot| slot.pending) else { return false };
        slot.pending = false;
        // If the answer has no body, the handler has ended and reads no further.
        let over = if grant.is_none() { slot.sending.take() } else { None };
        let sending = over.map(|sending| (sending, BodyError::GivenUp));
        let mut after = After { sending, ..After::default() };
        let latency = now.saturating_duration_since(slot.begun).as_nanos();
        self.metrics.latency.record(Span::from_ns(latency.min(1 << 40) as u64));
        if slot.held && slot.result.is_none() {
            let early = slot.early.take();
            let result = outcome(status, payload, grant.map(|grant| Receiving::new(grant, early)));
            if let Ok(answer) = &result {
                slot.receiving.clone_from(&answer.body);
            }
            self.metrics.count(&result);
            slot.result = Some(result);
            after.waker = slot.waker.take();
        }
        self.settle(id.slot, &mut slot, &mut after);
        drop(slot);
        after.run();
        true
    }

    /// Takes the outcome of a call, or registers the waker.
    pub(crate) fn take(&self, id: CallId, waker: &Waker) -> Option<Outcome> {
        let mut slot = self.slot_of(id)?;
        let Some(result) = slot.result.take() else {
            if slot.waker.as_ref().is_none_or(|other| !other.will_wake(waker)) {
                let before = slot.waker.replace(waker.clone());
                drop(slot);
                drop(before);
            }
            return None;
        };
        Some(self.release(id, slot, result))
    }

    fn release(
        &self,
        id: CallId,
        mut slot: MutexGuard<'_, Slot>,
        result: Result<Answer, CallError>,
    ) -> Outcome {
        slot.held = false;
        let mut after = After::default();
        let op = match &result {
            Err(CallError::Ended(..)) => slot.op.take(),
            _ => None,
        };
        self.settle(id.slot, &mut slot, &mut after);
        drop(slot);
        after.run();
        match result {
            Ok(answer) => Outcome::Answered(answer),
            Err(CallError::Ended(end, _)) => Outcome::Ended(end, op),
            Err(error) => Outcome::Failed(error),
        }
    }

    /// Ends a call for its caller, with `error` unless the call has already ended. Also returns whether the server must be
    /// told.
    pub(crate) fn give_up(&self, id: CallId, error: CallError) -> Option<(Outcome, bool)> {
        let mut slot = self.slot_of(id)?;
        let result = match slot.result.take() {
            Some(result) => result,
            None => {
                let result = Err(error);
                // The caller counts a call that ended with its connection, according to the end of its request.
                if !matches!(result, Err(CallError::Ended(..))) {
                    self.metrics.count(&result);
                }
                result
            }
        };
        let tell = slot.pending && !std::mem::replace(&mut slot.cancelled, true);
        let sending = slot.sending.take();
        let outcome = self.release(id, slot, result);
        if let Some(sending) = sending {
            sending.fail(BodyError::Cancelled);
        }
        Some((outcome, tell))
    }

    /// Marks a call as cancelled. Its caller still waits for the server's answer. Returns `true` if the server must be told.
    pub(crate) fn cancel(&self, id: CallId) -> bool {
        let Some(mut slot) = self.slot_of(id) else { return false };
        if !slot.pending || std::mem::replace(&mut slot.cancelled, true) {
            return false;
        }
        let sending = slot.sending.take();
        drop(slot);
        if let Some(sending) = sending {
            sending.fail(BodyError::Cancelled);
        }
        true
    }

    /// Records that the reading of an answer's body has ended.
    pub(crate) fn body_over(&self, id: CallId) {
        let Some(mut slot) = self.slot_of(id) else { return };
        slot.receiving = None;
        let mut after = After::default();
        self.settle(id.slot, &mut slot, &mut after);
        drop(slot);
        after.run();
    }

    /// Handles an announcement by the sender of an answer's body.
    pub(crate) fn on_advance(&self, id: CallId, position: u64, progress: Progress) {
        let Some(mut slot) = self.slot_of(id) else { return };
        if let Some(receiving) = slot.receiving.clone() {
            drop(slot);
            receiving.on_advance(position, progress);
        } else if slot.pending {
            Early::add(&mut slot.early, position, progress);
        }
    }

    /// Handles a report by the receiver of a request's body.
    pub(crate) fn on_consumed(&self, id: CallId, position: u64, end: bool) {
        let sending = self.slot_of(id).and_then(|slot| slot.sending.clone());
        if let Some(sending) = sending {
            sending.on_consumed(position, end);
        }
    }

    /// Ends the calls whose deadline has passed. Calls `tell` for each call of which the server must be told. Returns the
    /// next deadline.
    pub(crate) fn expire(&self, now: Instant, mut tell: impl FnMut(CallId)) -> Option<Instant> {
        let mut next = None;
        for index in 0..self.slots.len() as u16 {
            let Some(mut slot) = self.slot(index) else { continue };
            let Some(at) = slot.deadline.filter(|_| slot.waits()) else { continue };
            if at > now {
                next = Some(next.map_or(at, |next: Instant| next.min(at)));
                continue;
            }
            slot.deadline = None;
            let mut after = After::default();
            if slot.held && slot.result.is_none() {
                let result = Err(CallError::Deadline(Executed::MayHaveRun));
                self.metrics.count(&result);
                slot.result = Some(result);
                after.waker = slot.waker.take();
            }
            after.sending = slot.sending.take().map(|sending| (sending, BodyError::Deadline));
            after.receiving = slot.receiving.clone().map(|body| (body, BodyError::Deadline));
            let told = std::mem::replace(&mut slot.cancelled, true);
            let id = CallId { slot: index, turn: slot.turn };
            drop(slot);
            after.run();
            if !told {
                tell(id);
            }
        }
        next
    }

    /// Ends all calls, because the connection has ended.
    pub(crate) fn end(&self, end: End) {
        let _ = self.ended.set(end);
        for index in 0..self.slots.len() as u16 {
            let Some(mut slot) = self.slot(index) else { continue };
            let receiving = slot.receiving.clone().map(|body| (body, BodyError::Ended(end)));
            // Includes an answered call: its handler may read the body of the request while it produces the body of the
            // answer.
            let sending = slot.sending.take().map(|body| (body, BodyError::Ended(end)));
            let mut after = After { receiving, sending, ..After::default() };
            if std::mem::take(&mut slot.pending) {
                if slot.held && slot.result.is_none() {
                    // The caller counts this call, according to the end of its request.
                    slot.result = Some(Err(CallError::Ended(end, Executed::MayHaveRun)));
                    after.waker = slot.waker.take();
                }
                self.settle(index, &mut slot, &mut after);
            }
            drop(slot);
            after.run();
        }
        let waiters = std::mem::take(&mut self.free().waiters);
        waiters.into_iter().for_each(Waker::wake);
    }
}

/// Returns whether a call may have run whose request ended like this, together with its connection.
pub(crate) fn executed(request: &Result<apus_udp::Done, OpError>) -> Executed {
    match request {
        Err(OpError::NotSent(_) | OpError::Refused(_)) => Executed::NotRun,
        Ok(_) | Err(OpError::Unknown(_)) => Executed::MayHaveRun,
    }
}

fn outcome(
    status: Status,
    payload: Bytes,
    body: Option<Arc<Receiving>>,
) -> Result<Answer, CallError> {
    match status {
        Status::Done => Ok(Answer { payload, body }),
        Status::Failed => Err(match decode_failure(&payload) {
            Ok((code, message)) => CallError::Failed(Failure { code, message }),
            Err(_) => CallError::Failed(Failure::new(0, "")),
        }),
        Status::Overloaded => Err(CallError::Overloaded),
        Status::Expired => Err(CallError::Deadline(Executed::NotRun)),
        Status::ExpiredRunning => Err(CallError::Deadline(Executed::Ran)),
        Status::UnknownMethod => Err(CallError::UnknownMethod),
        Status::CancelledBefore => Err(CallError::Cancelled(Executed::NotRun)),
        Status::Cancelled => Err(CallError::Cancelled(Executed::Ran)),
        Status::Panicked => Err(CallError::Panicked),
        Status::Abandoned => Err(CallError::NoAnswer),
        Status::TooLong => Err(CallError::AnswerTooLong),
        Status::Stopping => Err(CallError::Stopping),
    }
}

#[cfg(test)]
mod tests;
