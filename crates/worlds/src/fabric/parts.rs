//! Tables of a drawn scenario.

use std::fmt::Write;

use super::network::Fabric;
use crate::draw::Draw;

/// An algorithm and its requirements on the fabric.
pub(super) struct Choice {
    pub(super) name: &'static str,
    /// The `[algorithm]` table of the scenario.
    pub(super) settings: String,
    pub(super) marks: Marks,
    /// Whether flows may spread their packets over several paths; not allowed with credits or go-back-N.
    spreads: bool,
    /// Whether trimmed headers may take the place of packets.
    pub(super) trims: bool,
}

/// Marks that an algorithm needs from queues.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Marks {
    /// Marks at a threshold.
    Threshold,
    /// Marks with a probability that rises between two thresholds.
    Range,
    /// No marks: the switch half of the algorithm provides what it needs.
    None,
}

impl Choice {
    /// Returns `true` if ports may have several classes and pause links. A credit-based algorithm divides
    /// every port itself.
    pub(super) fn divides_by_class(&self) -> bool {
        self.name != "expresspass"
    }
}

/// Name, profiles, marks, whether flows may spread their packets, whether ports may trim.
type Row = (&'static str, &'static [&'static str], Marks, bool, bool);

/// Every algorithm.
const ALGORITHMS: &[Row] = &[
    ("swift", &["paper", "falcon"], Marks::None, true, true),
    ("dctcp", &["rfc8257", "gcn"], Marks::Threshold, true, true),
    ("bolt", &["paper", "code"], Marks::None, true, false),
    ("hpcc", &["paper", "bolt"], Marks::None, true, false),
    ("expresspass", &["code", "paper", "code-2018"], Marks::None, false, false),
    ("cubic", &["rfc9438"], Marks::None, true, true),
    ("timely", &["paper", "patched"], Marks::None, true, true),
    ("dx", &["paper"], Marks::None, true, true),
    ("dcqcn", &["paper"], Marks::None, true, false),
    ("rcp", &["paper"], Marks::None, true, false),
    ("hull", &["paper"], Marks::None, true, false),
    ("nscc", &["trimming", "drop-tail", "median"], Marks::Range, true, true),
    ("mswift", &["mswift", "lswift"], Marks::None, true, true),
    ("constant", &["constant"], Marks::None, true, true),
    ("notified", &["study"], Marks::None, true, false),
    ("rccc", &["credits"], Marks::None, true, true),
    ("rccc", &["nscc"], Marks::Range, true, true),
];

/// Every path policy. The policies at the end depend on the load of queues, so every queue must have a limit.
const BALANCERS: &[&str] = &[
    "ecmp",
    "ecmp profile=prr",
    "plb",
    "flowlet",
    "oblivious",
    "oblivious form=random",
    "oblivious form=round-robin",
    "bitmap",
    "reps",
    "mixed",
    "round-robin",
    "switch-flowlet next=random",
    "adaptive",
    "switch-flowlet next=least-loaded",
];
const BY_LOAD: usize = 2;

/// An algorithm and a policy, by their indices in the tables.
#[derive(Clone, Copy)]
pub(super) struct Pair {
    algorithm: usize,
    balancer: usize,
}

impl Pair {
    /// Returns the pair of a number. Consecutive numbers go through all pairs.
    pub(super) fn of(number: u64) -> Self {
        let number = (number % (ALGORITHMS.len() * BALANCERS.len()) as u64) as usize;
        Self { algorithm: number % ALGORITHMS.len(), balancer: number / ALGORITHMS.len() }
    }

    /// Returns `true` if the policy can run in this fabric.
    pub(super) fn fits(self, fabric: &Fabric) -> bool {
        fabric.limited || self.balancer < BALANCERS.len() - BY_LOAD
    }
}

/// Returns the number of pairs of an algorithm and a policy.
#[must_use]
pub fn pairs() -> u64 {
    (ALGORITHMS.len() * BALANCERS.len()) as u64
}

/// Draws the algorithm, unless a pair determines it, and its profile.
pub(super) fn algorithm(draw: &mut Draw, pair: Option<Pair>) -> Choice {
    let (name, profiles, marks, spreads, trims) = match pair {
        Some(pair) => ALGORITHMS[pair.algorithm],
        None => draw.pick(ALGORITHMS),
    };
    let mut settings = format!("[algorithm]\nname = \"{name}\"\n");
    // The Swift of Falcon changes its path itself.
    let profiles = if pair.is_some() && name == "swift" { &profiles[..1] } else { profiles };
    let profile = draw.pick(profiles);
    let _ = writeln!(settings, "profile = \"{profile}\"");
    if name == "constant" {
        let _ = writeln!(settings, "window = {}.0", draw.range(1, 100));
    }
    Choice { name, settings, marks, spreads: spreads && profile != "falcon", trims }
}

/// Draws how flows use paths, unless a pair determines the policy. Returns the name of the policy and the table.
pub(super) fn routing(
    draw: &mut Draw,
    algorithm: &Choice,
    fabric: &Fabric,
    pair: Option<Pair>,
) -> (&'static str, String) {
    if !algorithm.spreads || pair.is_none() && draw.chance(350) {
        return ("none", String::new());
    }
    let without = if fabric.limited { 0 } else { BY_LOAD };
    let balancer = match pair {
        Some(pair) => BALANCERS[pair.balancer],
        None => draw.pick(&BALANCERS[..BALANCERS.len() - without]),
    };
    let mut table = format!("[routing]\nbalancer = \"{balancer}\"\n");
    if balancer == "ecmp" {
        return (balancer, table);
    }
    let _ = writeln!(table, "ev = \"{}\"", draw.pick(&["hashed", "indexed"]));
    let _ = writeln!(table, "ack_path = \"{}\"", draw.pick(&["symmetric", "own"]));
    if draw.chance(300) {
        let _ = writeln!(table, "ack_bytes = \"{}B\"", draw.pick(&[4096, 20_000]));
    }
    let _ = writeln!(table, "range = {}", draw.pick(&[128, 256, 1024, 16_384]));
    let loss = match algorithm.name {
        _ if fabric.trims => "timeout",
        "nscc" => draw.pick(&["time", "count", "ev-order", "timeout", "sleek"]),
        _ => draw.pick(&["time", "count", "ev-order", "timeout"]),
    };
    let _ = writeln!(table, "loss = \"{loss}\"");
    (balancer.split(' ').next().unwrap_or(balancer), table)
}

/// Draws how switches avoid links that are down, as further lines of the table.
pub(super) fn rerouting(draw: &mut Draw) -> String {
    let mut lines = format!("reroute_local = \"{}us\"\n", draw.log_range(1, 100));
    if draw.chance(500) {
        let _ = writeln!(lines, "reroute_global = \"{}us\"", draw.log_range(100, 300));
    }
    let _ = writeln!(lines, "rehash = \"{}\"", draw.pick(&["resilient", "modulo"]));
    lines
}

/// Draws traffic that ends when no more ops are submitted. Settings that were added to worlds later are drawn
/// from `later` and `placement`, other streams of the same seed, so that all other choices of a seed stay the
/// same.
pub(super) fn workload(
    [draw, later, placement]: [&mut Draw; 3],
    number: usize,
    fabric: &Fabric,
    stop_us: u64,
) -> String {
    let size = draw.log_range(1, 200_000);
    let mut table = format!("[[workload]]\nname = \"w{number}\"\n");
    if !fabric.classes.is_empty() {
        let _ = writeln!(table, "class = \"{}\"", fabric.classes[number % fabric.classes.len()]);
    }
    let start = draw.range(0, stop_us / 2);
    let closed = |draw: &mut Draw| {
        let (outstanding, flows) = (draw.range(1, 4), draw.pick(&[1, 1, 2]));
        let op = draw.pick(&["write", "read", "message"]);
        format!(
            "size = \"{size}B\"\nop = \"{op}\"\noutstanding = {outstanding}\nflows_per_pair = {flows}\n\
             stop = \"{stop_us}us\"\n"
        )
    };
    table += &match draw.range(0, 5) {
        0 => {
            let receiver = draw.range(0, fabric.hosts - 1);
            format!("kind = \"incast\"\nreceiver = {receiver}\n{}", closed(draw))
        }
        1 => format!("kind = \"permutation\"\n{}", closed(draw)),
        2 => format!("kind = \"all-to-all\"\n{}", closed(draw)),
        3 => {
            let flows = draw.pick(&["per-pair", "per-op"]);
            let load = draw.pick(&[0.1, 0.3, 0.8]);
            let size = size.max(1000);
            format!(
                "kind = \"poisson\"\nload = {load:.1}\nsize = \"{size}B\"\nflows = \"{flows}\"\nstop = \"{stop_us}us\"\n"
            )
        }
        4 => {
            format!(
                "kind = \"partition-aggregate\"\nrequest = \"100B\"\nanswer = \"{size}B\"\nstop = \"{stop_us}us\"\n"
            )
        }
        _ => {
            let (kind, pattern) = draw.pick(&[
                ("all-reduce", "ring"),
                ("all-reduce", "halving-doubling"),
                ("all-reduce", "double-binary-tree"),
                ("broadcast", "binomial"),
                ("broadcast", "chain"),
                ("all-to-all", "direct"),
                ("all-to-all", "pairwise"),
                ("all-to-all", "window"),
            ]);
            let done = draw.pick(&["delivered", "local", "acknowledged"]);
            let (ranks, local) = if placement.chance(300) {
                let (each, kind) =
                    (placement.range(2, 3), placement.pick(&["block", "round-robin", "random"]));
                let (rate, delay) = (placement.pick(&[100, 400]), placement.pick(&[0, 300]));
                let local = format!(
                    "ranks_per_host = {each}\nplacement = \"{kind}\"\nlocal_rate = \"{rate}Gbps\"\n\
                     local_delay = \"{delay}ns\"\n"
                );
                (fabric.hosts * each, local)
            } else {
                (fabric.hosts, String::new())
            };
            let size = size.max(ranks * 64);
            let (iterations, compute) =
                (later.pick(&[1, 1, 2, 3]), later.pick(&[0, 0, 1000, 30_000]));
            let order = later.pick(&["interleaved", "interleaved", "sequential"]);
            let flows = later.pick(&[1, 1, 2]);
            format!(
                "kind = \"{kind}\"\npattern = \"{pattern}\"\nsize = \"{size}B\"\ndone = \"{done}\"\n\
                 iterations = {iterations}\ncompute = \"{compute}ns\"\nsend_order = \"{order}\"\nflows_per_pair = {flows}\n{local}"
            )
        }
    };
    let _ = writeln!(table, "start = \"{start}us\"");
    table
}
