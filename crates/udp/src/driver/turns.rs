//! The order in which waiting calls drive a shared engine. At most one call leads, and the other calls are parked.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use super::prompt::Promptness;
use super::{Awaited, Waited};

/// Number of wake-ups of the leader, usually for other calls, after which the leader hands over to the next waiting
/// call. deviation: no source; a change of the leader costs two wake-ups, an eighth of those that it saves.
const WAKES_FOR_OTHERS: u32 = 16;

/// Interval at which a thread that is ending checks what it waits for. deviation: no source; such waits are rare, and a
/// thousand checks per second take less than 1 % of a core.
const LOOK_INTERVAL: Duration = Duration::from_millis(1);

/// A waiting thread.
pub(super) struct Waiter {
    /// Handle that wakes the thread. `None` if the thread is ending and its thread-local values are destroyed: such a
    /// thread cannot be woken and checks periodically instead.
    thread: Option<Thread>,
    leads: AtomicBool,
}

impl Wake for Waiter {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.unpark();
    }
}

impl Waiter {
    fn unpark(&self) {
        if let Some(thread) = &self.thread {
            thread.unpark();
        }
    }

    /// Sleeps until the thread is woken, at most for the time `left` if there is one. May return early.
    fn park(&self, left: Option<Duration>) {
        match (&self.thread, left) {
            (Some(_), None) => thread::park(),
            (Some(_), Some(left)) => thread::park_timeout(left),
            (None, left) => thread::sleep(left.unwrap_or(LOOK_INTERVAL).min(LOOK_INTERVAL)),
        }
    }

    pub(super) fn leads(&self) -> bool {
        self.leads.load(Ordering::Acquire)
    }
}

/// The waiter of this thread, with its waker.
pub(super) struct Own {
    pub(super) waiter: Arc<Waiter>,
    waker: Waker,
    /// Prediction whether the thread waits soon again.
    pub(super) promptness: Promptness,
}

thread_local! {
    /// The waiter of this thread. It is `None` while the thread waits, because application code may wait within a wait.
    static OWN: RefCell<Option<Own>> = const { RefCell::new(None) };
    /// Number of nested waits of this thread: a future that a call waits for may itself wait.
    static WAITS: Cell<u32> = const { Cell::new(0) };
}

/// Returns `true` if a call of this thread waits.
pub(super) fn waits() -> bool {
    WAITS.get() > 0
}

/// Calls `wait` with the waiter of this thread. Counts as a wait of the thread.
pub(super) fn with_own<T>(wait: impl FnOnce(&Own) -> T) -> T {
    struct Waits;
    impl Drop for Waits {
        fn drop(&mut self) {
            WAITS.set(WAITS.get() - 1);
        }
    }
    own_of_thread(|own| {
        WAITS.set(WAITS.get() + 1);
        let _waits = Waits;
        wait(own)
    })
}

/// Calls `then` with the waiter of this thread. Does not count as a wait of the thread.
pub(super) fn own_of_thread<T>(then: impl FnOnce(&Own) -> T) -> T {
    let kept = OWN.try_with(|own| own.borrow_mut().take());
    // `thread::current` may panic if the thread-local values are destroyed.
    let thread = matches!(kept, Ok(None)).then(thread::current);
    let own = kept.ok().flatten().unwrap_or_else(|| {
        let waiter = Arc::new(Waiter { thread, leads: AtomicBool::new(false) });
        Own { waker: Waker::from(Arc::clone(&waiter)), waiter, promptness: Promptness::default() }
    });
    let result = then(&own);
    let _ = OWN.try_with(|kept| *kept.borrow_mut() = Some(own));
    result
}

/// Parks the thread until a wait ends.
pub(super) fn park<A: Awaited>(awaited: &mut A, deadline: Option<Instant>) -> Waited<A::Value> {
    with_own(|own| {
        loop {
            if let Some(ended) = own.park_while(awaited, deadline, || true) {
                return ended;
            }
        }
    })
}

impl Own {
    /// Parks the thread until a wait ends. Returns `None` as soon as `parked` returns `false`, which is checked after
    /// each wake-up.
    pub(super) fn park_while<A: Awaited>(
        &self,
        awaited: &mut A,
        deadline: Option<Instant>,
        parked: impl Fn() -> bool,
    ) -> Option<Waited<A::Value>> {
        let mut context = Context::from_waker(&self.waker);
        while parked() {
            if let Poll::Ready(ended) = awaited.poll(&mut context) {
                return Some(ended);
            }
            match deadline.map(|at| at.saturating_duration_since(Instant::now())) {
                Some(left) if left.is_zero() => return Some(Waited::TimedOut),
                left => self.waiter.park(left),
            }
        }
        None
    }
}

#[derive(Default)]
struct Order {
    leader: Option<Arc<Waiter>>,
    /// Whether the wait of the leader has ended, and another wait of its thread is expected at once.
    away: bool,
    parked: VecDeque<Arc<Waiter>>,
}

/// The order of the calls that wait for one engine.
#[derive(Default)]
pub(super) struct Turns {
    order: Mutex<Order>,
    led: AtomicBool,
    /// Number of wake-ups of the leader since its appointment. If the leader was away meanwhile, the number includes
    /// the wake-ups that ended its own waits.
    wakes: AtomicU32,
    /// Whether the leader must hand over to the first parked call.
    resign: AtomicBool,
}

/// The role of a call that begins to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The call leads, because no other call does.
    Leads,
    /// The call is parked until its turn.
    Parked,
    /// The call is parked until the leader hands over to it. The caller must wake the leader.
    ParkedFirst,
}

impl Turns {
    fn order(&self) -> MutexGuard<'_, Order> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns `true` if a call leads, or if its thread is expected to wait again at once.
    pub(super) fn led(&self) -> bool {
        self.led.load(Ordering::SeqCst)
    }

    /// Records that the leader was woken.
    pub(super) fn leader_woke(&self) {
        self.wakes.fetch_add(1, Ordering::Relaxed);
    }

    /// Gives a call its role. If no call leads and no leader is away, the call leads, and `first` runs before another
    /// call can enter or leave. If a leader is away, the call takes its place.
    pub(super) fn enter(&self, waiter: &Arc<Waiter>, first: impl FnOnce()) -> Role {
        let mut order = self.order();
        if std::mem::take(&mut order.away) {
            match &order.leader {
                Some(leader) if Arc::ptr_eq(leader, waiter) => {
                    waiter.leads.store(true, Ordering::Release);
                }
                _ => self.appoint(&mut order, Arc::clone(waiter)),
            }
            Role::Leads
        } else if order.leader.is_none() {
            first();
            self.appoint(&mut order, Arc::clone(waiter));
            Role::Leads
        } else if self.wakes.load(Ordering::Relaxed) > WAKES_FOR_OTHERS {
            order.parked.push_front(Arc::clone(waiter));
            self.wakes.store(0, Ordering::Relaxed);
            self.resign.store(true, Ordering::SeqCst);
            Role::ParkedFirst
        } else {
            order.parked.push_back(Arc::clone(waiter));
            Role::Parked
        }
    }

    /// Makes the thread of `waiter`, which is expected to wait at once, the leader. The leader is away until the thread
    /// waits. Returns `false` if there is a leader already. `first` runs before another call can enter or leave.
    pub(super) fn prepare(&self, waiter: &Arc<Waiter>, first: impl FnOnce()) -> bool {
        let mut order = self.order();
        if order.leader.is_some() {
            return false;
        }
        first();
        self.appoint(&mut order, Arc::clone(waiter));
        waiter.leads.store(false, Ordering::Release);
        order.away = true;
        true
    }

    fn appoint(&self, order: &mut Order, waiter: Arc<Waiter>) {
        waiter.leads.store(true, Ordering::Release);
        order.leader = Some(waiter);
        self.wakes.store(0, Ordering::Relaxed);
        self.resign.store(false, Ordering::SeqCst);
        self.led.store(true, Ordering::SeqCst);
    }

    /// Hands over to the first parked call if [`Turns::enter`] requested it. Returns `true` in this case.
    pub(super) fn resign(&self, leader: &Arc<Waiter>) -> bool {
        if !self.resign.load(Ordering::SeqCst) {
            return false;
        }
        let mut order = self.order();
        let Some(next) = order.parked.pop_front() else {
            self.resign.store(false, Ordering::SeqCst);
            return false;
        };
        leader.leads.store(false, Ordering::Release);
        order.parked.push_back(Arc::clone(leader));
        self.appoint(&mut order, Arc::clone(&next));
        drop(order);
        next.unpark();
        true
    }

    /// Ends the wait of a leader whose thread is expected to wait again at once. The leader is away until then. Returns
    /// `false` if the call does not lead.
    pub(super) fn step_away(&self, waiter: &Arc<Waiter>) -> bool {
        let mut order = self.order();
        let led = waiter.leads.swap(false, Ordering::AcqRel);
        order.away |= led;
        led
    }

    /// Ends the lead of a leader that is away, after it has called `last`. Returns `false` if no leader is away.
    pub(super) fn relieve(&self, last: impl FnOnce()) -> bool {
        let mut order = self.order();
        let away = std::mem::take(&mut order.away);
        if away {
            order.leader = None;
            self.led.store(false, Ordering::SeqCst);
            last();
        }
        away
    }

    /// Ends the wait of a call. If the call led and `appoint` is set, the next parked call leads. If no call leads
    /// afterwards, runs `last` before another call can enter, and returns `true`.
    pub(super) fn leave(&self, waiter: &Arc<Waiter>, appoint: bool, last: impl FnOnce()) -> bool {
        let mut order = self.order();
        if !waiter.leads.swap(false, Ordering::AcqRel) {
            order.parked.retain(|other| !Arc::ptr_eq(other, waiter));
            return false;
        }
        if appoint && let Some(next) = order.parked.pop_front() {
            self.appoint(&mut order, Arc::clone(&next));
            drop(order);
            next.unpark();
            return false;
        }
        order.leader = None;
        self.led.store(false, Ordering::SeqCst);
        last();
        true
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::super::Answer;
    use super::*;

    fn waiter() -> Arc<Waiter> {
        Arc::new(Waiter { thread: Some(thread::current()), leads: AtomicBool::new(false) })
    }

    fn enter(turns: &Turns, waiter: &Arc<Waiter>) -> Role {
        turns.enter(waiter, || ())
    }

    #[test]
    fn first_call_leads_and_hands_over_in_the_order_of_arrival() {
        let turns = Turns::default();
        let [a, b, c] = [(); 3].map(|()| waiter());
        assert_eq!(enter(&turns, &a), Role::Leads);
        assert_eq!((enter(&turns, &b), enter(&turns, &c)), (Role::Parked, Role::Parked));
        assert!(a.leads() && !b.leads() && turns.led());
        assert!(!turns.leave(&a, true, || panic!("others wait")));
        assert!(!a.leads() && b.leads() && !c.leads());
        // A parked call ends its wait.
        assert!(!turns.leave(&c, true, || panic!("it did not lead")));
        let mut last = false;
        assert!(turns.leave(&b, true, || last = true));
        assert!(last && !turns.led());
    }

    #[test]
    fn parked_calls_stay_parked_if_a_thread_drives_the_engine_then() {
        let turns = Turns::default();
        let [a, b] = [(); 2].map(|()| waiter());
        enter(&turns, &a);
        enter(&turns, &b);
        assert!(turns.leave(&a, false, || ()) && !b.leads() && !turns.led());
        assert_eq!(enter(&turns, &a), Role::Leads, "the call that comes next leads");
        assert!(!turns.leave(&b, false, || panic!("it did not lead")));
    }

    #[test]
    fn leader_that_is_away_leads_again_without_a_change() {
        let turns = Turns::default();
        let [a, b] = [(); 2].map(|()| waiter());
        enter(&turns, &a);
        assert!(turns.step_away(&a) && turns.led() && !a.leads());
        let kept = || panic!("the socket is not watched yet");
        assert_eq!(turns.enter(&a, kept), Role::Leads);
        assert!(a.leads() && !turns.step_away(&b) && !turns.relieve(|| panic!("none is away")));
        assert_eq!(enter(&turns, &b), Role::Parked);
    }

    #[test]
    fn thread_that_takes_the_lead_before_it_waits_is_away_until_then() {
        let turns = Turns::default();
        let [a, b] = [(); 2].map(|()| waiter());
        let mut first = 0;
        assert!(turns.prepare(&a, || first += 1) && turns.led() && !a.leads());
        assert!(!turns.prepare(&b, || panic!("a leads")) && first == 1);
        assert_eq!(turns.enter(&a, || panic!("the socket is not watched yet")), Role::Leads);
        assert!(a.leads() && !turns.relieve(|| panic!("it is not away")));
        assert!(turns.leave(&a, false, || ()) && turns.prepare(&b, || ()));
        let mut last = 0;
        assert!(turns.relieve(|| last += 1) && last == 1, "it does not wait");
    }

    #[test]
    fn another_call_leads_in_place_of_a_leader_that_is_away() {
        let turns = Turns::default();
        let [a, b] = [(); 2].map(|()| waiter());
        enter(&turns, &a);
        assert!(turns.step_away(&a));
        assert_eq!(turns.enter(&b, || panic!("the socket is not watched yet")), Role::Leads);
        assert_eq!(enter(&turns, &a), Role::Parked);
        assert!(b.leads() && !a.leads() && !turns.relieve(|| panic!("none is away")));
    }

    #[test]
    fn leader_that_stays_away_is_relieved_once() {
        let turns = Turns::default();
        let [a, b] = [(); 2].map(|()| waiter());
        enter(&turns, &a);
        enter(&turns, &b);
        assert!(!turns.relieve(|| panic!("it is not away")));
        assert!(turns.step_away(&a));
        let mut last = 0;
        assert!(turns.relieve(|| last += 1) && !turns.led() && !b.leads());
        assert!(!turns.relieve(|| panic!("once")) && last == 1);
        let mut first = 0;
        assert_eq!(turns.enter(&a, || first += 1), Role::Leads);
        assert_eq!(first, 1);
    }

    #[test]
    fn leader_that_is_woken_for_others_only_gives_its_place_to_the_next_call() {
        let turns = Turns::default();
        let [a, b, c] = [(); 3].map(|()| waiter());
        enter(&turns, &a);
        (0..WAKES_FOR_OTHERS).for_each(|_| turns.leader_woke());
        assert_eq!(enter(&turns, &b), Role::Parked, "the last wake-up may be for its own value");
        assert!(!turns.resign(&a));
        turns.leader_woke();
        assert_eq!(enter(&turns, &c), Role::ParkedFirst);
        assert_eq!(enter(&turns, &waiter()), Role::Parked, "once");
        assert!(a.leads() && turns.resign(&a) && !turns.resign(&c));
        assert!(c.leads() && !a.leads() && !b.leads());
        turns.leave(&c, true, || ());
        assert!(b.leads(), "it was parked before the former leader");
    }

    #[test]
    fn thread_that_is_ending_waits_without_its_thread_local_values() {
        type Told = (bool, Option<u32>);
        /// Waits for a number while its thread ends.
        struct Late(mpsc::Sender<oneshot::Sender<u32>>, mpsc::Sender<Told>);
        impl Drop for Late {
            fn drop(&mut self) {
                let (number, answer) = oneshot::channel();
                let _ = self.0.send(number);
                let is_gone = own_of_thread(|own| own.waiter.thread.is_none());
                let _ = self.1.send((is_gone, park(&mut Answer(answer), None).value()));
            }
        }
        thread_local! {
            static LATE: RefCell<Option<Late>> = const { RefCell::new(None) };
        }
        let (asks, asked) = mpsc::channel();
        let (tells, told) = mpsc::channel();
        let thread = thread::spawn(move || {
            // Destructors run in the reverse order of the first uses, so `OWN` is destroyed by then.
            LATE.with(|late| *late.borrow_mut() = Some(Late(asks, tells)));
            own_of_thread(|own| assert!(own.waiter.thread.is_some()));
        });
        asked.recv().expect("it waits").send(7).expect("it waits");
        assert_eq!(told.recv(), Ok((true, Some(7))));
        thread.join().expect("no panic");
    }

    #[test]
    fn leader_keeps_its_place_if_the_call_that_asked_for_it_has_left() {
        let turns = Turns::default();
        let [a, b] = [(); 2].map(|()| waiter());
        enter(&turns, &a);
        (0..=WAKES_FOR_OTHERS).for_each(|_| turns.leader_woke());
        assert_eq!(enter(&turns, &b), Role::ParkedFirst);
        turns.leave(&b, true, || ());
        assert!(!turns.resign(&a) && a.leads() && turns.led());
    }
}
