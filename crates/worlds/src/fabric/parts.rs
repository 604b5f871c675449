//! The tables of a drawn scenario.

use std::fmt::Write;
use std::ops::Range;

use crate::draw::Draw;

/// An algorithm, and what it asks of the fabric.
pub(super) struct Choice {
    pub(super) name: &'static str,
    /// The table of the algorithm.
    pub(super) settings: String,
    marks: Marks,
    /// Whether flows may spread their packets over several paths: not with credits or go-back-N.
    spreads: bool,
    /// Whether trimmed headers may take the place of packets.
    trims: bool,
}

/// Whether an algorithm needs marks of queues.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Marks {
    /// At a threshold.
    Threshold,
    /// By chance between two thresholds.
    Range,
    /// Its switch half does what it needs.
    None,
}

/// Draws the algorithm and its profile.
pub(super) fn algorithm(draw: &mut Draw) -> Choice {
    let all: &[(&str, &[&str], Marks, bool, bool)] = &[
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
        ("constant", &["constant"], Marks::None, true, true),
    ];
    let (name, profiles, marks, spreads, trims) = draw.pick(all);
    let mut settings = format!("[algorithm]\nname = \"{name}\"\n");
    let profile = draw.pick(profiles);
    let _ = writeln!(settings, "profile = \"{profile}\"");
    if name == "constant" {
        let _ = writeln!(settings, "window = {}.0", draw.range(1, 100));
    }
    // Falcon's Swift changes its path itself.
    Choice { name, settings, marks, spreads: spreads && profile != "falcon", trims }
}

/// A network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fabric {
    pub(super) hosts: u64,
    /// Whether ports trim packets of the class of all workloads.
    pub(super) trims: bool,
    /// Texts that match links, as faults name them.
    links: &'static [&'static str],
    pub(super) table: String,
}

impl Fabric {
    pub(super) fn draw(draw: &mut Draw, algorithm: &Choice) -> Self {
        let (shape, hosts, links) = shape(draw);
        let rate = draw.pick(&[10, 25, 40, 100]);
        let delay = draw.log_range(100, 5000);
        // From a few packets to what 40 us at 100 Gb/s bring.
        let buffer = draw.log_range(20_000, 500_000);
        let trims = algorithm.trims && draw.chance(300);
        let mut table =
            format!("[topology]\n{shape}rate = \"{rate}Gbps\"\ndelay = \"{delay}ns\"\n");
        if draw.chance(200) {
            let _ = writeln!(table, "pipeline_latency = \"{}ns\"", draw.log_range(10, 1000));
        }
        let marks = match algorithm.marks {
            Marks::Threshold => format!("ecn = {{ threshold = \"{}B\" }}\n", buffer / 4),
            Marks::Range => {
                let (low, high) = (buffer / 5, buffer / 2);
                format!("ecn = {{ k_min = \"{low}B\", k_max = \"{high}B\", p_max = 1.0 }}\n")
            }
            Marks::None => String::new(),
        };
        if trims {
            let _ = write!(
                table,
                "buffer = \"unlimited\"\nack_class = \"headers\"\n\n\
                 [[topology.class]]\nname = \"headers\"\nlimit = \"{}B\"\n\n\
                 [[topology.class]]\nname = \"data\"\npriority = 1\nlimit = \"{buffer}B\"\ntrim_to = \"headers\"\n\
                 {marks}",
                2 * buffer
            );
        } else {
            table += &match draw.range(0, 5) {
                0 => {
                    let (size, alpha) = (4 * buffer, draw.pick(&[0.25, 1.0, 8.0]));
                    format!("shared = {{ size = \"{size}B\", alpha = {alpha:.2} }}\n")
                }
                1 => "buffer = \"unlimited\"\n".to_owned(),
                _ => format!("buffer = \"{buffer}B\"\n"),
            };
            table += &marks;
        }
        Self { hosts, trims, links, table }
    }
}

/// Draws a topology: its keys, its number of hosts, and texts that match its links.
fn shape(draw: &mut Draw) -> (String, u64, &'static [&'static str]) {
    match draw.range(0, 4) {
        0 => {
            let hosts = draw.range(3, 10);
            let shape = format!("kind = \"star\"\nhosts = {hosts}\n");
            (shape, hosts, &["host 0 -> *", "* -> host 1", "host 2 <-> *"])
        }
        1 => {
            let (left, right) = (draw.range(1, 5), draw.range(2, 5));
            let shape = format!("kind = \"dumbbell\"\nleft = {left}\nright = {right}\n");
            (shape, left + right, &["left -> right", "left <-> right", "* -> host 0"])
        }
        2 => {
            let (leaves, spines, hosts) = (draw.range(2, 3), draw.range(1, 4), draw.range(2, 4));
            let shape = format!(
                "kind = \"leaf-spine\"\nleaves = {leaves}\nspines = {spines}\nhosts_per_leaf = {hosts}\n"
            );
            (
                shape,
                leaves * hosts,
                &["leaf 0 <-> spine 0", "leaf * -> spine *", "spine 0 -> leaf 1"],
            )
        }
        3 => {
            let hosts = draw.range(1, 2);
            let shape = format!("kind = \"fat-tree\"\nk = 4\nhosts_per_edge = {hosts}\n");
            (shape, 8 * hosts, &["edge 0 <-> agg 0", "agg * -> core *", "core 1 -> agg *"])
        }
        _ => {
            let (switches, hosts) = (draw.range(2, 4), draw.range(1, 2));
            let shape = format!(
                "kind = \"parking-lot\"\nswitches = {switches}\nhosts_per_switch = {hosts}\n"
            );
            (
                shape,
                switches * hosts,
                &["switch 0 -> switch 1", "switch * <-> switch *", "host 0 -> *"],
            )
        }
    }
}

/// Draws how flows use paths: the name of the policy, and the table.
pub(super) fn routing(draw: &mut Draw, algorithm: &Choice, trims: bool) -> (&'static str, String) {
    if !algorithm.spreads || draw.chance(350) {
        return ("none", String::new());
    }
    let balancer = draw.pick(&[
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
    ]);
    let mut table = format!("[routing]\nbalancer = \"{balancer}\"\n");
    if balancer == "ecmp" {
        return (balancer, table);
    }
    let _ = writeln!(table, "ev = \"{}\"", draw.pick(&["hashed", "indexed"]));
    let _ = writeln!(table, "ack_path = \"{}\"", draw.pick(&["symmetric", "own"]));
    let _ = writeln!(table, "range = {}", draw.pick(&[128, 256, 1024, 16_384]));
    let loss = if trims { "timeout" } else { draw.pick(&["time", "count", "ev-order", "timeout"]) };
    let _ = writeln!(table, "loss = \"{loss}\"");
    (balancer.split(' ').next().unwrap_or(balancer), table)
}

/// Draws how switches avoid links that are down: further lines of the table.
pub(super) fn rerouting(draw: &mut Draw) -> String {
    let mut lines = format!("reroute_local = \"{}us\"\n", draw.log_range(1, 100));
    if draw.chance(500) {
        let _ = writeln!(lines, "reroute_global = \"{}us\"", draw.log_range(100, 300));
    }
    let _ = writeln!(lines, "rehash = \"{}\"", draw.pick(&["resilient", "modulo"]));
    lines
}

/// Draws traffic that ends by itself once no more ops are submitted.
pub(super) fn workload(draw: &mut Draw, number: usize, fabric: &Fabric, stop_us: u64) -> String {
    let size = draw.log_range(1, 200_000);
    let mut table = format!("[[workload]]\nname = \"w{number}\"\n");
    if fabric.trims {
        table += "class = \"data\"\n";
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
            let size = size.max(fabric.hosts * 64);
            format!(
                "kind = \"{kind}\"\npattern = \"{pattern}\"\nsize = \"{size}B\"\ndone = \"{done}\"\n"
            )
        }
    };
    let _ = writeln!(table, "start = \"{start}us\"");
    table
}

/// Draws a fault of links within this time, in microseconds.
pub(super) fn fault(draw: &mut Draw, fabric: &Fabric, within: Range<u64>) -> String {
    let link = draw.pick(fabric.links);
    let at = draw.range(within.start, within.end - 2);
    let until = draw.range(at + 1, within.end - 1);
    let kind = match draw.range(0, 4) {
        0 => "kind = \"down\"\n".to_owned(),
        1 => format!("kind = \"slow\"\nfraction = {:.2}\n", draw.pick(&[0.25, 0.5, 0.9])),
        2 => format!("kind = \"loss\"\nprobability = {}\n", draw.pick(&[0.001, 0.01, 0.2])),
        3 => format!("kind = \"corrupt\"\nprobability = {}\n", draw.pick(&[0.001, 0.01, 0.2])),
        _ => {
            let (probability, delay) = (draw.pick(&[0.01, 0.3]), draw.log_range(1, 50));
            format!("kind = \"reorder\"\nprobability = {probability}\ndelay = \"{delay}us\"\n")
        }
    };
    format!("[[fault]]\nlink = \"{link}\"\n{kind}at = \"{at}us\"\nuntil = \"{until}us\"\n")
}
