//! `[algorithm]`: which algorithms the workloads use, with which parameters.

use apus_algorithms::{AlgorithmConfig, Registry};
use apus_cc::{
    AlgorithmFactory, CongestionHeader, Ecn, FlowInfo, NetworkInfo, ParamKind, SendInfo, Sender,
};
use apus_sim::switch_halves::has_switch_half;
use apus_units::{PacketNumber, Time, suggestion};

use super::declared::{Keys, Kind, key};
use super::label::{LABEL_RULE, is_label};
use super::section::Section;
use super::source::Problems;
use super::tree::{Node, Table, Value};

/// Keys of an algorithm in addition to its parameters.
pub(super) static ALGORITHM: Keys = Keys::of(&[
    key("name", Kind::Text, "Name of the algorithm, see below. Default: the label"),
    key(
        "profile",
        Kind::Text,
        "Profile of defaults. If not given, the first profile of the algorithm",
    ),
]);

/// An algorithm and the label by which workloads name it.
#[derive(Clone, Debug)]
pub(super) struct NamedAlgorithm {
    pub(super) label: String,
    pub(super) config: AlgorithmConfig,
}

/// Returns `true` if an algorithm needs marks set by the topology's `ecn`: its packets can be
/// marked, and its switch half, if any, does not mark. Other algorithms ignore marks.
pub(super) fn needs_marks(algorithm: &AlgorithmConfig) -> bool {
    let mut header = CongestionHeader::default();
    let first = SendInfo::new(Time::ZERO, PacketNumber::new(0));
    algorithm.sender(&FlowInfo::default()).on_transmit(&mut header, &first);
    header.ecn == Ecn::Capable && !has_switch_half(algorithm)
}

/// Returns `true` if an algorithm changes the paths of its flows (Falcon's PLB).
pub(super) fn changes_paths(algorithm: &AlgorithmConfig) -> bool {
    algorithm.info().name == "swift" && algorithm.profile() == "falcon"
}

/// Reads `[algorithm]`, or several `[algorithm.LABEL]`. `network` is called only if a parameter
/// depends on it.
pub(super) fn read(
    root: &Section<'_>,
    registry: Registry,
    network: &dyn Fn() -> Option<NetworkInfo>,
    problems: &Problems,
) -> Option<Vec<NamedAlgorithm>> {
    let Some(node) = root.node("algorithm") else {
        root.missing("algorithm", "a table like `[algorithm]` with `name = \"swift\"`");
        return None;
    };
    let Value::Table(table) = &node.value else {
        let message = format!(
            "`algorithm` must be a table like `algorithm = {{ name = \"swift\" }}`, not {}",
            node.value.describe()
        );
        problems.add(node.place, message);
        return None;
    };
    let several = !table.entries.is_empty()
        && table.entries.values().all(|entry| matches!(entry.node.value, Value::Table(_)));
    if !several {
        let config = read_one((table, "algorithm"), None, node, registry, network, problems)?;
        return Some(vec![NamedAlgorithm { label: config.info().name.to_owned(), config }]);
    }
    let mut named = Vec::new();
    for (label, entry) in &table.entries {
        let Value::Table(inner) = &entry.node.value else { continue };
        let path = format!("algorithm.{label}");
        if !is_label(label) {
            let message = format!("the label `{label}` must be {}", LABEL_RULE);
            problems.add(entry.key, message);
        }
        // The label names the algorithm unless `name` does.
        let config =
            read_one((inner, &path), Some(label), &entry.node, registry, network, problems);
        named.push(config.map(|config| NamedAlgorithm { label: label.clone(), config }));
    }
    named.into_iter().collect()
}

fn read_one(
    (table, path): (&Table, &str),
    label: Option<&str>,
    node: &Node,
    registry: Registry,
    network: &dyn Fn() -> Option<NetworkInfo>,
    problems: &Problems,
) -> Option<AlgorithmConfig> {
    let section = Section::new(table, &ALGORITHM, path, node.place, problems);
    let name: String = match (section.node("name"), label) {
        (None, Some(label)) => label.to_owned(),
        _ => section.require("name")?,
    };
    let Some(info) = registry.algorithms().find(|info| info.name == name) else {
        let hint = suggestion(&name, registry.algorithms().map(|info| info.name));
        let place = section.node("name").unwrap_or(node).place;
        problems.add(place, format!("unknown algorithm \"{name}\"{hint}"));
        return None;
    };
    let profile: Option<String> = match section.node("profile") {
        Some(_) => Some(section.get("profile")?),
        None => None,
    };
    let mut settings = Vec::new();
    for (key, entry) in &table.entries {
        if key == "name" || key == "profile" {
            continue;
        }
        let kind = info.parameters.iter().find(|p| p.name == key).map(|p| p.kind);
        match text_of(&entry.node.value, kind) {
            Ok(text) => settings.push((key.as_str(), text)),
            Err(why) => {
                let message = format!("`{path}.{key}` {why}");
                problems.add(entry.node.place, message);
                return None;
            }
        }
    }
    let borrowed: Vec<(&str, &str)> =
        settings.iter().map(|(key, text)| (*key, text.as_str())).collect();
    let wanted = profile.as_deref().unwrap_or(info.profiles[0].name);
    let open = |rule: &apus_cc::Derivation| {
        rule.profiles.contains(&wanted) && !table.entries.contains_key(rule.parameter)
    };
    let network = if registry.derivations(&name).iter().any(open) { network() } else { None };
    match registry.build_for(&name, profile.as_deref(), &borrowed, network.as_ref()) {
        Ok(config) => Some(config),
        Err(error) => {
            let key = error.parameter.as_deref().unwrap_or("profile");
            let unknown = info.parameters.iter().all(|p| p.name != key);
            let place = match table.entries.get(key) {
                Some(entry) if unknown => entry.key,
                Some(entry) => entry.node.place,
                None => node.place,
            };
            problems.add(place, error.message);
            None
        }
    }
}

/// A parameter as the table of algorithms reads it.
fn text_of(value: &Value, kind: Option<ParamKind>) -> Result<String, String> {
    match (value, kind) {
        (Value::Text(text), Some(ParamKind::Number | ParamKind::Count)) => {
            Err(format!("must be a number without quotes, not the text {text:?}"))
        }
        (Value::Text(text), Some(ParamKind::Flag)) => {
            Err(format!("must be true or false without quotes, not the text {text:?}"))
        }
        (Value::Text(text), _) => Ok(text.clone()),
        (Value::Integer(n), _) => Ok(n.to_string()),
        (Value::Float(x), _) => Ok(x.to_string()),
        (Value::Flag(flag), _) => Ok(flag.to_string()),
        (other, _) => Err(format!("must be a value, not {}", other.describe())),
    }
}
