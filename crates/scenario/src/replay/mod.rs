//! Replays a log: shows the reaction of an algorithm to recorded events.
//!
//! The log is CSV with a header line, columns in any order:
//!
//! | column | cell |
//! |---|---|
//! | `time_ps` | when, picoseconds |
//! | `event` | `ack`, `loss` or `timeout` |
//! | `rtt_ps` | end-to-end RTT; needed for an `ack` |
//! | `fabric_delay_ps`, `endpoint_delay_ps` | its parts (Swift §3.3); needed for an `ack` |
//! | `hops` | switches on the forward path, 0 to 255; needed for an `ack` |
//! | `acked` | packets acknowledged for the first time; needed for an `ack` |
//! | `marked` | optional: how many of them carried an ECN mark; empty is 0 |
//! | `receiver_level` | optional: fill of the receiver's buffer in 32nds; empty is 0 |
//! | `set_fabric_cwnd`, `set_endpoint_cwnd` | optional: windows in packets |
//! | `set_last_decrease_ps` | optional: when both windows last decreased |
//! | `set_smoothed_rtt_ps` | optional |
//! | `set_timeouts` | optional: timeouts in a row before this event |
//!
//! The `set_` columns overwrite the algorithm's state before the event; an empty cell changes
//! nothing. A `timeout` counts as one more than `set_timeouts`. On a `loss` or `timeout` the cells
//! of an acknowledgement may be empty; an `rtt_ps` above 0 is then the latest raw RTT, which guard
//! and pacing use, and not a sample of the smoothed one. Times need not increase: a row that sets
//! all of the state is independent of earlier rows.
//!
//! A log contains no packet numbers, so they are generated: an acknowledgement covers all packets so far, and a
//! full window of packets follows it.

mod cells;
mod event;
mod trace;

use std::fmt;
use std::io::BufRead;

use apus_algorithms::BuiltInSender;
use apus_cc::{
    AckEvent, LossEvent, Pacing, ReplaySender, Sender, StateError, StateField, TimeoutEvent,
};
use apus_units::{PacketNumber, Span, Time};

pub use event::Event;
pub use trace::{Record, Trace, TraceError};

/// The header line of a replay's output.
pub const HEADER: &str =
    "time_ps,event,target_delay_ps,fabric_cwnd,endpoint_cwnd,cwnd,pacing_delay_ps,rto_ps";

/// Visible state of an algorithm after an event. A value that the algorithm does not have is
/// `None`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// Time of the event.
    pub time: Time,
    /// Type of the event.
    pub event: Event,
    /// The target with which an acknowledgement was compared, which follows the window before the
    /// acknowledgement (Swift §3.5). After a loss or a timeout, the target for the window after the event, at
    /// the hops of the latest acknowledgement.
    pub target_delay: Option<Span>,
    /// Window in packets.
    pub fabric_cwnd: Option<f64>,
    /// Window in packets.
    pub endpoint_cwnd: Option<f64>,
    /// The window in force, in packets.
    pub cwnd: f64,
    /// Delay between two packets; zero if the flow is not paced.
    pub pacing_delay: Span,
    /// The retransmission timeout.
    pub rto: Span,
}

impl fmt::Display for Row {
    /// Writes a line of CSV without its end, with numbers in the shortest form that reads back to the same
    /// value.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{},", self.time.as_ps(), self.event.name())?;
        if let Some(target) = self.target_delay {
            write!(f, "{}", target.as_ps())?;
        }
        for window in [self.fabric_cwnd, self.endpoint_cwnd] {
            f.write_str(",")?;
            if let Some(window) = window {
                write!(f, "{window}")?;
            }
        }
        let (pacing, rto) = (self.pacing_delay.as_ps(), self.rto.as_ps());
        write!(f, ",{},{pacing},{rto}", self.cwnd)
    }
}

/// An algorithm during a replay.
#[derive(Clone, Debug)]
pub struct Replay {
    sender: BuiltInSender,
    /// Packets acknowledged so far, from which packet numbers are generated.
    acked: u64,
    /// Hops of the latest acknowledgement.
    hops: u8,
}

impl Replay {
    /// A replay of a new flow.
    #[must_use]
    pub fn new(sender: BuiltInSender) -> Self {
        Self { sender, acked: 0, hops: 0 }
    }

    /// Replays an event.
    ///
    /// # Errors
    /// If the record sets a state that the algorithm does not have; then nothing has changed.
    pub fn step(&mut self, record: &Record) -> Result<Row, StateError> {
        if !record.set.is_empty() {
            self.sender.set_state(&record.set)?;
        }
        let now = record.time;
        if let Some(hops) = record.hops {
            self.hops = hops;
        }
        let old_target = self.sender.target_delay(self.hops);
        match record.event {
            Event::Ack => self.on_ack(record),
            Event::Loss | Event::Timeout => {
                if let Some(rtt) = record.rtt.filter(|rtt| !rtt.is_zero()) {
                    self.sender.set_latest_rtt(rtt);
                }
                let (lost_seq, next_seq) = (PacketNumber::new(self.acked), self.next_seq());
                if record.event == Event::Timeout {
                    let mut event = TimeoutEvent::new(now);
                    event.next_seq = next_seq;
                    self.sender.on_timeout(&event);
                } else {
                    let in_flight = self.sender.allowance().packets();
                    let lost_packets = 1;
                    let mut event = LossEvent::new(now, lost_packets);
                    event.lost_seq = lost_seq;
                    event.next_seq = next_seq;
                    event.in_flight = in_flight;
                    self.sender.on_loss(&event);
                }
            }
        }
        let target_delay = match record.event {
            Event::Ack => old_target,
            Event::Loss | Event::Timeout => self.sender.target_delay(self.hops),
        };
        Ok(self.row(record, target_delay))
    }

    fn on_ack(&mut self, record: &Record) {
        let in_flight = self.sender.allowance().packets();
        self.acked = self.acked.saturating_add(u64::from(record.acked));
        let mut event = AckEvent::new(record.time, record.rtt.unwrap_or(Span::ZERO));
        event.fabric_delay = record.fabric_delay;
        event.endpoint_delay = record.endpoint_delay;
        event.hops = self.hops;
        event.acked_packets = record.acked;
        event.marked_packets = record.marked.min(record.acked);
        event.echo_marked = record.marked > 0;
        event.receiver_level = record.receiver_level;
        event.acked_seq = PacketNumber::new(self.acked.saturating_sub(1));
        event.next_seq = self.next_seq();
        event.in_flight = in_flight;
        self.sender.on_ack(&event);
    }

    /// Returns the next packet number: a full window follows the acknowledged packets.
    fn next_seq(&self) -> PacketNumber {
        let window = u64::from(self.sender.allowance().packets());
        PacketNumber::new(self.acked.saturating_add(window))
    }

    fn row(&self, record: &Record, target_delay: Option<Span>) -> Row {
        let snapshot = self.sender.snapshot();
        let pacing_delay = match self.sender.allowance().pacing {
            Pacing::Delay(delay) | Pacing::Own { gap: delay } => delay,
            Pacing::AckClocked | Pacing::Rate(_) | Pacing::Credits => Span::ZERO,
        };
        Row {
            time: record.time,
            event: record.event,
            target_delay,
            fabric_cwnd: snapshot.fabric_cwnd,
            endpoint_cwnd: snapshot.endpoint_cwnd,
            cwnd: snapshot.cwnd,
            pacing_delay,
            rto: self.sender.rto(),
        }
    }
}

/// Replays a log, whose header line is read first; `name` is for messages. `emit` takes each row. The memory
/// does not grow with the log.
///
/// # Errors
/// An error in the log, with its place, or an error of `emit`.
pub fn replay<E>(
    name: &str,
    input: impl BufRead,
    sender: BuiltInSender,
    mut emit: impl FnMut(&Row) -> Result<(), E>,
) -> Result<(), ReplayError<E>> {
    let mut trace = Trace::new(name, input).map_err(ReplayError::Trace)?;
    let mut replay = Replay::new(sender);
    while let Some(record) = trace.next_record().map_err(ReplayError::Trace)? {
        let row = replay.step(&record).map_err(|error| {
            ReplayError::Trace(trace.error_at(
                column_of(error.field),
                format!("{error}; leave the cell empty or name another algorithm"),
            ))
        })?;
        emit(&row).map_err(ReplayError::Output)?;
    }
    Ok(())
}

/// The reason why a replay ended early.
#[derive(Debug)]
pub enum ReplayError<E> {
    /// The log is wrong.
    Trace(TraceError),
    /// `emit` returned an error.
    Output(E),
}

fn column_of(field: StateField) -> &'static str {
    match field {
        StateField::FabricCwnd => "set_fabric_cwnd",
        StateField::EndpointCwnd => "set_endpoint_cwnd",
        StateField::LastDecrease => "set_last_decrease_ps",
        StateField::SmoothedRtt => "set_smoothed_rtt_ps",
        StateField::Timeouts => "set_timeouts",
    }
}
