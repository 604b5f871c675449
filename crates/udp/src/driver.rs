//! Drivers of engines: what calls [`Engine::step`], and how the calls of applications wait for an engine.
//!
//! An engine has a thread of its own ([`run`]), or the calls that wait drive it ([`Driver::Inline`]).

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use apus_units::Span;

use crate::config::Mode;
use crate::containment::{ContainedWaker, contain};
use crate::engine::Engine;

/// Number of idle steps of an inline engine after which the calling thread yields its core. deviation: no source; a step
/// takes about 200 ns, so this is a round trip in a rack.
const IDLE_STEPS_PER_YIELD: u32 = 500;
/// Number of idle steps of an inline engine under one lock. deviation: no source; 1.5 us.
const STEPS_PER_LOCK: u32 = 8;
/// Idle time after which the thread of an engine that never sleeps yields its core. On a core of its own, yielding costs
/// nothing; elsewhere the scheduler would preempt the thread for milliseconds. deviation: no source; half the spin of the
/// hybrid mode. The time only decides when the core is yielded, not what is sent.
const YIELD_AFTER: Span = Span::from_us(50);

/// How calls wait for an engine.
#[derive(Clone)]
pub(crate) enum Driver {
    /// The engine has a thread. A wait spins this long before it sleeps.
    Thread { spin: Duration },
    /// The waiting call drives the engine.
    Inline(Arc<Mutex<Engine>>),
}

impl Driver {
    /// Waits for a value; returns `None` if its sender is gone.
    pub(crate) fn wait<T>(&self, receiver: oneshot::Receiver<T>) -> Option<T> {
        let value = self.spin_or_drive(|| match receiver.try_recv() {
            Ok(value) => Some(Some(value)),
            Err(oneshot::TryRecvError::Disconnected) => Some(None),
            Err(oneshot::TryRecvError::Empty) => None,
        });
        value.unwrap_or_else(|| receiver.recv().ok())
    }

    /// Waits for the next value of a channel; returns `None` if it is closed.
    pub(crate) fn wait_channel<T>(&self, channel: &async_channel::Receiver<T>) -> Option<T> {
        let value = self.spin_or_drive(|| match channel.try_recv() {
            Ok(value) => Some(Some(value)),
            Err(async_channel::TryRecvError::Closed) => Some(None),
            Err(async_channel::TryRecvError::Empty) => None,
        });
        value.unwrap_or_else(|| channel.recv_blocking().ok())
    }

    /// Polls until there is a result, while an inline engine is driven, or for the time to spin. Returns `None` if the
    /// caller has to sleep.
    fn spin_or_drive<T>(&self, poll: impl Fn() -> Option<T>) -> Option<T> {
        let from = Instant::now();
        let mut idle = 0;
        loop {
            match (poll(), self) {
                (Some(result), _) => return Some(result),
                (None, Self::Inline(_)) => self.step_or_yield(&mut idle),
                (None, Self::Thread { spin }) if from.elapsed() < *spin => std::hint::spin_loop(),
                (None, Self::Thread { .. }) => return None,
            }
        }
    }

    /// Returns the next value of a channel; `None` if it is closed.
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

    /// Returns a value; `None` if its sender is gone.
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

    /// Drives an inline engine for a future that is polled, and has the future polled again.
    pub(crate) fn drive_for(&self, context: &Context<'_>) {
        if let Self::Inline(_) = self {
            self.step();
            context.waker().wake_by_ref();
        }
    }

    /// Runs one step of an inline engine; returns whether there was anything to do.
    pub(crate) fn step(&self) -> bool {
        if let Self::Inline(engine) = self {
            return engine.lock().unwrap_or_else(PoisonError::into_inner).step(false);
        }
        false
    }

    /// Runs a few steps of an inline engine at most. After many idle steps (about 100 us), yields the core too.
    fn step_or_yield(&self, idle: &mut u32) {
        let Self::Inline(engine) = self else { return };
        let engine = match engine.try_lock() {
            Ok(engine) => Some(engine),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            // The thread that holds the lock drives the engine, for this call too.
            Err(TryLockError::WouldBlock) => None,
        };
        // Unlocked as soon as there was something to do.
        let busy = engine.map(|mut engine| (0..STEPS_PER_LOCK).any(|_| engine.step(false)));
        *idle = match busy {
            Some(true) => 0,
            Some(false) => *idle + STEPS_PER_LOCK,
            None => *idle + 1,
        };
        if *idle >= IDLE_STEPS_PER_YIELD {
            *idle = IDLE_STEPS_PER_YIELD;
            std::thread::yield_now();
        }
    }
}

/// Runs an engine in this thread until it is stopped or panics. `mode` says how the thread waits for work.
pub(crate) fn run(engine: &mut Engine, mode: Mode) {
    if contain(|| run_until_stopped(engine, mode)).is_none() {
        engine.fail();
    }
}

fn run_until_stopped(engine: &mut Engine, mode: Mode) {
    let (patience, sleeps) = match mode {
        Mode::Spinning | Mode::Inline => (YIELD_AFTER, false),
        Mode::Hybrid { spin } => (Span::from_ns(spin.as_nanos() as u64), true),
        Mode::Blocking => (Span::ZERO, true),
    };
    let mut idle_since = engine.now();
    while !engine.is_stopped() {
        if engine.try_step(false) {
            idle_since = engine.now();
        } else if engine.now().since(idle_since) < patience {
            // Spins.
        } else if !sleeps {
            std::thread::yield_now();
        } else {
            // A timer may be due that an idle step does not see.
            if !engine.try_step(true) {
                engine.sleep();
            }
            idle_since = engine.now();
        }
    }
    engine.stop();
}
