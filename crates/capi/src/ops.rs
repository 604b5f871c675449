//! Submitting and cancelling ops.

use std::ffi::c_void;
use std::time::Duration;

use apus_udp::{Bytes, RegionKey, Request};

use crate::connection::apus_connection;
use crate::failure::{Failure, call};
use crate::host::handle;
use crate::pointer::{Foreign, Out, given};
use crate::queue::apus_queue;

/// `apus_op`: the target of an op, and the record of its completion.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct apus_op {
    flow: u32,
    deadline_ns: u64,
    queue: *const apus_queue,
    user: u64,
}

/// Submits a request. Returns the status.
fn submit(
    connection: Option<&apus_connection>,
    op: Option<&apus_op>,
    ticket: Out<'_, u64>,
    request: impl FnOnce() -> Result<Request, Failure>,
) -> i32 {
    call(|| {
        let (connection, op) = (handle(connection, "connection")?, given(op, "op")?);
        // SAFETY: the header requires a handle.
        let queue = handle(unsafe { op.queue.as_ref() }, "op->queue")?;
        if !connection.is_of(&queue.host) {
            let what = "`op->queue` is a queue of another host than the connection's; create one from its host";
            return Err(Failure::invalid(what));
        }
        let flow = connection.check_flow(op.flow)?;
        let mut request = request()?;
        if op.deadline_ns > 0 {
            request = request.deadline(Duration::from_nanos(op.deadline_ns));
        }
        queue.reserve()?;
        let submitted = connection.connection.submit_queued(flow, request, &queue.sender, op.user);
        let number = submitted.inspect_err(|_| queue.release())?;
        if let Some(ticket) = ticket {
            ticket.write(number);
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn apus_write(
    connection: Option<&apus_connection>,
    op: Option<&apus_op>,
    region: u64,
    address: u64,
    bytes: *const c_void,
    length: usize,
    ticket: Out<'_, u64>,
) -> i32 {
    submit(connection, op, ticket, || {
        // SAFETY: the header requires memory that is not accessed until the completion.
        let bytes = unsafe { Foreign::new(bytes, length, "bytes") }?;
        Ok(Request::write(RegionKey::new(region), address, Bytes::from_owner(bytes)))
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn apus_read(
    connection: Option<&apus_connection>,
    op: Option<&apus_op>,
    region: u64,
    address: u64,
    buffer: *mut c_void,
    length: usize,
    ticket: Out<'_, u64>,
) -> i32 {
    submit(connection, op, ticket, || {
        // SAFETY: the header requires memory that is not accessed until the completion.
        let target = unsafe { Foreign::new(buffer, length, "buffer") }?;
        Ok(Request::read_into(RegionKey::new(region), address, Box::new(target)))
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn apus_send(
    connection: Option<&apus_connection>,
    op: Option<&apus_op>,
    bytes: *const c_void,
    length: usize,
    ticket: Out<'_, u64>,
) -> i32 {
    submit(connection, op, ticket, || {
        // SAFETY: the header requires memory that is not accessed until the completion.
        let bytes = unsafe { Foreign::new(bytes, length, "bytes") }?;
        Ok(Request::message(Bytes::from_owner(bytes)))
    })
}

#[unsafe(no_mangle)]
extern "C" fn apus_compare_and_swap(
    connection: Option<&apus_connection>,
    op: Option<&apus_op>,
    region: u64,
    address: u64,
    expected: u64,
    desired: u64,
    ticket: Out<'_, u64>,
) -> i32 {
    submit(connection, op, ticket, || {
        Ok(Request::compare_and_swap(RegionKey::new(region), address, expected, desired))
    })
}

#[unsafe(no_mangle)]
extern "C" fn apus_fetch_add(
    connection: Option<&apus_connection>,
    op: Option<&apus_op>,
    region: u64,
    address: u64,
    delta: u64,
    ticket: Out<'_, u64>,
) -> i32 {
    submit(connection, op, ticket, || {
        Ok(Request::fetch_add(RegionKey::new(region), address, delta))
    })
}

#[unsafe(no_mangle)]
extern "C" fn apus_cancel(connection: Option<&apus_connection>, ticket: u64) -> i32 {
    call(|| {
        handle(connection, "connection")?.connection.cancel(ticket);
        Ok(())
    })
}
