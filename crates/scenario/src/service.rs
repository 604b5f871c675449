//! `[workload.service]`: the device at the answering host for which reads wait.

use apus_units::Span;

use super::declared::{Keys, Kind, key};
use super::section::{MAX_DELAY, Section};
use apus_sim::plan::{OpType, Service};

/// Keys of `service`.
pub(super) static SERVICE: Keys = Keys::of(&[
    key("time", Kind::Time, "Mean service time of a read").within(1, MAX_DELAY.as_ps()),
    key(
        "parallel",
        Kind::Count,
        "Number of reads that are served at the same time. Other reads wait, in order of arrival",
    )
    .within(1, MAX_PARALLEL),
    key("noise", Kind::Number, "Fraction of the time that is exponentially distributed")
        .between(0.0, 1.0)
        .or("0"),
]);

/// Maximum number of parallel slots of a device: each has a separate entry.
const MAX_PARALLEL: u64 = 65_536;

/// A device as a scenario describes it; the fields match those of [`Service`].
#[derive(Clone, Copy, Debug)]
pub(super) struct ServiceSpec {
    time: Span,
    noise: f64,
    parallel: u32,
}

impl ServiceSpec {
    /// Returns the device of a plan.
    pub(super) fn of_device(self, device: u32) -> Service {
        let Self { time, noise, parallel } = self;
        Service { device, time, noise, parallel }
    }
}

/// Reads `service` of a workload whose op is `op`; the outer `None` means that an error was
/// reported.
pub(super) fn read(workload: &Section<'_>, op: Option<OpType>) -> Option<Option<ServiceSpec>> {
    if workload.node("service").is_none() {
        return Some(None);
    }
    if op.is_some_and(|op| op != OpType::Read) {
        workload.no_effect("service", "on ops that are not answered; it is for `op = \"read\"`");
        return None;
    }
    let section = workload.section("service")?;
    let (time, parallel) = (section.require("time"), section.require("parallel"));
    let noise = section.get_or_default("noise");
    section.finish();
    Some(Some(ServiceSpec { time: time?, noise, parallel: parallel? }))
}
