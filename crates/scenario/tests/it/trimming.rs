//! `trim_to` of `[[topology.class]]`: ports that remove payloads instead of dropping packets.

use crate::support::{assert_reads_back, good, read, run_plan};

/// Four hosts send 100 kB each to a fifth, through a queue of 10 packets of 1064 B.
fn incast(topology: &str, headers: &str, data: &str) -> String {
    format!(
        "duration = \"1ms\"\nalgorithm = {{ name = \"nscc\" }}\n\
         [packets]\npayload = \"1000B\"\nheader = \"64B\"\ncontrol = \"64B\"\n\
         [topology]\nkind = \"star\"\nhosts = 5\nrate = \"100Gbps\"\ndelay = \"1us\"\n\
         buffer = \"unlimited\"\nack_class = \"headers\"\n{topology}\n\
         [[topology.class]]\nname = \"headers\"\n{headers}\n\
         [[topology.class]]\nname = \"data\"\npriority = 1\n\
         ecn = {{ k_min = \"2kB\", k_max = \"8kB\", p_max = 1.0, at = \"dequeue\" }}\n{data}\n\
         [[workload]]\nkind = \"trace\"\nclass = \"data\"\n\
         flows = \"start_us,from,to,bytes\\n0,0,4,100000\\n0,1,4,100000\\n0,2,4,100000\\n0,3,4,100000\"\n"
    )
}

const TRIM: &str = "limit = \"10640B\"\ntrim_to = \"headers\"";

/// Every trimmed packet is retransmitted once, none is lost or retransmitted by a timeout. The last bit arrives
/// no earlier than the link can carry 400 packets of 1064 B: 34.05 us.
#[test]
fn each_trimmed_packet_is_sent_again_and_none_is_lost() {
    for tail in ["", "\ntrim_tail = false"] {
        let scenario = good(&incast("", "", &format!("{TRIM}{tail}")));
        assert_reads_back(&scenario);
        let summary = run_plan(&scenario.runs[0].setup.plan().expect("plan"));
        let packets = &summary.packets;
        assert!(packets.trimmed > 10, "{packets:?}");
        assert_eq!((packets.dropped, packets.headers_lost), (0, 0));
        assert_eq!(summary.measured.data_packets_sent, 400 + packets.trimmed);
        assert_eq!(summary.measured.duplicates_delivered, 0);
        let makespan = summary.makespan_us.expect("all ops end");
        assert!(makespan > 34.05, "{makespan} us");
    }
}

/// A queue for one header loses the other headers; timeouts repair these losses.
#[test]
fn lost_headers_are_counted_and_repaired() {
    let scenario = good(&incast("", "limit = \"64B\"", TRIM));
    let summary = run_plan(&scenario.runs[0].setup.plan().expect("plan"));
    let packets = &summary.packets;
    assert!(packets.headers_lost > 0 && packets.headers_lost < packets.trimmed, "{packets:?}");
    assert!(summary.makespan_us.is_some());
}

#[test]
fn trimming_without_effect_or_target_is_refused() {
    let refused = |topology: &str, data: &str| {
        read(&incast(topology, "", data)).expect_err("a mistake").to_string()
    };
    let cases = [
        (refused("", "trim_to = \"headers\""), "no effect without `limit`"),
        (refused("", "limit = \"10kB\"\ntrim_tail = false"), "trim_tail"),
        (refused("", "limit = \"10kB\"\ntrim_to = \"haeders\""), "headers"),
        (refused("", "limit = \"10kB\"\ntrim_to = \"data\""), "not another class"),
        (
            refused(
                "[topology.pfc]\npause = \"50kB\"\nresume = \"40kB\"\nheadroom = \"20kB\"",
                TRIM,
            ),
            "instead of trimming",
        ),
    ];
    for (error, part) in cases {
        assert!(error.contains(part), "`{part}` is not in: {error}");
    }
}
