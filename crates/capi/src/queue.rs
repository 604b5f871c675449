//! `apus_queue`: destination of completions.

use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{iter, slice};

use apus_udp::{Completion, async_channel};

use crate::failure::{Failure, Reason, Status, call, of_op};
use crate::host::{OfHost, Shared, apus_host, free, handle};
use crate::pointer::{Out, given, hand_out};

/// A queue of completions with room for the maximum number of its outstanding ops.
pub struct apus_queue {
    pub(crate) sender: async_channel::Sender<Completion>,
    receiver: async_channel::Receiver<Completion>,
    outstanding: AtomicUsize,
    capacity: usize,
    pub(crate) host: Arc<Shared>,
}

/// `apus_completion`.
#[repr(C)]
#[allow(dead_code)] // C reads them
pub struct apus_completion {
    user: u64,
    status: i32,
    reason: i32,
    latency_ns: u64,
    old: u64,
}

impl OfHost for apus_queue {
    fn shared(&self) -> &Shared {
        &self.host
    }
}

impl apus_queue {
    /// Reserves room for the completion of an op.
    pub(crate) fn reserve(&self) -> Result<(), Failure> {
        if self.outstanding.fetch_add(1, Ordering::AcqRel) < self.capacity {
            return Ok(());
        }
        self.outstanding.fetch_sub(1, Ordering::AcqRel);
        let what = format!(
            "{} ops are outstanding with this queue, which is its capacity; poll it first",
            self.capacity
        );
        Err(Failure::new(Status::Full, what))
    }

    /// Releases reserved room.
    pub(crate) fn release(&self) {
        self.outstanding.fetch_sub(1, Ordering::AcqRel);
    }

    fn convert(completion: &Completion) -> apus_completion {
        let (status, reason, latency_ns, old) = match &completion.result {
            Ok(done) => {
                let old = done.old.unwrap_or_default();
                (Status::Ok, Reason::None, done.latency.as_ps() / 1_000, old)
            }
            Err(error) => {
                let (status, reason) = of_op(error);
                (status, reason, 0, 0)
            }
        };
        let (status, reason) = (status as i32, reason as i32);
        apus_completion { user: completion.user, status, reason, latency_ns, old }
    }
}

#[unsafe(no_mangle)]
extern "C" fn apus_queue_create(
    host: Option<&apus_host>,
    capacity: usize,
    queue: Out<'_, Box<apus_queue>>,
) -> i32 {
    hand_out(queue, "queue", || {
        let host = handle(host, "host")?;
        if !(1..=1 << 20).contains(&capacity) {
            let what = format!("`capacity` must be 1 to 1048576, not {capacity}");
            return Err(Failure::invalid(what));
        }
        let (sender, receiver) = async_channel::bounded(capacity);
        let host = Arc::clone(&host.shared);
        Ok(apus_queue { sender, receiver, outstanding: AtomicUsize::new(0), capacity, host })
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn apus_poll(
    queue: Option<&apus_queue>,
    completions: *mut MaybeUninit<apus_completion>,
    most: usize,
    timeout_ns: u64,
    count: Out<'_, usize>,
) -> i32 {
    call(|| {
        let queue = handle(queue, "queue")?;
        if completions.is_null() || most == 0 {
            return Err(Failure::invalid("`completions` is NULL or `most` is 0"));
        }
        let count = given(count, "count")?;
        // SAFETY: the header requires room for `most` completions.
        let room = unsafe { slice::from_raw_parts_mut(completions, most) };
        let first = queue.host.wait(queue.receiver.recv(), timeout_ns)?.ok();
        let rest = iter::from_fn(|| queue.receiver.try_recv().ok());
        let mut taken = 0;
        for (place, completion) in room.iter_mut().zip(first.into_iter().chain(rest)) {
            queue.release();
            place.write(apus_queue::convert(&completion));
            taken += 1;
        }
        count.write(taken);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn apus_queue_free(queue: Option<Box<apus_queue>>) {
    free(queue);
}
