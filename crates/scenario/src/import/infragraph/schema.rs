//! The parts of InfraGraph's schema that are read.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_saphyr::Spanned;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Infrastructure {
    #[serde(default, rename = "name")]
    _name: IgnoredAny,
    #[serde(default, rename = "description")]
    _description: IgnoredAny,
    pub(super) devices: Vec<Device>,
    pub(super) links: Vec<Link>,
    pub(super) instances: Vec<Instance>,
    pub(super) edges: Vec<Edge>,
}

/// A kind of server or switch. Its own links and edges are not read.
#[derive(Deserialize)]
pub(super) struct Device {
    pub(super) name: Spanned<String>,
    pub(super) components: Vec<Component>,
}

#[derive(Deserialize)]
pub(super) struct Component {
    pub(super) name: Spanned<String>,
    pub(super) count: u32,
    pub(super) choice: Choice,
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(super) enum Choice {
    Custom,
    Device,
    Cpu,
    Xpu,
    Nic,
    Memory,
    Port,
    Switch,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Link {
    pub(super) name: Spanned<String>,
    #[serde(default, rename = "description")]
    _description: IgnoredAny,
    pub(super) physical: Option<Physical>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Physical {
    pub(super) bandwidth: Option<Bandwidth>,
    pub(super) latency: Option<Latency>,
}

/// One of the numbers is set; `choice` repeats its name.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Bandwidth {
    #[serde(default, rename = "choice")]
    _choice: IgnoredAny,
    pub(super) gigabits_per_second: Option<f64>,
    pub(super) gigabytes_per_second: Option<f64>,
    #[serde(rename = "gigatransfers_per_second")]
    _gigatransfers_per_second: Option<f64>,
}

/// One of the numbers is set; `choice` repeats its name.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Latency {
    #[serde(default, rename = "choice")]
    _choice: IgnoredAny,
    pub(super) ms: Option<f64>,
    pub(super) us: Option<f64>,
    pub(super) ns: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Instance {
    pub(super) name: Spanned<String>,
    #[serde(default, rename = "description")]
    _description: IgnoredAny,
    pub(super) device: Spanned<String>,
    pub(super) count: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Edge {
    pub(super) ep1: Endpoint,
    pub(super) ep2: Endpoint,
    pub(super) link: Spanned<String>,
    pub(super) scheme: Option<Scheme>,
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum Scheme {
    One2one,
    Many2many,
    Ring,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Endpoint {
    pub(super) instance: Spanned<String>,
    pub(super) component: Spanned<String>,
}
