//! `[workload.service]`: the device that reads wait for at the host that answers them.

use apus_units::Span;

use super::declared::{Keys, Kind, key};
use super::section::Section;
use apus_sim::plan::Service;

/// Keys of `service`.
pub(super) static SERVICE: Keys = Keys::of(&[
    key("time", Kind::Time, "Mean time of a read"),
    key(
        "parallel",
        Kind::Count,
        "Reads that are served at a time, 1 to 65536; others wait in order",
    ),
    key("noise", Kind::Number, "Share of the time that is exponentially distributed, 0 to 1")
        .or("0"),
]);

/// Maximum number of parallel slots of a device: each has a separate entry.
const MAX_PARALLEL: u32 = 65_536;

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
pub(super) fn read(workload: &Section<'_>, op: Option<&str>) -> Option<Option<ServiceSpec>> {
    if workload.node("service").is_none() {
        return Some(None);
    }
    if op.is_some_and(|op| op != "read") {
        workload.no_effect("service", "on ops that are not answered; it is for `op = \"read\"`");
        return None;
    }
    let section = workload.section("service")?;
    let time: Option<Span> = section.require("time");
    if let Some(time) = time {
        section.check(!time.is_zero(), "time", "must be above 0");
        section.check_delay("time", time);
    }
    let parallel: Option<u32> = section.require("parallel");
    if let Some(parallel) = parallel {
        let must = format_args!("must be from 1 to {MAX_PARALLEL} reads, but it is {parallel}");
        section.check((1..=MAX_PARALLEL).contains(&parallel), "parallel", must);
    }
    let noise = section.get_or_default("noise");
    let must = format_args!("must be from 0 to 1, but it is {noise}");
    section.check((0.0..=1.0).contains(&noise), "noise", must);
    section.finish();
    Some(Some(ServiceSpec { time: time?, noise, parallel: parallel? }))
}
