//! An engine that waiting calls drive in turns.
//!
//! If no other call leads, a call that begins to wait becomes the leader. The leader runs the engine, and sleeps in the
//! kernel until a datagram, another thread or the deadline of the call wakes it. An op and its completion therefore
//! need no other thread. Further calls are parked. The step of the engine that completes an op wakes the call that
//! waits for this op. A leader that is repeatedly woken only for other calls hands over to the next one
//! ([`super::turns`]).
//!
//! While no call leads, a background thread of the host sleeps on the socket and drives the engine, so that peers do
//! not wait for a slow application. Events of the socket reach this thread only during that time. In inline mode there
//! is no such thread: the leader never sleeps, and appoints the next leader when its wait ends.
//!
//! A leader that has nothing to do sleeps at once, without spinning. The kernel may have put the peer, or another
//! thread of the host, on the core of the leader, because a thread that waits for an answer is expected to sleep
//! (docs/dev/performance-notes.md).
//!
//! # A leader that is away
//! A leader whose thread has mostly waited again at once ([`super::prompt`]) keeps the lead when its wait ends. Until
//! the thread waits again, the leader is *away*. Acknowledgements of the datagrams that ended its wait are held. They
//! are then sent in one burst with what the thread submits next, and wake the peer only once
//! ([`Engine::step_and_hold`]). The background thread gets no events of the socket meanwhile.
//!
//! If the thread waits again, it leads without any change. If another call waits first, that call leads instead.
//! Otherwise the alarm of the background thread, which the leader set before it went away, goes off after at most
//! [`AWAY`]. The background thread then takes the lead away, sends what is held and drives the engine. A slow
//! application therefore delays answers to peers by at most this time. `remote_queuing` includes the time for which an
//! acknowledgement was held.
//!
//! A thread that submits an op, and has mostly waited at once after submitting ops, takes the lead before the op is
//! sent, and is away until it waits ([`Shared::lead_early`]). Otherwise the answer of a peer on the same core, which
//! runs before the send returns, would also wake the background thread.
//!
//! # No command is forgotten
//! A thread that submits an op puts the op into the mailbox, then tries to lock the engine. If another thread holds the
//! lock, that thread checks the mailbox after it has unlocked the engine. Both threads execute a fence between their
//! two steps, so that at least one of them sees the other's first step.
//!
//! # No timer is forgotten
//! The background thread runs due timers even while a call leads, so a sleeping leader does not wake for timers. The
//! alarm of the background thread, a timer of the kernel, wakes this thread ([`super::background`]). A thread that
//! unlocks the engine, or stops leading, ensures that the alarm goes off at the next timer of the engine or earlier.
//! Setting the alarm wakes no thread, and an alarm that is early enough stays as it is.

use std::sync::atomic::{Ordering, fence};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use apus_units::{Span, Time};

use super::background::{Background, WokenBy};
use super::locked::{self, Locked};
use super::turns::{self, Own, Role, Turns, with_own};
use super::{Awaited, HostId, Waited, cannot_step, holds_locks};
use crate::connection_state::ConnectionState;
use crate::engine::{Engine, Rest};
use crate::mailbox::Mailbox;
use crate::sys::Sockets;

/// Number of idle steps of an engine without a thread after which the leader yields its core. deviation: no source; a
/// step takes about 200 ns, so this is a round trip in a rack.
const IDLE_STEPS_PER_YIELD: u32 = 500;
/// Maximum number of steps of such an engine per lock. deviation: no source; about 1.5 us.
const STEPS_PER_LOCK: u32 = 8;
/// Time after which the background thread relieves a leader that is away and does not wait again. deviation: no source;
/// for times of at least one tick of Linux (4 ms), setting the alarm takes 1 to 3 us. For shorter times it takes 6 to 9
/// us, because the kernel then reprograms the timer of the core (measured on a virtual machine).
const AWAY: Span = Span::from_ms(4);
/// Number of ops in the mailbox from which they are sent without waiting for more. deviation: no source; half of the
/// largest batch of datagrams per system call (64), so that sending overlaps with submitting.
const FLUSH_OPS: usize = 32;
/// Time after which the background thread sends an op whose thread does not wait for it, and acknowledgements that are
/// held although their thread is not expected to wait again. deviation: no source; a thousand wake-ups per second,
/// while ops are submitted, take less than 1 % of a core.
const SEND_AFTER: Span = Span::from_ms(1);
/// Time after which the background thread retries to send packets for which the socket had no room. deviation: no
/// source; 10 Gb/s empty a quarter of the socket's buffer by then.
const RETRY_AFTER: Span = Span::from_ms(1);
/// Interval between checks whether calls of a stopped engine still lead. They stop leading within a step. deviation: no
/// source.
const STOP_CHECK: Duration = Duration::from_micros(50);

/// The turn of a waiting call. Dropping it ends the turn, even if the awaited code panics.
struct Turn<'a> {
    shared: &'a Shared,
    own: &'a Own,
    /// Whether the thread keeps the lead, because it is expected to wait again at once.
    keeps: bool,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if self.keeps && self.shared.step_away(self.own) {
            // Code that the engine called may have submitted ops.
            self.shared.flush();
        } else {
            self.shared.leave(self.own);
        }
    }
}

/// The end of a leader's wait.
struct Led<T> {
    ended: Waited<T>,
    /// Whether the thread may keep the lead: nothing is left to do at once, except to send what is held.
    idle: bool,
}

/// An engine that calls and a background thread drive in turns.
pub(crate) struct Shared {
    host: HostId,
    /// `None` after the engine has ended.
    engine: Mutex<Option<Engine>>,
    mailbox: Arc<Mailbox>,
    turns: Turns,
    /// Waker of the leader.
    waker: Waker,
    background: Option<Background>,
}

impl Shared {
    /// Wraps an engine so that calls can drive it. With `thread`, the caller must run [`Shared::run_background`] in a
    /// thread.
    ///
    /// # Errors
    /// If the system cannot create an epoll instance or a timer.
    pub(crate) fn new(host: HostId, engine: Engine, thread: bool) -> std::io::Result<Arc<Self>> {
        let mailbox = Arc::clone(&engine.mailbox);
        let background = thread.then(|| Background::new(&engine, SEND_AFTER)).transpose()?;
        Ok(Arc::new(Self {
            host,
            engine: Mutex::new(Some(engine)),
            turns: Turns::default(),
            waker: Waker::from(Arc::clone(&mailbox)),
            mailbox,
            background,
        }))
    }

    pub(super) fn host(&self) -> HostId {
        self.host
    }

    /// Returns `true` if this thread is running the engine.
    pub(super) fn runs_here(&self) -> bool {
        locked::runs(self.number())
    }

    /// Returns `true` if a background thread drives the engine while no call waits.
    pub(crate) fn has_thread(&self) -> bool {
        self.background.is_some()
    }

    /// Returns the locked engine.
    #[cfg(test)]
    pub(crate) fn engine(&self) -> std::sync::MutexGuard<'_, Option<Engine>> {
        self.engine.lock().expect("no engine has panicked")
    }

    fn lock(&self) -> Locked<'_> {
        Locked(self.engine.lock().unwrap_or_else(PoisonError::into_inner), self.number())
    }

    fn try_lock(&self) -> Option<Locked<'_>> {
        match self.engine.try_lock() {
            Ok(guard) => Some(Locked(guard, self.number())),
            Err(TryLockError::Poisoned(poisoned)) => {
                Some(Locked(poisoned.into_inner(), self.number()))
            }
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Unlocks the engine. Ensures that the alarm goes off at the next timer. If packets are left to send and this
    /// thread does not continue to drive the engine (`goes_on` is `false`), wakes the leader, or the background thread
    /// if no call leads.
    fn unlock(&self, mut engine: Locked<'_>, goes_on: bool) {
        let Some(background) = &self.background else { return drop(engine) };
        let mut due = engine.0.as_ref().map_or(Time::MAX, Engine::next_due);
        if !background.alarm.is_set_by(due) {
            engine.run(Engine::settle_timers);
            due = engine.0.as_ref().map_or(Time::MAX, Engine::next_due);
        }
        let left = !goes_on && engine.0.as_ref().is_some_and(Engine::has_left);
        let holds = !goes_on && engine.0.as_ref().is_some_and(Engine::holds);
        drop(engine);
        // See "No command is forgotten" in the module documentation.
        fence(Ordering::SeqCst);
        background.alarm.set_by(due);
        if holds {
            background.alarm.set_soon();
        }
        if left && self.turns.led() {
            self.mailbox.wake_leader();
        } else if left {
            self.mailbox.wake_background();
        }
    }

    /// Runs one step, unless this thread runs an engine or holds the memory of a region of the host. Returns `true` if
    /// there was anything to do.
    pub(crate) fn step(&self) -> bool {
        if cannot_step(self.host) {
            return false;
        }
        let mut engine = self.lock();
        let busy = engine.run(|engine| engine.step(false)).unwrap_or(false);
        self.unlock(engine, false);
        self.flush();
        busy
    }

    /// Makes the engine process the commands in its mailbox and send. Usually this thread does so. If another thread
    /// has locked the engine, that thread does so. If this thread is running the engine, it does so after the step. If
    /// this thread runs another engine or holds the memory of a region, the background thread does so.
    pub(crate) fn flush(&self) {
        if holds_locks() {
            if !self.runs_here() {
                self.mailbox.wake_background();
            }
            return;
        }
        while self.mailbox.has_commands() {
            let Some(mut engine) = self.try_lock() else { return };
            if engine.run(Engine::flush).is_none() {
                self.mailbox.drain();
            }
            self.unlock(engine, false);
        }
    }

    /// Ensures that an op that was submitted to `flow` is sent. The op is sent at once if the leader sleeps, if many
    /// ops are queued, or if nothing else of the flow is outstanding. Otherwise the op is sent with the next
    /// acknowledgement, or by the background thread after [`SEND_AFTER`].
    #[inline]
    pub(crate) fn submitted(&self, connection: &ConnectionState, flow: usize) {
        // See "No command is forgotten" in the module documentation.
        fence(Ordering::SeqCst);
        if self.mailbox.status.is_stopped() {
            self.mailbox.drain();
            return;
        }
        let Some(background) = &self.background else { return };
        let alone = connection.outstanding(flow) <= 1;
        if alone {
            self.lead_early(background);
        }
        if alone || self.mailbox.leader_sleeps() || self.mailbox.waiting_ops() >= FLUSH_OPS {
            self.flush();
            return;
        }
        background.alarm.set_soon();
    }

    /// Takes the lead before the op of this thread is sent, if no call leads and the thread is expected to wait at
    /// once. The answer may arrive before the thread waits, and then wakes no other thread.
    fn lead_early(&self, background: &Background) {
        if holds_locks() || turns::waits() {
            return;
        }
        turns::own_of_thread(|own| {
            let waits = own.promptness.on_submit(self.number(), Instant::now());
            if waits && !self.turns.led() {
                let prepared = self.turns.prepare(&own.waiter, || self.watch_socket(false));
                if prepared {
                    background.alarm.set_within(AWAY);
                }
            }
        });
    }

    /// Waits until `awaited` ends or the deadline passes.
    pub(super) fn wait<A: Awaited>(
        &self,
        awaited: &mut A,
        deadline: Option<Instant>,
    ) -> Waited<A::Value> {
        if let Poll::Ready(ended) = awaited.take() {
            return ended;
        }
        if self.has_thread() && deadline.is_some_and(|at| at <= Instant::now()) {
            self.flush();
            return Waited::TimedOut;
        }
        if turns::waits() {
            // A future that an outer `block_on` of this thread polls makes this call. The turn belongs to the outer
            // call.
            let ended = self.lead_without_sleep(awaited, deadline).unwrap_or(Waited::Closed);
            if self.has_thread() {
                self.flush();
            }
            return ended;
        }
        with_own(|own| {
            let mut turn = Turn { shared: self, own, keeps: false };
            own.promptness.on_wait(self.number(), Instant::now());
            match self.turns.enter(&own.waiter, || self.watch_socket(false)) {
                Role::Leads => {}
                Role::Parked => self.flush(),
                Role::ParkedFirst => {
                    self.flush();
                    self.mailbox.wake_leader();
                }
            }
            loop {
                let ended = if own.waiter.leads() {
                    self.lead(own, awaited, deadline).map(|led| {
                        own.promptness.on_ended(self.number(), Instant::now());
                        turn.keeps = led.idle && own.promptness.is_expected(self.number());
                        led.ended
                    })
                } else {
                    own.park_while(awaited, deadline, || !own.waiter.leads())
                };
                match ended {
                    Some(ended) => return ended,
                    // The engine has stopped.
                    None if self.mailbox.status.is_stopped() => {
                        self.leave(own);
                        let ended = own.park_while(awaited, deadline, || true);
                        return ended.unwrap_or(Waited::Closed);
                    }
                    None => {}
                }
            }
        })
    }

    /// Returns a number that identifies this engine.
    fn number(&self) -> usize {
        std::ptr::from_ref(self) as usize
    }

    /// Ends the wait of a leader whose thread is expected to wait again at once. If the thread does not, the background
    /// thread drives the engine from its next alarm on. Returns `false` if the call does not lead.
    fn step_away(&self, own: &Own) -> bool {
        let Some(background) = &self.background else { return false };
        if !self.turns.step_away(&own.waiter) {
            return false;
        }
        background.alarm.set_within(AWAY);
        true
    }

    /// Ends the wait of a call. If no call leads afterwards, the background thread drives the engine.
    fn leave(&self, own: &Own) {
        // With a background thread, parked calls stay parked: the thread of this call is likely to wait again and lead.
        let appoint = self.background.is_none();
        if self.turns.leave(&own.waiter, appoint, || self.watch_socket(true)) {
            // See "No command is forgotten" in the module documentation.
            fence(Ordering::SeqCst);
            self.flush();
            // If another thread holds the lock, it also sets the alarm when it unlocks the engine.
            if let Some(engine) = self.try_lock() {
                self.unlock(engine, false);
                // An op that was submitted meanwhile found the engine locked.
                self.flush();
            }
        }
    }

    /// Sets whether datagrams wake the background thread.
    fn watch_socket(&self, watch: bool) {
        if let Some(background) = &self.background {
            background.watch_socket(watch);
        }
    }

    /// Drives the engine as the leader until the wait ends. Returns `None` if the call no longer leads or the engine
    /// has stopped.
    fn lead<A: Awaited>(
        &self,
        own: &Own,
        awaited: &mut A,
        deadline: Option<Instant>,
    ) -> Option<Led<A::Value>> {
        let Some(background) = &self.background else {
            let ended = self.lead_without_sleep(awaited, deadline)?;
            return Some(Led { ended, idle: false });
        };
        let prompt = own.promptness.is_expected(self.number());
        let mut slept_until = None;
        // The first round only sends what the call has submitted. If datagrams are queued, the leader's sleep ends at
        // once.
        let mut first = true;
        loop {
            let mut engine = self.lock();
            let mut idle = false;
            let rest = engine.run(|engine| {
                if let Some(due) = slept_until.take() {
                    engine.slept(due);
                }
                if std::mem::take(&mut first) {
                    engine.flush();
                } else {
                    engine.step_and_hold(prompt, || awaited.has_ended());
                }
                let rest = engine.rest();
                idle = rest.is_some() || engine.holds();
                rest
            });
            self.unlock(engine, true);
            let mut ended = awaited.take();
            if ended.is_pending() {
                if self.mailbox.status.is_stopped() || self.turns.resign(&own.waiter) {
                    return None;
                }
                let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
                if left.is_some_and(|left| left.is_zero()) {
                    ended = Poll::Ready(Waited::TimedOut);
                } else if let Some(Some(rest)) = rest {
                    ended = self.sleep_as_leader(background, &rest, awaited, left);
                    slept_until = Some(rest.due);
                    self.turns.leader_woke();
                }
            }
            if let Poll::Ready(ended) = ended {
                return Some(Led { ended, idle });
            }
        }
    }

    /// Sleeps until a datagram or another thread wakes the leader, or until the time `left` has passed. Returns the end
    /// of the wait if it has ended. The alarm of the background thread covers the timers, so a call sets no kernel
    /// timer for them.
    fn sleep_as_leader<A: Awaited>(
        &self,
        background: &Background,
        rest: &Rest,
        awaited: &mut A,
        left: Option<Duration>,
    ) -> Poll<Waited<A::Value>> {
        let left = left.map(|left| Span::from_ns(left.as_nanos().min(1 << 53) as u64));
        let Some(socket) = background.socket().clone() else { return Poll::Pending };
        let mut ended = Poll::Pending;
        self.mailbox.status.stats.sleeps.fetch_add(1, Ordering::Relaxed);
        // After this registration, a thread that ends the wait wakes this thread.
        self.mailbox.sleep(&*socket, left, rest.sending, || {
            ended = awaited.poll(&mut Context::from_waker(&self.waker));
            ended.is_pending()
        });
        ended
    }

    /// Like [`Shared::lead`], for an engine without a background thread. The leader never sleeps; if it stays idle, it
    /// yields its core.
    fn lead_without_sleep<A: Awaited>(
        &self,
        awaited: &mut A,
        deadline: Option<Instant>,
    ) -> Option<Waited<A::Value>> {
        let mut idle = 0;
        loop {
            let mut engine = self.lock();
            // Stop at the first step with something to do, so that other threads can lock the engine.
            let busy =
                (0..STEPS_PER_LOCK).any(|_| engine.run(|engine| engine.step(false)) == Some(true));
            drop(engine);
            if let Poll::Ready(ended) = awaited.take() {
                return Some(ended);
            }
            if self.mailbox.status.is_stopped() {
                // Code that the engine called may have stopped it.
                self.lock().run(|engine| engine.step(true));
                return None;
            }
            if deadline.is_some_and(|at| at <= Instant::now()) {
                return Some(Waited::TimedOut);
            }
            idle = if busy { 0 } else { idle + STEPS_PER_LOCK };
            if idle >= IDLE_STEPS_PER_YIELD {
                idle = IDLE_STEPS_PER_YIELD;
                std::thread::yield_now();
            }
        }
    }

    /// Runs the timers, and drives the engine while no call leads, until the engine is stopped. Returns the result of
    /// [`Engine::end`].
    pub(crate) fn run_background(&self) -> Option<Arc<Sockets>> {
        let Some(background) = &self.background else { return None };
        let mut slept_until = Time::MAX;
        let mut woken = WokenBy::default();
        while !self.mailbox.status.is_stopped() {
            if woken.alarm {
                background.alarm.take();
                self.turns.relieve(|| background.watch_socket(true));
            }
            let led = self.turns.led();
            let mut engine = self.lock();
            let rest = engine.run(|engine| {
                engine.slept(slept_until);
                if !led || engine.next_due() <= engine.now() {
                    engine.step(true);
                }
                engine.settle_timers();
                let (rest, now) = (engine.rest(), engine.now());
                let due = match &rest {
                    Some(rest) => rest.due,
                    // The leader sends the remaining packets.
                    None if led => engine.next_due(),
                    None => now,
                };
                let left = engine.has_left();
                // No event informs this thread that the socket has room again.
                let soon = if !led && left { now.saturating_add(RETRY_AFTER) } else { Time::MAX };
                slept_until = due;
                (now, due.min(soon), left)
            });
            drop(engine);
            // See "No command is forgotten" in the module documentation.
            fence(Ordering::SeqCst);
            let Some((now, wakes_at, left)) = rest else { break };
            if led && left {
                self.mailbox.wake_leader();
            }
            self.flush();
            woken = WokenBy::default();
            if wakes_at > now {
                background.alarm.set_by(wakes_at);
                self.mailbox.status.stats.sleeps.fetch_add(1, Ordering::Relaxed);
                let unchanged = || self.turns.led() == led && (led || !self.mailbox.has_commands());
                woken = background.sleep(&self.mailbox, unchanged);
            }
        }
        self.lock().run(|engine| engine.step(true));
        // A leading call also stops. Until then it may use the socket.
        while self.turns.led() && !self.turns.relieve(|| ()) {
            std::thread::sleep(STOP_CHECK);
        }
        drop(background.socket().take());
        let engine = self.lock().0.take();
        engine.and_then(Engine::end)
    }
}
