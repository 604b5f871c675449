//! Calls of one method as a `tower::Service`.

use std::future::IntoFuture;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use tower_service::Service;

use crate::client::{CallBuilder, CallFuture, Client, Method, Response};
use crate::error::CallError;

/// A method of a server as a [`Service`] with requests of type [`Bytes`] and answers of type [`Response`].
///
/// The service is ready if the client can begin another call. Clones have their own readiness.
pub struct MethodService {
    client: Client,
    method: Method,
    deadline: Option<Duration>,
    /// Slot for the next call.
    reserved: Option<u16>,
}

impl MethodService {
    /// Returns a service of this method. If there is a `deadline`, each call has it, counted from the beginning of the call.
    #[must_use]
    pub fn new(client: Client, method: Method, deadline: Option<Duration>) -> Self {
        Self { client, method, deadline, reserved: None }
    }
}

impl Clone for MethodService {
    fn clone(&self) -> Self {
        Self::new(self.client.clone(), self.method, self.deadline)
    }
}

impl Drop for MethodService {
    fn drop(&mut self) {
        if let Some(slot) = self.reserved.take() {
            self.client.shared().table.unreserve(slot);
        }
    }
}

impl Service<Bytes> for MethodService {
    type Response = Response;
    type Error = CallError;
    type Future = CallFuture;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), CallError>> {
        let table = &self.client.shared().table;
        if self.reserved.is_none() {
            self.reserved = table.reserve_or_wait(context.waker());
        }
        // Checked afterwards, because the end of the connection wakes the tasks that wait for a slot.
        if let Some(end) = table.ended() {
            return Poll::Ready(Err(CallError::Ended(end, crate::Executed::NotRun)));
        }
        if self.reserved.is_some() { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    /// Begins a call. Without a preceding `poll_ready` it fails with [`CallError::Busy`] if the client is at its limit.
    fn call(&mut self, request: Bytes) -> CallFuture {
        let slot = self.reserved.take();
        let mut call = CallBuilder::reserved(self.client.shared(), self.method, &request, slot);
        if let Some(deadline) = self.deadline {
            call = call.deadline(deadline);
        }
        call.into_future()
    }
}
