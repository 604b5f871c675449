//! Topology and load of a run in plain words.

use toml::{Table, Value};

/// Maximum number of hosts that a line names individually.
const NAMED: usize = 8;

/// Returns a description of a workload: "calls: 17 hosts send to each other at random times, each 10 % of its link;
/// writes of 4 kB". Returns `None` for a kind without a description.
pub(super) fn workload(table: &Table) -> Option<String> {
    let text = |key: &str| table.get(key).map(short).filter(|text| !text.is_empty());
    let is = |key: &str, value: &str| table.get(key).and_then(Value::as_str) == Some(value);
    let hosts = |key: &str| table.get(key).map(hosts);
    let who = match text("kind")?.as_str() {
        "poisson" => {
            let load = table.get("load").map(percent)?;
            match hosts("receiver") {
                Some(to) => {
                    let from = hosts("senders").unwrap_or_else(|| "all other hosts".to_owned());
                    format!("{from} send to {to} at random times, together {load} of its link")
                }
                None => {
                    let from = hosts("hosts").unwrap_or_else(|| "all hosts".to_owned());
                    let to =
                        if is("to", "other-racks") { "hosts of other racks" } else { "each other" };
                    format!("{from} send to {to} at random times, each {load} of its link")
                }
            }
        }
        "incast" => {
            let from = hosts("senders").unwrap_or_else(|| "all other hosts".to_owned());
            format!("{from} send to {} at once", hosts("receiver")?)
        }
        "permutation" => {
            let from = hosts("hosts").unwrap_or_else(|| "all hosts".to_owned());
            format!("{from}, each to one other at random")
        }
        "all-to-all" if table.get("pattern").is_none() => {
            let from = hosts("hosts").unwrap_or_else(|| "all hosts".to_owned());
            format!("{from}, each to every other one")
        }
        "flows" => match table.get("flow").and_then(Value::as_array)?.as_slice() {
            [Value::Table(one)] => format!("host {} to host {}", one.get("from")?, one.get("to")?),
            all => format!("{} pairs of hosts", all.len()),
        },
        _ => return None,
    };
    let op = match text("op").as_deref() {
        Some("read") => "reads",
        Some("message") => "messages",
        _ => "writes",
    };
    let size = match (text("size"), table.get("sizes")) {
        (Some(size), _) => format!(" of {size}"),
        (None, Some(Value::String(name))) => format!(" of sizes “{name}”"),
        _ => " of several sizes".to_owned(),
    };
    let mut parts = vec![format!("{who}; {op}{size}")];
    match table.get("outstanding").map(short).as_deref() {
        None => {}
        Some("1") => parts.push("the next when one has ended".to_owned()),
        Some(count) => parts.push(format!("{count} at a time")),
    }
    match table.get("flows_per_pair").map(short).as_deref() {
        None | Some("1") => {}
        Some(count) => parts.push(format!("{count} flows per pair of hosts")),
    }
    if is("flows", "per-op") {
        parts.push("a flow for each".to_owned());
    }
    for (key, word) in
        [("start", "from"), ("stop", "until"), ("every", "every"), ("deadline", "due after")]
    {
        parts.extend(
            text(key).filter(|time| time != "0\u{a0}s").map(|time| format!("{word} {time}")),
        );
    }
    for (key, word) in [("class", "class"), ("balancer", "paths"), ("algorithm", "algorithm")] {
        parts.extend(text(key).map(|name| format!("{word} {name}")));
    }
    let name = text("name").map(|name| format!("{name}: ")).unwrap_or_default();
    Some(name + &parts.join(", "))
}

/// Returns a description of a topology: "leaf-spine: 4 leaves of 8 hosts, 4 spines; 100 Gb/s, 1 us and 2 MB per port".
/// Returns `None` for a kind without a description.
pub(super) fn topology(table: &Table) -> Option<String> {
    let text = |key: &str| table.get(key).map(short);
    let shape = match text("kind")?.as_str() {
        "star" => format!("star: {} hosts on one switch", text("hosts")?),
        "dumbbell" => {
            format!("dumbbell: {} and {} hosts on two switches", text("left")?, text("right")?)
        }
        "leaf-spine" => format!(
            "leaf-spine: {} leaves of {} hosts, {} spines",
            text("leaves")?,
            text("hosts_per_leaf")?,
            text("spines")?
        ),
        "fat-tree" => match (
            table.get("k").and_then(Value::as_integer),
            table.get("hosts_per_edge").and_then(Value::as_integer),
        ) {
            (Some(k), per_edge) => format!(
                "fat-tree: k = {k}, {} hosts in {k} pods",
                k * k / 2 * per_edge.unwrap_or(k / 2)
            ),
            _ => format!("fat-tree: k = {}", text("k")?),
        },
        _ => return None,
    };
    let mut parts = vec![format!("{shape}; links of {}, {} each", text("rate")?, text("delay")?)];
    parts.extend(text("buffer").map(|buffer| format!("buffers of {buffer} per port")));
    for key in ["uplink", "aggregation", "core", "middle"] {
        let Some(Value::Table(link)) = table.get(key) else { continue };
        let own = ["rate", "delay", "buffer"].into_iter();
        let own =
            own.filter_map(|key| link.get(key).filter(|value| Some(*value) != table.get(key)));
        let own: Vec<String> = own.map(short).collect();
        if !own.is_empty() {
            parts.push(format!("{key} links {}", own.join(" and ")));
        }
    }
    parts.extend(text("planes").filter(|planes| planes != "1").map(|n| format!("{n} planes")));
    parts.extend(text("oversubscription").map(|n| format!("oversubscription {n}")));
    if let Some(Value::Table(ecn)) = table.get("ecn") {
        let from = ecn.get("threshold").or_else(|| ecn.get("k_min")).map(short);
        parts.push(from.map_or_else(|| "ECN".to_owned(), |size| format!("ECN from {size}")));
    }
    if table.contains_key("pfc") {
        parts.push("PFC".to_owned());
    }
    if let Some(classes) = table.get("class").and_then(Value::as_array) {
        parts.push(format!("{} traffic classes", classes.len()));
    }
    Some(parts.join(", "))
}

/// Returns a value in the usual notation: `100Gbps` becomes "100 Gb/s".
pub(super) fn short(value: &Value) -> String {
    match value {
        Value::String(text) => spaced(text),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Array(all) => match &all[..] {
            [] => String::new(),
            [one] => short(one),
            all => format!("{} values", all.len()),
        },
        _ => String::new(),
    }
}

/// Returns a quantity with a space before its unit, and other text unchanged.
pub(super) fn spaced(text: &str) -> String {
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
    let Some((number, unit)) = end.filter(|end| *end > 0).map(|end| text.split_at(end)) else {
        return text.to_owned();
    };
    let unit = match unit {
        "kbps" => "kb/s",
        "Mbps" => "Mb/s",
        "Gbps" => "Gb/s",
        "Tbps" => "Tb/s",
        "us" => "µs",
        "s" | "ms" | "ns" | "ps" | "B" | "kB" | "MB" | "GB" | "KiB" | "MiB" | "GiB" => unit,
        _ => return text.to_owned(),
    };
    format!("{number}\u{a0}{unit}")
}

/// Returns the hosts of a workload: a few hosts by number, more by their count.
fn hosts(value: &Value) -> String {
    match value {
        Value::Integer(host) => format!("host {host}"),
        Value::Array(all) if all.len() == 1 => format!("host {}", all[0]),
        Value::Array(all) if all.len() <= NAMED => {
            let names: Vec<String> = all.iter().map(short).collect();
            format!("hosts {}", names.join(", "))
        }
        Value::Array(all) => format!("{} hosts", all.len()),
        other => short(other),
    }
}

fn percent(load: &Value) -> String {
    match load {
        Value::Float(load) => format!("{}\u{a0}%", crate::text::number(load * 100.0)),
        Value::Integer(load) => format!("{}\u{a0}%", load * 100),
        other => short(other),
    }
}

#[cfg(test)]
mod tests {
    use super::{spaced, topology, workload};

    fn words(of: fn(&toml::Table) -> Option<String>, table: &str) -> Option<String> {
        of(&toml::from_str(table).expect("TOML")).map(|text| text.replace('\u{a0}', " "))
    }

    #[test]
    fn workloads_are_said_in_words() {
        let poisson = "kind = \"poisson\"\nname = \"calls\"\nload = 0.1\nsize = \"4kB\"\nhosts = [0, 1, 2]\nflows_per_pair = 1\n";
        assert_eq!(
            words(workload, poisson).as_deref(),
            Some(
                "calls: hosts 0, 1, 2 send to each other at random times, each 10 % of its link; writes of 4 kB"
            )
        );
        let incast = "kind = \"incast\"\nsenders = [0, 1, 2, 3, 4, 6, 7, 8, 9]\nreceiver = [5]\nsize = \"1MB\"\noutstanding = 2\nstart = \"0s\"\nstop = \"20us\"\n";
        assert_eq!(
            words(workload, incast).as_deref(),
            Some("9 hosts send to host 5 at once; writes of 1 MB, 2 at a time, until 20 µs")
        );
        let ring = "kind = \"all-reduce\"\nsize = \"1GB\"\n";
        assert_eq!(words(workload, ring), None);
    }

    /// A fat-tree of k-port switches has k³/4 hosts: 16 for k = 4.
    #[test]
    fn topologies_are_said_in_words() {
        let tree = "kind = \"fat-tree\"\nk = 4\nrate = \"100Gbps\"\ndelay = \"1us\"\nbuffer = \"2MB\"\ncore = { rate = \"400Gbps\", delay = \"1us\", buffer = \"2MB\" }\n";
        assert_eq!(
            words(topology, tree).as_deref(),
            Some(
                "fat-tree: k = 4, 16 hosts in 4 pods; links of 100 Gb/s, 1 µs each, buffers of 2 MB per port, core links 400 Gb/s"
            )
        );
    }

    #[test]
    fn only_quantities_have_a_blank_before_their_unit() {
        let all = ["100Gbps", "2MB", "25us", "4x", "swift", "0.5", "10 values"];
        let found = all.map(|text| spaced(text).replace('\u{a0}', " "));
        assert_eq!(found, ["100 Gb/s", "2 MB", "25 µs", "4x", "swift", "0.5", "10 values"]);
    }
}
