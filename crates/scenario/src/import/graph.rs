//! Nodes and links as a file describes them.

use apus_units::{Rate, Span};

/// Nodes and links, in the numbering of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Graph {
    /// For each host its node number in the file; hosts are numbered in this order.
    pub hosts: Vec<u32>,
    /// Names of the switches.
    pub switches: Vec<String>,
    /// The links.
    pub links: Vec<GraphLink>,
    /// Time that a packet takes in a switch.
    pub pipeline_latency: Span,
    /// Elements of the file that the topology leaves out, as a sentence.
    pub left_out: Option<String>,
    /// If the file has NVSwitches: the servers whose GPUs are the hosts, or the reason why the GPUs form no
    /// servers.
    pub servers: Option<Result<Servers, String>>,
}

/// Servers of GPUs: `gpus` consecutive hosts form a server with an internal network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Servers {
    /// GPUs of a server.
    pub gpus: u32,
    /// Rate of a GPU in the network within its server, in each direction.
    pub rate: Rate,
    /// Propagation delay from GPU to GPU.
    pub delay: Span,
}

impl Graph {
    /// Returns the graph with a host for each server. The first ports of a host are those of its first GPU, and
    /// so on.
    ///
    /// # Errors
    /// If the file has no servers, or GPUs have different numbers of links.
    pub fn of_servers(mut self) -> Result<Self, String> {
        let gpus = match &self.servers {
            None => {
                return Err(
                    "has no servers: only SimAI's topologies with NVSwitches have".to_owned()
                );
            }
            Some(Err(why)) => return Err(format!("has no equal servers: {why}")),
            Some(Ok(servers)) => servers.gpus,
        };
        let gpu = |link: &GraphLink| match (link.a, link.b) {
            (End::Host(a), End::Switch(_)) => a,
            (End::Switch(_), End::Host(b)) => b,
            // Links between GPUs do not belong to a NIC.
            (End::Host(_), End::Host(_)) | (End::Switch(_), End::Switch(_)) => u32::MAX,
        };
        self.links.sort_by_key(gpu);
        let mut ports = vec![0_u32; self.hosts.len()];
        for link in &mut self.links {
            for end in [&mut link.a, &mut link.b] {
                if let End::Host(host) = end {
                    ports[*host as usize] += 1;
                    *host /= gpus;
                }
            }
        }
        if let Some(other) = ports.iter().position(|of| *of != ports[0]) {
            return Err(format!(
                "gives GPU {other} {} links to the network, but GPU 0 {}; with servers as hosts all GPUs need as many",
                ports[other], ports[0]
            ));
        }
        // Servers have no numbers in the file.
        self.hosts = (0..self.hosts.len() as u32 / gpus).collect();
        self.left_out = None;
        Ok(self)
    }
}

/// An end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// A host, by its index in [`Graph::hosts`].
    Host(u32),
    /// A switch, by its index in [`Graph::switches`].
    Switch(u32),
}

/// A link, equal in both directions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GraphLink {
    /// One end: the lower one if the topology has tiers.
    pub a: End,
    /// The other end.
    pub b: End,
    /// Rate in each direction.
    pub rate: Rate,
    /// Propagation delay in each direction.
    pub delay: Span,
}

/// Maximum number of links of a topology.
pub(crate) const MAX_LINKS: u64 = 1_000_000;
