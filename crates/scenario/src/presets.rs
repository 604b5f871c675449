//! Named clusters: a topology in one line with the numbers of a published one.

/// A named cluster.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// Name of the cluster, in place of a kind.
    pub name: &'static str,
    /// Description of the cluster, and the source of its numbers.
    pub doc: &'static str,
    /// The kind of topology for which the name stands.
    pub kind: &'static str,
    /// Settings in one line, which settings after the name in the scenario replace.
    pub settings: &'static str,
}

/// All named clusters. The scenario sets the numbers of nodes and leaves, since published clusters are larger
/// than most simulations. deviation: no source gives the buffer of a port; a topology in one line has 4 MB.
pub const PRESETS: [Preset; 8] = [
    Preset {
        name: "spectrum-x",
        doc: "rail-optimised: `nodes` with 8 GPUs and 8 x 400 Gb/s; leaf i connects NIC i of 64 nodes (64 ports down, 64 up); 0.5 us per link; NVLink with 2880 Gb/s and 25 ns (SimAI's template of Spectrum-X)",
        kind: "rails",
        settings: "nics=8 nodes_per_leaf=64 spines=64 rate=400Gbps delay=500ns scale_up_rate=2880Gbps scale_up_delay=25ns",
    },
    Preset {
        name: "rail-only",
        doc: "`nodes` with 8 H100 GPUs, without spines: messages to other rails cross NVLink first (arXiv 2307.12169); 8 x 400 Gb/s per node and NVLink with 450 GB/s per GPU (docs.nvidia.com); 0.5 us per link and 25 ns for NVLink (SimAI)",
        kind: "rails",
        settings: "nics=8 spines=0 rate=400Gbps delay=500ns scale_up_rate=3600Gbps scale_up_delay=25ns",
    },
    Preset {
        name: "hpn-7",
        doc: "dual plane: `nodes` with 8 NICs, each with 2 x 200 Gb/s to leaves of two planes; 128 nodes (1024 GPUs) per segment (HPN 7.0, SIGCOMM'24); delays and NVLink as in `spectrum-x`. deviation: 64 uplinks of 400 Gb/s per leaf, the same rate up as down",
        kind: "rails",
        settings: "nics=8 planes=2 nodes_per_leaf=128 spines=64 uplink={rate=\"400Gbps\"} rate=200Gbps delay=500ns scale_up_rate=2880Gbps scale_up_delay=25ns",
    },
    Preset {
        name: "mrc-8-planes",
        doc: "eight planes: NICs with 8 x 100 Gb/s, `leaves` with 512 ports, 256 down and 256 up (MRC, arXiv 2605.04333). 512 leaves have 131,072 hosts; a scenario has at most half of that number. deviation: 1 us per link, as in uet-htsim",
        kind: "leaf-spine",
        settings: "planes=8 hosts_per_leaf=256 spines=256 rate=100Gbps delay=1us",
    },
    Preset {
        name: "leaf-spine-4to1",
        doc: "oversubscribed 4:1: `leaves` with 32 hosts and 8 uplinks each, 100 Gb/s, 1 us per link (uet-htsim)",
        kind: "leaf-spine",
        settings: "hosts_per_leaf=32 oversubscription=4 rate=100Gbps delay=1us",
    },
    Preset {
        name: "leaf-spine-8to1",
        doc: "oversubscribed 8:1: `leaves` with 32 hosts and 4 uplinks each, 100 Gb/s, 1 us per link (uet-htsim)",
        kind: "leaf-spine",
        settings: "hosts_per_leaf=32 oversubscription=8 rate=100Gbps delay=1us",
    },
    Preset {
        name: "gb300-nvl72",
        doc: "scale-up domain of 72 GPUs with 900 GB/s per direction (docs.nvidia.com), modelled as a star without drops; 25 ns per link (SimAI)",
        kind: "star",
        settings: "hosts=72 rate=7200Gbps delay=25ns buffer=unlimited",
    },
    Preset {
        name: "hgx-h100",
        doc: "scale-up domain of 8 GPUs with 450 GB/s per direction (docs.nvidia.com), modelled as a star without drops; 25 ns per link (SimAI)",
        kind: "star",
        settings: "hosts=8 rate=3600Gbps delay=25ns buffer=unlimited",
    },
];
