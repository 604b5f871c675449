//! Paths around links that switches avoid.

use std::collections::BTreeSet;

use crate::support::{Network, Topology};
use crate::support::{gbps, host_tier, switch_tier};
use apus_fabric::{Avoided, PathSet, Rehash};
use apus_units::{HostId, PortId};

/// Number of flows of a test.
const FLOWS: u64 = 4000;

fn leaf_spine() -> Network<u32> {
    let tier = switch_tier(gbps(100));
    Topology::leaf_spine(2, 2, 4, &host_tier(gbps(100)), &tier).build(3).expect("a network")
}

/// The fat tree of 4-port switches: hosts 0 to 3 in pod 0, 4 to 7 in pod 1.
fn fat_tree() -> Network<u32> {
    let tier = switch_tier(gbps(100));
    let topology =
        Topology::fat_tree(4, 2, &host_tier(gbps(100)), &tier, &tier).expect("k is even");
    topology.build(3).expect("a network")
}

fn port(net: &Network<u32>, name: &str) -> PortId {
    net.ports().find(|port| net.port_name(*port) == name).expect(name)
}

fn avoiding(local: &[PortId], global: &[PortId], rehash: Rehash) -> Avoided {
    Avoided { local: local.to_vec(), global: global.to_vec(), rehash }
}

fn path(net: &mut Network<u32>, src: u32, dst: u32, key: u64) -> Vec<String> {
    let route = net.reroute(HostId::new(src), HostId::new(dst), key, 0).expect("a path");
    net.route_ports(route).iter().map(|port| net.port_name(*port)).collect()
}

fn paths(net: &mut Network<u32>, src: u32, dst: u32) -> Vec<Vec<String>> {
    (0..FLOWS).map(|key| path(net, src, dst, key)).collect()
}

/// One of four ports is lost. With resilient hashing the flows of the other ports stay. With the
/// hash modulo the new number, a flow of another port gets the same port with probability 1/3, so
/// that 1/4 of all flows stay.
#[test]
fn flows_of_a_lost_port_move_and_others_as_the_rule_says() {
    for (rehash, stays) in [(Rehash::Resilient, 0.75), (Rehash::Modulo, 0.25)] {
        let mut net = leaf_spine();
        let lost = "leaf 0 -> spine 2";
        let avoided = avoiding(&[port(&net, lost)], &[], rehash);
        net.prepare_detours(&[avoided]).expect("few routes");
        let before = paths(&mut net, 0, 2);
        net.set_detours(Some(0));
        let after = paths(&mut net, 0, 2);
        assert!(after.iter().all(|path| path.len() == 4 && !path.contains(&lost.to_owned())));
        let same = before.iter().zip(&after).filter(|(a, b)| a == b).count() as f64 / FLOWS as f64;
        // Five standard deviations of the binomial distribution.
        assert!((same - stays).abs() < 5.0 * (0.1875 / FLOWS as f64).sqrt(), "{rehash:?}: {same}");
        // The flows that move spread over the three remaining ports.
        for spine in [0, 1, 3] {
            let name = format!("leaf 0 -> spine {spine}");
            let share = after.iter().filter(|path| path[1] == name).count() as f64 / FLOWS as f64;
            assert!((share - 1.0 / 3.0).abs() < 0.04, "{rehash:?}: {share}");
        }
        net.set_detours(None);
        assert_eq!(paths(&mut net, 0, 2), before, "a repaired link is used as before");
    }
}

/// A link from a core into pod 1 has failed. At first only this core knows, and it has no other
/// link into the pod, so packets for the pod still reach it. In the opposite direction the
/// aggregation switch avoids the core. Once all switches know of the failure, none uses the core
/// for this pod.
#[test]
fn a_dead_link_from_a_core_needs_other_switches_to_avoid_it() {
    let dead = ["core 0 -> agg 2", "agg 2 -> core 0"].map(str::to_owned);
    let uses = |paths: &[Vec<String>]| {
        paths.iter().filter(|path| path.iter().any(|port| dead.contains(port))).count()
    };
    let mut net = fat_tree();
    let link = [port(&net, &dead[0])];
    net.prepare_detours(&[
        avoiding(&link, &[], Rehash::Resilient),
        avoiding(&link, &link, Rehash::Resilient),
    ])
    .expect("few routes");
    let (there, back) = (paths(&mut net, 0, 4), paths(&mut net, 4, 0));
    assert!(uses(&there) > 800 && uses(&there) == uses(&back));
    net.set_detours(Some(0));
    assert_eq!(uses(&paths(&mut net, 0, 4)), uses(&there));
    assert_eq!(uses(&paths(&mut net, 4, 0)), 0);
    net.set_detours(Some(1));
    for (src, dst, before) in [(0, 4, &there), (4, 0, &back)] {
        let now = paths(&mut net, src, dst);
        assert_eq!(uses(&now), 0);
        assert!(now.iter().all(|path| path.len() == 6), "as short as before");
        let moved = now.iter().zip(before).filter(|(a, b)| a != b).count();
        assert_eq!(moved, uses(before), "the others stay");
    }
    // Within a pod nothing changes.
    let within = paths(&mut net, 0, 2);
    net.set_detours(None);
    assert_eq!(paths(&mut net, 0, 2), within);
}

/// A host whose only link has failed, and two switches whose only link has failed, keep their
/// paths: packets are lost there.
#[test]
fn without_another_path_the_planned_one_stays() {
    let mut net = fat_tree();
    let before = path(&mut net, 0, 5, 7);
    let links: Vec<PortId> = net.ports().collect();
    let all = avoiding(&links, &links, Rehash::Modulo);
    net.prepare_detours(&[all]).expect("few routes");
    net.set_detours(Some(0));
    assert_eq!(path(&mut net, 0, 5, 7), before);
}

/// The set of paths of a pair keeps its numbers. Numbers of working paths keep their path, and
/// those of a failed path spread over the others. Packets sprayed over all numbers therefore load
/// the working links equally.
#[test]
fn numbers_of_paths_stay_and_those_of_a_dead_path_spread() {
    let mut net = leaf_spine();
    let (src, dst) = (HostId::new(0), HostId::new(2));
    let planned = net.path_set(src, dst).expect("paths");
    assert_eq!((planned.count(), planned.variants()), (4, 1));
    let lost = port(&net, "leaf 0 -> spine 2");
    net.prepare_detours(&[avoiding(&[lost], &[], Rehash::Resilient)]).expect("few routes");
    net.set_detours(Some(0));
    let (there, back) =
        (net.path_set(src, dst).expect("paths"), net.path_set(dst, src).expect("paths"));
    let variants = there.variants();
    assert_eq!(there.count(), 4 * variants);
    let ports = |net: &Network<u32>, route| -> Vec<String> {
        net.route_ports(route).iter().map(|port| net.port_name(*port)).collect()
    };
    let mut taken = BTreeSet::new();
    for number in 0..there.count() {
        let route = there.route(number);
        let now = ports(&net, route);
        let before = ports(&net, planned.route(number / variants));
        if before[1] == "leaf 0 -> spine 2" {
            taken.insert(now[1].clone());
        } else {
            assert_eq!(now, before);
        }
        assert!(now[1] != "leaf 0 -> spine 2");
        // Receivers find the number, even if their own paths have changed.
        assert_eq!(back.number_of(route), Some(number));
        assert_eq!(net.detour_number(route), Some((number, variants)));
        assert_eq!(net.detour_number(back.route(number)), Some((number, variants)));
        assert_eq!(planned.number_of(route), None);
    }
    assert_eq!(taken.len(), 3, "the numbers of the dead path lead over all others");
    assert_eq!(net.detour_number(planned.route(1)), None);
    net.set_detours(None);
    assert_eq!(net.path_set(src, dst).expect("paths"), planned);
}

/// Two hosts with a port on each of four switches. A host immediately stops using a port whose link
/// it avoids, and its peer does once all know of the failure. Flows of other ports stay.
#[test]
fn a_host_with_several_ports_uses_those_that_are_left() {
    let mut net: Network<u32> =
        Topology::star(2, &host_tier(gbps(25))).in_planes(4).build(3).expect("a network");
    let lost = port(&net, "host 0 -> plane 2 switch 0");
    let uses = |paths: &[Vec<String>]| {
        paths.iter().filter(|path| path.iter().any(|port| port.contains("plane 2"))).count()
    };
    net.prepare_detours(&[
        avoiding(&[lost], &[], Rehash::Resilient),
        avoiding(&[lost], &[lost], Rehash::Resilient),
    ])
    .expect("few routes");
    let (there, back) = (paths(&mut net, 0, 1), paths(&mut net, 1, 0));
    let quarter = FLOWS as f64 / 4.0;
    // Five standard deviations of the binomial distribution.
    assert!((uses(&there) as f64 - quarter).abs() < 5.0 * (0.75 * quarter).sqrt());
    net.set_detours(Some(0));
    let now = paths(&mut net, 0, 1);
    assert_eq!(uses(&now), 0);
    let moved = now.iter().zip(&there).filter(|(a, b)| a != b).count();
    assert_eq!(moved, uses(&there), "the others stay");
    let onto = |plane: u32| {
        let name = format!("plane {plane} ");
        let changed = now.iter().zip(&there).filter(|(a, b)| a != b);
        changed.filter(|(path, _)| path[0].contains(&name)).count() as f64
    };
    for plane in [0, 1, 3] {
        assert!((onto(plane) / moved as f64 - 1.0 / 3.0).abs() < 0.08, "{plane}");
    }
    assert_eq!(paths(&mut net, 1, 0), back, "the peer does not know");
    net.set_detours(Some(1));
    let (there, back) = (paths(&mut net, 0, 1), paths(&mut net, 1, 0));
    assert_eq!((uses(&there), uses(&back)), (0, 0));
    let ports = |path: &[String]| path.iter().all(|port| port.contains("plane 1"));
    let same = there.iter().zip(&back).filter(|(a, b)| ports(a) == ports(b)).count();
    assert_eq!(same as u64, FLOWS, "acknowledgements take the network of the data");
}

/// The two leaves of plane 1 are separated: hosts on both of them use plane 0.
#[test]
fn hosts_leave_a_network_that_does_not_join_them() {
    let tier = switch_tier(gbps(100));
    let one = Topology::leaf_spine(2, 1, 1, &host_tier(gbps(100)), &tier);
    let mut net: Network<u32> = one.in_planes(2).build(3).expect("a network");
    let lost = port(&net, "plane 1 leaf 0 -> plane 1 spine 0");
    net.prepare_detours(&[avoiding(&[lost], &[lost], Rehash::Resilient)]).expect("few routes");
    let before = net.path_set(HostId::new(0), HostId::new(1)).expect("paths");
    assert_eq!((before.count(), before.port_pairs()), (2, 2));
    net.set_detours(Some(0));
    assert!(paths(&mut net, 0, 1).iter().all(|path| path.iter().all(|p| p.contains("plane 0"))));
    // Numbers of a set keep their plane; the host checks which ones are cut.
    let cut = |number| net.is_cut(HostId::new(0), HostId::new(1), before.route(number));
    assert_eq!([cut(0), cut(1)], [false, true]);
    net.set_detours(None);
    assert!(!net.is_cut(HostId::new(0), HostId::new(1), before.route(1)));
}

/// If the paths of a pair of hosts are stored while a link is avoided, the pair gets the detours of
/// that state and of each later one, like a pair that was stored before.
#[test]
fn paths_that_are_stored_later_avoid_links_too() {
    let through = |net: &Network<u32>, set: PathSet, lost: &str| {
        let dead = port(net, lost);
        (0..set.count()).filter(|&n| net.route_ports(set.route(n)).contains(&dead)).count()
    };
    let (src, dst) = (HostId::new(0), HostId::new(2));
    let lost = ["leaf 0 -> spine 2", "leaf 0 -> spine 1"];
    let mut net = leaf_spine();
    let states = lost.map(|lost| avoiding(&[port(&net, lost)], &[], Rehash::Resilient));
    net.prepare_detours(&states).expect("few routes");
    net.set_detours(Some(0));
    let set = net.path_set(src, dst).expect("paths");
    assert_eq!((through(&net, set, lost[0]), net.path_set(src, dst)), (0, Ok(set)));
    assert_eq!(net.detour_number(set.route(5)), Some((5, set.variants())));
    assert_eq!(net.path_set(dst, src).map(|back| back.reversed()), Ok(set));
    let planned = net.planned_path_set(src, dst).expect("paths");
    assert_eq!((planned.count(), through(&net, planned, lost[0])), (4, 1));
    net.set_detours(Some(1));
    let set = net.path_set(src, dst).expect("paths");
    assert!(through(&net, set, lost[0]) > 0);
    assert_eq!(through(&net, set, lost[1]), 0);
    // Hosts of one leaf do not use the link.
    let beside = net.path_set(src, HostId::new(1)).expect("a path");
    assert_eq!((beside.count(), beside.variants()), (1, 1));
    net.set_detours(None);
    assert_eq!(net.path_set(src, dst), Ok(planned));
}
