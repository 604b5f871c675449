//! Bolt's switch half against Algorithms 1, 3 and 4.

use apus_algorithms::BuiltInSwitch;
use apus_algorithms::bolt::BoltFields;
use apus_algorithms::build;
use apus_cc::{
    AlgorithmFactory, ClassView, CongestionHeader, PortView, Signal, SwitchHalf, SwitchInfo,
    Verdict,
};
use apus_units::{Bytes, ClassId, Rate, Time};

const MTU: u64 = 1500;
const FIRST: u8 = BoltFields::FIRST;
const LAST: u8 = BoltFields::LAST;
const INC: u8 = BoltFields::INC;
const DEC: u8 = BoltFields::DEC;

/// A port of 100 Gb/s, at which 1500 bytes take 120 ns.
struct Port {
    half: BuiltInSwitch,
    now_ns: u64,
    waiting: u64,
    classes: Vec<ClassView>,
}

fn port(settings: &[(&str, &str)]) -> Port {
    port_of(settings, false)
}

/// A port of a switch, or of a host's NIC.
fn port_of(settings: &[(&str, &str)], nic: bool) -> Port {
    let info = SwitchInfo { packet: Bytes::new(MTU), seed: 1, nic };
    let half = build("bolt", None, settings).unwrap().switch(&info);
    Port { half, now_ns: 0, waiting: 0, classes: vec![ClassView::default()] }
}

impl Port {
    fn header(&mut self, header: &mut CongestionHeader) -> Verdict {
        let view = PortView {
            now: Time::from_ps(self.now_ns * 1000),
            link_rate: Rate::from_gbps(100),
            class: ClassId::new(0),
            class_bytes: Bytes::new(self.waiting),
            queue_bytes: Bytes::new(self.waiting),
            class_waiting: Bytes::new(self.waiting),
            sent: Bytes::ZERO,
            classes: &self.classes,
        };
        self.half.on_enqueue(header, Bytes::new(MTU), &view)
    }

    /// Sends a data packet with these flags `gap_ns` after the previous one.
    fn data(&mut self, gap_ns: u64, flags: u8) -> (Verdict, u8) {
        self.now_ns += gap_ns;
        let fields = BoltFields::new(flags, 99).fields();
        let mut header = CongestionHeader { fields, ..CongestionHeader::default() };
        let verdict = self.header(&mut header);
        let fields = BoltFields::of(&header.fields).expect("Bolt's fields");
        assert_eq!(fields.sent(), 99, "t_data_tx stays");
        (verdict, fields.flags())
    }

    fn tokens(&self) -> (u32, f64) {
        let BuiltInSwitch::Bolt(port) = &self.half else { panic!("not Bolt") };
        (port.pru_token(), port.sm_token())
    }
}

#[test]
fn alg_1_l_2_packets_without_data_are_forwarded_unchanged() {
    let mut port = port(&[]);
    port.waiting = 100 * MTU;
    let mut header = CongestionHeader::default();
    port.now_ns = 5;
    assert_eq!(port.header(&mut header), Verdict::Forward);
    assert_eq!(header, CongestionHeader::default());
    assert_eq!(port.tokens(), (0, 0.0));
}

#[test]
fn alg_1_l_4_to_10_a_queue_of_one_mtu_sends_an_src_and_marks_dec() {
    let mut port = port(&[]);
    port.waiting = MTU - 1;
    assert_eq!(port.data(120, 0), (Verdict::Forward, 0));
    port.waiting = MTU;
    let signal = Signal { queue: Bytes::new(MTU), link_rate: Rate::from_gbps(100), sent: 99 };
    assert_eq!(port.data(120, INC), (Verdict::Signal(signal), DEC));
}

#[test]
fn alg_1_l_5_a_marked_packet_causes_no_second_src() {
    let mut port = port(&[]);
    port.waiting = 3 * MTU;
    assert_eq!(port.data(120, DEC | INC), (Verdict::Forward, DEC));
}

#[test]
fn alg_1_l_11_and_12_last_packets_that_are_not_first_give_pru_tokens() {
    let mut port = port(&[]);
    port.data(120, LAST);
    port.data(120, LAST | INC);
    assert_eq!(port.tokens().0, 2);
    // A flow shorter than a window frees no bandwidth that it was expected to use (§3.2).
    port.data(120, LAST | FIRST);
    assert_eq!(port.tokens().0, 2);
    // As the algorithm is written, INC stays on them and costs no token.
    assert_eq!(port.data(120, LAST | FIRST | INC), (Verdict::Forward, LAST | FIRST | INC));
    assert_eq!(port.tokens().0, 2);
    // Nor does a packet give a token if its bandwidth is needed to drain a queue.
    port.waiting = MTU;
    port.data(120, LAST);
    assert_eq!(port.tokens().0, 2);
}

#[test]
fn alg_1_l_14_and_15_a_pru_token_keeps_inc_and_is_spent() {
    let mut port = port(&[]);
    port.data(120, LAST);
    assert_eq!(port.data(120, INC), (Verdict::Forward, INC));
    assert_eq!(port.tokens().0, 0);
    assert_eq!(port.data(120, INC), (Verdict::Forward, 0));
    // A packet without INC uses no token.
    port.data(120, LAST);
    assert_eq!(port.data(120, 0), (Verdict::Forward, 0));
    assert_eq!(port.tokens().0, 1);
}

#[test]
fn alg_3_the_token_is_supply_less_demand_and_at_most_one_mtu() {
    let mut port = port(&[]);
    // 120 ns at 100 Gb/s are 1500 bytes: supply meets demand.
    port.data(120, 0);
    assert_eq!(port.tokens().1, 0.0);
    port.data(60, 0);
    assert_eq!(port.tokens().1, -750.0);
    port.data(200, 0);
    assert_eq!(port.tokens().1, -750.0 + 2500.0 - 1500.0);
    port.data(1_000_000, 0);
    assert_eq!(port.tokens().1, 1500.0);
}

#[test]
fn alg_1_l_16_and_17_an_sm_token_of_one_mtu_keeps_inc_and_is_spent() {
    let mut port = port(&[]);
    assert_eq!(port.data(240, INC), (Verdict::Forward, INC));
    assert_eq!(port.tokens().1, 0.0);
    // 239 ns: 2987.5 - 1500 bytes are less than one MTU.
    assert_eq!(port.data(239, INC), (Verdict::Forward, 0));
    assert_eq!(port.tokens().1, 1487.5);
}

#[test]
fn table_1_pru_and_sm_can_be_switched_off() {
    let mut without_pru = port(&[("pru", "false")]);
    without_pru.data(120, LAST);
    assert_eq!(without_pru.tokens().0, 0);
    let mut without_sm = port(&[("sm", "false")]);
    assert_eq!(without_sm.data(1000, INC), (Verdict::Forward, 0));
}

#[test]
fn alg_4_supply_is_shared_by_the_weights_of_the_classes_with_packets() {
    let mut port = port(&[]);
    let class =
        |bytes: u64, weight: u32| ClassView { bytes: Bytes::new(bytes), weight, priority: 0 };
    // l. 6: the own class counts even when it is empty; another one only with packets.
    port.classes = vec![class(0, 1), class(0, 3)];
    port.data(120, 0);
    assert_eq!(port.tokens().1, 0.0);
    // l. 8: a quarter of 6000 bytes in 480 ns.
    port.classes = vec![class(0, 1), class(4000, 3)];
    port.data(480, 0);
    assert_eq!(port.tokens().1, 0.0);
    port.data(240, 0);
    assert_eq!(port.tokens().1, 750.0 - 1500.0);
}

#[test]
fn app_b_2_srcs_are_sent_with_their_probability() {
    let mut port = port(&[("src_probability", "0.25")]);
    port.waiting = MTU;
    let favoured = BoltFields::FAVOURED;
    let sent = (0..10_000).filter(|_| port.data(120, favoured).1 == DEC | favoured).count();
    // Standard deviation sqrt(10000 * 0.25 * 0.75) = 43.
    assert!((2300..2700).contains(&sent), "{sent} of 10000");
    let others = (0..1_000).filter(|_| port.data(120, 0).1 == DEC).count();
    assert_eq!(others, 1_000, "flows that are not favoured get every SRC");
}

#[test]
fn options_of_the_authors_code() {
    let mut cap = port(&[("pru_cap", "2")]);
    for _ in 0..5 {
        cap.data(120, LAST);
    }
    assert_eq!(cap.tokens().0, 2);
    let mut threshold = port(&[("cc_threshold", "2")]);
    threshold.waiting = 2 * MTU - 1;
    assert_eq!(threshold.data(120, 0).0, Verdict::Forward);
    let mut all = port(&[("sm_counts", "all")]);
    all.now_ns = 60;
    all.header(&mut CongestionHeader::default());
    assert_eq!(all.tokens().1, -750.0);
}

/// App. B: Algorithm 3's supply is the whole link, independent of other classes at the port.
#[test]
fn app_b_supply_of_the_whole_link_is_an_option() {
    let mut port = port(&[("sm_supply", "link")]);
    let class =
        |bytes: u64, weight: u32| ClassView { bytes: Bytes::new(bytes), weight, priority: 0 };
    port.classes = vec![class(0, 1), class(4000, 3)];
    port.data(120, 0);
    assert_eq!(port.tokens().1, 0.0, "1500 bytes arrived in 120 ns, and as many could leave");
    let mut all = self::port(&[]);
    all.classes = port.classes.clone();
    all.data(120, 0);
    assert_eq!(all.tokens().1, 1500.0 / 4.0 - 1500.0);
}

/// Alg. 4 l. 5-8 with four classes: the weights of classes with packets count; classes of higher or
/// lower strict priority do not.
#[test]
fn alg_4_w_effective_is_the_sum_over_classes_with_packets() {
    let mut port = port(&[]);
    let class = |bytes: u64, weight: u32, priority: u8| ClassView {
        bytes: Bytes::new(bytes),
        weight,
        priority,
    };
    // The own class is the first: w_i = 2, w_effective = 2 + 3.
    port.classes = vec![class(0, 2, 1), class(9000, 3, 1), class(0, 5, 1), class(9000, 7, 0)];
    port.data(120, 0);
    assert_eq!(port.tokens().1, 1500.0 * 2.0 / 5.0 - 1500.0);
}

/// §4.1 and App. B: "an array of P x n": tokens of one class are not another's.
#[test]
fn app_b_each_class_has_separate_tokens() {
    let (mut gold, mut bronze) = (port(&[]), port(&[]));
    gold.data(120, LAST);
    assert_eq!((gold.tokens().0, bronze.tokens().0), (1, 0));
    assert_eq!(bronze.data(120, INC).1, 0, "a token of gold's is not for bronze");
    assert_eq!(gold.data(120, INC).1, INC);
}

/// Bolt ns-3, `PfifoBoltQueueDisc::DoEnqueue`: without supply matching only packets with TTL < 64, which
/// have passed a switch, lose INC. With supply matching, and in a switch, Alg. 1 l. 19 holds.
#[test]
fn bolt_ns_3_a_nic_without_sm_does_not_clear_inc() {
    for (nic, sm, kept) in [(true, "false", INC), (true, "true", 0), (false, "false", 0)] {
        let mut port = port_of(&[("sm", sm)], nic);
        assert_eq!(port.data(0, INC), (Verdict::Forward, kept), "nic {nic}, sm {sm}");
    }
    // A congested NIC acts like any other port.
    let mut port = port_of(&[("sm", "false")], true);
    port.waiting = 100 * MTU;
    assert_eq!(port.data(0, INC).1, DEC);
    // Tokens are spent too: the NIC has one PRU token, which the first packet takes.
    port.waiting = 0;
    port.data(0, LAST);
    assert_eq!(port.tokens().0, 1);
    port.data(0, INC);
    assert_eq!(port.tokens().0, 0);
}
