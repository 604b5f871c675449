use apus_cc::registry::build;
use apus_fabric::{Tier, Topology};
use apus_sim::host_model::HostModel;
use apus_sim::plan::{ConnectionPlan, Plan};
use apus_sim::{PacketSizes, Simulation};
use apus_transport::{EndpointConfig, OpKind};
use apus_units::*;
use apus_wire::RegionKey;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let case = args[1].as_str();
    let n: u32 = args[2].parse().unwrap();
    let ms: f64 = args[3].parse().unwrap();
    let sets: Vec<(&str, &str)> = args[4..].iter().map(|a| a.split_once('=').unwrap()).collect();
    let get = |k: &str| sets.iter().find(|s| s.0 == k).map(|s| s.1);
    let algo: Vec<(&str, &str)> = sets.iter().copied().filter(|s| !s.0.starts_with('_')).collect();
    let algorithm = build("swift", Some("paper"), &algo).unwrap_or_else(|e| panic!("{e}"));
    let host = HostModel::preset(get("_host").unwrap_or("ideal")).unwrap();
    let host = HostModel { jitter: get("_jitter").map_or(host.jitter, |j| j.parse().unwrap()), ..host };
    let (topology, payload, header) = if case == "perm" || case == "fincast" || case == "all" {
        let t = Tier::hosts(Rate::from_gbps(100), Span::from_us(1), Bytes::new(100 * 4000));
        let s = Tier::switches(Rate::from_gbps(100), Span::from_us(1), Bytes::new(100 * 4000));
        let k: u32 = get("_k").map_or(8, |k| k.parse().unwrap());
        (Topology::fat_tree(k, k / 2, &t, &s, &s).unwrap(), 3936, 64)
    } else {
        let t = Tier::hosts("50Gbps".parse().unwrap(), "2.5us".parse().unwrap(), Bytes::new(12_700_000));
        (Topology::star(60, &t), 4096, 64)
    };
    let far = Time::from_ps(1 << 60);
    let mut connections = Vec::new();
    let mut rng = 12345u64;
    let mut next = || { rng = rng.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407); rng >> 33 };
    let spread: u64 = get("_spread_us").map_or(0, |s| s.parse().unwrap());
    let mut add = |from: u32, to: u32, size: u64, out: u32| {
        let start = Time::from_ps(if spread == 0 { 0 } else { next() % (spread * 1_000_000) });
        connections.push(ConnectionPlan {
            from: HostId::new(from), to: HostId::new(to), start, stop: far,
            kind: OpKind::Write { region: RegionKey::new(1), address: 0 },
            size: Bytes::new(size), outstanding: out, algorithm: algorithm.clone(), class: ClassId::new(0),
        });
    };
    match case {
        "perm" => { let hosts = topology.hosts; for h in 0..hosts { add(h, (h * 37 + 11 + h / 3) % hosts, 1 << 20, 2); } }
        "fincast" => { let hosts = topology.hosts; for f in 0..n { add(1 + f % (hosts - 1), 0, 1 << 20, 2); } }
        "all" => { let hosts = topology.hosts; for a in 0..hosts { for b in 0..hosts { if a != b { add(a, b, 1 << 20, 2); } } } }
        "fig17" => for f in 0..n { add(f % 10, 59, 65536, 1) },
        "table3" => for f in 0..n { add(f % 50, 59, 65536, 1) },
        "fig20" => { for f in 0..4u32 { add(f, 59, 65536, 2); } }
        _ => panic!(),
    }
    connections.retain(|c| c.from != c.to);
    let duration = Span::from_ps((ms * 1e9) as u64);
    let warm: f64 = get("_warm").map_or(0.0, |w| w.parse().unwrap());
    let plan = Plan {
        topology, force_class_ports: get("_class").is_some(),
        sizes: PacketSizes { payload, header, control: 64 },
        host, endpoint: EndpointConfig { max_payload: payload, ..EndpointConfig::default() },
        connections, duration, warmup: Span::from_ps((warm * 1e9) as u64), sample_interval: None, fair_share_after: None, seed: 1,
    };
    let sim = Simulation::new(&plan).unwrap();
    let s = sim.run(case, &mut |_| {}).unwrap();
    println!("thr {:.2} good {:.2} dup {:.2} loss {:.4}% startup loss {:.3}% jain {:.3}", s.throughput_gbps, s.goodput_gbps, s.duplicate_gbps, s.loss_rate * 100.0, s.startup_loss_rate*100.0, s.jain);
    let d = |n: &str, d: &apus_sim::summary::DistributionSummary| println!("  {n}: mean {:.1} p50 {:.1} p99 {:.1} p999 {:.1} max {:.1}", d.mean.unwrap_or(0.), d.p50.unwrap_or(0.), d.p99.unwrap_or(0.), d.p99_9.unwrap_or(0.), d.max.unwrap_or(0.));
    d("fabric", &s.fabric_rtt_us); d("e2e", &s.end_to_end_rtt_us); d("endpoint", &s.endpoint_delay_us);
    println!("  data {} + startup {} acks {} drops {} nicdrops {} maxq {}", s.measured.data_packets_sent, s.startup.data_packets_sent, s.measured.acks_sent, s.measured.drops, s.packets.dropped_at_nic, s.busiest_port.max_queue_bytes);
    println!("  wall {:.3} events {} hops {} -> {:.2} M hops/s, {:.1} ns/event", s.cost.wall_s, s.cost.events, s.cost.packet_hops, s.cost.packet_hops as f64 / s.cost.wall_s / 1e6, s.cost.wall_s * 1e9 / s.cost.events as f64);
}
