//! Time at which the load of the ports next to a fault was even again.

use apus_units::Time;

use super::{PortSample, Recording};
use crate::columns::FaultRecord;

/// Number of consecutive intervals that must be even. deviation: no source; rationale: a single interval may
/// be even by chance.
const IN_A_ROW: usize = 3;
/// Largest difference that counts as even, if loads before the fault differed less than this. deviation: no source.
const EVEN: f64 = 0.1;

/// Maximum number of faults that are examined, in order of their start. Rationale: each takes a step per
/// sample and port.
const MOST: usize = 256;

impl Recording {
    /// Records for each fault the time at which the load was even again.
    pub(crate) fn note_even_loads(&mut self) {
        let first = self.faults.iter().take(MOST);
        let times: Vec<Option<f64>> = first.map(|fault| self.even_again(fault)).collect();
        for (fault, at) in self.faults.iter_mut().zip(times) {
            fault.even_again_us = at;
        }
    }

    fn even_again(&self, fault: &FaultRecord) -> Option<f64> {
        if !["down", "slow"].contains(&fault.kind) {
            return None;
        }
        let us = |time: &Time| time.as_ps() as f64 * 1e-6;
        let failed = &self.ports[fault.port?.index()];
        let tier = |node: usize| self.nodes[node].tier;
        let beside = |port: &super::PortRecord| {
            port.from == failed.from && tier(port.to) == tier(failed.to) && tier(port.from) > 0
        };
        let places = self.sampled_ports.iter().enumerate();
        let places = places.filter(|(_, port)| beside(&self.ports[port.index()]));
        let places: Vec<(usize, usize)> =
            places.map(|(place, port)| (place, port.index())).collect();
        // Ports that are down during an interval do not count.
        let of_beside = |other: &&FaultRecord| {
            let down = other.port.filter(|_| other.kind == "down");
            down.is_some_and(|down| places.iter().any(|(_, port)| *port == down.index()))
        };
        let downs: Vec<&FaultRecord> = self.faults.iter().filter(of_beside).collect();
        let is_down = |port: usize, from: f64, to: f64| {
            downs.iter().any(|down| {
                down.port.is_some_and(|down| down.index() == port)
                    && down.at_us < to
                    && down.until_us.is_none_or(|until| until > from)
            })
        };
        let interval = self.record.interval.as_us_f64();
        let difference = |at: f64, row: &[PortSample]| -> Option<f64> {
            let up = places.iter().filter(|(_, port)| !is_down(*port, at - interval, at));
            let bytes: Vec<f64> = up.map(|(place, _)| row[*place].sent_bytes as f64).collect();
            let mean = bytes.iter().sum::<f64>() / bytes.len() as f64;
            let most = bytes.iter().copied().max_by(f64::total_cmp)?;
            let least = bytes.iter().copied().min_by(f64::total_cmp)?;
            (bytes.len() > 1 && mean > 0.0).then(|| (most - least) / mean)
        };
        let rows = || self.times.iter().zip(&self.port_samples);
        let before = rows().filter(|(at, _)| us(at) <= fault.at_us);
        let before =
            before.filter_map(|(at, row)| difference(us(at), row)).max_by(f64::total_cmp)?;
        let even = before.max(EVEN);
        let mut run = Vec::new();
        for (at, row) in rows().filter(|(at, _)| us(at) - interval >= fault.at_us) {
            if difference(us(at), row).is_some_and(|difference| difference <= even) {
                run.push(us(at) - interval);
            } else {
                run.clear();
            }
            if run.len() == IN_A_ROW {
                return run.first().copied();
            }
        }
        None
    }
}
