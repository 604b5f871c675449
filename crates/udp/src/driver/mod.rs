//! The threads that run engines, and the ways in which calls of the application wait for engines.
//!
//! By default, waiting calls drive their engine in turns ([`shared`]), so that the path of an op needs no other thread.
//! An engine in [`Mode::Spinning`](crate::Mode::Spinning) has its own thread ([`run`]), which sleeps only while another
//! thread wants its core.

mod alarm;
mod background;
mod held;
mod locked;
mod prompt;
mod shared;
mod turns;

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use apus_units::{Span, Time};

use crate::connection_state::ConnectionState;
use crate::containment::{ContainedWaker, contain};
use crate::engine::Engine;
use crate::mailbox::Mailbox;

pub(crate) use background::WokenBy;
pub(crate) use held::{HeldMemory, HostId, cannot_end, holds_locks, holds_memory_of};
use held::{cannot_step, run_engine};
pub(crate) use shared::Shared;

/// Idle time after which the thread of a spinning engine yields its core. If the engine has a core of its own, yielding
/// costs nothing. Otherwise the scheduler would preempt the thread for milliseconds. deviation: no source. The time
/// only decides when the core is yielded, not what is sent.
const YIELD_AFTER: Span = Span::from_us(50);
/// Duration of a yield from which another thread is assumed to want the core. deviation: no source; a yield without
/// another thread takes less than a microsecond, and a time slice of Linux takes milliseconds.
const YIELDED: Span = Span::from_us(20);

/// The way in which calls wait for an engine.
#[derive(Clone)]
pub(crate) enum Driver {
    /// Threads of the host drive its engines. A waiting call spins for this time before it sleeps, unless other threads
    /// want the cores.
    Threads { host: HostId, spin: Duration, crowded: Arc<AtomicBool> },
    /// The waiting calls drive the engine in turns.
    Shared(Arc<Shared>),
}

/// A driver that does not keep its engine alive.
#[derive(Clone)]
pub(crate) enum WeakDriver {
    Threads,
    Shared(Weak<Shared>),
}

impl WeakDriver {
    /// Runs one step of the engine, if it has no background thread.
    pub(crate) fn step_inline(&self) {
        let Self::Shared(shared) = self else { return };
        if let Some(shared) = shared.upgrade().filter(|shared| !shared.has_thread()) {
            shared.step();
        }
    }
}

/// The end of a wait.
enum Waited<T> {
    /// The wait has ended with a value.
    Value(T),
    /// The channel is closed.
    Closed,
    /// The time limit has passed.
    TimedOut,
}

impl<T> Waited<T> {
    fn of<E>(result: Result<T, E>) -> Self {
        result.map_or(Self::Closed, Self::Value)
    }

    fn value(self) -> Option<T> {
        match self {
            Self::Value(value) => Some(value),
            Self::Closed | Self::TimedOut => None,
        }
    }
}

/// An event that a call waits for.
trait Awaited {
    type Value;

    /// Returns the end of the wait if it has ended. Registers no waker.
    fn take(&mut self) -> Poll<Waited<Self::Value>>;

    /// Returns the end of the wait if it has ended. Otherwise registers the waker.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Waited<Self::Value>>;

    /// Returns `true` if the wait has ended or, in the case of a future, may have ended. Does not call code of the
    /// application.
    fn has_ended(&self) -> bool;
}

/// The value of a one-shot channel.
struct Answer<T>(oneshot::Receiver<T>);

impl<T> Awaited for Answer<T> {
    type Value = T;

    fn take(&mut self) -> Poll<Waited<T>> {
        match self.0.try_recv() {
            Err(oneshot::TryRecvError::Empty) => Poll::Pending,
            ended => Poll::Ready(Waited::of(ended)),
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Waited<T>> {
        pin!(&mut self.0).poll(context).map(Waited::of)
    }

    fn has_ended(&self) -> bool {
        self.0.has_message()
    }
}

/// The next value of a queue.
struct Next<'a, 'b, T> {
    queue: &'a async_channel::Receiver<T>,
    receive: Pin<&'b mut async_channel::Recv<'a, T>>,
}

impl<T> Awaited for Next<'_, '_, T> {
    type Value = T;

    fn take(&mut self) -> Poll<Waited<T>> {
        match self.queue.try_recv() {
            Err(async_channel::TryRecvError::Empty) => Poll::Pending,
            ended => Poll::Ready(Waited::of(ended)),
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Waited<T>> {
        self.receive.as_mut().poll(context).map(Waited::of)
    }

    fn has_ended(&self) -> bool {
        !self.queue.is_empty()
    }
}

/// The output of a future. The future is polled only after it was woken. If it is pending while this thread holds the
/// memory of a region of the host, the wait ends without a value, because engines may wait for this memory.
struct Output<'a, F> {
    host: HostId,
    future: Pin<&'a mut F>,
    woken: Arc<Woken>,
    /// Waker of the future. It sets `woken`.
    waker: Waker,
}

impl<'a, F: Future> Output<'a, F> {
    fn new(host: HostId, future: Pin<&'a mut F>) -> Self {
        let woken = Arc::new(Woken { woken: AtomicBool::new(true), sleeper: Mutex::default() });
        Self { host, future, waker: Waker::from(Arc::clone(&woken)), woken }
    }
}

impl<F: Future> Awaited for Output<'_, F> {
    type Value = F::Output;

    fn take(&mut self) -> Poll<Waited<F::Output>> {
        if !self.woken.woken.swap(false, Ordering::AcqRel) {
            return Poll::Pending;
        }
        match self.future.as_mut().poll(&mut Context::from_waker(&self.waker)) {
            Poll::Pending if holds_memory_of(self.host) => Poll::Ready(Waited::Closed),
            polled => polled.map(Waited::Value),
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Waited<F::Output>> {
        let mut sleeper = self.woken.sleeper();
        if sleeper.as_ref().is_none_or(|sleeper| !sleeper.will_wake(context.waker())) {
            *sleeper = Some(context.waker().clone());
        }
        drop(sleeper);
        // From now on, a thread that wakes the future also wakes the sleeping thread.
        self.take()
    }

    fn has_ended(&self) -> bool {
        self.woken.woken.load(Ordering::Acquire)
    }
}

/// Whether a future was woken since the last poll, and the waker of the thread that sleeps until then.
struct Woken {
    woken: AtomicBool,
    sleeper: Mutex<Option<Waker>>,
}

impl Woken {
    fn sleeper(&self) -> MutexGuard<'_, Option<Waker>> {
        self.sleeper.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        let sleeper = self.sleeper().clone();
        if let Some(sleeper) = sleeper {
            sleeper.wake();
        }
    }
}

impl Driver {
    pub(crate) fn host(&self) -> HostId {
        match self {
            Self::Threads { host, .. } => *host,
            Self::Shared(shared) => shared.host(),
        }
    }

    /// Returns `true` if a wait of this thread would wait for itself: the thread holds the memory of a region of the
    /// host, for which an engine may wait, or is running the engine. Calls that wait check this first, and are refused
    /// in this case.
    pub(crate) fn would_deadlock(&self) -> bool {
        let runs = match self {
            Self::Threads { host, .. } => host.has_this_thread(),
            Self::Shared(shared) => shared.runs_here(),
        };
        runs || holds_memory_of(self.host())
    }

    /// Waits for a value. Returns `None` if the sender was dropped.
    pub(crate) fn wait<T>(&self, receiver: oneshot::Receiver<T>) -> Option<T> {
        self.wait_for(Answer(receiver), None).value()
    }

    /// Waits for the next value of a queue. Returns `None` if the queue is closed.
    pub(crate) fn wait_next<T>(&self, queue: &async_channel::Receiver<T>) -> Option<T> {
        let receive = pin!(queue.recv());
        self.wait_for(Next { queue, receive }, None).value()
    }

    /// Waits for a future. Returns `None` if the deadline passes first.
    pub(crate) fn wait_future<F: Future>(
        &self,
        future: Pin<&mut F>,
        deadline: Option<Instant>,
    ) -> Option<F::Output> {
        self.wait_for(Output::new(self.host(), future), deadline).value()
    }

    fn wait_for<A: Awaited>(&self, mut awaited: A, deadline: Option<Instant>) -> Waited<A::Value> {
        match self {
            Self::Shared(shared) => shared.wait(&mut awaited, deadline),
            Self::Threads { spin, crowded, .. } => {
                let until = Instant::now() + *spin;
                let until = deadline.map_or(until, |at| until.min(at));
                loop {
                    match awaited.take() {
                        Poll::Ready(ended) => return ended,
                        Poll::Pending
                            if !crowded.load(Ordering::Relaxed) && Instant::now() < until =>
                        {
                            std::hint::spin_loop();
                        }
                        Poll::Pending => return turns::park(&mut awaited, deadline),
                    }
                }
            }
        }
    }

    /// Returns the next value of a queue; `None` if it is closed.
    pub(crate) async fn next<T>(&self, queue: &async_channel::Receiver<T>) -> Option<T> {
        let mut receive = pin!(queue.recv());
        let mut waker = ContainedWaker::default();
        poll_fn(|context| {
            self.drive_for(context);
            receive.as_mut().poll(&mut Context::from_waker(waker.of(context.waker())))
        })
        .await
        .ok()
    }

    /// Returns a value; `None` if its sender was dropped.
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

    /// Makes the engine process submitted commands when a future is polled. If no thread drives the engine afterwards,
    /// schedules another poll of the future.
    pub(crate) fn drive_for(&self, context: &Context<'_>) {
        let Self::Shared(shared) = self else { return };
        if shared.has_thread() {
            shared.flush();
        } else {
            shared.step();
            context.waker().wake_by_ref();
        }
    }

    /// Returns a driver that does not keep the engine alive.
    pub(crate) fn weak(&self) -> WeakDriver {
        match self {
            Self::Shared(shared) => WeakDriver::Shared(Arc::downgrade(shared)),
            Self::Threads { .. } => WeakDriver::Threads,
        }
    }

    /// Runs one step of the engine, unless the engine has a thread of its own. Returns `true` if there was anything to
    /// do.
    pub(crate) fn step(&self) -> bool {
        match self {
            Self::Shared(shared) => shared.step(),
            Self::Threads { .. } => false,
        }
    }

    /// Ensures that the engine soon processes an op that was submitted to `flow`.
    #[inline]
    pub(crate) fn submitted(&self, connection: &ConnectionState, flow: usize, mailbox: &Mailbox) {
        match self {
            Self::Shared(shared) => shared.submitted(connection, flow),
            Self::Threads { .. } => mailbox.notify(),
        }
    }
}

/// Runs an engine in this thread until the engine is stopped or panics. The thread sleeps only if another thread wants
/// its core. If it only yielded in this case, it would get the core back after a full time slice each time, even if a
/// datagram arrived earlier. `crowded` informs waiting calls whether other threads want the core.
pub(crate) fn run(engine: &mut Engine, crowded: &AtomicBool) {
    let ended = run_engine(|| {
        contain(|| {
            let mut idle_since = engine.now();
            while !engine.is_stopped() {
                if engine.try_step(false) {
                    idle_since = engine.now();
                    continue;
                }
                let before = engine.now();
                if before.since(idle_since) < YIELD_AFTER {
                    continue;
                }
                std::thread::yield_now();
                let is_crowded = engine.now().since(before) >= YIELDED;
                crowded.store(is_crowded, Ordering::Relaxed);
                if is_crowded {
                    sleep(engine);
                    idle_since = engine.now();
                }
            }
            engine.stop();
        })
    });
    if ended.is_none() {
        engine.fail();
    }
}

/// Sleeps until the next timer, a datagram or a command.
fn sleep(engine: &mut Engine) {
    let Some(rest) = engine.rest() else { return };
    let timeout = (rest.due != Time::MAX).then(|| rest.due.since(engine.now()));
    let (mailbox, socket) = (Arc::clone(&engine.mailbox), engine.sockets());
    mailbox.status.stats.sleeps.fetch_add(1, Ordering::Relaxed);
    mailbox.sleep(&*socket, timeout, rest.sending, || true);
    engine.slept(rest.due);
}
