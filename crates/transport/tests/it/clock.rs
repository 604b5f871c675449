//! Swift App. A: NIC time to host time, with error bounds computed by hand.

use apus_transport::clock::ClockConverter;
use apus_units::Time;
use proptest::prelude::*;

use crate::support::config;

const SECOND: u64 = 1_000_000_000_000;
const MS: u64 = 1_000_000_000;

fn at(ps: u64) -> Time {
    Time::from_ps(ps)
}

fn error(converted: Time, truth: Time) -> u64 {
    converted.as_ps().abs_diff(truth.as_ps())
}

#[test]
fn swift_app_a_first_reading_has_ratio_1() {
    let clock = ClockConverter::new(at(5_000), at(1_000_000));
    assert_eq!(clock.to_host(at(5_000)), at(1_000_000));
    assert_eq!(clock.to_host(at(7_000)), at(1_002_000));
    assert_eq!(clock.to_host(at(1_000)), at(996_000));
}

#[test]
fn swift_app_a_two_readings_give_the_ratio() {
    // The host gains 1 ps per 4 ps of the NIC: ratio 1.25.
    let mut clock = ClockConverter::new(at(0), at(100));
    clock.update(at(400), at(600));
    assert_eq!(clock.to_host(at(400)), at(600));
    assert_eq!(clock.to_host(at(800)), at(1_100));
    assert_eq!(clock.to_host(at(0)), at(100), "before the last reading, the same line");
    // The host loses: ratio 0.5.
    clock.update(at(800), at(800));
    assert_eq!(clock.to_host(at(1_000)), at(900));
    assert_eq!(clock.to_host(at(600)), at(700));
}

#[test]
fn swift_app_a_zero_elapsed_keeps_the_ratio() {
    let mut clock = ClockConverter::new(at(0), at(0));
    clock.update(at(400), at(500));
    clock.update(at(400), at(700));
    assert_eq!(clock.to_host(at(800)), at(1_200));
    clock.update(at(500), at(700));
    assert_eq!(clock.to_host(at(900)), at(1_200), "a stopped host clock gives no ratio");
}

#[test]
fn swift_app_a_a_clock_set_back_keeps_the_ratio() {
    let mut clock = ClockConverter::new(at(0), at(0));
    clock.update(at(400), at(500));
    clock.update(at(40), at(900));
    assert_eq!(clock.to_host(at(440)), at(1_400));
}

#[test]
fn swift_app_a_ends_of_time_saturate() {
    let clock = ClockConverter::new(at(1_000), at(10));
    assert_eq!(clock.to_host(at(0)), Time::ZERO);
    assert_eq!(clock.to_host(Time::MAX), at(u64::MAX - 990));
    let clock = ClockConverter::new(at(10), at(1_000));
    assert_eq!(clock.to_host(Time::MAX), Time::MAX);
}

#[test]
fn swift_app_a_no_precision_is_lost_after_200_days() {
    // A NIC that is 50 ppm fast, with both clocks beyond 2^63 ps, where an f64 has steps of 2048
    // ps. The true host time of a NIC time is exact here: the elapsed spans are divisible by
    // 20,000.
    let nic0 = 200 * 24 * 3_600 * SECOND;
    let host0 = nic0 - 12_345;
    let mut clock = ClockConverter::new(at(nic0), at(host0));
    let truth = |d: u64| at(host0 + d - d / 20_000);
    let reading = 100 * MS;
    clock.update(at(nic0 + reading), truth(reading));
    for d in [0, 20_000, MS, 150 * MS, SECOND, 60 * SECOND] {
        assert_eq!(clock.to_host(at(nic0 + d)), truth(d), "{d} ps after the first reading");
    }
}

#[test]
fn swift_app_a_noisy_readings_stay_within_the_bound() {
    // Each host reading is up to e late, readings are T apart, and a conversion is up to x after
    // the last reading: the bound is e + 2 e x / T. With e = 50 ns, T = 100 ms, x = 100 ms: 150 ns.
    let (e, period) = (50_000, 100 * MS);
    let bound = e + 2 * e;
    let skew = |nic: u64| nic + nic / 10_000 + SECOND;
    let noise = |n: u64| [0, e, 0, e, e, 0][n as usize % 6];
    let mut clock = ClockConverter::new(at(0), at(skew(0)));
    for n in 1..60 {
        let nic = n * period;
        clock.update(at(nic), at(skew(nic) + noise(n)));
        if n == 1 {
            continue;
        }
        for x in (0..=period).step_by(period as usize / 10) {
            let error = error(clock.to_host(at(nic + x)), at(skew(nic + x)));
            assert!(error <= bound, "{error} ps wrong {x} ps after reading {n}");
        }
    }
}

#[test]
fn swift_app_a_drift_stays_within_the_bound() {
    // The ratio itself drifts by r = 1 ppm per second: host = nic + r nic^2 / 2. With readings T =
    // 0.1 s apart and conversions up to x = 0.1 s after the last one: r (T + x) x / 2 = 1e-6 *
    // 0.2 * 0.1 / 2 s = 10 ns, and 1 ps of rounding.
    let bound = 10_000 + 1;
    let period = 100 * MS;
    let drifting = |nic: u64| {
        let square = u128::from(nic) * u128::from(nic);
        at(nic + (square / 2 / u128::from(SECOND) / 1_000_000) as u64)
    };
    let mut clock = ClockConverter::new(at(0), drifting(0));
    let mut worst = 0;
    for n in 1..100 {
        let nic = n * period;
        clock.update(at(nic), drifting(nic));
        for x in (0..=period).step_by(period as usize / 10) {
            worst = worst.max(error(clock.to_host(at(nic + x)), drifting(nic + x)));
        }
    }
    assert!(worst <= bound, "{worst} ps wrong, the bound is {bound} ps");
    assert!(worst > bound / 2, "the bound is tight");
}

proptest! {
    #![proptest_config(config(256))]

    /// Clocks that run equally fast: the difference of the readings is exact at all times, and ends
    /// at the ends of time.
    #[test]
    fn swift_app_a_equal_clocks_differ_by_a_constant(
        nic0 in any::<u64>(), host0 in any::<u64>(), nic in any::<u64>(),
    ) {
        let exact = i128::from(host0) + i128::from(nic) - i128::from(nic0);
        let expected = exact.clamp(0, i128::from(u64::MAX)) as u64;
        prop_assert_eq!(ClockConverter::new(at(nic0), at(host0)).to_host(at(nic)), at(expected));
    }

    /// Compared with 128-bit rational arithmetic: within 1 ps for an hour, at 100 ppm.
    #[test]
    fn swift_app_a_agrees_with_exact_arithmetic(
        nic0 in 0..u64::MAX / 2,
        host0 in SECOND * 3_600..u64::MAX / 2,
        period in MS..100 * SECOND,
        ppb in -100_000i64..=100_000,
        ahead in 0..3_600 * SECOND,
        behind in 0..SECOND,
    ) {
        let gained = (i128::from(period) * i128::from(ppb) / 1_000_000_000) as i64;
        let host_period = period.checked_add_signed(gained).unwrap();
        let (nic1, host1) = (nic0 + period, host0 + host_period);
        let mut clock = ClockConverter::new(at(nic0), at(host0));
        clock.update(at(nic1), at(host1));
        let scaled = |d: u64| (u128::from(d) * u128::from(host_period) / u128::from(period)) as u64;
        prop_assert!(error(clock.to_host(at(nic1 + ahead)), at(host1 + scaled(ahead))) <= 1);
        let behind = behind.min(nic1);
        prop_assert!(error(clock.to_host(at(nic1 - behind)), at(host1 - scaled(behind))) <= 1);
        prop_assert!(clock.to_host(at(nic1 + ahead)) <= clock.to_host(at(nic1 + ahead + 1)));
    }
}
