//! The sender of a body.

use std::future::poll_fn;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use apus_udp::{Access, Connection, Host, Memory, Region};
use bytes::Bytes;

use super::BodyLink;
use crate::envelope::{Grant, Header, Progress};
use crate::error::BodyError;

/// Maximum number of bytes that are copied into the ring while it is locked. Rationale: an engine that reads the ring waits
/// for about 6 us. deviation: no source.
const COPY_BYTES: usize = 64 << 10;

/// Memory that peers may only read.
struct ReadOnly(Bytes);

impl Memory for ReadOnly {
    fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The region grants reads only, so no engine calls this function.
    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut []
    }
}

struct State {
    /// Number of bytes of the body so far.
    written: u64,
    /// Number of bytes that the receiver has read.
    consumed: u64,
    /// Reason why no byte can follow.
    failed: Option<BodyError>,
    ended: bool,
    waker: Option<Waker>,
}

/// A body that this side sends.
pub(crate) struct Sending {
    region: Region,
    capacity: u64,
    state: Mutex<State>,
}

impl Sending {
    /// Registers the bytes of a body for the peer of `to`.
    pub(super) fn whole(
        host: &Host,
        to: &Connection,
        bytes: Bytes,
    ) -> io::Result<(Arc<Self>, Grant)> {
        let length = bytes.len() as u64;
        let reader = apus_udp::Grant::connection(to);
        let region = host.register_for(ReadOnly(bytes), Access::READ, reader)?;
        let grant = Grant {
            region: region.key().get(),
            capacity: length,
            length: Some(length),
            whole: true,
        };
        Ok((Self::new(region, length, length, true), grant))
    }

    /// Registers a ring of `capacity` bytes for the peer of `to`. `length` is the length of the body, if it is known.
    pub(crate) fn ring(
        host: &Host,
        to: &Connection,
        capacity: usize,
        length: Option<u64>,
    ) -> io::Result<(Arc<Self>, Grant)> {
        let reader = apus_udp::Grant::connection(to);
        let region = host.register_for(vec![0; capacity], Access::READ, reader)?;
        let capacity = capacity as u64;
        let grant = Grant { region: region.key().get(), capacity, length, whole: false };
        Ok((Self::new(region, capacity, 0, false), grant))
    }

    fn new(region: Region, capacity: u64, written: u64, ended: bool) -> Arc<Self> {
        let state = State { written, consumed: 0, failed: None, ended, waker: None };
        Arc::new(Self { region, capacity, state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Handles a report by the receiver. Returns `true` if the receiver reads no further.
    pub(crate) fn on_consumed(&self, position: u64, end: bool) -> bool {
        let mut state = self.state();
        if position > state.written {
            state.failed.get_or_insert(BodyError::Invalid);
        }
        state.consumed = state.consumed.max(position.min(state.written));
        if end && !(state.ended && state.consumed == state.written) {
            state.failed.get_or_insert(BodyError::GivenUp);
        }
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        end
    }

    /// Ends the body early, and withdraws the region.
    pub(crate) fn fail(&self, error: BodyError) {
        let mut state = self.state();
        state.failed.get_or_insert(error);
        let waker = state.waker.take();
        drop(state);
        self.region.revoke();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Ends the body because the receiver reads no further, and withdraws the region. The receiver may not have acknowledged
    /// the bytes that it has read. A body that was written to its end does not fail, because the receiver may have all of it.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        if !state.ended {
            drop(state);
            return self.fail(BodyError::GivenUp);
        }
        // The waker of a write that was given up. Its task may keep this body alive.
        let waker = state.waker.take();
        drop(state);
        drop(waker);
        self.region.revoke();
    }

    /// Returns `true` if the receiver has ended the body early, or its call or connection has ended. An end by the writer is
    /// not a failure.
    pub(crate) fn has_failed(&self) -> bool {
        self.state().failed.is_some()
    }

    /// Withdraws the region, because the writer has given up the body. No byte is left to be read.
    fn withdraw(&self) {
        let mut state = self.state();
        (state.ended, state.consumed) = (true, state.written);
        let waker = state.waker.take();
        drop(state);
        drop(waker);
        self.region.revoke();
    }

    /// Copies as many bytes into the ring as have room. If there is no room, the caller is woken later.
    fn poll_fill(&self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize, BodyError>> {
        let mut state = self.state();
        if let Some(failed) = &state.failed {
            return Poll::Ready(Err(failed.clone()));
        }
        let room = self.capacity - (state.written - state.consumed);
        let at = state.written % self.capacity;
        let fits = room.min(self.capacity - at).min(COPY_BYTES as u64) as usize;
        let count = fits.min(bytes.len());
        if count == 0 && !bytes.is_empty() {
            let before = state.waker.replace(context.waker().clone());
            drop(state);
            drop(before);
            return Poll::Pending;
        }
        // Only one writer fills the ring, so the lock can be released. It must be, because an engine may hold the region.
        drop(state);
        let at = at as usize;
        self.region.write(|ring| ring[at..at + count].copy_from_slice(&bytes[..count]));
        self.state().written += count as u64;
        Poll::Ready(Ok(count))
    }
}

/// Sending end of a body whose bytes are produced while they are sent. If it is dropped before [`BodyWriter::finish`], the body
/// is given up, and the receiver gets [`BodyError::GivenUp`].
pub struct BodyWriter {
    body: Arc<Sending>,
    link: BodyLink,
    /// The position last announced to the receiver.
    announced: u64,
    ended: bool,
}

impl BodyWriter {
    pub(crate) fn new(body: Arc<Sending>, link: BodyLink) -> Self {
        Self { body, link, announced: 0, ended: false }
    }

    /// Announces bytes that the receiver does not know of.
    fn announce(&mut self, progress: Progress) {
        let position = self.body.state().written;
        if position > self.announced || progress != Progress::More {
            self.announced = position;
            let header = Header::Advance { id: self.link.id, position, progress };
            self.link.outgoing.post(&header, &[]);
        }
    }

    fn poll_write(
        &mut self,
        context: &mut Context<'_>,
        bytes: &mut &[u8],
    ) -> Poll<Result<(), BodyError>> {
        while !bytes.is_empty() {
            let Poll::Ready(filled) = self.body.poll_fill(context, bytes) else {
                // The ring is full, so the receiver must know all of its bytes.
                self.announce(Progress::More);
                return Poll::Pending;
            };
            *bytes = &bytes[filled?..];
            let unknown = self.body.state().written - self.announced;
            if unknown >= (self.body.capacity / 4).max(1) {
                self.announce(Progress::More);
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Writes all bytes. Waits while the receiver is more than one ring behind.
    ///
    /// # Errors
    /// If the receiver has given up the body, the call was cancelled, its deadline passed, or the connection ended. Also if this
    /// thread would wait for itself ([`End::WouldDeadlock`](apus_udp::End::WouldDeadlock)).
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), BodyError> {
        let (mut rest, link) = (bytes, self.link.clone());
        let write = poll_fn(|context| self.poll_write(context, &mut rest));
        let written = link.outgoing.connection.block_on(write, link.deadline);
        written.unwrap_or_else(|| Err(link.stopped()))
    }

    /// Async form of [`BodyWriter::write`].
    ///
    /// # Errors
    /// As [`BodyWriter::write`].
    pub async fn write_async(&mut self, bytes: &[u8]) -> Result<(), BodyError> {
        let mut rest = bytes;
        poll_fn(|context| {
            let written = self.poll_write(context, &mut rest);
            self.link.outgoing.connection.drive_for(context);
            written
        })
        .await
    }

    /// Announces all bytes written so far to the receiver. Otherwise the writer announces them when a quarter of the ring is
    /// filled.
    pub fn flush(&mut self) {
        self.announce(Progress::More);
    }

    /// Ends the body.
    ///
    /// # Errors
    /// As [`BodyWriter::write`].
    pub fn finish(mut self) -> Result<(), BodyError> {
        let mut state = self.body.state();
        if let Some(failed) = &state.failed {
            let failed = failed.clone();
            drop(state);
            self.ended = true;
            return Err(failed);
        }
        state.ended = true;
        drop(state);
        self.ended = true;
        self.announce(Progress::End);
        Ok(())
    }
}

impl Drop for BodyWriter {
    fn drop(&mut self) {
        if !self.ended {
            self.announce(Progress::GivenUp);
            self.body.withdraw();
        }
    }
}

impl io::Write for BodyWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Self::write(self, bytes).map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Self::flush(self);
        Ok(())
    }
}
