//! `topology.pfc`: switches pause the ports that fill their memory.

use apus_fabric::PfcConfig;
use apus_units::{Bytes, ClassId};

use super::classes::Class;
use super::declared::{Keys, Kind, key};
use super::section::{Section, Setting};

/// Keys of `pfc`.
pub(super) static PFC: Keys = Keys::of(&[
    key(
        "pause",
        Kind::Size,
        "A switch pauses a link when it holds this many bytes of a class that arrived over the link",
    ),
    key(
        "resume",
        Kind::Size,
        "The switch resumes the link when it holds no more than this many of these bytes",
    ),
    key(
        "headroom",
        Kind::Size,
        "Memory above `pause` for packets that arrive before the pause takes effect. Packets that exceed it are dropped",
    ),
    key("classes", Kind::Texts, "Classes that are paused. Default: all classes"),
]);

/// Reads the table. The outer `None` means that an error was reported.
pub(super) fn read(topology: &Section<'_>, classes: &[Class]) -> Option<Option<PfcConfig>> {
    if topology.node("pfc").is_none() {
        return Some(None);
    }
    let section = topology.section("pfc")?;
    let (pause, resume) = (section.require::<Bytes>("pause"), section.require("resume"));
    let headroom = section.require("headroom");
    let classes = read_classes(&section, classes);
    let config = (|| {
        let config =
            PfcConfig { pause: pause?, resume: resume?, headroom: headroom?, classes: classes? };
        if let Err(why) = config.check() {
            section.problem("resume", why);
        }
        Some(config)
    })();
    section.finish();
    Some(Some(config?))
}

/// Reads the named classes; by default all classes.
fn read_classes(section: &Section<'_>, classes: &[Class]) -> Option<Vec<ClassId>> {
    let id = |index: usize| ClassId::new(index as u8);
    if section.node("classes").is_none() {
        if !classes.is_empty() {
            let names: Vec<String> = classes.iter().map(|class| class.name.clone()).collect();
            section.record("classes", names.value());
        }
        return Some((0..classes.len().max(1)).map(id).collect());
    }
    let names: Vec<String> = section.get("classes")?;
    section.check(!names.is_empty(), "classes", "pauses none; name one, or leave it out for all");
    let known = || classes.iter().map(|class| class.name.as_str());
    let find = |name: &String| {
        let found = known().position(|known| known == name);
        let hint = || apus_units::suggestion(name, known());
        section.check(
            found.is_some(),
            "classes",
            format_args!("names no class `{name}`{}", hint()),
        );
        found.map(id)
    };
    names.iter().map(find).collect()
}
