//! Who runs an engine while somebody waits for it, and how they wait.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use crate::containment::ContainedWaker;
use crate::engine::Engine;

/// Steps of an inline engine without anything to do after which its thread offers the core to others.
/// deviation: no source; a step takes some 200 ns, so this is a round trip in a rack.
const IDLE_STEPS: u32 = 500;
/// Steps of an inline engine that find nothing to do under one lock. deviation: no source; 1.5 us.
const STEPS: u32 = 8;

/// Who runs the engine while somebody waits for it.
#[derive(Clone)]
pub(crate) enum Driver {
    /// Threads of its own; waiting spins this long before it sleeps.
    Threads { spin: Duration },
    /// Whoever waits.
    Inline(Arc<Mutex<Engine>>),
}

impl Driver {
    /// Waits for a value; `None` if it will never come.
    pub(crate) fn wait<T>(&self, receiver: oneshot::Receiver<T>) -> Option<T> {
        match self {
            Self::Threads { spin } => {
                let from = Instant::now();
                while !spin.is_zero() && from.elapsed() < *spin {
                    match receiver.try_recv() {
                        Ok(value) => return Some(value),
                        Err(oneshot::TryRecvError::Empty) => std::hint::spin_loop(),
                        Err(oneshot::TryRecvError::Disconnected) => return None,
                    }
                }
                receiver.recv().ok()
            }
            Self::Inline(_) => {
                let mut waited = 0;
                loop {
                    match receiver.try_recv() {
                        Ok(value) => return Some(value),
                        Err(oneshot::TryRecvError::Empty) => self.step_or_yield(&mut waited),
                        Err(oneshot::TryRecvError::Disconnected) => return None,
                    }
                }
            }
        }
    }

    /// Waits for the next value of a channel; `None` if it is closed.
    pub(crate) fn wait_channel<T>(&self, channel: &async_channel::Receiver<T>) -> Option<T> {
        let from = Instant::now();
        let mut waited = 0;
        loop {
            match channel.try_recv() {
                Ok(value) => return Some(value),
                Err(async_channel::TryRecvError::Closed) => return None,
                Err(async_channel::TryRecvError::Empty) => match self {
                    Self::Inline(_) => self.step_or_yield(&mut waited),
                    Self::Threads { spin } if from.elapsed() < *spin => std::hint::spin_loop(),
                    Self::Threads { .. } => return channel.recv_blocking().ok(),
                },
            }
        }
    }

    /// The next value of a channel; `None` if it is closed.
    pub(crate) async fn next<T>(&self, channel: &async_channel::Receiver<T>) -> Option<T> {
        let mut receive = pin!(channel.recv());
        let mut waker = ContainedWaker::default();
        poll_fn(|context| {
            self.drive_for(context);
            match receive.as_mut().poll(&mut Context::from_waker(waker.of(context.waker()))) {
                Poll::Ready(value) => Poll::Ready(value.ok()),
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    }

    /// A value; `None` if it will never come.
    pub(crate) async fn answer<T>(&self, receiver: oneshot::Receiver<T>) -> Option<T> {
        let mut receiver = pin!(receiver);
        let mut waker = ContainedWaker::default();
        poll_fn(|context| {
            self.drive_for(context);
            receiver.as_mut().poll(&mut Context::from_waker(waker.of(context.waker())))
        })
        .await
        .ok()
    }

    /// Drives an inline engine for a future that is polled, and has it polled again.
    pub(crate) fn drive_for(&self, context: &Context<'_>) {
        if let Self::Inline(_) = self {
            self.step();
            context.waker().wake_by_ref();
        }
    }

    pub(crate) fn step(&self) -> bool {
        if let Self::Inline(engine) = self {
            return engine.lock().unwrap_or_else(PoisonError::into_inner).step();
        }
        false
    }

    /// Drives an inline engine, a few steps at most; after many steps without anything to do (some 100 us), offers
    /// the core to other threads too.
    fn step_or_yield(&self, idle: &mut u32) {
        let Self::Inline(engine) = self else { return };
        let engine = match engine.try_lock() {
            Ok(engine) => Some(engine),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            // Whoever has it drives it, perhaps to what is waited for here.
            Err(TryLockError::WouldBlock) => None,
        };
        // Unlocked as soon as it has stepped.
        let busy = engine.map(|mut engine| (0..STEPS).any(|_| engine.step()));
        *idle = match busy {
            Some(true) => 0,
            Some(false) => *idle + STEPS,
            None => *idle + 1,
        };
        if *idle >= IDLE_STEPS {
            *idle = IDLE_STEPS;
            std::thread::yield_now();
        }
    }
}
