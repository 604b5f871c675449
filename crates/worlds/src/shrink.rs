//! Search for a smaller plan with the same violation, without faults, ops and hosts that it does not need.

use crate::fault::{Fault, Trouble};
use crate::plan::{OpPlan, Plan};
use crate::{Outcome, run};

/// Maximum number of runs. deviation: no source; about a minute.
const MAX_RUNS: u32 = 2000;

/// Removes elements that the violation does not need. Returns the smallest plan found and its outcome.
#[must_use]
pub fn shrink(plan: &Plan) -> (Plan, Outcome) {
    let mut best = (plan.clone(), run(plan, false));
    let Some(violation) = best.1.violation.clone() else { return best };
    let mut runs = 0;
    let mut attempt = |best: &mut (Plan, Outcome), smaller: Plan| {
        runs += 1;
        if runs > MAX_RUNS {
            return false;
        }
        let outcome = run(&smaller, false);
        let same = outcome.violation.as_ref().is_some_and(|v| v.check == violation.check);
        if same {
            *best = (smaller, outcome);
        }
        same
    };
    loop {
        let before = size(&best.0);
        remove(&mut best, |plan| &mut plan.faults, &mut attempt);
        remove(&mut best, |plan| &mut plan.ops, &mut attempt);
        if best.0.hold.is_some() {
            let smaller = Plan { hold: None, ..best.0.clone() };
            attempt(&mut best, smaller);
        }
        if best.0.rights.is_some() {
            let smaller = Plan { rights: None, ..best.0.clone() };
            attempt(&mut best, smaller);
        }
        let mut host = best.0.hosts.len();
        while host > 0 && best.0.hosts.len() > 2 {
            host -= 1;
            let smaller = without_host(&best.0, host);
            attempt(&mut best, smaller);
        }
        if size(&best.0) == before {
            return best;
        }
    }
}

fn size(plan: &Plan) -> usize {
    let extras = usize::from(plan.hold.is_some()) + usize::from(plan.rights.is_some());
    plan.hosts.len() + plan.ops.len() + plan.faults.len() + extras
}

/// Removes elements of a list, large groups first.
fn remove<T>(
    best: &mut (Plan, Outcome),
    list: impl Fn(&mut Plan) -> &mut Vec<T>,
    attempt: &mut impl FnMut(&mut (Plan, Outcome), Plan) -> bool,
) {
    let mut part = list(&mut best.0).len().div_ceil(2);
    while part > 0 {
        let mut from = 0;
        while from < list(&mut best.0).len() {
            let mut smaller = best.0.clone();
            let all = list(&mut smaller);
            all.drain(from..(from + part).min(all.len()));
            if !attempt(best, smaller) {
                from += part;
            }
        }
        part /= 2;
    }
}

/// Returns the plan without a host, its ops and its faults.
fn without_host(plan: &Plan, gone: usize) -> Plan {
    let mut plan = plan.clone();
    let moved = |host: usize| host - usize::from(host > gone);
    plan.hosts.remove(gone);
    plan.ops.retain(|op: &OpPlan| op.from != gone && op.to != gone);
    for op in &mut plan.ops {
        (op.from, op.to) = (moved(op.from), moved(op.to));
    }
    if let Some(rights) = &mut plan.rights {
        rights.remove(gone);
        for of in rights {
            of.remove(gone);
        }
    }
    plan.hold = plan.hold.filter(|&(host, _)| host != gone).map(|(host, at)| (moved(host), at));
    plan.faults.retain(|fault: &Fault| !fault.what.hosts().contains(&gone));
    for fault in &mut plan.faults {
        fault.what = fault.what.with_hosts(moved);
    }
    plan
}

impl Trouble {
    /// Returns the hosts that the fault names.
    fn hosts(&self) -> Vec<usize> {
        let mut hosts = Vec::new();
        self.with_hosts(|host| {
            hosts.push(host);
            host
        });
        hosts
    }

    /// Returns the fault with renumbered hosts.
    fn with_hosts(&self, mut to: impl FnMut(usize) -> usize) -> Self {
        let mut links = |links: Option<usize>| links.map(&mut to);
        match *self {
            Self::Lose(on, share) => Self::Lose(links(on), share),
            Self::Duplicate(on, share) => Self::Duplicate(links(on), share),
            Self::Delay(on, most) => Self::Delay(links(on), most),
            Self::Corrupt(on, share) => Self::Corrupt(links(on), share),
            Self::Truncate(on, share) => Self::Truncate(links(on), share),
            Self::Narrow(on, longest) => Self::Narrow(links(on), longest),
            Self::Interface(host, mtu) => Self::Interface(to(host), mtu),
            Self::Cut(host, sends) => Self::Cut(to(host), sends),
            Self::Rebind(host) => Self::Rebind(to(host)),
            Self::Pause(host) => Self::Pause(to(host)),
            Self::Crash(host, after) => Self::Crash(to(host), after),
            Self::Restart(host) => Self::Restart(to(host)),
            Self::Drain(host) => Self::Drain(to(host)),
            Self::Jump(host, by) => Self::Jump(to(host), by),
            Self::Stamps(host, by) => Self::Stamps(to(host), by),
            Self::Full(host) => Self::Full(to(host)),
            Self::SendErrors(host, errno, share) => Self::SendErrors(to(host), errno, share),
            Self::ReceiveErrors(host, errno) => Self::ReceiveErrors(to(host), errno),
            Self::Slow(host) => Self::Slow(to(host)),
            Self::Panic(host) => Self::Panic(to(host)),
            Self::Shrink(host) => Self::Shrink(to(host)),
            Self::Close(host, peer) => Self::Close(to(host), to(peer)),
            Self::Withdraw(host, at_once) => Self::Withdraw(to(host), at_once),
            Self::LoseKey(host) => Self::LoseKey(to(host)),
            Self::Flood(host, datagrams) => Self::Flood(to(host), datagrams),
            Self::Unlist(host, peer) => Self::Unlist(to(host), to(peer)),
            Self::Replace(host) => Self::Replace(to(host)),
            Self::Deny(host, peer) => Self::Deny(to(host), to(peer)),
            Self::Insider(host, victim) => Self::Insider(to(host), to(victim)),
            Self::InformedInsider(host, victim) => Self::InformedInsider(to(host), to(victim)),
            Self::LosePort(host, port, share) => Self::LosePort(to(host), port, share),
            Self::DelayPort(host, port, most) => Self::DelayPort(to(host), port, most),
            Self::NarrowPort(host, port, longest) => Self::NarrowPort(to(host), port, longest),
            Self::RebindPort(host, port) => Self::RebindPort(to(host), port),
            Self::Rotate | Self::Replay(_) | Self::Forge(_) => *self,
        }
    }
}
