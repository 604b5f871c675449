//! The threads that run handlers.
//!
//! One worker at a time waits for the host, and so drives its engine: a request and its answer then cross no thread. The
//! other workers are parked. A worker that takes a task and leaves others in the queue wakes a parked worker; so does a task
//! that arrives while no worker waits.

use std::future::poll_fn;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use apus_udp::Host;
use concurrent_queue::ConcurrentQueue;

use super::incoming::Incoming;
use super::tasks::AsyncTask;
use crate::envelope::Status;

/// Work of a worker.
pub(super) enum Task {
    /// A call whose handler is to run.
    Call(Incoming),
    /// An asynchronous handler that can make progress.
    Poll(Arc<AsyncTask>),
}

#[derive(Default)]
struct State {
    /// Whether a worker waits for the host, or is about to.
    waits: bool,
    /// Wakes that worker.
    waker: Option<Waker>,
    parked: usize,
    /// Number of parked workers that were woken and do not run yet.
    woken: usize,
    stopped: bool,
}

/// The workers and their queue.
pub(super) struct Pool {
    queue: ConcurrentQueue<Task>,
    state: Mutex<State>,
    wake_up: Condvar,
}

impl Pool {
    pub(super) fn new() -> Self {
        Self {
            queue: ConcurrentQueue::unbounded(),
            state: Mutex::default(),
            wake_up: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a task. The queue is bounded by the number of calls.
    pub(super) fn push(&self, task: Task) {
        // The queue is never closed.
        let _ = self.queue.push(task);
        let mut state = self.state();
        if state.stopped {
            drop(state);
            self.drain();
        } else if state.waits {
            if let Some(waker) = &state.waker {
                waker.wake_by_ref();
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

    /// Refuses the calls that wait for a worker.
    fn drain(&self) {
        while let Ok(task) = self.queue.pop() {
            match task {
                Task::Call(incoming) => incoming.refuse(Status::Stopping),
                Task::Poll(task) => task.give_up(),
            }
        }
    }

    /// Ends all workers after their current tasks.
    pub(super) fn stop(&self) {
        let mut state = self.state();
        state.stopped = true;
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        self.wake_up.notify_all();
        self.drain();
    }

    /// Returns `true` if the workers end.
    pub(super) fn is_stopped(&self) -> bool {
        self.state().stopped
    }

    /// Runs tasks until the pool or the host is stopped.
    pub(super) fn work(&self, host: &Host) {
        loop {
            match self.queue.pop() {
                Ok(task) => {
                    if !self.queue.is_empty() {
                        self.wake_parked(&mut self.state());
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

    /// Waits for a task. Returns `false` if the pool or the host is stopped.
    fn wait(&self, host: &Host) -> bool {
        let mut state = self.state();
        if state.stopped {
            return false;
        }
        if state.waits {
            state.parked += 1;
            while state.woken == 0 && state.waits && !state.stopped {
                state = self.wake_up.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            state.parked -= 1;
            state.woken = state.woken.saturating_sub(1);
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
                if state.stopped {
                    return Poll::Ready(());
                }
                if state.waker.as_ref().is_none_or(|waker| !waker.will_wake(context.waker())) {
                    state.waker = Some(context.waker().clone());
                }
                // A task that arrived before the lock was taken woke nobody.
                if self.queue.is_empty() { Poll::Pending } else { Poll::Ready(()) }
            }),
            None,
        );
        let mut state = self.state();
        state.waits = false;
        state.waker = None;
        if arrived.is_none() {
            // The host has stopped.
            state.stopped = true;
            drop(state);
            self.wake_up.notify_all();
            self.drain();
            return false;
        }
        true
    }
}
