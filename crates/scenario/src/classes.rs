//! `[[topology.class]]`: the traffic classes of every switch port.
use crate::set::ClassConfig;
use apus_algorithms::BuiltInSwitch;
use apus_fabric::{SchedulerKind, Trim};
use apus_units::{Bytes, ClassId};

use super::declared::{Keys, Kind, key};
use super::ecn::ECN;
use super::ecn::Marking;
use super::label::{LABEL_RULE, is_label};
use super::section::Section;
use apus_units::suggestion;

/// Keys of `class`.
pub(super) static CLASS: Keys = Keys::of(&[
    key("name", Kind::Text, "Name of the class"),
    key("priority", Kind::Count, "Priority. Classes with priority 0 are served first").at_most(7).or("0"),
    key("weight", Kind::Count, "Weight relative to the other classes of the same priority")
        .within(1, 1_000)
        .or("1"),
    key("limit", Kind::Size, "Maximum number of bytes of the class in a port. Default: no limit"),
    key(
        "trim_to",
        Kind::Text,
        "Turns on trimming. A packet that exceeds `limit` loses its payload, and its header of `packets.control` \
         bytes joins the class named here. The receiver reports the trimmed packet to the sender at once",
    ),
    key(
        "trim_tail",
        Kind::Flag,
        "When a packet has to be trimmed, the last packet of the queue is trimmed instead of the arriving one with probability 1/2",
    )
    .or("true"),
    key(
        "drop_last",
        Kind::Flag,
        "When a packet has to be dropped, the last packet of the queue is dropped instead of the arriving one with \
         probability 1/2. Synchronised senders then have similar losses",
    )
    .or("false"),
    key("ecn", Kind::Table(&ECN), "Marking of this class, in place of `topology.ecn`"),
    key(
        "balancer",
        Kind::Text,
        "Path policy of the workloads of this class, in place of `routing.balancer`. A `balancer` of the workload takes precedence",
    ),
]);

/// Maximum number of classes: the number of priorities of IEEE 802.1Q.
const MAX_CLASSES: usize = 8;

/// A class as a scenario describes it.
#[derive(Clone, Debug)]
pub(super) struct Class {
    pub(super) name: String,
    pub(super) priority: u8,
    pub(super) weight: u32,
    /// Maximum number of bytes of the class in a port; [`Bytes::MAX`] is unlimited.
    pub(super) limit: Bytes,
    /// Class of the headers of trimmed packets, if its packets are trimmed.
    pub(super) trim_to: Option<String>,
    /// Whether the queue's last packet may be trimmed instead of the arriving one.
    pub(super) trim_tail: bool,
    /// Whether the queue's last packet may be dropped instead of the arriving one.
    pub(super) drop_last: bool,
    /// The path policy of its workloads, if it differs from that of the scenario.
    pub(super) balancer: Option<String>,
    /// The marking of this class, if it differs from that of the port.
    pub(super) ecn: Option<Marking>,
}

impl Class {
    /// Returns the number of the class of `classes` to which packets of this one are trimmed.
    pub(super) fn trims_to(&self, classes: &[Self]) -> Option<usize> {
        let to = self.trim_to.as_ref()?;
        classes.iter().position(|class| class.name == *to)
    }

    /// Returns the configuration of the class, one of `classes`, at a port whose classes are marked by
    /// `ecn` by default. Headers of trimmed packets have `header` wire bytes.
    pub(super) fn config(
        &self,
        classes: &[Self],
        ecn: Option<Marking>,
        header: u32,
    ) -> ClassConfig {
        let trim = self.trims_to(classes).map(|to| Trim {
            // At most 8 classes.
            class: ClassId::new(to as u8),
            bytes: header,
            tail: self.trim_tail,
            keeps_headers: true,
            seed: 0,
        });
        let drops = || Trim {
            class: ClassId::default(),
            bytes: header,
            tail: true,
            keeps_headers: false,
            seed: 0,
        };
        let trim = trim.or_else(|| self.drop_last.then(drops));
        let algorithm = match self.ecn.or(ecn) {
            Some(marking) => marking.half(0),
            None => BuiltInSwitch::Plain,
        };
        ClassConfig {
            priority: self.priority,
            weight: self.weight,
            limit: self.limit,
            trim,
            algorithm,
            ..ClassConfig::default()
        }
    }
}

/// Reads the classes. An empty list means one class without a name.
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
    check_trimming(topology, &classes);
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

/// Checks that packets are trimmed in at most one class, and to another class.
fn check_trimming(topology: &Section<'_>, classes: &[Class]) {
    let trims: Vec<_> = classes.iter().filter_map(|c| Some((c, c.trim_to.as_ref()?))).collect();
    let chooses = classes.iter().filter(|class| class.trim_to.is_some() || class.drop_last).count();
    for &(class, to) in &trims {
        let names = || classes.iter().map(|other| other.name.as_str());
        let known = names().any(|name| name == to && name != class.name);
        let hint = || suggestion(to, names().filter(|name| *name != class.name));
        let message = format_args!(
            "`{}` is trimmed to `{to}`, which is not another class{}",
            class.name,
            hint()
        );
        topology.check(known, "class", message);
    }
    let message =
        format_args!("has {chooses} classes with `trim_to` or `drop_last`; one may have it");
    topology.check(chooses <= 1, "class", message);
    if chooses > 0 && topology.node("shared").is_some() {
        let message =
            "has no trimming in a shared memory; remove `trim_to` and `drop_last`, or `shared`";
        topology.problem("shared", message);
    }
    if chooses > 0 && topology.node("pfc").is_some() {
        let message =
            "pauses ports instead of trimming; remove `trim_to` and `drop_last`, or `pfc`";
        topology.problem("pfc", message);
    }
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
    let trim_to: Option<String> = table.get("trim_to");
    if trim_to.is_none() {
        table.no_effect("trim_tail", "without `trim_to`");
    }
    let message = "has no effect without `limit`: nothing is trimmed; set `limit`";
    table.check(trim_to.is_none() || limit.is_some(), "trim_to", message);
    let drop_last: bool = table.get_or_default("drop_last");
    let message = "has no effect without `limit`: nothing is dropped; set `limit`";
    table.check(!drop_last || limit.is_some(), "drop_last", message);
    let message = "does not go with `trim_to`; use `trim_tail`";
    table.check(!drop_last || trim_to.is_none(), "drop_last", message);
    Some(Class {
        name: name?,
        // At most 7.
        priority: priority as u8,
        weight: table.get_or_default("weight"),
        limit: limit.unwrap_or(Bytes::MAX),
        drop_last,
        balancer: table.get("balancer"),
        trim_tail: trim_to.is_none() || table.get_or_default("trim_tail"),
        trim_to,
        ecn,
    })
}
