//! `[[topology.class]]`: the traffic classes of every switch port.
use crate::set::ClassConfig;
use apus_algorithms::BuiltInSwitch;
use apus_fabric::SchedulerKind;
use apus_units::Bytes;

use super::declared::{Keys, Kind, key};
use super::ecn::ECN;
use super::ecn::Marking;
use super::label::{LABEL_RULE, is_label};
use super::section::Section;

/// Keys of `class`.
pub(super) static CLASS: Keys = Keys::of(&[
    key("name", Kind::Text, "Name of the class"),
    key("priority", Kind::Count, "Priority; 0 is served first").at_most(7).or("0"),
    key("weight", Kind::Count, "Share among the classes of the same priority")
        .within(1, 1_000)
        .or("1"),
    key("limit", Kind::Size, "Most bytes of the class in a port; no limit if not given"),
    key("ecn", Kind::Table(&ECN), "Marks of this class, in place of `topology.ecn`"),
]);

/// Most classes: as many as IEEE 802.1Q has priorities.
const MAX_CLASSES: usize = 8;

/// A class as a scenario describes it.
#[derive(Clone, Debug)]
pub(super) struct Class {
    pub(super) name: String,
    pub(super) priority: u8,
    pub(super) weight: u32,
    /// Most bytes of it in a port; [`Bytes::MAX`] is unlimited.
    pub(super) limit: Bytes,
    /// The marking of this class, if it differs from that of the port.
    pub(super) ecn: Option<Marking>,
}

impl Class {
    /// Returns the configuration of the class at a port whose classes are marked by `ecn` by
    /// default.
    pub(super) fn config(&self, ecn: Option<Marking>) -> ClassConfig {
        let algorithm = match self.ecn.or(ecn) {
            Some(marking) => marking.half(0),
            None => BuiltInSwitch::Plain,
        };
        ClassConfig {
            priority: self.priority,
            weight: self.weight,
            limit: self.limit,
            algorithm,
            ..ClassConfig::default()
        }
    }
}

/// Reads the classes; none means one without a name.
pub(super) fn read_classes(topology: &Section<'_>) -> Vec<Class> {
    let tables = topology.sections("class");
    if tables.len() == 1 {
        let message = "has no effect alone: all packets are of one class then; add another or \
                       remove it";
        topology.problem("class", message);
    }
    if tables.len() > MAX_CLASSES {
        topology.problem("class", format_args!("has more than {MAX_CLASSES} tables"));
        return Vec::new();
    }
    let mut classes: Vec<Class> = Vec::new();
    for table in tables {
        let class = read_class(&table);
        if let Some(class) = class {
            let twice = classes.iter().any(|other| other.name == class.name);
            table.check(!twice, "name", format_args!("is \"{}\" twice; rename one", class.name));
            classes.push(class);
        }
        table.finish();
    }
    for class in &classes {
        let alone = is_alone(class, &classes);
        let message = format_args!(
            "`{}` has a weight without effect: no other class has its priority; remove it",
            class.name
        );
        topology.check(!alone || class.weight == 1, "class", message);
    }
    classes
}

/// Returns `true` if no other class has the priority of `class`.
fn is_alone(class: &Class, classes: &[Class]) -> bool {
    classes.iter().filter(|other| other.priority == class.priority).count() == 1
}

/// Reads the scheduler of classes with the same priority.
pub(super) fn read_scheduler(topology: &Section<'_>, classes: &[Class]) -> Option<SchedulerKind> {
    if classes.iter().all(|class| is_alone(class, classes)) {
        topology.no_effect("scheduler", "without two classes of the same priority");
        return Some(SchedulerKind::default());
    }
    topology.meaning("scheduler", &SchedulerKind::WORDS)
}

fn read_class(table: &Section<'_>) -> Option<Class> {
    let name: Option<String> = table.require("name");
    if let Some(name) = &name {
        table.check(is_label(name), "name", format_args!("must be {LABEL_RULE}"));
    }
    let priority: u32 = table.get_or_default("priority");
    let limit: Option<Bytes> = table.get("limit");
    let ecn = table.section("ecn").and_then(Marking::read);
    Some(Class {
        name: name?,
        // At most 7.
        priority: priority as u8,
        weight: table.get_or_default("weight"),
        limit: limit.unwrap_or(Bytes::MAX),
        ecn,
    })
}
