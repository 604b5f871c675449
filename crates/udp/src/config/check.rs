//! Checks that reject impossible settings of a host.

use std::net::SocketAddr;

use apus_algorithms::AlgorithmConfig;
use apus_cc::{
    AlgorithmFactory, Ecn, FlowInfo, PathPolicy, ReplaySender, Sender, SwitchFeedback, SwitchHalf,
};

use super::{Config, MAX_ENGINES, Mode, first_header, switch_half};
use crate::error::StartError;
use crate::session::{MAX_PORTS, in_range};
use crate::spreading::check_range;

/// Returns `true` if flows detect queues, by ECN marks or by a target delay.
fn hears_of_queues(algorithm: &AlgorithmConfig) -> bool {
    let sender = algorithm.sender(&FlowInfo::default());
    let target = sender.target_delay(1).or(sender.snapshot().target_delay);
    target.is_some() || first_header(algorithm).ecn == Ecn::Capable
}

impl Config {
    pub(crate) fn check(&self) -> Result<(), StartError> {
        self.check_ranges().map_err(StartError::Setting)?;
        let name = self.algorithm.info().name;
        let needs_fields = switch_half(&self.algorithm).feedback() == SwitchFeedback::Fields;
        if needs_fields && !self.behind_switch {
            return Err(StartError::Setting(format!(
                "{name} needs feedback that every switch writes into packets; without it the sender never slows down; \
                 choose an algorithm that uses delay, ECN marks or losses, such as swift, or set behind_switch if every \
                 path leads through an `apus switch` with {name}"
            )));
        }
        if self.behind_switch && !needs_fields {
            return Err(StartError::Setting(format!(
                "behind_switch has no effect: {name} works without a switch too; remove it"
            )));
        }
        if self.algorithm.credit_limit().is_some() {
            return Err(StartError::Setting(format!(
                "{name} is credit-based and needs switches that limit credits; without them the sender \
                 never slows down; choose another algorithm, such as swift"
            )));
        }
        let paces_grants = self.algorithm.grant_pace(&FlowInfo::default()).is_some();
        if paces_grants && self.all_engines() > 1 {
            return Err(StartError::Setting(format!(
                "{name} paces what a whole host grants to its peers, but each of {} engines would grant at the whole rate; use \
                 one engine and one address",
                self.all_engines()
            )));
        }
        if let Some(spreading) = &self.spreading {
            let policy = spreading.balancer();
            if policy.policy().reads_marks() && !hears_of_queues(&self.algorithm) {
                return Err(StartError::Setting(format!(
                    "balancer is {}, which leaves paths with ECN marks, or with delays above the target of the algorithm; {name} \
                     asks for no marks and has no target, so no path would be left; choose an algorithm with one of them, such \
                     as swift or dctcp, or a policy that needs neither, such as oblivious or flowlet",
                    policy.info().name
                )));
            }
        }
        if self.algorithm.reads_receiver_level() {
            let profile = self.algorithm.profile();
            return Err(StartError::Setting(format!(
                "{name}'s profile {profile} needs the fill level of the receiver's NIC, which the kernel does \
                 not report; choose profile paper, which uses the endpoint delay"
            )));
        }
        Ok(())
    }

    fn check_ranges(&self) -> Result<(), String> {
        in_range("engines", self.engines, 1..=MAX_ENGINES)?;
        self.check_addresses()?;
        if self.mode == Mode::Inline && self.engines != 1 {
            return Err(format!("engines is {}; inline mode has exactly one engine", self.engines));
        }
        in_range("max_mtu", self.max_mtu, 1280..=65_535)?;
        in_range("max_flows", self.max_flows, 1..=1024)?;
        in_range("max_ops", self.max_ops, 1..=65_536)?;
        in_range("max_message", self.max_message, ..=self.max_queued_bytes)
            .map_err(|error| error + " (max_queued_bytes)")?;
        in_range("max_queued_messages", self.max_queued_messages, 1..)?;
        if let Some(bytes) = self.quota_queued_bytes {
            in_range("quota_queued_bytes", bytes, self.max_message..)
                .map_err(|error| error + " (max_message)")?;
        }
        if let Some(ops) = self.quota_ops {
            in_range("quota_ops", ops, u64::from(self.max_ops)..)
                .map_err(|error| error + " (max_ops)")?;
        }
        let quotas =
            [("quota_queued_bytes", self.quota_queued_bytes), ("quota_ops", self.quota_ops)];
        let of_keys = quotas.iter().find(|(_, quota)| quota.is_some());
        if let Some((name, _)) = of_keys.filter(|_| !self.keys.is_identified()) {
            return Err(format!(
                "{name} has no effect: it holds for peers with keys of their own, and this host has none; remove it, or give each \
                 host its keys"
            ));
        }
        in_range("max_unaccepted", self.max_unaccepted, 1..)?;
        in_range("submission_ring", self.submission_ring, 1..)?;
        if let Some(ports) = self.accept_ports {
            self.check_accepted(ports)?;
        }
        check_range(self.range)?;
        if let Some(spreading) = &self.spreading {
            spreading.check(self.all_engines())?;
            if self.departure_timestamps {
                return Err("departure_timestamps are numbered by socket, and a balancer uses several; remove one of them"
                    .to_owned());
            }
        }
        in_range("metrics_limit", self.metrics_limit, ..=4096)?;
        for (class, &dscp) in self.dscp.iter().enumerate() {
            in_range(&format!("dscp of traffic class {class}"), dscp, ..=63)?;
        }
        self.session.check()
    }

    fn check_accepted(&self, ports: u16) -> Result<(), String> {
        in_range("accept_ports", ports, 1..=MAX_PORTS)?;
        if !ports.is_power_of_two() {
            return Err(format!(
                "accept_ports is {ports}; it must be a power of two, or 1 to refuse further ports"
            ));
        }
        if self.engines > 1 && ports > 1 {
            return Err(format!(
                "accept_ports is {ports} with {} engines at one address: the kernel divides source ports among them, so that only \
                 one can be accepted; remove it, or give each engine an address of its own",
                self.engines
            ));
        }
        Ok(())
    }

    fn check_addresses(&self) -> Result<(), String> {
        let count = self.listen.len();
        if count == 0 {
            return Err("listen has no address; give one, such as [::]:48700".to_owned());
        }
        if self.mode == Mode::Inline && count > 1 {
            return Err(format!(
                "listen has {count} addresses; inline mode has exactly one engine, which serves one; [::] serves all \
                 addresses of the machine"
            ));
        }
        if count.saturating_mul(self.engines as usize) > MAX_ENGINES as usize {
            return Err(format!(
                "listen has {count} addresses with {} engines each; a host has at most {MAX_ENGINES} engines",
                self.engines
            ));
        }
        for (n, address) in self.listen.iter().enumerate() {
            if let SocketAddr::V6(v6) = address
                && let Some(v4) = v6.ip().to_ipv4_mapped()
            {
                return Err(format!("listen has {address}; write {v4}:{}", v6.port()));
            }
            if address.port() != 0 && self.listen[..n].contains(address) {
                return Err(format!("listen has {address} twice; remove one"));
            }
        }
        Ok(())
    }
}
