//! Overwriting an algorithm's state, for replays of recorded events.

use core::error::Error;
use core::fmt;

use apus_units::Time;

/// Values that replace parts of an algorithm's state; `None` leaves a part as it is.
///
/// Not for senders of packets: a replay puts an algorithm into a known state and observes its
/// reaction to one event.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StateOverride {
    /// Swift §3.3 `fcwnd`, packets.
    pub fabric_cwnd: Option<f64>,
    /// Swift §3.3 `ecwnd`, packets; Falcon's receiver-buffer window in its profile.
    pub endpoint_cwnd: Option<f64>,
    /// Swift Alg. 1 `t_last_decrease`, of every window that has one.
    pub last_decrease: Option<Time>,
    /// The smoothed end-to-end RTT, picoseconds.
    pub smoothed_rtt_ps: Option<f64>,
    /// Swift Alg. 1 `retransmit_cnt`: timeouts in a row so far.
    pub timeouts: Option<u32>,
}

/// Part of the state that can be overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateField {
    /// [`StateOverride::fabric_cwnd`].
    FabricCwnd,
    /// [`StateOverride::endpoint_cwnd`].
    EndpointCwnd,
    /// [`StateOverride::last_decrease`].
    LastDecrease,
    /// [`StateOverride::smoothed_rtt_ps`].
    SmoothedRtt,
    /// [`StateOverride::timeouts`].
    Timeouts,
}

/// The reason why a state cannot be overwritten; the state is then unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateError {
    /// The part at fault.
    pub field: StateField,
    /// The mistake, as the end of a sentence that begins with the part.
    pub reason: &'static str,
}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.field {
            StateField::FabricCwnd => "the fabric window",
            StateField::EndpointCwnd => "the endpoint window",
            StateField::LastDecrease => "the time of the last decrease",
            StateField::SmoothedRtt => "the smoothed RTT",
            StateField::Timeouts => "the number of timeouts",
        };
        write!(f, "{name} {}", self.reason)
    }
}

impl Error for StateError {}

impl StateOverride {
    /// Returns `true` if no part is overwritten.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Checks that the algorithm has every part that would be overwritten, and that the values are
    /// valid.
    ///
    /// # Errors
    /// A part that is not one of `parts`, or a value that no algorithm can have.
    pub fn check(&self, parts: &[StateField]) -> Result<(), StateError> {
        let given = [
            (StateField::FabricCwnd, self.fabric_cwnd.is_some()),
            (StateField::EndpointCwnd, self.endpoint_cwnd.is_some()),
            (StateField::LastDecrease, self.last_decrease.is_some()),
            (StateField::SmoothedRtt, self.smoothed_rtt_ps.is_some()),
            (StateField::Timeouts, self.timeouts.is_some()),
        ];
        for (field, given) in given {
            if given && !parts.contains(&field) {
                let reason = "is not part of this algorithm's state";
                return Err(StateError { field, reason });
            }
        }
        let window = |x: f64| x > 0.0 && x.is_finite();
        let reason = "must be a number of packets above 0";
        if !self.fabric_cwnd.is_none_or(window) {
            return Err(StateError { field: StateField::FabricCwnd, reason });
        }
        if !self.endpoint_cwnd.is_none_or(window) {
            return Err(StateError { field: StateField::EndpointCwnd, reason });
        }
        if !self.smoothed_rtt_ps.is_none_or(|ps| ps >= 0.0 && ps.is_finite()) {
            let reason = "must be a number of picoseconds, 0 or more";
            return Err(StateError { field: StateField::SmoothedRtt, reason });
        }
        Ok(())
    }
}
