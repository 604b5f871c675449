//! NICs of hosts whose links are listed one by one, for the ranks of jobs.

use std::collections::BTreeSet;

use apus_sim::plan::{LocalNetwork, Nics};
use apus_units::{Rate, Span};

use super::GraphSpec;
use crate::import::{End, Servers};
use crate::section::{Section, Setting};

/// Reads the NICs of each host and the network within hosts; for `servers`, the file states them.
pub(super) fn read(
    section: &Section<'_>,
    mut graph: GraphSpec,
    servers: Option<Servers>,
) -> Option<GraphSpec> {
    let key = if servers.is_some() { "servers" } else { "nics" };
    let count = match servers {
        Some(Servers { gpus, rate, delay }) => {
            for key in ["nics", "scale_up_rate", "scale_up_delay"] {
                section.no_effect(key, "with `servers`, for which the file states it");
            }
            section.record("nics", gpus.value());
            section.record("scale_up_rate", rate.value());
            section.record("scale_up_delay", delay.value());
            graph.scale_up = Some(LocalNetwork { rate, delay });
            gpus
        }
        None => {
            let Some(count) = section.get::<u32>("nics") else {
                for key in ["scale_up_rate", "scale_up_delay"] {
                    section.no_effect(key, "without `nics`");
                }
                return Some(graph);
            };
            graph.scale_up = read_scale_up(section);
            count
        }
    };
    match nics(&graph, count) {
        Ok(nics) => graph.nics = Some(nics),
        Err(why) => {
            section.problem(key, why);
            return None;
        }
    }
    Some(graph)
}

/// Reads the network within hosts.
pub(crate) fn read_scale_up(section: &Section<'_>) -> Option<LocalNetwork> {
    let rate: Option<Rate> = section.get("scale_up_rate");
    let Some(rate) = rate else {
        section.no_effect("scale_up_delay", "without `scale_up_rate`");
        return None;
    };
    let delay: Span = section.get_or_default("scale_up_delay");
    Some(LocalNetwork { rate, delay })
}

/// Divides the ports of each host into `count` NICs.
fn nics(graph: &GraphSpec, count: u32) -> Result<Nics, String> {
    let ports = graph.ports();
    let of_first = ports.first().copied().unwrap_or(1);
    if let Some(host) = ports.iter().position(|of| *of != of_first) {
        return Err(format!(
            "needs hosts with equal numbers of links, but host {host} has {}, and host 0 has {of_first}",
            ports[host]
        ));
    }
    if !of_first.is_multiple_of(count) {
        return Err(format!(
            "divides the {of_first} links of a host into {count} NICs; each must have as many links"
        ));
    }
    let of_nic = of_first / count;
    // By host and NIC: the groups of switches to which it has a port, in the order of the links.
    let groups = graph.joined_switches();
    let mut places = vec![0_u32; graph.hosts as usize];
    let mut reached = vec![BTreeSet::new(); (graph.hosts * count) as usize];
    for link in &graph.links {
        let (host, switch) = match (link.a, link.b) {
            (End::Host(host), End::Switch(switch)) | (End::Switch(switch), End::Host(host)) => {
                (host, switch)
            }
            (End::Host(host), End::Host(_)) => {
                return Err(format!(
                    "needs links to switches, but one joins host {host} with another host"
                ));
            }
            (End::Switch(_), End::Switch(_)) => continue,
        };
        let place = &mut places[host as usize];
        reached[(host * count + *place / of_nic) as usize].insert(groups[switch as usize]);
        *place += 1;
    }
    let are_alike = |nics: &mut dyn Iterator<Item = &BTreeSet<usize>>| {
        let all = nics.cloned().reduce(|all, of| all.intersection(&of).copied().collect());
        all.is_none_or(|all: BTreeSet<usize>| !all.is_empty())
    };
    let are_joined = are_alike(&mut reached.iter());
    if !are_joined {
        let rail =
            |nic: &u32| are_alike(&mut reached.iter().skip(*nic as usize).step_by(count as usize));
        if let Some(nic) = (0..count).find(|nic| !rail(nic)) {
            return Err(format!(
                "leaves NICs {nic} of some hosts without a path to each other; add links, or list those of hosts in the \
                 order of their NICs"
            ));
        }
    }
    // A host has at most 64 ports.
    Ok(Nics { count: count as u8, ports: of_nic as u8, are_joined })
}
