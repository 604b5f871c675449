//! ExpressPass's sender half: requests and stops credits.

use alloc::boxed::Box;
use alloc::sync::Arc;

use apus_units::{Span, Time};

use super::params::{self, Params, Stop};
use super::receiver::ExpressPassReceiver;
use apus_cc::{
    AckEvent, Algorithm, AlgorithmInfo, Allowance, Backlog, CongestionHeader, CreditEvent,
    CreditLimit, Derivation, FlowInfo, LossEvent, Pacing, Plain, ProfileInfo, ReplaySender,
    RttEstimator, SendInfo, Sender, SenderControl, SettingError, Settings, Snapshot, StateError,
    StateOverride, SwitchInfo, TimeoutEvent, Tunable,
};

/// The state of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing to send.
    Closed,
    /// Credits were requested; none has arrived.
    RequestSent,
    /// Credits arrive.
    Receiving,
    /// The sender has announced that it has no more data; not all data is acknowledged.
    StopSent,
}

/// The sender half: closed, request sent, receiving, stop sent, closed.
#[derive(Clone, Debug)]
pub struct ExpressPass {
    params: Arc<Params>,
    state: State,
    /// Time of the next request or stop without other events; in the state `Closed`, the time from
    /// which a credit means that the stop was lost.
    deadline: Time,
    /// A credit arrived when there was no data to send.
    wasted: bool,
    rtt: RttEstimator,
}

impl Algorithm for ExpressPass {
    type Params = Params;
    type Receiver = Box<ExpressPassReceiver>;
    type Switch = Plain;
    const FINE_TIMERS: bool = true;
    const INFO: AlgorithmInfo = AlgorithmInfo {
        name: "expresspass",
        summary: "sends a packet per credit of the receiver; ports limit the rate of credits",
        source: "Cho, Jang, Han: Credit-Scheduled Delay-Bounded Congestion Control for Datacenters, \
                 SIGCOMM 2017",
        profiles: &[
            ProfileInfo { name: params::PAPER, doc: "the paper's feedback control (unverified)" },
            ProfileInfo {
                name: params::CODE,
                doc: "the feedback control of the authors' simulator",
            },
        ],
        parameters: params::TABLE,
    };
    const DERIVED: &'static [Derivation] = params::DERIVED;
    const TUNED: &'static [Tunable] = params::TUNED;

    fn params(settings: &mut Settings) -> Result<Params, SettingError> {
        Params::from_settings(settings)
    }

    fn new(params: Arc<Params>, _: &FlowInfo) -> Self {
        Self {
            params,
            state: State::Closed,
            deadline: Time::MAX,
            wasted: false,
            rtt: RttEstimator::default(),
        }
    }

    fn receiver(params: &Arc<Params>, flow: &FlowInfo) -> Box<ExpressPassReceiver> {
        Box::new(ExpressPassReceiver::new(Arc::clone(params), flow))
    }

    fn credit_limit(params: &Params) -> Option<CreditLimit> {
        Some(params.limit)
    }

    fn switch(_: &Arc<Params>, _: &SwitchInfo) -> Plain {
        Plain
    }
}

impl ExpressPass {
    fn enter(&mut self, state: State, now: Time) {
        self.state = state;
        self.deadline = now.saturating_add(self.params.request_timeout);
        self.wasted = false;
    }

    fn request(&mut self, now: Time) -> Option<SenderControl> {
        self.enter(State::RequestSent, now);
        Some(SenderControl::CreditRequest)
    }

    fn stop(&mut self, now: Time) -> Option<SenderControl> {
        self.enter(State::StopSent, now);
        Some(SenderControl::CreditStop)
    }
}

impl Sender for ExpressPass {
    fn on_ack(&mut self, event: &AckEvent) {
        self.rtt.update(&self.params.rto, event.rtt);
    }

    fn on_loss(&mut self, _: &LossEvent) {}

    fn on_timeout(&mut self, _: &TimeoutEvent) {}

    fn on_transmit(&mut self, _: &mut CongestionHeader, _: &SendInfo) {}

    fn allowance(&self) -> Allowance {
        Allowance { window: f64::INFINITY, pacing: Pacing::Credits }
    }

    fn rto(&self) -> Span {
        self.rtt.rto(&self.params.rto, Span::ZERO)
    }

    fn on_credit(&mut self, event: &CreditEvent) {
        match self.state {
            State::RequestSent | State::Receiving => {
                self.wasted |= !event.used;
                self.state = State::Receiving;
                self.deadline = event.now.saturating_add(self.params.request_timeout);
            }
            State::StopSent => {}
            // Credits in flight at the stop arrive for an RTT. Later ones show that the stop was
            // lost.
            State::Closed => self.wasted = event.now >= self.deadline,
        }
    }

    fn poll_control(&mut self, now: Time, backlog: &Backlog) -> Option<SenderControl> {
        let late = now >= self.deadline;
        if backlog.packets > 0 {
            return match self.state {
                State::Closed | State::StopSent => self.request(now),
                State::RequestSent | State::Receiving if late => self.request(now),
                State::RequestSent | State::Receiving => None,
            };
        }
        match self.state {
            // A request that found its data gone (the flow was given up).
            State::RequestSent if late => self.stop(now),
            State::RequestSent => None,
            State::Receiving => {
                let due = late
                    || match self.params.stop {
                        Stop::AtLastData => true,
                        Stop::AtWastedCredit => self.wasted,
                    };
                if due { self.stop(now) } else { None }
            }
            State::StopSent if backlog.in_flight == 0 => {
                self.state = State::Closed;
                self.wasted = false;
                None
            }
            State::StopSent if late => self.stop(now),
            State::StopSent => None,
            State::Closed if self.wasted => self.stop(now),
            State::Closed => None,
        }
    }

    fn next_timer(&self) -> Option<Time> {
        (self.state != State::Closed).then_some(self.deadline)
    }

    fn snapshot(&self) -> Snapshot {
        let cwnd = self.allowance().window;
        Snapshot { cwnd, smoothed_rtt: self.rtt.smoothed(), ..Snapshot::default() }
    }
}

impl ReplaySender for ExpressPass {
    fn set_state(&mut self, state: &StateOverride) -> Result<(), StateError> {
        self.rtt.set_state(state)
    }
}
