//! `apus_queue`: where ops end.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use apus_udp::{Completion, async_channel};

use crate::failure::{Failure, Reason, Status, call, of_op};
use crate::host::{Shared, apus_host};
use crate::pointer::{get, hand_out, put, take_back};
use crate::wait::wait;

/// A queue of completions with room for the maximum number of its outstanding ops.
pub struct apus_queue {
    pub(crate) sender: async_channel::Sender<Completion>,
    receiver: async_channel::Receiver<Completion>,
    under_way: AtomicUsize,
    capacity: usize,
    host: Arc<Shared>,
}

/// `apus_completion`.
#[repr(C)]
#[allow(dead_code)] // C reads them
pub struct apus_completion {
    user: u64,
    status: i32,
    reason: i32,
    latency_ns: u64,
}

impl apus_queue {
    /// Takes room for the end of an op.
    pub(crate) fn reserve(&self) -> Result<(), Failure> {
        if self.under_way.fetch_add(1, Ordering::AcqRel) < self.capacity {
            return Ok(());
        }
        self.under_way.fetch_sub(1, Ordering::AcqRel);
        let what = format!(
            "{} ops are outstanding with this queue, which is its capacity; poll it first",
            self.capacity
        );
        Err(Failure::new(Status::Full, what))
    }

    /// Gives room back.
    pub(crate) fn release(&self) {
        self.under_way.fetch_sub(1, Ordering::AcqRel);
    }

    fn convert(completion: &Completion) -> apus_completion {
        let (status, reason, latency_ns) = match &completion.result {
            Ok(done) => (Status::Ok, Reason::None, done.latency.as_ps() / 1_000),
            Err(error) => {
                let (status, reason) = of_op(error);
                (status, reason, 0)
            }
        };
        let (status, reason) = (status as i32, reason as i32);
        apus_completion { user: completion.user, status, reason, latency_ns }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn apus_queue_create(
    host: *const apus_host,
    capacity: usize,
    queue: *mut *mut apus_queue,
) -> i32 {
    call(|| {
        let make = || {
            // SAFETY: the header requires a handle.
            let host = unsafe { get(host, "host") }?;
            if !(1..=1 << 20).contains(&capacity) {
                return Err(Failure::invalid(format!(
                    "`capacity` must be 1 to 1048576, not {capacity}"
                )));
            }
            let (sender, receiver) = async_channel::bounded(capacity);
            let host = Arc::clone(&host.shared);
            Ok(apus_queue { sender, receiver, under_way: AtomicUsize::new(0), capacity, host })
        };
        // SAFETY: the header requires room for a pointer.
        unsafe { hand_out(queue, "queue", make) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn apus_poll(
    queue: *const apus_queue,
    completions: *mut apus_completion,
    most: usize,
    timeout_ns: u64,
    count: *mut usize,
) -> i32 {
    call(|| {
        // SAFETY: the header requires a handle.
        let queue = unsafe { get(queue, "queue") }?;
        if completions.is_null() || most == 0 {
            return Err(Failure::invalid("`completions` is NULL or `most` is 0"));
        }
        // SAFETY: the header requires room for a number.
        unsafe { put(count, 0, "count") }?;
        let mut receive = pin!(queue.receiver.recv());
        let first = wait(
            poll_fn(|context| {
                if queue.host.inline {
                    queue.host.host.drive();
                    context.waker().wake_by_ref();
                }
                receive.as_mut().poll(context)
            }),
            timeout_ns,
        );
        let mut next = first.ok_or_else(Failure::timeout)?.ok();
        let mut taken = 0;
        while let Some(completion) = next {
            queue.release();
            // SAFETY: the header requires room for `most` completions, and `taken` is below.
            unsafe { completions.add(taken).write(apus_queue::convert(&completion)) };
            taken += 1;
            next = if taken < most { queue.receiver.try_recv().ok() } else { None };
        }
        // SAFETY: as above.
        unsafe { put(count, taken, "count") }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn apus_queue_free(queue: *mut apus_queue) {
    // SAFETY: the header requires a handle or NULL.
    unsafe { take_back(queue) };
}
