//! Submitting and cancelling ops.

use std::ffi::c_void;
use std::time::Duration;

use apus_udp::{Bytes, RegionKey, Request};

use crate::connection::apus_connection;
use crate::failure::{Failure, call};
use crate::pointer::{Foreign, get, put};
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

/// Submits a request.
///
/// # Safety
/// Handles, an op, and NULL or room for a ticket.
unsafe fn submit(
    connection: *const apus_connection,
    op: *const apus_op,
    ticket: *mut u64,
    request: impl FnOnce() -> Result<Request, Failure>,
) -> Result<(), Failure> {
    // SAFETY: as the caller promises.
    let (connection, op) = unsafe { (get(connection, "connection")?, get(op, "op")?) };
    // SAFETY: as the caller promises.
    let queue = unsafe { get(op.queue, "op->queue") }?;
    let flow = connection.check_flow(op.flow)?;
    let mut request = request()?;
    if op.deadline_ns > 0 {
        request = request.deadline(Duration::from_nanos(op.deadline_ns));
    }
    queue.reserve()?;
    match connection.connection.submit_queued(flow, request, &queue.sender, op.user) {
        Ok(_) if ticket.is_null() => Ok(()),
        // SAFETY: as the caller promises.
        Ok(number) => unsafe { put(ticket, number, "ticket") },
        Err(error) => {
            queue.release();
            Err(error.into())
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn apus_write(
    connection: *const apus_connection,
    op: *const apus_op,
    region: u64,
    address: u64,
    bytes: *const c_void,
    length: usize,
    ticket: *mut u64,
) -> i32 {
    call(|| {
        let request = || {
            // SAFETY: the header requires memory that is not accessed until the completion.
            let bytes = unsafe { Foreign::new(bytes, length, "bytes") }?;
            Ok(Request::write(RegionKey::new(region), address, Bytes::from_owner(bytes)))
        };
        // SAFETY: the header requires everything that `submit` requires.
        unsafe { submit(connection, op, ticket, request) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn apus_read(
    connection: *const apus_connection,
    op: *const apus_op,
    region: u64,
    address: u64,
    buffer: *mut c_void,
    length: usize,
    ticket: *mut u64,
) -> i32 {
    call(|| {
        let request = || {
            // SAFETY: the header requires memory that is not accessed until the completion.
            let target = unsafe { Foreign::new(buffer, length, "buffer") }?;
            Ok(Request::read_into(RegionKey::new(region), address, Box::new(target)))
        };
        // SAFETY: the header requires everything that `submit` requires.
        unsafe { submit(connection, op, ticket, request) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn apus_send(
    connection: *const apus_connection,
    op: *const apus_op,
    bytes: *const c_void,
    length: usize,
    ticket: *mut u64,
) -> i32 {
    call(|| {
        let request = || {
            // SAFETY: the header requires memory that is not accessed until the completion.
            let bytes = unsafe { Foreign::new(bytes, length, "bytes") }?;
            Ok(Request::message(Bytes::from_owner(bytes)))
        };
        // SAFETY: the header requires everything that `submit` requires.
        unsafe { submit(connection, op, ticket, request) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn apus_cancel(connection: *const apus_connection, ticket: u64) -> i32 {
    call(|| {
        // SAFETY: the header requires a handle.
        unsafe { get(connection, "connection") }?.connection.cancel(ticket);
        Ok(())
    })
}
