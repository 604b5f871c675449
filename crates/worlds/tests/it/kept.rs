//! Seeds whose worlds have found a bug, of the transport or of the worlds themselves.

use apus_worlds::{Plan, run};

/// Seeds, with the bugs that they found.
const KEPT: &[(u64, &str)] = &[
    (4, "waiting ops of a flow whose last op was cancelled never started"),
    (6, "the same"),
    (14, "the same"),
    (27, "the same"),
    (70, "the simulated socket was not readable while datagrams waited in it"),
    (132, "the check of nonces took an unsealed packet for a sealed one"),
    (211, "as 70"),
    (
        665,
        "the check of nonces knew 32 bits of a number, and 1024 changes of a key pass 2^32 numbers",
    ),
    (
        232,
        "Swift paced its next packet by an RTT that a jump of the clock had lengthened, without a bound",
    ),
    (
        1768,
        "Swift paced by an RTT of 4 s after a pause of the peer: the next packet was due more than an hour later",
    ),
    (1376, "as 665"),
    (1792, "as 1768"),
    (1917, "as 1768"),
    (
        1295,
        "a refused write was applied when the peer got its right back before it had heard of the refusal",
    ),
    (
        6347,
        "a connection did not close: its last op was the first of a flow, submitted after the close had begun",
    ),
    (
        29_123,
        "errors of a socket were announced once per step, also while none was used up, and lasted for ever",
    ),
    (
        19_639,
        "the check of rights took a write that arrived after its cancellation, and was allowed by then, for a forbidden one",
    ),
    (
        25_807,
        "an older message without room kept a newer one, of which a part had come, from being sent",
    ),
    (6357, "as 25807"),
    (8210, "as 25807"),
    (10_319, "as 25807"),
    (13_463, "as 25807"),
    (21_581, "as 25807"),
    (22_920, "as 25807"),
    (24_891, "as 25807"),
    (25_866, "as 25807"),
    (33_544, "an engine slept while answers to handshakes waited to be sent"),
    (
        1_204_963,
        "the time to end did not count the bytes of the ops: Swift at its smallest window sends a packet each 100 ms",
    ),
    (1_270_827, "as 1204963"),
    (1_392_036, "as 1204963"),
    (1_527_605, "as 1204963"),
    (
        1_560_163,
        "DCQCN doubled a timeout of seconds, after a pause of its peer, to minutes: an answer that was lost was not sent again",
    ),
    (
        1_378_540,
        "the refusal of a read was repeated only to a port of the peer that its NAT had forgotten",
    ),
    (
        50_058_717,
        "after a pause of the peer each retransmission took a timeout of seconds, and a message that the peer had received had to wait its turn",
    ),
];

#[test]
fn kept_seeds_violate_no_guarantee() {
    for &(seed, found) in KEPT {
        let outcome = run(&Plan::draw_kept(seed), false);
        assert_eq!(outcome.violation, None, "seed {seed}, which found: {found}");
    }
}
