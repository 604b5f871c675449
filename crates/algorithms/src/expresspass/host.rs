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
    /// Counts credits for [`Stop::Early`].
    recent: Recent,
}

/// Credits that arrived in the last RTT.
#[derive(Clone, Copy, Debug, Default)]
struct Recent {
    /// Start of the count; before the first credit, the departure of the request.
    since: Time,
    /// From the request to the first credit.
    rtt: Span,
    credits: u64,
    /// At the end of an RTT, at least as many credits had arrived as packets were left.
    enough: bool,
}

impl Recent {
    /// Counts a credit. `left` packets still need credits; `first` states that the credit is the first one
    /// after a request.
    fn count(&mut self, now: Time, first: bool, left: u64) {
        self.credits += 1;
        if first {
            (self.rtt, self.since) = (now.since(self.since), now);
        } else if now.since(self.since) >= self.rtt {
            self.enough = self.credits >= left;
            (self.credits, self.since) = (0, now);
        }
    }
}

impl Algorithm for ExpressPass {
    type Params = Params;
    type Receiver = Box<ExpressPassReceiver>;
    type Switch = Plain;
    const FINE_TIMERS: bool = true;
    const INFO: AlgorithmInfo = AlgorithmInfo {
        name: "expresspass",
        summary: "sends one packet per credit from the receiver; ports limit the rate of credits",
        source: "Cho, Jang, Han: Credit-Scheduled Delay-Bounded Congestion Control for Datacenters, \
                 SIGCOMM 2017",
        profiles: &[
            ProfileInfo {
                name: params::CODE,
                doc: "the feedback control of the authors' simulator",
            },
            ProfileInfo { name: params::PAPER, doc: "the paper's feedback control (unverified)" },
            ProfileInfo {
                name: params::CODE_2018,
                doc: "the authors' simulator since April 2018: the initial rate grows with the amount of data to \
                      send, and credits are stopped early",
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
            recent: Recent::default(),
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
        self.recent = Recent { since: now, ..Recent::default() };
        Some(SenderControl::CreditRequest)
    }

    /// Returns `true` if the credits in flight may suffice for the packets that are left.
    fn stops_early(&self) -> bool {
        self.params.stop == Stop::Early && self.recent.enough
    }

    fn stop(&mut self, now: Time) -> Option<SenderControl> {
        self.enter(State::StopSent, now);
        if self.params.stop == Stop::Early && self.recent.rtt > Span::ZERO {
            // ns2-xpass: data that is left after two RTTs needs another request.
            self.deadline = now.saturating_add(self.recent.rtt).saturating_add(self.recent.rtt);
        }
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
                let first = self.state == State::RequestSent;
                self.recent.count(event.now, first, event.backlog.packets);
                self.state = State::Receiving;
                self.deadline = event.now.saturating_add(self.params.request_timeout);
            }
            State::StopSent => {}
            // Credits that were in flight at the stop arrive for an RTT. Later ones show that the stop was
            // lost.
            State::Closed => self.wasted = event.now >= self.deadline,
        }
    }

    fn poll_control(&mut self, now: Time, backlog: &Backlog) -> Option<SenderControl> {
        let late = now >= self.deadline;
        if backlog.packets > 0 {
            return match self.state {
                State::Receiving if self.stops_early() => self.stop(now),
                State::StopSent if self.params.stop == Stop::Early && !late => None,
                State::Closed | State::StopSent => self.request(now),
                State::RequestSent | State::Receiving if late => self.request(now),
                State::RequestSent | State::Receiving => None,
            };
        }
        match self.state {
            // The data of the request is gone, because the flow was abandoned.
            State::RequestSent if late => self.stop(now),
            State::RequestSent => None,
            State::Receiving => {
                let due = late
                    || match self.params.stop {
                        Stop::AtLastData | Stop::Early => true,
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
