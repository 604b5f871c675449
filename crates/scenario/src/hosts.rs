//! Hosts as workloads name them: a number, the first ones, or a list.

use super::declared::{Key, Kind, key};
use super::section::{Section, Setting, list_of};
use super::tree::{Node, Value};

pub(super) const HOSTS: Key =
    key("hosts", Kind::Hosts, "The hosts that send and receive. Default: all hosts");

pub(super) const SENDERS: Key =
    key("senders", Kind::Hosts, "The hosts that send. Default: all other hosts");

pub(super) const RECEIVER: Key = key(
    "receiver",
    Kind::HostOrHosts,
    "The host that receives. With `kind = \"incast\"`, a list of hosts makes an incast to each of them",
);

/// Reads hosts other than `receivers`; by default all of them.
pub(super) fn read_senders(
    section: &Section<'_>,
    key: &'static str,
    receivers: &[u32],
    hosts: u32,
) -> Option<Vec<u32>> {
    let others = || (0..hosts).filter(|host| !receivers.contains(host));
    let senders = match section.node(key) {
        None if others().next().is_none() => {
            section.problem("receiver", "holds every host, so that none is left to send");
            None
        }
        None => Some(others().collect()),
        Some(Node { value: Value::List(list), .. }) => {
            let senders = read_host_list(section, key, list, hosts, 1)?;
            if let Some(both) = receivers.iter().find(|receiver| senders.contains(receiver)) {
                section.problem(key, format!("holds host {both}, which is the receiver"));
                return None;
            }
            Some(senders)
        }
        Some(_) => {
            let count: u32 = section.peek(key)?;
            let (most, receive) = match receivers.len() {
                1 => (hosts - 1, "one of which receives".to_owned()),
                several => (hosts - several as u32, format!("{several} of which receive")),
            };
            let holds = (1..=most).contains(&count);
            let message = format!(
                "must be from 1 to {most}: there are {hosts} hosts, {receive}; it is {count}"
            );
            section.check(holds, key, message);
            holds.then(|| others().take(count as usize).collect())
        }
    };
    record(section, key, senders)
}

fn record(section: &Section<'_>, key: &'static str, hosts: Option<Vec<u32>>) -> Option<Vec<u32>> {
    section.record(key, list_of(hosts.as_deref()?));
    hosts
}

/// Reads a number of hosts (the first ones) or a list of hosts; by default all hosts.
pub(super) fn read_hosts(
    section: &Section<'_>,
    key: &'static str,
    hosts: u32,
    least: u32,
) -> Option<Vec<u32>> {
    let named = match section.node(key) {
        None => Some((0..hosts).collect()),
        Some(Node { value: Value::List(list), .. }) => {
            read_host_list(section, key, list, hosts, least)
        }
        Some(_) => {
            let count: u32 = section.peek(key)?;
            let holds = (least..=hosts).contains(&count);
            let message = format!("must be from {least} to {hosts} hosts, but it is {count}");
            section.check(holds, key, message);
            holds.then(|| (0..count).collect())
        }
    };
    record(section, key, named)
}

/// Reads a list of at least `least` hosts, each once.
pub(super) fn read_host_list(
    section: &Section<'_>,
    key: &'static str,
    list: &[Node],
    hosts: u32,
    least: u32,
) -> Option<Vec<u32>> {
    let numbers: Option<Vec<u32>> =
        list.iter().map(|node| check_host(section, key, node, hosts)).collect();
    let numbers = numbers?;
    let mut sorted = numbers.clone();
    sorted.sort_unstable();
    if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        section.problem(key, format_args!("holds host {} twice", twice[0]));
        return None;
    }
    let holds = numbers.len() >= least as usize;
    let message = format_args!("must hold at least {least} hosts, but holds {}", numbers.len());
    section.check(holds, key, message);
    record(section, key, holds.then_some(numbers))
}

/// Reads a host by its number.
pub(super) fn read_host(section: &Section<'_>, key: &'static str, hosts: u32) -> Option<u32> {
    if section.node(key).is_none() {
        section.missing(key, u32::KIND);
    }
    let host = check_host(section, key, section.node(key)?, hosts)?;
    section.record(key, host.value());
    Some(host)
}

/// Reads a host by its number; by default the last host.
pub(super) fn read_host_or_last(
    section: &Section<'_>,
    key: &'static str,
    hosts: u32,
) -> Option<u32> {
    if section.node(key).is_some() {
        return read_host(section, key, hosts);
    }
    section.record(key, (hosts - 1).value());
    Some(hosts - 1)
}

fn check_host(section: &Section<'_>, key: &'static str, node: &Node, hosts: u32) -> Option<u32> {
    let host: u32 = section.read_node(key, node)?;
    if host >= hosts {
        let message =
            format!("names host {host}, but the hosts are numbered from 0 to {}", hosts - 1);
        section.problem(key, message);
        return None;
    }
    Some(host)
}
