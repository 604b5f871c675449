//! The receiver of a body.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use apus_udp::{Cause, Op, OpError, RegionKey, Request, SubmitError};

use super::{BodyLink, CHUNK_BYTES, READ_AHEAD};
use crate::envelope::{Grant, Header, Progress};
use crate::error::BodyError;

struct State {
    /// Number of bytes of the body that the sender has announced.
    available: u64,
    /// Number of bytes whose room in the ring the sender may reuse.
    released: u64,
    ended: bool,
    failed: Option<BodyError>,
    waker: Option<Waker>,
}

/// Announcements of a body that arrived before the message with its grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Early {
    position: u64,
    progress: Progress,
}

impl Early {
    /// Adds an announcement to the earlier ones.
    pub(crate) fn add(early: &mut Option<Self>, position: u64, progress: Progress) {
        let early = early.get_or_insert(Self { position, progress });
        early.position = early.position.max(position);
        if progress != Progress::More {
            early.progress = progress;
        }
    }
}

/// A body that this side receives.
pub(crate) struct Receiving {
    grant: Grant,
    state: Mutex<State>,
}

impl Receiving {
    pub(crate) fn new(grant: Grant, early: Option<Early>) -> Arc<Self> {
        let available = if grant.whole { grant.capacity } else { 0 };
        let state = State { available, released: 0, ended: grant.whole, failed: None, waker: None };
        let body = Arc::new(Self { grant, state: Mutex::new(state) });
        if let Some(Early { position, progress }) = early {
            body.on_advance(position, progress);
        }
        body
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Handles an announcement by the sender.
    pub(crate) fn on_advance(&self, position: u64, progress: Progress) {
        let mut state = self.state();
        let longer = self.grant.length.is_some_and(|length| position > length);
        if longer
            || self.grant.whole
            || position > state.released.saturating_add(self.grant.capacity)
        {
            state.failed.get_or_insert(BodyError::Invalid);
        }
        // Messages may arrive in any order.
        state.available = state.available.max(position);
        match progress {
            Progress::More => {}
            Progress::End if self.grant.length.is_none_or(|length| position == length) => {
                state.ended = true;
            }
            Progress::End => _ = state.failed.get_or_insert(BodyError::Invalid),
            Progress::GivenUp => _ = state.failed.get_or_insert(BodyError::GivenUp),
        }
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Returns the number of announced bytes, and whether the body ends there.
    #[cfg(test)]
    pub(crate) fn announced(&self) -> (u64, bool) {
        let state = self.state();
        (state.available, state.ended)
    }

    /// Ends the body early.
    pub(crate) fn fail(&self, error: BodyError) {
        let mut state = self.state();
        state.failed.get_or_insert(error);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Called once when a reader stops reading. The argument states whether it has read the whole body.
pub(crate) type OnEnd = Box<dyn FnOnce(bool) + Send + Sync>;

/// Receiving end of a body. It fetches bytes when they are requested, and a few chunks ahead. Dropping it tells the sender that
/// no further byte is needed.
pub struct BodyReader {
    body: Arc<Receiving>,
    link: BodyLink,
    /// Reads in flight, in the order of the body, with their lengths.
    reads: VecDeque<(Op, u64)>,
    /// Number of bytes for which reads were submitted.
    requested: u64,
    /// Number of bytes that the caller has received.
    taken: u64,
    on_end: Option<OnEnd>,
}

impl BodyReader {
    pub(crate) fn new(body: Arc<Receiving>, link: BodyLink, on_end: OnEnd) -> Self {
        let on_end = Some(on_end);
        Self { body, link, reads: VecDeque::new(), requested: 0, taken: 0, on_end }
    }

    /// Returns the length of the body in bytes, if the sender has stated it.
    #[must_use]
    pub fn length(&self) -> Option<u64> {
        self.body.grant.length
    }

    /// Submits reads for announced bytes. Returns `false` if the connection has no room for a read and none is in flight.
    fn read_ahead(&mut self, available: u64) -> Result<bool, BodyError> {
        let Grant { region, capacity, .. } = self.body.grant;
        let connection = &self.link.outgoing.connection;
        while self.requested < available && self.reads.len() < READ_AHEAD {
            let at = self.requested % capacity;
            let length = CHUNK_BYTES.min(available - self.requested).min(capacity - at);
            let read = Request::read(RegionKey::new(region), at, length as usize);
            // If the connection has several flows, calls do not queue behind bodies.
            match connection.submit_to(connection.flows() - 1, read) {
                Ok(op) => {
                    self.reads.push_back((op, length));
                    self.requested += length;
                }
                Err(SubmitError::Full) => return Ok(!self.reads.is_empty()),
                Err(SubmitError::Ended(end)) => return Err(BodyError::Ended(end)),
                Err(SubmitError::Draining | SubmitError::PeerDraining) => {
                    return Err(BodyError::Draining);
                }
                Err(_) => return Err(BodyError::Invalid),
            }
        }
        Ok(true)
    }

    /// Returns the room of the bytes read so far to the sender.
    fn release(&mut self) {
        let Grant { capacity, whole, .. } = self.body.grant;
        let mut state = self.body.state();
        if whole || self.taken - state.released < (capacity / 4).max(1) {
            return;
        }
        state.released = self.taken;
        drop(state);
        let header = Header::Consumed { id: self.link.id, position: self.taken, end: false };
        self.link.outgoing.post(&header, &[]);
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Vec<u8>>, BodyError>> {
        if self.on_end.is_none() {
            return Poll::Ready(Ok(None));
        }
        let mut state = self.body.state();
        if let Some(failed) = &state.failed {
            let failed = failed.clone();
            drop(state);
            return Poll::Ready(Err(failed));
        }
        let (available, ended) = (state.available, state.ended);
        let mut before = None;
        if state.waker.as_ref().is_none_or(|waker| !waker.will_wake(context.waker())) {
            before = state.waker.replace(context.waker().clone());
        }
        drop(state);
        drop(before);
        if ended && self.taken == available {
            self.end(true);
            return Poll::Ready(Ok(None));
        }
        if !self.read_ahead(available)? {
            // Rare case: other ops fill the connection, and the peer may delay them.
            self.link.outgoing.wait_for_room(context.waker());
        }
        let Some((op, length)) = self.reads.front_mut() else { return Poll::Pending };
        let length = *length;
        let Poll::Ready(result) = Pin::new(op).poll(context) else { return Poll::Pending };
        self.reads.pop_front();
        match result {
            Ok(done) => {
                self.taken += length;
                self.release();
                Poll::Ready(Ok(Some(done.bytes)))
            }
            Err(error) => Poll::Ready(Err(self.failure(error))),
        }
    }

    /// Returns the reason why a read failed.
    fn failure(&self, error: OpError) -> BodyError {
        if let Some(failed) = &self.body.state().failed {
            return failed.clone();
        }
        match error {
            OpError::Refused(_) => BodyError::GivenUp,
            OpError::NotSent(cause) | OpError::Unknown(cause) => match cause {
                Cause::Ended(end) => BodyError::Ended(end),
                _ => BodyError::GivenUp,
            },
        }
    }

    fn end(&mut self, complete: bool) {
        let Some(on_end) = self.on_end.take() else { return };
        let header = Header::Consumed { id: self.link.id, position: self.taken, end: true };
        self.link.outgoing.post(&header, &[]);
        on_end(complete);
    }

    /// Returns the next bytes of the body, at most 256 KiB, and waits for them. Returns `None` after the end of the body.
    ///
    /// # Errors
    /// If the sender has given up the body, the call was cancelled, its deadline passed, or the connection ended. Also if this
    /// thread would wait for itself ([`End::WouldDeadlock`](apus_udp::End::WouldDeadlock)).
    pub fn next_chunk(&mut self) -> Result<Option<Vec<u8>>, BodyError> {
        let link = self.link.clone();
        let next = poll_fn(|context| self.poll_next(context));
        let next = link.outgoing.connection.block_on(next, link.deadline);
        next.unwrap_or_else(|| Err(link.stopped()))
    }

    /// Async form of [`BodyReader::next_chunk`].
    ///
    /// # Errors
    /// As [`BodyReader::next_chunk`].
    pub async fn next_chunk_async(&mut self) -> Result<Option<Vec<u8>>, BodyError> {
        poll_fn(|context| {
            let next = self.poll_next(context);
            self.link.outgoing.connection.drive_for(context);
            next
        })
        .await
    }

    /// Returns the rest of the body if it has at most `limit` bytes, and waits for it.
    ///
    /// # Errors
    /// As [`BodyReader::next_chunk`]; [`BodyError::TooLong`] if the rest is longer.
    pub fn read_all(&mut self, limit: usize) -> Result<Vec<u8>, BodyError> {
        let mut all = Vec::new();
        while let Some(chunk) = self.next_chunk()? {
            if all.len() + chunk.len() > limit {
                return Err(BodyError::TooLong { limit });
            }
            all.extend(chunk);
        }
        Ok(all)
    }
}

impl Drop for BodyReader {
    fn drop(&mut self) {
        self.end(false);
    }
}
