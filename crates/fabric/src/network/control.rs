//! Changes to ports during a run: pauses, link failures, impairments and link rates.

use alloc::format;
use alloc::string::String;
use core::fmt;

use apus_cc::SwitchHalf;
use apus_units::{ClassId, PortId, Rate, Time};

use super::Network;
use crate::event::Schedule;
use crate::impairment::Impairment;
use crate::port::Port;

/// The reason why a port cannot make a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlError(pub(super) String);

impl fmt::Display for ControlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for ControlError {}

impl<P, W: SwitchHalf> Network<P, W> {
    pub(super) fn refuse(&self, port: PortId, why: &str) -> ControlError {
        ControlError(format!("port {} {why}", self.port_name(port)))
    }

    /// Checks that the link of a port may fail, lose packets and change its rate during a run.
    ///
    /// # Errors
    /// If the port is not variable.
    pub fn check_variable(&self, port: PortId) -> Result<(), ControlError> {
        self.check_setting(port, "variable", Port::is_variable)
    }

    /// Checks that classes of a port may be paused during a run.
    pub(super) fn check_pausable(&self, port: PortId) -> Result<(), ControlError> {
        self.check_setting(port, "pausable", Port::is_pausable)
    }

    fn check_setting(
        &self,
        port: PortId,
        setting: &str,
        is_set: impl Fn(&Port<W>) -> bool,
    ) -> Result<(), ControlError> {
        if is_set(&self.ports[port.index()]) {
            return Ok(());
        }
        let why = format!("cannot be changed in a run; set `{setting}` in its `PortConfig`");
        Err(self.refuse(port, &why))
    }

    /// Pauses or resumes a class of a port. A packet in service finishes, and a paused class
    /// accepts packets as before. Pending events do not change.
    ///
    /// # Errors
    /// If the port is not pausable or has no such class.
    pub fn set_paused<S: Schedule>(
        &mut self,
        now: Time,
        port: PortId,
        class: ClassId,
        paused: bool,
        schedule: &mut S,
    ) -> Result<(), ControlError> {
        let classes = self.class_count(port);
        if class.index() >= classes {
            let why = format!("has no {class}; it has {classes}, numbered from 0");
            return Err(self.refuse(port, &why));
        }
        self.check_pausable(port)?;
        self.ports[port.index()].set_paused(now, class, paused, &mut self.common, schedule);
        self.answer_now(now, schedule);
        Ok(())
    }

    /// Fails or repairs the link behind a port, in this direction only. Packets in the port when
    /// the link fails are lost, as are packets that arrive while it is down. Packets already on the
    /// link are delivered, unless [`Network::lose_flying`] follows.
    ///
    /// # Errors
    /// If the port is not variable.
    pub fn set_link_up<S: Schedule>(
        &mut self,
        now: Time,
        port: PortId,
        up: bool,
        schedule: &mut S,
    ) -> Result<(), ControlError> {
        self.check_variable(port)?;
        self.ports[port.index()].set_up(now, up, &mut self.common, schedule);
        self.answer_now(now, schedule);
        Ok(())
    }

    /// Loses the packets that are on the link behind a port at `now`, as if the cable were cut. In
    /// a network simulated in parts, each part loses its own packets.
    ///
    /// # Errors
    /// If the port is not variable.
    pub fn lose_flying<S: Schedule>(
        &mut self,
        now: Time,
        port: PortId,
        schedule: &mut S,
    ) -> Result<(), ControlError> {
        self.check_variable(port)?;
        self.ports[port.index()].lose_flying(now, &mut self.common, schedule);
        self.answer_now(now, schedule);
        Ok(())
    }

    /// Sets the rate of the link behind a port to this fraction of its configured rate, from the
    /// next packet on. The port's own memory, its rate limits and its marking thresholds
    /// ([`SwitchHalf::on_capacity`]) are scaled by the same fraction. The memory that a switch
    /// shares does not change.
    ///
    /// # Errors
    /// If the port is not variable, or the fraction is not in (0, 1].
    pub fn set_capacity<S: Schedule>(
        &mut self,
        now: Time,
        port: PortId,
        fraction: f64,
        schedule: &mut S,
    ) -> Result<(), ControlError> {
        if !(fraction > 0.0 && fraction <= 1.0) {
            let why =
                format!("cannot have {fraction} of its rate; it must be above 0, and at most 1");
            return Err(self.refuse(port, &why));
        }
        self.check_variable(port)?;
        self.ports[port.index()].set_capacity(now, fraction, &mut self.common, schedule);
        self.answer_now(now, schedule);
        Ok(())
    }

    /// Sets or ends random loss, corruption or reordering of packets that depart on the link behind
    /// a port from now on, in this direction only.
    ///
    /// # Errors
    /// If the port is not variable.
    pub fn set_impairment<S: Schedule>(
        &mut self,
        now: Time,
        port: PortId,
        impairment: Option<Impairment>,
        schedule: &mut S,
    ) -> Result<(), ControlError> {
        self.check_variable(port)?;
        self.ports[port.index()].set_impairment(now, impairment, &mut self.common, schedule);
        self.answer_now(now, schedule);
        Ok(())
    }

    /// Changes the rate of the link behind a port, from the next packet on.
    ///
    /// # Errors
    /// If the port is not variable, or the rate is 0.
    pub fn set_rate<S: Schedule>(
        &mut self,
        now: Time,
        port: PortId,
        rate: Rate,
        schedule: &mut S,
    ) -> Result<(), ControlError> {
        if rate.as_bps() == 0 {
            return Err(self.refuse(port, "cannot have rate 0; fail the link instead"));
        }
        self.check_variable(port)?;
        self.ports[port.index()].set_rate(now, rate, &mut self.common, schedule);
        self.answer_now(now, schedule);
        Ok(())
    }
}
