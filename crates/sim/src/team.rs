//! Threads of a run. They are started once; in every step each thread runs its part of the network.

use std::io;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Instant;

use apus_cc::AlgorithmFactory;
use apus_units::{Span, Time};

use crate::parallel::Exchange;
use crate::part::Part;
use crate::tempo::{Mode, Tempo, Work};

/// One thread per part except the first, which the caller's thread runs. While the threads slow each other
/// down, the caller's thread runs all parts.
pub(crate) struct Team<F: AlgorithmFactory> {
    exchange: Arc<Exchange>,
    helpers: Vec<Helper<F>>,
    tempo: Tempo,
}

/// A thread and its channels. Parts are passed by value: between steps the caller has all of them.
struct Helper<F: AlgorithmFactory> {
    /// `None` once the run is over.
    orders: Option<Sender<Order<F>>>,
    done: Receiver<Part<F>>,
    thread: Option<JoinHandle<()>>,
}

/// A part to be run up to this time, or until this deadline.
struct Order<F: AlgorithmFactory> {
    part: Part<F>,
    end: Time,
    deadline: Instant,
}

impl<F: AlgorithmFactory> Team<F> {
    /// Returns a team for this number of parts, which may be `lookahead` apart.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub(crate) fn new(parts: u32, lookahead: Span, tempo: Tempo) -> io::Result<Self> {
        let exchange = Arc::new(Exchange::new(parts, lookahead));
        let helpers = (1..parts).map(|part| Helper::new(part, &exchange)).collect::<Result<_, _>>();
        Ok(Self { helpers: helpers?, exchange, tempo })
    }

    /// Runs all events of all parts before `end`.
    pub(crate) fn run(&mut self, parts: &mut Vec<Part<F>>, end: Time) {
        if self.helpers.is_empty() {
            parts.iter_mut().for_each(|part| part.run_events(end));
            return;
        }
        let events = |parts: &[Part<F>]| parts.iter().map(|part| part.handled.events).sum::<u64>();
        while parts[0].world.now < end {
            let (began, events_before, waited_before) =
                (Instant::now(), events(parts), self.exchange.waited());
            let (mode, time) = self.tempo.next();
            match mode {
                Mode::Together => self.run_together(parts, end, began + time),
                Mode::Alone => self.run_alone(parts, end, began + time),
            }
            self.tempo.note(Work {
                elapsed: began.elapsed(),
                events: events(parts) - events_before,
                waited: self.exchange.waited() - waited_before,
            });
        }
    }

    /// Runs each part on its own thread, up to `end` or the deadline.
    fn run_together(&mut self, parts: &mut Vec<Part<F>>, end: Time, deadline: Instant) {
        for (helper, part) in self.helpers.iter().zip(parts.drain(1..)) {
            let orders = helper.orders.as_ref().expect("a team works until it is dropped");
            let order = Order { part, end, deadline };
            orders.send(order).expect("a helper listens until it is dropped");
        }
        parts[0].run_windows(end, deadline, &self.exchange);
        for helper in &mut self.helpers {
            parts.push(helper.done());
        }
    }

    /// Runs the parts in turn, up to `end` or the deadline.
    fn run_alone(&self, parts: &mut [Part<F>], end: Time, deadline: Instant) {
        let exchange = &*self.exchange;
        loop {
            let next = parts.iter_mut().map(|part| part.post(exchange)).min();
            let limit = exchange.limit(next.unwrap_or(Time::MAX), end);
            parts.iter_mut().for_each(|part| part.receive_and_run(limit, exchange));
            if limit == end || Instant::now() >= deadline {
                return;
            }
        }
    }
}

impl<F: AlgorithmFactory> Helper<F> {
    fn new(part: u32, exchange: &Arc<Exchange>) -> io::Result<Self> {
        let (orders, inbox) = channel::<Order<F>>();
        let (outbox, done) = channel();
        let exchange = Arc::clone(exchange);
        let work = move || {
            for Order { mut part, end, deadline } in inbox {
                part.run_windows(end, deadline, &exchange);
                if outbox.send(part).is_err() {
                    return;
                }
            }
        };
        let thread = Builder::new().name(format!("part {part}")).spawn(work)?;
        Ok(Self { orders: Some(orders), done, thread: Some(thread) })
    }

    /// Returns the part after the step; propagates the panic of the thread.
    fn done(&mut self) -> Part<F> {
        match (self.done.recv(), self.thread.take()) {
            (Ok(part), thread) => {
                self.thread = thread;
                part
            }
            (Err(_), Some(thread)) => match thread.join() {
                Err(panic) => resume_unwind(panic),
                Ok(()) => unreachable!("a helper ends before its orders do only by a panic"),
            },
            (Err(_), None) => unreachable!("a helper that panicked is not asked again"),
        }
    }
}

impl<F: AlgorithmFactory> Drop for Helper<F> {
    fn drop(&mut self) {
        // The thread ends when its channel is closed.
        drop(self.orders.take());
        if let Some(thread) = self.thread.take() {
            // The part that waited for this thread has already propagated its panic.
            let _ = thread.join();
        }
    }
}
