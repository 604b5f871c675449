//! Fits the simulator's model to the measured numbers.
//!
//! * Fabric RTT: four links, two for the packet and two for its acknowledgement, and in each direction a jitter that is
//!   uniform from 0 to J. The sum of the jitters has the median J, and exceeds 2J - x with probability x^2 / (2J^2):
//!   its 99th percentile is J (2 - sqrt(0.02)). The two measured percentiles give J and the delay of a link.
//! * Engine costs: the factor on all costs per packet and op follows from the goodput of writes; the time of a turn
//!   follows from the round trip of messages. If the round trips are too short for an engine with such costs, the costs
//!   per byte limit the writes. Then the factor, which also applies to the time of a turn, follows from the round trip,
//!   and the time of copying from the goodput. Each parameter is found by bisection over simulations, alternately until
//!   both fit.

use apus_sim::host_model::EngineCosts;
use apus_units::{Bytes, Span};

use super::measured::{Perf, Ping};
use super::model::{CONTROL, HEADER, Model, Setting, round_trips, writes};
use crate::failure::Failure;

/// Limits of the factor. Rationale: an engine a hundred times as fast, or as slow, as a core at 100 Gb/s.
const SCALES: (f64, f64) = (0.01, 100.0);
/// Limits of a turn, in nanoseconds. Rationale: a thread on a busy machine wakes up within about a millisecond.
const ROUNDS: (f64, f64) = (1.0, 1e6);
/// Limits of the time of copying 1 KiB, in nanoseconds. Rationale: from a terabyte per second to 10 MB/s.
const COPIES: (f64, f64) = (1.0, 1e5);
/// Bisection steps (three decades or more to 0.1 %), and number of alternations between the two parameters.
const STEPS: u32 = 14;
const ROUNDS_OF_BOTH: u32 = 4;
/// Relative difference from the measurement up to which the report has no note.
const FITS: f64 = 0.05;

/// A measured quantity and its simulated value.
#[derive(Clone, Debug)]
struct Row {
    what: &'static str,
    unit: &'static str,
    measured: f64,
    simulated: f64,
}

/// A calibration.
#[derive(Clone, Debug)]
pub(super) struct Fit {
    pub(super) model: Model,
    pub(super) notes: Vec<String>,
    rows: Vec<Row>,
}

impl Fit {
    pub(super) fn of(ping: &Ping, perf: &Perf, setting: &Setting) -> Result<Self, Failure> {
        let mut notes = Vec::new();
        let (delay, jitter) = fabric(ping, setting, &mut notes)?;
        let mut model = Model { delay, jitter, round: Span::from_ns(1), scale: 1.0, copy: None };
        let (bulk, echo) =
            (writes(perf.size, perf.outstanding, perf.flows), round_trips(ping.size));
        let goodput = |model: &Model| -> Result<f64, Failure> {
            Ok(setting.simulate(model, &bulk)?.goodput_gbps)
        };
        let rtt = |model: &Model| -> Result<f64, Failure> {
            let median = setting.simulate(model, &echo)?.op_latency_us.p50;
            median.ok_or_else(|| Failure::Run("no round trip ends in the simulation".to_owned()))
        };
        for _ in 0..ROUNDS_OF_BOTH {
            model.scale = bisect(SCALES, |scale| {
                // Slower engines write less.
                Ok(goodput(&Model { scale, ..model })? > perf.goodput_gbps)
            })?;
            let ns = bisect(ROUNDS, |ns| {
                Ok(rtt(&Model { round: nanoseconds(ns), ..model })? < ping.p50_us)
            })?;
            model.round = nanoseconds(ns);
        }
        if rtt(&model)? > ping.p50_us * (1.0 + FITS) {
            for _ in 0..ROUNDS_OF_BOTH {
                model.scale = bisect(SCALES, |scale| Ok(rtt(&turns(model, scale))? < ping.p50_us))?;
                model = turns(model, model.scale);
                let ns = bisect(COPIES, |ns| {
                    let copy = Some(nanoseconds(ns));
                    Ok(goodput(&Model { copy, ..model })? > perf.goodput_gbps)
                })?;
                model.copy = Some(nanoseconds(ns));
            }
        }
        let rows = vec![
            Row {
                what: "fabric RTT, p50",
                unit: "us",
                measured: ping.fabric_p50_us,
                simulated: setting.simulate(&model, &echo)?.fabric_rtt_us.p50.unwrap_or(0.0),
            },
            Row {
                what: "round trip, p50",
                unit: "us",
                measured: ping.p50_us,
                simulated: rtt(&model)?,
            },
            Row {
                what: "goodput of writes",
                unit: "Gb/s",
                measured: perf.goodput_gbps,
                simulated: goodput(&model)?,
            },
        ];
        for row in rows.iter().filter(|row| row.is_off()) {
            notes.push(format!(
                "the model does not reach the measured {}: {:.3} {} instead of {:.3}",
                row.what, row.simulated, row.unit, row.measured
            ));
        }
        Ok(Self { model, notes, rows })
    }

    /// Returns the measured and the simulated values, in lines.
    pub(super) fn table(&self) -> String {
        let lines = self.rows.iter().map(|row| {
            format!("{:18} {:>10.3} {:>10.3} {}\n", row.what, row.measured, row.simulated, row.unit)
        });
        lines.collect()
    }
}

impl Row {
    fn is_off(&self) -> bool {
        (self.simulated - self.measured).abs() > FITS * self.measured
    }
}

/// Returns the model with this factor on all costs, including the time of a turn.
fn turns(model: Model, scale: f64) -> Model {
    let model = Model { scale, ..model };
    Model { round: model.cost(EngineCosts::T1_QUIET.round), ..model }
}

fn nanoseconds(ns: f64) -> Span {
    Span::from_ns(1).mul_f64(ns)
}

/// Returns the delay of a link and the jitter.
fn fabric(
    ping: &Ping,
    setting: &Setting,
    notes: &mut Vec<String>,
) -> Result<(Span, Span), Failure> {
    let us = |us: f64| Span::from_us(1).mul_f64(us.max(0.0));
    let spread = (ping.fabric_p99_us - ping.fabric_p50_us).max(0.0);
    let packets = ping.size.div_ceil(setting.payload.get()).max(1);
    let time = |bytes: u64| setting.rate.serialization_time(Bytes::new(bytes)).as_secs_f64() * 1e6;
    let full = time(ping.size.min(setting.payload.get()) + HEADER);
    let wire = 2.0 * full + 2.0 * time(CONTROL) + (packets - 1) as f64 * full;
    let room = ping.fabric_p50_us - wire;
    if room <= 0.0 {
        return Err(Failure::Input(format!(
            "the fabric RTT of {} us is shorter than the time of a packet and its acknowledgement on two links of {}, \
             {wire:.3} us; give the rate of the links with --rate",
            ping.fabric_p50_us, setting.rate
        )));
    }
    let mut jitter = spread / (1.0 - 0.02_f64.sqrt());
    // deviation: no source; at least half of the RTT belongs to the fabric.
    if jitter > room / 2.0 {
        notes.push(format!(
            "the fabric RTT varies more ({:.3} us at the 99th percentile) than a jitter can explain",
            ping.fabric_p99_us
        ));
        jitter = room / 2.0;
    }
    Ok((us((room - jitter) / 4.0), us(jitter)))
}

/// Returns the value between two limits up to which `is_below` holds, found by geometric bisection.
fn bisect(
    (mut low, mut high): (f64, f64),
    mut is_below: impl FnMut(f64) -> Result<bool, Failure>,
) -> Result<f64, Failure> {
    for _ in 0..STEPS {
        let middle = (low * high).sqrt();
        if is_below(middle)? {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok((low * high).sqrt())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::measured::Algorithm;
    use super::*;
    use apus_units::Rate;

    fn setting() -> Setting {
        Setting {
            algorithm: "{ name = \"swift\" }".to_owned(),
            rate: Rate::from_gbps(25),
            payload: Bytes::new(4096),
            hosts: 2,
        }
    }

    /// 64 B at 10 Gb/s: 2 (128 + 84) 0.8 ns = 0.3392 us on the wire; J = 2 us: p50 = 4 d + 0.3392 + 2, p99 = p50 + 2 (1 -
    /// sqrt(0.02)).
    #[test]
    fn the_fabric_rtt_gives_delay_and_jitter() {
        let ping = Ping {
            size: 64,
            p50_us: 30.0,
            fabric_p50_us: 10.3392,
            fabric_p99_us: 10.3392 + 2.0 * 0.858_578_6,
        };
        let setting = Setting { rate: Rate::from_gbps(10), ..setting() };
        let mut notes = Vec::new();
        let (delay, jitter) = fabric(&ping, &setting, &mut notes).expect("good");
        assert!((delay.as_secs_f64() * 1e6 - 2.0).abs() < 1e-4, "{delay}");
        assert!((jitter.as_secs_f64() * 1e6 - 2.0).abs() < 1e-4, "{jitter}");
        assert!(notes.is_empty());
        let slow = Setting { rate: Rate::from_bps(100_000_000), ..setting.clone() };
        let error = fabric(&ping, &slow, &mut notes).expect_err("refused").to_string();
        assert!(error.contains("--rate"), "{error}");
    }

    /// Returns the results of measurements on a simulated cluster.
    fn measured(known: &Model) -> (Ping, Perf) {
        let setting = setting();
        let echo = setting.simulate(known, &round_trips(64)).expect("run");
        let bulk = setting.simulate(known, &writes(1 << 16, 4, 2)).expect("run");
        let of = |value: Option<f64>| value.expect("a percentile");
        let ping = Ping {
            size: 64,
            p50_us: of(echo.op_latency_us.p50),
            fabric_p50_us: of(echo.fabric_rtt_us.p50),
            fabric_p99_us: of(echo.fabric_rtt_us.p99),
        };
        let perf = Perf {
            op: "write".to_owned(),
            size: 1 << 16,
            flows: 2,
            outstanding: 4,
            packet_bytes: Some(4096),
            algorithm: Algorithm {
                name: "swift".to_owned(),
                profile: "paper".to_owned(),
                parameters: BTreeMap::new(),
            },
            goodput_gbps: bulk.goodput_gbps,
        };
        (ping, perf)
    }

    /// Engines that spend most of their time on bytes: no common factor on all costs gives both numbers.
    #[test]
    fn costs_of_bytes_are_found_if_round_trips_are_short() {
        let copy = Span::from_us(2);
        let known = Model {
            delay: Span::from_us(2),
            jitter: Span::from_us(1),
            round: EngineCosts::T1_QUIET.round * 2,
            scale: 2.0,
            copy: Some(copy),
        };
        let (ping, perf) = measured(&known);
        let fit = Fit::of(&ping, &perf, &setting()).expect("fit");
        assert!(fit.notes.is_empty(), "{:?}", fit.notes);
        let near = |found: f64, known: f64| (found / known - 1.0).abs() < 0.1;
        assert!(near(fit.model.scale, 2.0), "{:?}", fit.model);
        let found = fit.model.copy.expect("a cost of bytes");
        assert!(near(found.as_secs_f64(), copy.as_secs_f64()), "{found}");
    }

    /// The numbers of a simulated cluster with known parameters give these parameters.
    #[test]
    fn known_parameters_are_found_again() {
        let known = Model {
            delay: Span::from_us(2),
            jitter: Span::from_us(1),
            round: Span::from_us(2),
            scale: 8.0,
            copy: None,
        };
        let (ping, perf) = measured(&known);
        // Goodput far below the link rate: the engines limit it.
        assert!(perf.goodput_gbps < 20.0, "{}", perf.goodput_gbps);
        let fit = Fit::of(&ping, &perf, &setting()).expect("fit");
        let near = |found: f64, known: f64, within: f64| (found / known - 1.0).abs() < within;
        let seconds = |span: Span| span.as_secs_f64();
        let Model { delay, jitter, round, scale, .. } = fit.model;
        assert!(near(seconds(delay), 2e-6, 0.05), "{delay}");
        assert!(near(seconds(jitter), 1e-6, 0.15), "{jitter}");
        assert!(near(scale, 8.0, 0.1), "{scale}");
        assert!(near(seconds(round), 2e-6, 0.15), "{round}");
        assert!(fit.notes.is_empty(), "{:?}", fit.notes);
    }
}
