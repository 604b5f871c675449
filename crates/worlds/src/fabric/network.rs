//! The network of a drawn scenario, and its faults.

use std::fmt::Write;
use std::ops::Range;

use super::parts::{Choice, Marks};
use crate::draw::Draw;

/// A drawn network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fabric {
    pub(super) hosts: u64,
    /// Classes of workloads, if switches have several classes.
    pub(super) classes: Names,
    /// Whether ports trim packets of the class that all workloads have.
    pub(super) trims: bool,
    /// Whether switches pause the links that fill their memory.
    pub(super) pauses: bool,
    /// Whether every queue has a limit of its own, against which its load is measured.
    pub(super) limited: bool,
    links: Names,
    switches: Names,
    pub(super) table: String,
}

/// Overload behaviour of ports.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ports {
    Trimming,
    Pausing,
    Other,
}

impl Fabric {
    /// Draws a fabric. `later` is used as for workloads. `thresholds` draws the thresholds of pauses, which
    /// were added even later.
    pub(super) fn draw([draw, later, thresholds]: [&mut Draw; 3], algorithm: &Choice) -> Self {
        let (mut shape, hosts, links, switches) = shape(draw, later);
        let rate = draw.pick(&[10, 25, 40, 100]);
        if shape.contains("leaf-spine") && later.chance(400) {
            let uplink = rate * later.pick(&[4, 10, 20, 40]) / 10;
            let _ = writeln!(shape, "uplink = {{ rate = \"{uplink}Gbps\" }}");
        }
        let delay = draw.log_range(100, 5000);
        // From a few packets up to the packets that arrive in 40 us at 100 Gb/s.
        let buffer = draw.log_range(20_000, 500_000);
        let ports = match draw.range(0, 9) {
            0..3 if algorithm.trims => Ports::Trimming,
            3 | 4 if algorithm.divides_by_class() => Ports::Pausing,
            _ => Ports::Other,
        };
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
        let mut limited = ports == Ports::Trimming;
        table += &match ports {
            Ports::Trimming => "buffer = \"unlimited\"\nack_class = \"headers\"\n".to_owned(),
            Ports::Pausing => {
                let mut headroom = draw.pick(&[10_000, 200_000]);
                let (mut pause, mut resume) = (buffer, buffer / 4 * 3);
                if thresholds.chance(500) {
                    // The two thresholds are at most one packet apart, so a pause and its end may be due at
                    // the same time. The headroom holds the packets that arrive before a pause has its effect
                    // (2 * 5 us at 100 Gb/s are 125 kB), so that pauses act instead of losses.
                    headroom = 200_000;
                    pause = thresholds.log_range(2_000, 50_000);
                    resume = pause - thresholds.pick(&[1, 500, 1500]);
                }
                format!(
                    "buffer = \"unlimited\"\n\
                     pfc = {{ pause = \"{pause}B\", resume = \"{resume}B\", headroom = \"{headroom}B\" }}\n"
                )
            }
            Ports::Other => match draw.range(0, 5) {
                0 => {
                    let (size, alpha) = (4 * buffer, draw.pick(&[0.25, 1.0, 8.0]));
                    format!("shared = {{ size = \"{size}B\", alpha = {alpha:.2} }}\n")
                }
                1 => "buffer = \"unlimited\"\n".to_owned(),
                _ => {
                    limited = true;
                    format!("buffer = \"{buffer}B\"\n")
                }
            },
        };
        let mut classes: Names = &[];
        if ports == Ports::Trimming {
            classes = &["data"];
            let _ = write!(
                table,
                "\n[[topology.class]]\nname = \"headers\"\nlimit = \"{}B\"\n\n\
                 [[topology.class]]\nname = \"data\"\npriority = 1\nlimit = \"{buffer}B\"\ntrim_to = \"headers\"\n\
                 {marks}",
                2 * buffer
            );
        } else {
            table += &marks;
            if algorithm.divides_by_class() && draw.chance(300) {
                classes = &["first", "second"];
                table += &two_classes(draw, buffer);
            }
        }
        let (trims, pauses) = (ports == Ports::Trimming, ports == Ports::Pausing);
        Self { hosts, classes, trims, pauses, limited, links, switches, table }
    }
}

/// Draws the classes "first" and "second", with or without equal priority.
fn two_classes(draw: &mut Draw, buffer: u64) -> String {
    let equal = draw.chance(500);
    // One class carries acknowledgements, so that no class is without packets.
    let mut table = "ack_class = \"second\"\n".to_owned();
    if equal {
        let _ = writeln!(table, "scheduler = \"{}\"", draw.pick(&["stfq", "drr"]));
    }
    let first_is_served_first = draw.chance(500);
    for name in ["first", "second"] {
        let _ = write!(table, "\n[[topology.class]]\nname = \"{name}\"\n");
        if equal {
            let _ = writeln!(table, "weight = {}", draw.pick(&[1, 4, 10]));
        } else {
            let priority = u8::from((name == "first") != first_is_served_first);
            let _ = writeln!(table, "priority = {priority}");
        }
        if draw.chance(300) {
            // A slow link leaves a quarter of the limit, which is enough for one packet.
            let _ = writeln!(table, "limit = \"{}B\"", (buffer / 2).max(20_000));
        }
    }
    table
}

/// Texts that match links or switches in the table of a fault.
type Names = &'static [&'static str];

/// Draws a topology: its keys, its number of hosts, and texts that match its links and switches.
fn shape(draw: &mut Draw, later: &mut Draw) -> (String, u64, Names, Names) {
    match draw.range(0, 4) {
        0 => {
            let hosts = draw.range(3, 10);
            let shape = format!("kind = \"star\"\nhosts = {hosts}\n");
            (shape, hosts, &["host 0 -> *", "* -> host 1", "host 2 <-> *"], &["switch 0"])
        }
        1 => {
            let (left, right) = (draw.range(1, 5), draw.range(2, 5));
            let shape = format!("kind = \"dumbbell\"\nleft = {left}\nright = {right}\n");
            (
                shape,
                left + right,
                &["left -> right", "left <-> right", "* -> host 0"],
                &["left", "right"],
            )
        }
        2 => {
            let (leaves, spines, hosts) = (draw.range(2, 3), draw.range(1, 4), draw.range(2, 4));
            let (leaves, hosts) = if later.chance(300) { (hosts, 1) } else { (leaves, hosts) };
            let shape = format!(
                "kind = \"leaf-spine\"\nleaves = {leaves}\nspines = {spines}\nhosts_per_leaf = {hosts}\n"
            );
            (
                shape,
                leaves * hosts,
                &["leaf 0 <-> spine 0", "leaf * -> spine *", "spine 0 -> leaf 1"],
                &["spine 0", "leaf *"],
            )
        }
        3 => {
            let hosts = draw.range(1, 2);
            let shape = format!("kind = \"fat-tree\"\nk = 4\nhosts_per_edge = {hosts}\n");
            (
                shape,
                8 * hosts,
                &["edge 0 <-> agg 0", "agg * -> core *", "core 1 -> agg *"],
                &["core *", "agg *", "edge 0"],
            )
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
                &["switch 0", "switch *"],
            )
        }
    }
}

/// Draws a fault of links or switches, once or repeatedly, within this range of time in microseconds.
pub(super) fn fault(draw: &mut Draw, fabric: &Fabric, within: Range<u64>) -> String {
    let of_switch = draw.chance(200);
    let name = draw.pick(if of_switch { fabric.switches } else { fabric.links });
    let at = draw.range(within.start, within.end - 4);
    let until = draw.range(at + 3, within.end - 1);
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
    let unit = if of_switch { "switch" } else { "link" };
    let mut table =
        format!("[[fault]]\n{unit} = \"{name}\"\n{kind}at = \"{at}us\"\nuntil = \"{until}us\"\n");
    if draw.chance(300) {
        // A link or switch that flaps.
        let every = ((until - at) / draw.range(1, 5)).max(2);
        let lasts = draw.range(1, every - 1);
        let spacing = draw.pick(&["fixed", "random"]);
        let _ = write!(
            table,
            "every = \"{every}us\"\nlasts = \"{lasts}us\"\nspacing = \"{spacing}\"\n"
        );
    }
    if name.contains('*') && draw.chance(400) {
        let _ = writeln!(table, "share = {}", draw.pick(&[0.2, 0.5]));
        if kind.contains("down") && draw.chance(500) {
            table += "keep_paths = true\n";
        }
    }
    table
}
