//! The threads that run handlers.
//!
//! One worker at a time waits for the host, and thereby drives its engine, so a request and its answer cross no thread. The
//! other workers are parked. A task that arrives while no worker waits wakes one of them. A worker that takes a task and
//! leaves others in the queue also wakes one, unless the task is short: then the worker returns to the queue before another
//! worker would be awake. While tasks are left behind short ones, a parked worker checks at intervals whether tasks are still
//! taken from the queue.
//!
//! A stopped pool runs no further task. The workers that still run, and the thread that drops the server, end the tasks in
//! the queue. Threads that add a task do not end it, because they may hold locks of the application that the destructors of a
//! future need.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use apus_udp::Host;
use concurrent_queue::ConcurrentQueue;

use super::incoming::Incoming;
use super::tasks::AsyncTask;
use crate::envelope::Status;

/// Duration of a task above which a parked worker is woken for the tasks behind it. deviation: no source; about the time that
/// it takes to wake a thread on an idle core.
pub(super) const SHORT: Duration = Duration::from_micros(20);
/// Interval at which a parked worker checks whether tasks are taken from the queue. deviation: no source; a task waits this
/// long behind a task whose method was short before and is not now, and a thousand checks per second take less than 1 % of a
/// core.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// Work of a worker.
pub(super) enum Task {
    /// A call whose handler is to run.
    Call(Incoming),
    /// An asynchronous handler that can make progress.
    Poll(Arc<AsyncTask>),
}

impl Task {
    /// Returns `true` if the task is expected to take less than [`SHORT`].
    fn is_short(&self) -> bool {
        match self {
            Self::Call(incoming) => incoming.is_short(),
            // A future of a handler must not block.
            Self::Poll(_) => true,
        }
    }

    /// Ends the task because the server is stopping: refuses a call, or drops the future of a handler.
    fn end(self) {
        match self {
            Self::Call(incoming) => incoming.refuse(Status::Stopping),
            Self::Poll(task) => task.give_up(),
        }
    }
}

#[derive(Default)]
struct State {
    /// Whether a worker waits for the host, or is about to.
    waits: bool,
    /// Wakes that worker; `None` if it was woken.
    waker: Option<Waker>,
    /// Whether a parked worker checks the queue.
    watched: bool,
    parked: usize,
    /// Number of parked workers that were woken and do not run yet.
    woken: usize,
    /// Number of workers that have ended.
    ended: usize,
}

/// The workers and their queue.
pub(super) struct Pool {
    queue: ConcurrentQueue<Task>,
    /// Number of tasks taken from the queue.
    taken: AtomicU64,
    /// Whether a parked worker checks the queue, or was asked to.
    watched: AtomicBool,
    /// Number of workers.
    workers: usize,
    /// Set only while the state is locked.
    stopped: AtomicBool,
    state: Mutex<State>,
    wake_up: Condvar,
}

/// Records the end of a worker, even by a panic.
struct Ends<'a>(&'a Pool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.state().ended += 1;
        self.0.wake_up.notify_all();
    }
}

impl Pool {
    /// Returns a pool for `workers` workers. Each of them must call [`Pool::work`].
    pub(super) fn new(workers: usize) -> Self {
        Self {
            workers,
            queue: ConcurrentQueue::unbounded(),
            taken: AtomicU64::new(0),
            watched: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            state: Mutex::default(),
            wake_up: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a task. The number of counted calls limits the length of the queue.
    pub(super) fn push(&self, task: Task) {
        if let Err(closed) = self.queue.push(task) {
            // The server is gone, and all its connections have ended.
            return closed.into_inner().end();
        }
        let mut state = self.state();
        if self.is_stopped() {
            self.wake_up.notify_all();
        } else if state.waits {
            let waker = state.waker.take();
            drop(state);
            if let Some(waker) = waker {
                waker.wake();
            }
        } else if state.woken == 0 {
            self.wake_parked(&mut state);
        }
    }

    fn wake_parked(&self, state: &mut State) {
        if state.parked > state.woken {
            state.woken += 1;
            self.wake_up.notify_one();
        }
    }

    /// Ends the tasks in the queue.
    fn drain(&self) {
        while let Ok(task) = self.queue.pop() {
            task.end();
        }
    }

    /// Ends all workers after their current tasks.
    pub(super) fn stop(&self) {
        let mut state = self.state();
        self.stopped.store(true, Ordering::SeqCst);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        self.wake_up.notify_all();
    }

    /// Ends the tasks of a stopped pool until this number of workers have ended.
    pub(super) fn finish(&self, workers: usize) {
        loop {
            self.drain();
            let mut state = self.state();
            while self.queue.is_empty() && state.ended < workers {
                state = self.wake_up.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if self.queue.is_empty() {
                return;
            }
        }
    }

    /// Closes the queue: it accepts no further tasks. From here on, a handler that is woken ends in the thread that wakes it.
    /// Such a handler has continued after the client had read its answer, so its call is over.
    pub(super) fn close(&self) {
        self.queue.close();
        self.drain();
    }

    /// Returns `true` if all workers have ended.
    pub(super) fn has_ended(&self) -> bool {
        self.state().ended == self.workers
    }

    /// Returns `true` if the pool was stopped.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    /// Runs tasks until the pool is stopped, even after the end of the host.
    pub(super) fn work(&self, host: &Host) {
        let _ends = Ends(self);
        loop {
            match self.queue.pop() {
                Ok(task) if self.is_stopped() => task.end(),
                Ok(task) => {
                    self.taken.fetch_add(1, Ordering::SeqCst);
                    if self.workers > 1 && !self.queue.is_empty() {
                        if task.is_short() {
                            self.watch();
                        } else {
                            self.wake_parked(&mut self.state());
                        }
                    }
                    match task {
                        Task::Call(incoming) => incoming.run(),
                        Task::Poll(task) => task.run(),
                    }
                }
                Err(_) if !self.wait(host) => return,
                Err(_) => {}
            }
        }
    }

    /// Asks a parked worker to check that tasks are taken from the queue.
    fn watch(&self) {
        // Either this thread finds that no worker watches, or the worker that stops watching sees the task that was taken.
        if !self.watched.load(Ordering::SeqCst) && self.state().parked > 0 {
            self.watched.store(true, Ordering::SeqCst);
            self.wake_up.notify_one();
        }
    }

    /// Parks until this worker is woken, the pool is stopped, or no worker takes tasks from the queue.
    fn park(&self, mut state: MutexGuard<'_, State>) {
        state.parked += 1;
        let mut watches = false;
        let mut seen = 0;
        while state.woken == 0 && !self.is_stopped() {
            if !watches && !state.watched && self.watched.load(Ordering::SeqCst) {
                (watches, state.watched) = (true, true);
                seen = self.taken.load(Ordering::SeqCst);
            }
            if !watches {
                state = self.wake_up.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let waited = self.wake_up.wait_timeout(state, LOOK_EVERY);
            let timed_out;
            (state, timed_out) = waited.unwrap_or_else(PoisonError::into_inner);
            if !timed_out.timed_out() {
                continue;
            }
            let idle = std::mem::replace(&mut seen, self.taken.load(Ordering::SeqCst)) == seen;
            if idle && !self.queue.is_empty() {
                break;
            }
            if idle {
                self.watched.store(false, Ordering::SeqCst);
                // A task may have been taken meanwhile.
                if self.taken.load(Ordering::SeqCst) == seen {
                    (watches, state.watched) = (false, false);
                } else {
                    self.watched.store(true, Ordering::SeqCst);
                }
            }
        }
        if watches {
            state.watched = false;
        }
        if !state.watched {
            // Also needed if this worker was asked to watch and was woken for a task at the same time.
            self.watched.store(false, Ordering::SeqCst);
        }
        state.parked -= 1;
        state.woken = state.woken.saturating_sub(1);
    }

    /// Waits for a task. Returns `false` if the pool is stopped.
    fn wait(&self, host: &Host) -> bool {
        let mut state = self.state();
        if self.is_stopped() {
            return false;
        }
        if state.waits {
            self.park(state);
            return true;
        }
        state.waits = true;
        drop(state);
        let arrived = host.block_on(
            poll_fn(|context| {
                if !self.queue.is_empty() {
                    return Poll::Ready(());
                }
                let mut state = self.state();
                if self.is_stopped() {
                    return Poll::Ready(());
                }
                if state.waker.as_ref().is_none_or(|waker| !waker.will_wake(context.waker())) {
                    state.waker = Some(context.waker().clone());
                }
                // A task that arrived before the lock was taken has woken no worker.
                if self.queue.is_empty() { Poll::Pending } else { Poll::Ready(()) }
            }),
            None,
        );
        let mut state = self.state();
        state.waits = false;
        state.waker = None;
        if arrived.is_none() && self.queue.is_empty() {
            // A handler has left this thread holding the memory of a region, so the thread may not wait for the host.
            self.park(state);
        }
        true
    }
}
