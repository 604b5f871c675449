//! Text of losses, faults and offered load.

use apus_sim::columns::FaultRecord;
use apus_sim::losses::{Causes, Losses};
use apus_sim::summary::Summary;

use super::number;

/// Maximum number of ports and faults that are listed.
const MAX_LISTED: usize = 4;

/// Returns the losses of the whole run, and those at the busiest port in the measured phase.
pub fn losses(summary: &Summary) -> String {
    let Losses { packets, loss_rate, causes, lossy_ports, ports, .. } = &summary.losses;
    let sent = summary.packets.sent;
    if *packets == 0 {
        return format!("none of the {sent} packets sent in the whole run");
    }
    let mut text = format!(
        "{packets} of the {sent} packets sent in the whole run ({} %): {}",
        number(loss_rate * 100.0),
        named(causes)
    );
    let listed: Vec<String> = ports
        .iter()
        .take(MAX_LISTED)
        .map(|port| format!("{} ({})", port.port, named(&port.causes)))
        .collect();
    if !listed.is_empty() {
        text += &format!("; at {}", listed.join(", "));
    }
    let more = lossy_ports.saturating_sub(listed.len() as u64);
    if more > 0 {
        text += &format!(" and {more} more ports");
    }
    let busiest = &summary.busiest_port;
    text + &format!(
        "; at the busiest port {} % in the measured phase",
        number(summary.loss_rate * 100.0)
    ) + &if busiest.drops > 0 { format!(" ({} packets)", busiest.drops) } else { String::new() }
}

/// Returns the causes of losses, each with its number of packets.
fn named(causes: &Causes) -> String {
    let lost = causes.named().into_iter().filter(|(_, packets)| *packets > 0);
    lost.map(|(name, packets)| format!("{name} {packets}")).collect::<Vec<_>>().join(", ")
}

/// Returns a line for each fault and reroute.
pub fn faults(faults: &[FaultRecord]) -> Vec<String> {
    let mut lines: Vec<String> = faults.iter().take(MAX_LISTED).map(fault).collect();
    if faults.len() > MAX_LISTED {
        lines.push(format!("and {} more; see `faults` in the JSON", faults.len() - MAX_LISTED));
    }
    lines
}

/// Returns a fault: "link down, leaf 0 -> spine 1, from 300 us to the end".
pub fn fault(fault: &FaultRecord) -> String {
    let FaultRecord { subject, at_us, .. } = fault;
    let probability = || number(fault.probability.unwrap_or(0.0) * 100.0);
    let at = number(*at_us);
    if let Some(through) = &fault.through {
        return format!("rerouted at {at} us: {subject}, now through {through}");
    }
    let until = fault.until_us.map_or("the end".to_owned(), |us| format!("{} us", number(us)));
    let avoiding = match fault.kind {
        "avoided-local" => Some("the switches at its ends avoid it"),
        "avoided-global" => Some("all switches avoid it"),
        _ => None,
    };
    if let Some(avoiding) = avoiding {
        return format!("{avoiding} from {at} us to {until}: {subject}");
    }
    let what = match fault.kind {
        "down" => "link down".to_owned(),
        "slow" => {
            let percent = number(fault.rate_fraction.unwrap_or(1.0) * 100.0);
            format!("{percent} % of the rate")
        }
        "loss" => format!("random loss of {} %", probability()),
        "corrupt" => format!("corruption of {} %", probability()),
        _ => {
            let delay = number(fault.delay_us.unwrap_or(0.0));
            format!("{} % held back by {delay} us", probability())
        }
    };
    let lost = match fault.lost_packets {
        None | Some(0) => String::new(),
        Some(1) => "; 1 packet lost".to_owned(),
        Some(packets) => format!("; {packets} packets lost"),
    };
    format!("{what} from {at} us to {until}: {subject}{lost}{}", consequences(fault))
}

/// Returns the flows that a fault slowed, and the time until the loads of the neighbouring links were even again, if it
/// is known.
fn consequences(fault: &FaultRecord) -> String {
    let mut text = match (fault.slowed_flows, fault.slowed_until_us) {
        (Some(1), Some(until)) => format!("; 1 flow slowed until {} us", number(until)),
        (Some(flows), Some(until)) => format!("; {flows} flows slowed until {} us", number(until)),
        (Some(_), None) => "; no flow slowed".to_owned(),
        (None, _) => String::new(),
    };
    if let Some(flow) = &fault.slowed_most {
        text += &format!(", most {flow}");
    }
    if let Some(at) = fault.even_again_us {
        text += &format!("; loads even again at {} us", number(at));
    }
    text
}

/// Returns the offered load of the links; `None` for a run without workloads.
pub fn offered(summary: &Summary) -> Option<String> {
    let offered = &summary.offered;
    let Some((link, load)) = offered.max_link.as_ref().zip(offered.max_link_load) else {
        let open = offered.workload.values().any(|workload| workload.open_loop);
        let text = if open { "all ops arrive at once" } else { "closed loop" };
        return (!offered.workload.is_empty()).then(|| text.to_owned());
    };
    let mut text = format!("{} of the link {link} at most", number(load));
    if let (Some(host), Some(most), Some(mean)) =
        (offered.host_link_load, offered.switch_link_load, offered.mean_switch_link_load)
    {
        text += &format!(
            "; links of hosts at most {}, between switches at most {}, mean {}",
            number(host),
            number(most),
            number(mean)
        );
    }
    let closed: Vec<&str> = offered
        .workload
        .iter()
        .filter(|(_, workload)| !workload.open_loop)
        .map(|(name, _)| name.as_str())
        .collect();
    if !closed.is_empty() {
        text += &format!("; closed loop: {}", closed.join(", "));
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::{FaultRecord, fault};

    #[test]
    fn a_fault_is_named_with_its_link_and_times() {
        let down = FaultRecord {
            kind: "down",
            subject: "leaf 0 -> spine 1".to_owned(),
            at_us: 300.0,
            ..FaultRecord::default()
        };
        assert_eq!(fault(&down), "link down from 300 us to the end: leaf 0 -> spine 1");
        let loss = FaultRecord {
            kind: "loss",
            until_us: Some(500.0),
            probability: Some(0.015),
            lost_packets: Some(12),
            ..down.clone()
        };
        assert_eq!(
            fault(&loss),
            "random loss of 1.5 % from 300 us to 500 us: leaf 0 -> spine 1; 12 packets lost"
        );
        let slowed = FaultRecord {
            slowed_flows: Some(2),
            slowed_most: Some("host 1 -> host 2".to_owned()),
            slowed_until_us: Some(700.0),
            even_again_us: Some(600.0),
            ..down.clone()
        };
        assert_eq!(
            fault(&slowed),
            "link down from 300 us to the end: leaf 0 -> spine 1; 2 flows slowed until 700 us, most host 1 -> host 2; \
             loads even again at 600 us"
        );
        let slow = FaultRecord { kind: "slow", rate_fraction: Some(0.25), ..down.clone() };
        assert_eq!(fault(&slow), "25 % of the rate from 300 us to the end: leaf 0 -> spine 1");
        let subject = "leaf 0 <-> spine 1".to_owned();
        let avoided = FaultRecord { kind: "avoided-local", subject, ..down };
        assert_eq!(
            fault(&avoided),
            "the switches at its ends avoid it from 300 us to the end: leaf 0 <-> spine 1"
        );
    }
}
