//! Swift without the transport, and the clock of its caller.

use crate::swift::apus_swift;

use super::*;

/// `apus_ack`, as C sees it.
#[repr(C)]
struct Ack {
    now_ns: u64,
    rtt_ns: u64,
    endpoint_delay_ns: u64,
    acked_packets: u32,
    hops: u8,
}

/// `apus_allowance`, as C sees it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Allowance {
    cwnd: f64,
    packets: u32,
    pacing_delay_ns: u64,
    rto_ns: u64,
    fabric_cwnd: f64,
    endpoint_cwnd: f64,
    target_ns: u64,
}

#[allow(improper_ctypes)] // to C, handles are opaque
unsafe extern "C" {
    fn apus_swift_create(settings: *const c_char, swift: *mut *mut apus_swift) -> i32;
    fn apus_swift_on_ack(swift: *mut apus_swift, ack: *const Ack) -> i32;
    fn apus_swift_on_loss(swift: *mut apus_swift, now_ns: u64) -> i32;
    fn apus_swift_on_timeout(swift: *mut apus_swift, now_ns: u64) -> i32;
    fn apus_swift_allowance(swift: *const apus_swift, allowance: *mut Allowance) -> i32;
    fn apus_swift_free(swift: *mut apus_swift);
}

/// The allowances of a flow after each of many events, with a clock whose epoch was `since_ns` before the first one.
fn allowances(since_ns: u64) -> Vec<Allowance> {
    let mut swift = null_mut();
    let mut allowances = Vec::new();
    // SAFETY: a handle, a text, and room for results.
    unsafe {
        ok(apus_swift_create(c"base_target=25us".as_ptr(), &raw mut swift));
        for event in 0..400_u64 {
            // Several events per RTT, of which only one may decrease the window.
            let now_ns = since_ns + event * 20_000;
            ok(match event % 10 {
                8 => apus_swift_on_loss(swift, now_ns),
                9 => apus_swift_on_timeout(swift, now_ns),
                n => {
                    let (rtt_ns, endpoint_delay_ns) = (20_000 + 10_000 * n, 1_000 * n);
                    let ack = Ack { now_ns, rtt_ns, endpoint_delay_ns, acked_packets: 1, hops: 3 };
                    apus_swift_on_ack(swift, &raw const ack)
                }
            });
            let mut allowance = Allowance::default();
            ok(apus_swift_allowance(swift, &raw mut allowance));
            allowances.push(allowance);
        }
        apus_swift_free(swift);
    }
    allowances
}

#[test]
fn swift_reacts_alike_whatever_the_epoch_of_the_clock() {
    let expected = allowances(0);
    assert!(expected.windows(2).any(|two| two[0].cwnd < two[1].cwnd), "its windows change");
    // The first clock reaches 213 days after its epoch, where picoseconds exceed 64 bits, during the events. The second one
    // is at the year 2026, counted from 1970.
    for since_ns in [u64::MAX / 1_000 - 4_000_000, 1_767_225_600_000_000_000] {
        assert!(allowances(since_ns) == expected, "{since_ns}");
    }
}
