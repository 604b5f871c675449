//! Devices that serve reads, compared with queueing theory and Little's law.

use crate::support::run_scenario;
use apus_sim::summary::Summary;

const HEAD: &str = r#"
topology = "star hosts=4 100Gbps 1us"
algorithm = { name = "swift" }
"#;

fn run(text: &str) -> Summary {
    run_scenario(&format!("{HEAD}{text}"))
}

/// Submits 50 000 reads of 1 kB per second for 400 ms. Returns the mean of their latency in us.
fn open_loop(service: &str) -> f64 {
    let text = format!(
        "duration = \"400ms\"\n[[workload]]\nkind = \"poisson\"\nop = \"read\"\nsize = \"1kB\"\n\
         load = 0.004\nsenders = [0]\nreceiver = 3\nflows = \"per-pair\"\n{service}\n"
    );
    let latency = run(&text).op_latency_us;
    assert!((19_000..21_000).contains(&latency.count), "{}", latency.count);
    latency.mean.expect("reads")
}

fn device(time: &str, parallel: u32, noise: &str) -> String {
    format!("service = {{ time = \"{time}\", parallel = {parallel}, noise = {noise} }}")
}

/// Pollaczek and Khinchine: at a load of rho a read waits rho / (1 - rho) of its service time if that time is
/// exponential, and half of it if that time is constant. Here rho is 50 000 / s times 10 us.
#[test]
fn a_device_is_a_queue_of_theory() {
    let unserved = open_loop("");
    let constant = open_loop(&device("10us", 1, "0.0")) - unserved;
    assert!((14.7..15.3).contains(&constant), "M/D/1: 10 us and 5 us of waiting, not {constant}");
    let exponential = open_loop(&device("10us", 1, "1.0")) - unserved;
    assert!((18.8..21.2).contains(&exponential), "M/M/1: 10 us and 10 us, not {exponential}");
    // Erlang C of 0.5 load on two slots: 1/3 of the reads wait, 0.5 * 20 us / (1 - 0.5) * 1/3.
    let two = open_loop(&device("20us", 2, "1.0")) - unserved;
    assert!((25.1..28.2).contains(&two), "M/M/2: 20 us and 6.67 us, not {two}");
}

/// Returns the reads per second of a closed loop, and the mean of their latency in us.
fn closed_loop(rest: &str) -> (f64, f64) {
    let text = format!(
        "duration = \"60ms\"\nwarmup = \"10ms\"\n[[workload]]\nname = \"reads\"\nkind = \"incast\"\n\
         op = \"read\"\nsize = \"4kB\"\n{rest}\n"
    );
    let summary = run(&text);
    (summary.workload["reads"].ops_per_s, summary.op_latency_us.mean.expect("reads"))
}

#[test]
fn a_busy_device_serves_as_many_reads_as_it_has_places() {
    // 4 slots of 100 us each serve 40 000 reads per second for any number of readers: here two.
    let (rate, latency) = closed_loop(&format!(
        "senders = [0, 1]\nreceiver = 3\noutstanding = 16\n{}",
        device("100us", 4, "0.0")
    ));
    assert!((39_900.0..40_100.0).contains(&rate), "{rate}");
    // Little's law: 32 outstanding reads.
    assert!((792.0..808.0).contains(&latency), "{latency}");
    // Each host has a separate device.
    let (rate, _) = closed_loop(&format!(
        "senders = [0, 1]\nreceiver = [2, 3]\noutstanding = 8\n{}",
        device("100us", 4, "0.0")
    ));
    assert!((79_800.0..80_200.0).contains(&rate), "{rate}");
}

#[test]
fn an_idle_device_adds_its_time_and_ops_per_time_follow_from_latency() {
    let loops = "senders = [0]\nreceiver = 3\noutstanding = 4\n";
    let (_, unserved) = closed_loop(loops);
    let (rate, latency) = closed_loop(&format!("{loops}{}", device("100us", 64, "0.0")));
    // Answers that meet each other less often than without the device may be quicker.
    assert!((100.0 + 0.5 * unserved..=100.0 + unserved).contains(&latency), "{latency}");
    let little = 4.0 / (latency * 1e-6);
    assert!((0.99..1.01).contains(&(rate / little)), "{rate} {little}");
}

/// Reads of other workloads bypass the device.
#[test]
fn a_device_is_its_workloads_own() {
    let loops = "senders = [0]\nreceiver = 3\noutstanding = 1\n";
    let (alone, _) = closed_loop(loops);
    let slow = "[[workload]]\nkind = \"incast\"\nop = \"read\"\nsize = \"64B\"\nsenders = [1]\n\
                receiver = 3\nstart = \"11ms\"\n";
    let text = format!("{loops}{slow}{}", device("1ms", 1, "0.0"));
    let (with_slow, _) = closed_loop(&text);
    assert!((0.98..=1.0).contains(&(with_slow / alone)), "{with_slow} {alone}");
}
