//! The servers of SimAI's topologies: consecutive GPUs that NVSwitches join.

use std::collections::{BTreeMap, BTreeSet};

use apus_units::{Rate, Span};

use super::graph::Servers;

/// A link between a GPU, by its index among the hosts, and an NVSwitch.
pub(super) struct NvLink {
    pub(super) line: usize,
    pub(super) gpu: u32,
    pub(super) switch: u32,
    pub(super) rate: Rate,
    pub(super) delay: Span,
}

/// Links of a GPU: the sum of their rates, their delay, and the NVSwitches at their other ends.
type OfGpu = (Rate, Span, BTreeSet<u32>);

/// Returns the servers: `all` GPUs, `gpus` in each server.
///
/// # Errors
/// If the last server is not complete, GPUs differ in their links, or NVSwitches join GPUs of different
/// servers.
pub(super) fn servers(all: u32, gpus: u32, links: &[NvLink]) -> Result<Servers, String> {
    if !all.is_multiple_of(gpus) {
        return Err(format!("{all} GPUs are not whole servers of {gpus}"));
    }
    let mut of_gpus: BTreeMap<u32, OfGpu> = BTreeMap::new();
    for NvLink { line, gpu, switch, rate, delay } in links {
        let Some(of_gpu) = of_gpus.get_mut(gpu) else {
            of_gpus.insert(*gpu, (*rate, *delay, BTreeSet::from([*switch])));
            continue;
        };
        if of_gpu.1 != *delay {
            return Err(format!(
                "line {line}: the links of GPU {gpu} to NVSwitches have delays of {} and {delay}",
                of_gpu.1
            ));
        }
        of_gpu.0 = Rate::from_bps(of_gpu.0.as_bps().saturating_add(rate.as_bps()));
        of_gpu.2.insert(*switch);
    }
    let Some((rate, delay, _)) = of_gpus.get(&0).cloned() else {
        return Err("GPU 0 has no link to an NVSwitch".to_owned());
    };
    let mut first_of: BTreeMap<u32, u32> = BTreeMap::new();
    for gpu in 0..all {
        let Some((own_rate, own_delay, switches)) = of_gpus.get(&gpu) else {
            return Err(format!("GPU {gpu} has no link to an NVSwitch"));
        };
        if (*own_rate, *own_delay) != (rate, delay) {
            return Err(format!(
                "the links of GPU {gpu} to NVSwitches have {own_rate} and {own_delay}, those of GPU 0 {rate} and {delay}; all \
                 servers need the same network"
            ));
        }
        let first = gpu / gpus * gpus;
        if of_gpus.get(&first).is_some_and(|of_first| of_first.2 != *switches) {
            return Err(format!(
                "GPUs {first} and {gpu} are of one server, but not at the same NVSwitches"
            ));
        }
        for switch in switches {
            let other = *first_of.entry(*switch).or_insert(first);
            if other != first {
                return Err(format!(
                    "NVSwitch node {switch} joins GPUs {other} and {gpu}, which are of different servers of {gpus}"
                ));
            }
        }
    }
    // A path from GPU to GPU has two links.
    Ok(Servers { gpus, rate, delay: delay.saturating_add(delay) })
}
