//! Sender half of a Python algorithm: an object of its class per flow.
//!
//! The allowance and the other results change only with events. They are queried once after each event and kept, so
//! polls of the transport do not need the interpreter.

use std::fmt;
use std::sync::{Arc, PoisonError};

use apus_cc::{
    AckEvent, Allowance, Backoff, CongestionHeader, Ecn, FlowInfo, LossEvent, Pacing,
    PacketSizeEvent, ReplaySender, RttEstimator, SendInfo, Sender, SignalEvent, Snapshot,
    StateError, StateOverride, TimeoutEvent,
};
use apus_sim::Fault;
use apus_units::{Span, Time};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyTraceback};

use super::thread::keep_state;
use super::{PyFactory, events};

/// Sender half of one flow; see the module.
pub struct PySender {
    factory: Arc<PyFactory>,
    flow: Py<PyAny>,
    allowance: Allowance,
    rtt: RttEstimator,
    backoff: Backoff,
    /// Timeout of the class, if it defines its own rule.
    rto: Option<Span>,
    timer: Option<Time>,
    label: u32,
}

impl PySender {
    /// Creates the object of a new flow.
    pub fn new(factory: Arc<PyFactory>, flow: &FlowInfo) -> Self {
        let flow = events::FlowInfo::from(flow);
        let allowance = Allowance { window: 1.0, pacing: Pacing::AckClocked };
        Python::attach(|py| {
            let class = factory.class.class.bind(py);
            let make = || {
                let arguments = (factory.parameters.bind(py), flow);
                class.call_method1(intern!(py, "_for_flow"), arguments)
            };
            let flow = match make() {
                Ok(flow) => flow.unbind(),
                Err(error) => raise(py, &factory, error),
            };
            let (rtt, backoff) = (RttEstimator::default(), Backoff::default());
            let mut sender =
                Self { factory, flow, allowance, rtt, backoff, rto: None, timer: None, label: 0 };
            sender.after(py, Ok(()));
            sender
        })
    }

    /// Calls a method of the flow's object with an event, then queries its results.
    #[inline]
    fn call(
        &mut self,
        method: impl for<'py> FnOnce(Python<'py>, &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>>,
    ) {
        keep_state();
        Python::attach(|py| {
            let called = method(py, self.flow.bind(py)).map(drop);
            self.after(py, called);
        });
    }

    /// Queries the results of the object after an event.
    fn after(&mut self, py: Python<'_>, called: PyResult<()>) {
        if let Err(error) = called.and_then(|()| self.ask(py)) {
            raise(py, &self.factory, error);
        }
    }

    fn ask(&mut self, py: Python<'_>) -> PyResult<()> {
        let flow = self.flow.bind(py);
        let hooks = self.factory.class.hooks;
        let allowed = flow.call_method0(intern!(py, "allowance"))?;
        self.allowance = match allowed.cast_exact::<PyFloat>() {
            Ok(window) => ack_clocked(window.value())?,
            Err(_) => match allowed.cast::<events::Allowance>() {
                Ok(allowance) => allowance.get().0,
                Err(_) => ack_clocked(allowed.extract()?)?,
            },
        };
        if hooks.rto {
            let rto = flow.call_method0(intern!(py, "rto"))?.extract()?;
            self.rto = Some(events::span(rto, "the retransmission timeout")?);
        }
        if hooks.on_timer {
            let at: Option<f64> = flow.call_method0(intern!(py, "next_timer"))?.extract()?;
            self.timer = at.map(|at| events::time(at, "the time of the timer")).transpose()?;
        }
        if hooks.path_label {
            self.label = flow.call_method0(intern!(py, "path_label"))?.extract()?;
        }
        Ok(())
    }
}

fn ack_clocked(window: f64) -> PyResult<Allowance> {
    Ok(Allowance { window: events::window_of(window)?, pacing: Pacing::AckClocked })
}

/// Ends the run or the engine with an exception of the algorithm.
fn raise(py: Python<'_>, factory: &PyFactory, error: PyErr) -> ! {
    let place = error.traceback(py).and_then(|traceback| innermost(&traceback).ok());
    let place = place.map_or(String::new(), |place| format!(" ({place})"));
    let message = format!("{}: {error}{place}", factory.class.name);
    let mut raised = factory.raised.lock().unwrap_or_else(PoisonError::into_inner);
    raised.get_or_insert_with(|| error.clone_ref(py));
    drop(raised);
    Fault { message, cause: Box::new(error) }.raise()
}

/// Returns file, line and function of the innermost stack frame.
fn innermost(traceback: &Bound<'_, PyTraceback>) -> PyResult<String> {
    let mut frame = traceback.clone().into_any();
    loop {
        let next = frame.getattr("tb_next")?;
        if next.is_none() {
            break;
        }
        frame = next;
    }
    let code = frame.getattr("tb_frame")?.getattr("f_code")?;
    let (file, function) = (code.getattr("co_filename")?, code.getattr("co_qualname")?);
    Ok(format!("{file}:{}, {function}", frame.getattr("tb_lineno")?))
}

/// Copies the object with its own state, by `copy.deepcopy`.
impl Clone for PySender {
    fn clone(&self) -> Self {
        let flow = Python::attach(|py| {
            let copied = py.import("copy").and_then(|m| m.call_method1("deepcopy", (&self.flow,)));
            match copied {
                Ok(flow) => flow.unbind(),
                Err(error) => raise(py, &self.factory, error),
            }
        });
        let factory = Arc::clone(&self.factory);
        let Self { allowance, rtt, backoff, rto, timer, label, .. } = *self;
        Self { factory, flow, allowance, rtt, backoff, rto, timer, label }
    }
}

impl fmt::Debug for PySender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PySender").field(&self.factory.class.name).field(&self.allowance).finish()
    }
}

impl Sender for PySender {
    fn on_ack(&mut self, event: &AckEvent<'_>) {
        self.rtt.update(&self.factory.rto, event.rtt);
        if event.acked_packets > 0 {
            self.backoff.on_ack();
        }
        let event = events::AckEvent::from(event);
        self.call(|py, flow| flow.call_method1(intern!(py, "on_ack"), (event,)));
    }

    fn on_loss(&mut self, event: &LossEvent) {
        let event = events::LossEvent::from(event);
        self.call(|py, flow| flow.call_method1(intern!(py, "on_loss"), (event,)));
    }

    fn on_timeout(&mut self, event: &TimeoutEvent) {
        self.backoff.on_timeout(event);
        let event = events::TimeoutEvent::from(event);
        self.call(|py, flow| flow.call_method1(intern!(py, "on_timeout"), (event,)));
    }

    fn on_transmit(&mut self, header: &mut CongestionHeader, info: &SendInfo) {
        if self.factory.class.hooks.ecn {
            header.ecn = Ecn::Capable;
        }
        if self.factory.class.hooks.on_transmit {
            let info = events::SendInfo::from(info);
            self.call(|py, flow| flow.call_method1(intern!(py, "on_transmit"), (info,)));
        }
    }

    #[inline]
    fn allowance(&self) -> Allowance {
        self.allowance
    }

    fn on_idle(&mut self, now: Time) {
        if self.factory.class.hooks.on_idle {
            let now = events::seconds(now.as_ps());
            self.call(|py, flow| flow.call_method1(intern!(py, "on_idle"), (now,)));
        }
    }

    fn rto(&self) -> Span {
        if let Some(rto) = self.rto {
            return rto;
        }
        let gap = match self.allowance.pacing {
            Pacing::Delay(gap) => gap,
            _ => Span::ZERO,
        };
        let rto = self.rtt.rto(&self.factory.rto, gap);
        // No window limits the flow, so a timeout that is too short would expire again and again.
        if self.allowance.window.is_infinite() {
            self.backoff.applied(rto, &self.factory.rto)
        } else {
            rto
        }
    }

    fn on_signal(&mut self, event: &SignalEvent) {
        if self.factory.class.hooks.on_signal {
            let event = events::SignalEvent::from(event);
            self.call(|py, flow| flow.call_method1(intern!(py, "on_signal"), (event,)));
        }
    }

    fn on_packet_size(&mut self, event: &PacketSizeEvent) {
        if self.factory.class.hooks.on_packet_size {
            let event = events::PacketSizeEvent::from(event);
            self.call(|py, flow| flow.call_method1(intern!(py, "on_packet_size"), (event,)));
        }
    }

    fn next_timer(&self) -> Option<Time> {
        self.timer
    }

    fn on_timer(&mut self, now: Time) {
        // Cleared first, because otherwise an exception would leave an expired timer.
        let expired = self.timer.take();
        let seconds = events::seconds(now.as_ps());
        self.call(|py, flow| flow.call_method1(intern!(py, "on_timer"), (seconds,)));
        // A periodic timer may need several steps to reach the current time. A timer that does not advance would expire
        // forever.
        if let Some(at) = self.timer.filter(|at| *at <= now && Some(*at) <= expired) {
            self.timer = None;
            let at = events::seconds(at.as_ps());
            let message = format!(
                "next_timer() returned {at} s, which is not after on_timer's now = {seconds} s; return a later time or None"
            );
            Python::attach(|py| self.after(py, Err(PyValueError::new_err(message))));
        }
    }

    fn path_label(&self) -> u32 {
        self.label
    }

    fn snapshot(&self) -> Snapshot {
        let pacing_delay = match self.allowance.pacing {
            Pacing::Delay(delay) => Some(delay),
            _ => None,
        };
        let (cwnd, smoothed_rtt) = (self.allowance.window, self.rtt.smoothed());
        Snapshot { cwnd, pacing_delay, smoothed_rtt, ..Snapshot::default() }
    }
}

impl ReplaySender for PySender {
    fn set_state(&mut self, state: &StateOverride) -> Result<(), StateError> {
        self.rtt.set_state(state)
    }
}
