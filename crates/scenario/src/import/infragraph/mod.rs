//! InfraGraph (Keysight's package `infragraph`, schema 2.4 to 3.1): devices of components, instances of devices, and
//! edges between components of instances, as YAML or JSON.
//!
//! A device that contains an `xpu` or a `nic`, directly or in an inner device, is a server; every other device
//! is a switch. Each component of a server that an edge of the infrastructure connects is a host. Hosts are
//! numbered by instance, index of the instance, and component, in the order of the file. A switch is one node.
//! Edges within devices are left out.

mod schema;

use std::collections::{BTreeMap, btree_map::Entry};
use std::str::FromStr;

use apus_units::{ParseQuantityError, Rate, Span, shorten};
use serde_saphyr::Spanned;

use super::graph::{End, Graph, GraphLink, MAX_LINKS};
use super::text::{ImportError, wrong};
use schema::{Choice, Component, Device, Endpoint, Infrastructure, Link, Scheme};

/// Maximum depth of devices within devices. Deviation: the schema has no limit; its blueprints have depth 3.
const MAX_DEPTH: usize = 16;
/// Maximum number of edges, repeated ones included. Rationale: one or two seconds of reading.
const MAX_EDGES: u64 = 4 * MAX_LINKS;

/// Reads a topology.
///
/// # Errors
/// An error with line and remedy.
pub fn parse_topology(text: &str) -> Result<Graph, ImportError> {
    let options = serde_saphyr::options! {
        with_snippet: false,
        // Enough for MAX_LINKS edges, each with 15 keys and values.
        budget: serde_saphyr::budget! { max_nodes: 20_000_000, max_events: 40_000_000 },
    };
    let read = serde_saphyr::from_str_with_options::<Infrastructure>(text, options);
    let infrastructure = read.or_else(|error| {
        let line = error.location().map_or(1, |location| location.line().max(1) as usize);
        wrong(line, format!("not a topology of InfraGraph: {error}"))
    })?;
    Reader::new(&infrastructure)?.read()
}

/// A component of an instance.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    /// Index of the instance in the file.
    instance: usize,
    /// Index of the instance.
    index: u32,
    /// Position and index of the component, from the outermost device inwards.
    path: Vec<(usize, u32)>,
}

struct Reader<'a> {
    infrastructure: &'a Infrastructure,
    /// Indices of the instances in the file, by name.
    instances: BTreeMap<&'a str, usize>,
    devices: BTreeMap<&'a str, Known<'a>>,
    links: BTreeMap<&'a str, &'a Link>,
}

/// A device.
struct Known<'a> {
    device: &'a Device,
    is_server: bool,
    /// Positions of its components, by name; the first one counts.
    components: BTreeMap<&'a str, usize>,
}

impl<'a> Known<'a> {
    fn new(device: &'a Device, is_server: bool) -> Self {
        let mut components = BTreeMap::new();
        for (place, component) in device.components.iter().enumerate() {
            components.entry(component.name.value.as_str()).or_insert(place);
        }
        Self { device, is_server, components }
    }
}

/// Edges by the two components that they join: their order in the file, and their link.
type Edges<'a> = BTreeMap<(Place, Place), (usize, &'a Link)>;

impl<'a> Reader<'a> {
    fn new(infrastructure: &'a Infrastructure) -> Result<Self, ImportError> {
        let named = named("device", infrastructure.devices.iter().map(|one| (&one.name, one)))?;
        let mut kinds = Kinds { devices: &named, known: BTreeMap::new(), visits: 0 };
        let mut devices = BTreeMap::new();
        for (name, device) in &named {
            devices.insert(*name, Known::new(device, kinds.of(device, MAX_DEPTH)?.is_server));
        }
        let links = self::named("link", infrastructure.links.iter().map(|one| (&one.name, one)))?;
        self::named("instance", infrastructure.instances.iter().map(|one| (&one.name, one)))?;
        let instances = infrastructure.instances.iter().zip(0..);
        let instances = instances.map(|(one, place)| (one.name.value.as_str(), place)).collect();
        Ok(Self { infrastructure, instances, devices, links })
    }

    fn read(&self) -> Result<Graph, ImportError> {
        let edges = self.edges()?;
        let mut hosts: BTreeMap<&Place, u32> = BTreeMap::new();
        for place in edges.keys().flat_map(|(a, b)| [a, b]) {
            if self.device(place.instance)?.is_server {
                hosts.insert(place, 0);
            }
        }
        for (number, host) in (0..).zip(hosts.values_mut()) {
            *host = number;
        }
        let mut graph = Graph { hosts: hosts.values().copied().collect(), ..Graph::default() };
        let mut first_of = Vec::new();
        for (place, instance) in self.infrastructure.instances.iter().enumerate() {
            let before = graph.switches.len();
            first_of.push(before as u32);
            if !self.device(place)?.is_server {
                let switches = before as u64 + u64::from(instance.count);
                check_count(line_of(&instance.name), "switches", switches)?;
                let name = |index| format!("{}.{index}", instance.name.value);
                graph.switches.extend((0..instance.count).map(name));
            }
        }
        let end = |place: &Place| match hosts.get(place) {
            Some(host) => End::Host(*host),
            None => End::Switch(first_of[place.instance] + place.index),
        };
        let mut links: Vec<_> = edges.iter().collect();
        links.sort_by_key(|(_, (order, _))| *order);
        for ((a, b), (_, link)) in links {
            let (rate, delay) = rate_and_delay(link)?;
            let (a, b) = (end(a), end(b));
            let (a, b) = if matches!(b, End::Host(_)) { (b, a) } else { (a, b) };
            graph.links.push(GraphLink { a, b, rate, delay });
        }
        graph.left_out = Some(
            "the topology is the network between devices: every connected component of a server is a host; \
             links within servers and switches are left out, so that messages between hosts of a \
             server pass the network"
                .to_owned(),
        );
        Ok(graph)
    }

    /// Returns the edges between components, each once as in InfraGraph's own graph, with their position in the
    /// file and their link.
    fn edges(&self) -> Result<Edges<'a>, ImportError> {
        let mut edges = BTreeMap::new();
        // Number of edges, repeated ones included, and of components that endpoints name.
        let (mut all, mut named) = (0, 0);
        for edge in &self.infrastructure.edges {
            let line = line_of(&edge.link);
            let Some(link) = self.links.get(edge.link.value.as_str()) else {
                let name = shorten(&edge.link.value);
                return wrong(line, format!("unknown link `{name}`; define it in `links`"));
            };
            let (from, to) =
                (self.places(&edge.ep1, &mut named)?, self.places(&edge.ep2, &mut named)?);
            let mut pairs = Vec::new();
            match edge.scheme {
                Some(Scheme::One2one) => pairs.extend(from.into_iter().zip(to)),
                Some(Scheme::Many2many) => {
                    check_count(line, "edges", from.len() as u64 * to.len() as u64)?;
                    for a in &from {
                        pairs.extend(to.iter().map(|b| (a.clone(), b.clone())));
                    }
                }
                Some(Scheme::Ring) | None => {
                    return wrong(line, "the scheme must be `one2one` or `many2many`");
                }
            }
            all += pairs.len() as u64;
            if all > MAX_EDGES {
                let most = MAX_EDGES;
                let message = format!(
                    "{all} edges with repeated ones; a topology has at most {most}: remove those that repeat others"
                );
                return wrong(line, message);
            }
            for (a, b) in pairs {
                if a == b {
                    continue;
                }
                let (order, key) = (edges.len(), if a < b { (a, b) } else { (b, a) });
                match edges.entry(key) {
                    Entry::Vacant(entry) => {
                        entry.insert((order, *link));
                    }
                    Entry::Occupied(entry) if entry.get().1.name.value != link.name.value => {
                        let (first, second) = (&entry.get().1.name.value, &link.name.value);
                        let message = format!(
                            "an edge has link `{}`, but an earlier edge between the same components has `{}`; remove \
                             one",
                            shorten(second),
                            shorten(first)
                        );
                        return wrong(line, message);
                    }
                    Entry::Occupied(_) => {}
                }
            }
            check_count(line, "edges", edges.len() as u64)?;
        }
        Ok(edges)
    }

    /// Returns the components of an endpoint, in InfraGraph's order. Adds the number of places created in the
    /// process to `named`.
    fn places(&self, endpoint: &Endpoint, named: &mut u64) -> Result<Vec<Place>, ImportError> {
        let line = line_of(&endpoint.instance);
        let (name, slice) = name_and_slice(line, &endpoint.instance.value)?;
        let Some(&instance) = self.instances.get(name) else {
            let message = format!("unknown instance `{}`; define it in `instances`", shorten(name));
            return wrong(line, message);
        };
        let mut of = self.device(instance)?;
        let indices = indices(line, name, slice, self.infrastructure.instances[instance].count)?;
        let place = |index| Place { instance, index, path: Vec::new() };
        let mut places: Vec<Place> = indices.into_iter().map(place).collect();
        let line = line_of(&endpoint.component);
        let (mut ended, mut most) = (false, places.len());
        for (depth, element) in endpoint.component.value.split('.').enumerate() {
            let (name, slice) = name_and_slice(line, element)?;
            let found = of.components.get(name).copied();
            let Some(component) = found.filter(|_| !ended) else {
                // The path may begin with the name of the device itself.
                if depth == 0 && slice.is_none() && name == of.device.name.value {
                    continue;
                }
                let (name, of) = (shorten(name), shorten(&of.device.name.value));
                return wrong(line, format!("device `{of}` has no component `{name}`"));
            };
            let Component { name, count, choice } = &of.device.components[component];
            let indices = self::indices(line, &name.value, slice, *count)?;
            check_count(line, "components", places.len() as u64 * indices.len() as u64)?;
            let mut longer = Vec::with_capacity(places.len() * indices.len());
            for place in places {
                longer.extend(indices.iter().map(|index| {
                    let mut place = place.clone();
                    place.path.push((component, *index));
                    place
                }));
            }
            places = longer;
            most = most.max(indices.len()).max(places.len());
            match self.devices.get(name.value.as_str()) {
                Some(inner) if *choice == Choice::Device => of = inner,
                _ => ended = true,
            }
        }
        // An edge between an endpoint with many components and one with few has only few pairs.
        *named += most as u64;
        if *named > 2 * MAX_EDGES {
            let message = format!(
                "the edges so far have endpoints of {named} components; at most {} are read: name those that an edge joins only",
                2 * MAX_EDGES
            );
            return wrong(line, message);
        }
        Ok(places)
    }

    /// Returns the device of an instance.
    fn device(&self, instance: usize) -> Result<&Known<'a>, ImportError> {
        let instance = &self.infrastructure.instances[instance];
        check_count(line_of(&instance.name), "instances", u64::from(instance.count))?;
        let device = &instance.device;
        self.devices.get(device.value.as_str()).map_or_else(
            || {
                let name = shorten(&device.value);
                wrong(line_of(device), format!("unknown device `{name}`; define it in `devices`"))
            },
            Ok,
        )
    }
}

/// Returns elements by name.
fn named<'a, T>(
    what: &str,
    things: impl Iterator<Item = (&'a Spanned<String>, &'a T)>,
) -> Result<BTreeMap<&'a str, &'a T>, ImportError> {
    let mut found = BTreeMap::new();
    for (name, thing) in things {
        // These become names of switches in scenarios and results; an instance's name gets a point and an index
        // appended.
        let allowed = |c: char| c.is_ascii_alphanumeric() || "-_ ".contains(c);
        let (line, text) = (line_of(name), &name.value);
        if text.trim() != text || !(1..=50).contains(&text.len()) || !text.chars().all(allowed) {
            let must = "a name must have 1 to 50 letters, digits, spaces, `-` or `_`";
            return wrong(line, format!("{what} `{}`: {must}", shorten(text)));
        }
        if found.insert(text.as_str(), thing).is_some() {
            return wrong(line, format!("{what} `{}` is defined twice", shorten(text)));
        }
    }
    Ok(found)
}

/// The known properties of a device.
#[derive(Clone, Copy)]
struct Kind {
    /// Whether the device, or a device within it, has an `xpu` or a `nic`.
    is_server: bool,
    /// Largest number of nested devices, the device itself included.
    depth: usize,
}

/// Finds the kind of each device once, since components may name the same device many times.
struct Kinds<'a> {
    devices: &'a BTreeMap<&'a str, &'a Device>,
    /// Kinds by name; `None` while the kinds of the components are being found.
    known: BTreeMap<&'a str, Option<Kind>>,
    /// Number of devices whose components were read.
    visits: usize,
}

impl<'a> Kinds<'a> {
    /// Returns the kind of a device that may be `most` devices deep.
    fn of(&mut self, device: &'a Device, most: usize) -> Result<Kind, ImportError> {
        let (line, name) = (line_of(&device.name), device.name.value.as_str());
        let too_deep = || {
            let name = shorten(name);
            let why = format!(
                "device `{name}` is one of more than {MAX_DEPTH} devices within each other; at most {MAX_DEPTH} are read"
            );
            wrong(line, why)
        };
        match self.known.get(name) {
            Some(Some(kind)) => return Ok(*kind),
            Some(None) => {
                return wrong(line, format!("device `{}` contains itself", shorten(name)));
            }
            None if most == 0 => return too_deep(),
            None => {}
        }
        self.known.insert(name, None);
        self.visits += 1;
        let mut found = Kind { is_server: false, depth: 1 };
        for component in &device.components {
            match component.choice {
                Choice::Xpu | Choice::Nic => found.is_server = true,
                Choice::Device => {
                    let name = component.name.value.as_str();
                    let Some(inner) = self.devices.get(name) else {
                        let (line, name) = (line_of(&component.name), shorten(name));
                        let why = format!("unknown device `{name}`; define it in `devices`");
                        return wrong(line, why);
                    };
                    let inner = self.of(inner, most - 1)?;
                    found.is_server |= inner.is_server;
                    found.depth = found.depth.max(inner.depth + 1);
                }
                Choice::Custom | Choice::Cpu | Choice::Memory | Choice::Port | Choice::Switch => {}
            }
        }
        if found.depth > MAX_DEPTH {
            return too_deep();
        }
        self.known.insert(name, Some(found));
        Ok(found)
    }
}

/// Splits `nic[0:2]` into `nic` and `0:2`.
fn name_and_slice(line: usize, text: &str) -> Result<(&str, Option<&str>), ImportError> {
    match text.split_once('[') {
        None => Ok((text, None)),
        Some((name, rest)) => match rest.strip_suffix(']') {
            Some(slice) => Ok((name, Some(slice))),
            None => wrong(line, format!("`{}` lacks `]` at its end", shorten(text))),
        },
    }
}

/// Returns the indices of a slice in Python's notation; without a slice, all indices.
fn indices(
    line: usize,
    name: &str,
    slice: Option<&str>,
    count: u32,
) -> Result<Vec<u32>, ImportError> {
    check_count(line, name, u64::from(count))?;
    let text = slice.unwrap_or_default();
    let number = |word: &str, default: u32| {
        // Negative numbers count from the end.
        let number = match word.trim() {
            "" => Some(i64::from(default)),
            word => word.parse::<i64>().ok().map(|n| if n < 0 { n + i64::from(count) } else { n }),
        };
        number.and_then(|number| u32::try_from(number).ok()).filter(|number| *number <= count)
    };
    let words: Vec<&str> = text.split(':').collect();
    let range = match words.as_slice() {
        [""] => Some((0, count, 1)),
        [index] => number(index, 0).map(|index| (index, index + 1, 1)),
        [start, stop] => number(start, 0).zip(number(stop, count)).map(|(a, b)| (a, b, 1)),
        [start, stop, step] => {
            let step = if step.is_empty() { Some(1) } else { step.parse().ok() };
            let range = number(start, 0).zip(number(stop, count));
            range.zip(step).map(|((a, b), step): (_, usize)| (a, b, step))
        }
        _ => None,
    };
    match range {
        Some((start, stop, step)) if stop <= count && step > 0 => {
            Ok((start..stop).step_by(step).collect())
        }
        _ => {
            let (name, text) = (shorten(name), shorten(text));
            let must = "write an index, or first:end or first:end:step, within that number";
            wrong(line, format!("`{name}[{text}]`: there are {count} of `{name}`; {must}"))
        }
    }
}

/// Returns rate and propagation delay of a link.
fn rate_and_delay(link: &Link) -> Result<(Rate, Span), ImportError> {
    let (line, name) = (line_of(&link.name), shorten(&link.name.value));
    let physical = link.physical.as_ref();
    let rate =
        physical.and_then(|physical| physical.bandwidth.as_ref()).and_then(|bandwidth| {
            match (bandwidth.gigabits_per_second, bandwidth.gigabytes_per_second) {
                (Some(gigabits), None) => Some(gigabits),
                (None, Some(gigabytes)) => Some(gigabytes * 8.0),
                _ => None,
            }
        });
    let Some(rate) = rate else {
        let must =
            "`physical.bandwidth` with either `gigabits_per_second` or `gigabytes_per_second`";
        return wrong(line, format!("link `{name}` needs {must}"));
    };
    let delay =
        physical.and_then(|physical| physical.latency.as_ref()).and_then(|latency| {
            match (latency.ms, latency.us, latency.ns) {
                (Some(ms), None, None) => Some(format!("{ms}ms")),
                (None, Some(us), None) => Some(format!("{us}us")),
                (None, None, Some(ns)) => Some(format!("{ns}ns")),
                _ => None,
            }
        });
    let Some(delay) = delay else {
        let must = "`physical.latency` with one of `ms`, `us` and `ns`, the propagation delay";
        return wrong(line, format!("link `{name}` needs {must}"));
    };
    let rate = quantity::<Rate>(link, &format!("{rate}Gbps"))?;
    if rate.as_bps() < 1_000 {
        return wrong(
            line,
            format!("link `{name}`: the rate is {rate}; it must be at least 1kbps"),
        );
    }
    Ok((rate, quantity(link, &delay)?))
}

/// Reads a rate or a time of a link.
fn quantity<T: FromStr<Err = ParseQuantityError>>(
    link: &Link,
    text: &str,
) -> Result<T, ImportError> {
    text.parse().or_else(|why| {
        let name = shorten(&link.name.value);
        wrong(line_of(&link.name), format!("link `{name}`: {why}"))
    })
}

fn check_count(line: usize, what: &str, count: u64) -> Result<(), ImportError> {
    if count <= MAX_LINKS {
        return Ok(());
    }
    wrong(line, format!("{count} {}; a topology has at most {MAX_LINKS}", shorten(what)))
}

fn line_of(text: &Spanned<String>) -> usize {
    text.referenced.line() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each of 15 devices has 4 components of the next one, so that there are 4^14 ways to the last.
    #[test]
    fn each_device_is_read_once_however_often_it_is_named() {
        let device = |n: usize| {
            let component = match n {
                14 => r#"{ "name": "card", "count": 1, "choice": "nic" }"#.to_owned(),
                _ => format!(r#"{{ "name": "d{}", "count": 1, "choice": "device" }}"#, n + 1),
            };
            let components = vec![component; 4].join(",");
            format!(r#"{{ "name": "d{n}", "components": [{components}] }}"#)
        };
        let text = format!("[{}]", (0..15).map(device).collect::<Vec<_>>().join(","));
        let devices: Vec<Device> = serde_saphyr::from_str(&text).expect("devices");
        let named = devices.iter().map(|device| (device.name.value.as_str(), device)).collect();
        let mut kinds = Kinds { devices: &named, known: BTreeMap::new(), visits: 0 };
        for device in &devices {
            assert!(kinds.of(device, MAX_DEPTH).expect("a kind").is_server);
        }
        assert_eq!(kinds.visits, 15);
    }
}
