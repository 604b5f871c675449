//! Groups and the lenient mode of Chakra traces in a scenario.

use apus_scenario::import::chakra::text_of;
use apus_scenario::{Options, Scenario, Source};

use crate::support::{assert_reads_back, run_scenario};

/// Encodes a number of protobuf: seven bits per byte, the low ones first.
fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value > 0x7f {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// Encodes a field of a protobuf message: a number, or bytes after their length.
pub(crate) fn number(field: u8, value: u64) -> Vec<u8> {
    [vec![field << 3], varint(value)].concat()
}

pub(crate) fn bytes(tag: &[u8], content: &[u8]) -> Vec<u8> {
    [tag, &varint(content.len() as u64), content].concat()
}

/// A message in a trace, after its length.
pub(crate) fn message(fields: &[Vec<u8>]) -> Vec<u8> {
    bytes(&[], &fields.concat())
}

/// The first message of a trace.
pub(crate) fn metadata() -> Vec<u8> {
    message(&[bytes(&[1 << 3 | 2], b"0.0.4")])
}

pub(crate) fn attribute(name: &str, value: &[u8]) -> Vec<u8> {
    let name = bytes(&[1 << 3 | 2], name.as_bytes());
    bytes(&[10 << 3 | 2], &[name.as_slice(), value].concat())
}

/// The group of a collective. Its value is in field 29, whose tag has two bytes.
pub(crate) fn group_of(name: &str) -> Vec<u8> {
    attribute("pg_name", &bytes(&[0xea, 0x01], name.as_bytes()))
}

/// The file of a rank: metadata, and an all-reduce of 64 B in a group.
fn trace(group: &str) -> Vec<u8> {
    let node = [
        number(1, 1),
        bytes(&[2 << 3 | 2], b"sum"),
        number(3, 7),
        attribute("comm_type", &number(9, 0)),
        attribute("comm_size", &number(9, 64)),
        group_of(group),
    ];
    [metadata(), message(&node)].concat()
}

/// Ranks 0 and 2 are in group 5, ranks 1 and 3 in group 6.
fn scenario(settings: &str) -> Result<Scenario, String> {
    let traces = ["5", "6", "5", "6"].map(trace);
    let text = format!(
        "duration = \"1ms\"\ntopology = \"star hosts=4 100Gbps 1us\"\nalgorithm = {{ name = \"swift\" }}\n\
         [[workload]]\nkind = \"job\"\nfile = \"./traces\"\n{settings}"
    );
    let find = |name: &str| {
        let text = if name == "./traces" { text_of(&traces) } else { "{\"5\": [0, 2]}".to_owned() };
        Ok(Source { name: name.to_owned(), text })
    };
    let source = Source { name: "s.toml".to_owned(), text };
    Scenario::read(&source, &find, &Options::default()).map_err(|error| error.to_string())
}

/// A ring of two: two sends and two receives on each rank.
#[test]
fn groups_of_a_scenario_give_the_ranks_of_collectives() {
    let groups = "groups = { members = '{\"5\": [0, 2], \"6\": [1, 3]}' }\n";
    let scenario = scenario(groups).unwrap_or_else(|why| panic!("{why}"));
    let text = scenario.runs[0].setup.to_toml();
    assert!(text.contains("num_ranks 4") && !text.contains("groups"), "{text}");
    let job = &run_scenario(&text).jobs[0];
    assert_eq!((job.ops, job.unfinished, job.bytes), (16, 0, 4 * 64));
    assert_reads_back(&scenario);
}

#[test]
fn a_group_without_members_is_an_error_or_left_out_and_named() {
    let file = "groups = { file = \"./groups.json\" }\n";
    let error = scenario(file).expect_err("group 6 is unknown");
    for part in ["./traces: rank 1, node 1 (sum): its group `6` is defined nowhere", "lenient"] {
        assert!(error.contains(part), "{error}");
    }
    let lenient =
        scenario(&format!("{file}lenient = true\n")).unwrap_or_else(|why| panic!("{why}"));
    let notes: Vec<&str> = lenient.runs[0].setup.notes().collect();
    let left =
        "./traces: left out 2 collectives of unknown groups, the first: rank 1, node 1 (sum)";
    assert!(notes.len() == 1 && notes[0].starts_with(left), "{notes:?}");
}

#[test]
fn groups_without_traces_and_wrong_groups_are_errors() {
    let error = scenario("groups = { members = '[1]' }\n").expect_err("no object");
    assert!(error.contains("it must be names with lists of ranks"), "{error}");
    let text = "duration = \"1ms\"\ntopology = \"star hosts=4 100Gbps 1us\"\nalgorithm = { name = \"swift\" }\n\
        [[workload]]\nkind = \"job\"\nlenient = true\n\
        operations = \"num_ranks 2\\nrank 0 {\\nl1: send 1b to 1\\n}\\nrank 1 {\\nl1: recv 1b from 0\\n}\\n\"\n";
    let source = Source { name: "s.toml".to_owned(), text: text.to_owned() };
    let read = Scenario::read(&source, &|n| Err(n.to_owned()), &Options::default());
    let error = read.expect_err("no traces").to_string();
    assert!(
        error.contains("`workload.lenient` has no effect with a file that is not Chakra traces"),
        "{error}"
    );
}

/// A node with this id and type, which depends on the nodes `after`.
fn node(id: u64, kind: u64, after: &[u64], attributes: &[(&str, u64)]) -> Vec<u8> {
    let mut fields = vec![number(1, id), number(3, kind)];
    fields.extend(after.iter().map(|id| number(5, *id)));
    fields.extend(attributes.iter().map(|(name, value)| attribute(name, &number(9, *value))));
    if kind == 7 {
        fields.push(group_of("5"));
    }
    message(&fields)
}

/// Rank 1 computes before it receives with tag 0; its part of the collective must not take that message in the
/// meantime.
#[test]
fn messages_of_collectives_are_not_taken_for_those_of_sends() {
    let size = ("comm_size", 64);
    let sum = |id: u64, after: &[u64]| node(id, 7, after, &[("comm_type", 0), size]);
    let first = [
        metadata(),
        node(1, 5, &[], &[("comm_dst", 1), size]),
        node(2, 6, &[], &[("comm_src", 1), size, ("comm_tag", 1)]),
        sum(3, &[]),
    ];
    let second = [
        metadata(),
        node(1, 4, &[], &[]),
        node(2, 6, &[1], &[("comm_src", 0), size]),
        node(3, 5, &[2], &[("comm_dst", 0), size, ("comm_tag", 1)]),
        sum(4, &[]),
    ];
    let traces = [first.concat(), second.concat()];
    let text = "duration = \"1ms\"\ntopology = \"star hosts=2 100Gbps 1us\"\nalgorithm = { name = \"swift\" }\n\
                [[workload]]\nkind = \"job\"\nfile = \"./traces\"\ngroups = { members = '{\"5\": [0, 1]}' }\n";
    let find = |name: &str| Ok(Source { name: name.to_owned(), text: text_of(&traces) });
    let source = Source { name: "s.toml".to_owned(), text: text.to_owned() };
    let read = Scenario::read(&source, &find, &Options::default());
    let scenario = read.unwrap_or_else(|why| panic!("{why}"));
    let job = &run_scenario(&scenario.runs[0].setup.to_toml()).jobs[0];
    assert_eq!((job.unfinished, job.unexpected), (0, 0), "{:?} {:?}", job.stuck, job.leftover);
}
