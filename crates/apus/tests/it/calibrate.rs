//! `apus calibrate`: errors, and a longer check with two processes.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output};

fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("apus-calibrate-{name}-{}", std::process::id()));
    fs::create_dir_all(&path).expect("a folder");
    path
}

fn apus(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_apus")).args(arguments).output().expect("run")
}

const PING: &str =
    "{\"size\": 64, \"p50_us\": 40.0, \"fabric_p50_us\": 20.0, \"fabric_p99_us\": 22.0}";
const PERF: &str = "{\"op\": \"write\", \"size\": 65536, \"flows\": 1, \"outstanding\": 4, \"packet_bytes\": 8192, \
    \"algorithm\": {\"name\": \"swift\", \"profile\": \"paper\", \"parameters\": {\"min_rto\": \"10ms\", \"min_cwnd\": \"0.01\"}}, \"goodput_gbps\": 8.0}";

#[test]
fn wrong_measurements_are_errors_that_name_the_remedy() {
    let dir = folder("errors");
    let refused = |ping: &str, perf: &str, rate: &str| {
        let (ping_file, perf_file) = (dir.join("ping.json"), dir.join("perf.json"));
        fs::write(&ping_file, ping).expect("a file");
        fs::write(&perf_file, perf).expect("a file");
        let [ping, perf] = [&ping_file, &perf_file].map(|path| path.to_str().expect("a path"));
        let done = apus(&["calibrate", "--ping", ping, "--perf", perf, "--rate", rate]);
        assert_eq!(done.status.code(), Some(2));
        String::from_utf8_lossy(&done.stderr).into_owned()
    };
    let error = refused("{}", PERF, "25Gbps");
    assert!(error.contains("ping.json") && error.contains("missing field `size`"), "{error}");
    let error = refused(PING, &PERF.replace("write", "read"), "25Gbps");
    assert!(error.contains("the perf measured reads; give a measurement of writes"), "{error}");
    let ended = PERF.replace("8192", "null");
    let error = refused(PING, &ended, "25Gbps");
    assert!(error.contains("give it with --payload, or measure again"), "{error}");
    let error = refused(PING, &ended.replace("write", "read"), "25Gbps");
    assert!(error.contains("the perf measured reads; give a measurement of writes"), "{error}");
    let error = refused(PING, PERF, "10Mbps");
    assert!(error.contains("give the rate of the links with --rate"), "{error}");
    let error = refused(PING, PERF, "10bps");
    assert!(error.contains("must be at least 1Mbps"), "{error}");
    fs::remove_dir_all(dir).expect("the folder");
}

/// Two hosts and a switch between them, built as in `apus emulate`: veth pairs, with HTB at 10 Gb/s on the switch
/// ports. `$1` is the program; the results are ping.json and perf.json.
const MEASURE: &str = r#"
mount -t tmpfs apus /run
for node in h0 h1 s0; do ip netns add $node; ip -n $node link set lo up; done
for host in 0 1; do
  ip link add name p$host mtu 4288 netns s0 type veth peer name eth0 mtu 4288 netns h$host
  ip -n h$host addr add 10.1.0.$((host + 1))/32 dev lo
  ip -n h$host link set eth0 up
  ip -n h$host route add default dev eth0 src 10.1.0.$((host + 1))
  ip -n s0 link set p$host up
  ip -n s0 route add 10.1.0.$((host + 1))/32 dev p$host
  ip netns exec s0 sh -c "echo 1 >/proc/sys/net/ipv4/conf/p$host/proxy_arp; echo 1 >/proc/sys/net/ipv4/ip_forward"
  tc -n s0 qdisc add dev p$host root handle 1: htb default 1
  tc -n s0 class add dev p$host parent 1: classid 1:1 htb rate 10gbit ceil 10gbit burst 125000 cburst 125000 quantum 4302
  tc -n s0 qdisc add dev p$host parent 1:1 handle 2: bfifo limit 4000000
done
"$1" key key
ip netns exec h1 taskset -c 1 "$1" serve --key-file key --mtu 4288 &
sleep 1
ip netns exec h0 taskset -c 0 "$1" ping 10.1.0.2 --key-file key --mtu 4288 --count 20000 --json > ping.json
ip netns exec h0 taskset -c 0 "$1" perf 10.1.0.2 --key-file key --mtu 4288 --size 65536 --duration 3s --json > perf.json
kill $!
"#;

/// The longer check of CONTRIBUTING.md, between network namespaces: both the scenario and the real processes of
/// `apus emulate` give the measured numbers.
#[test]
fn the_scenario_of_two_processes_gives_their_numbers() {
    if std::env::var_os("APUS_CALIBRATE").is_none() {
        return;
    }
    let dir = folder("namespaces");
    let mut measure = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        measure.args(["--user", "--map-root-user"]);
    }
    measure.args([
        "--net",
        "--mount",
        "--pid",
        "--fork",
        "--kill-child",
        "sh",
        "-ec",
        MEASURE,
        "sh",
    ]);
    let done = measure.arg(env!("CARGO_BIN_EXE_apus")).current_dir(&dir).output().expect("run");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let file = |name: &str| dir.join(name).to_str().expect("a path").to_owned();
    let (ping, perf, out) = (file("ping.json"), file("perf.json"), file("cluster.toml"));
    let made = apus(&[
        "calibrate",
        "--ping",
        &ping,
        "--perf",
        &perf,
        "--rate",
        "10Gbps",
        "--scenario",
        &out,
    ]);
    let said = String::from_utf8_lossy(&made.stdout).into_owned();
    assert!(made.status.success(), "{said}{}", String::from_utf8_lossy(&made.stderr));
    // Printed with --nocapture.
    let scenario = fs::read_to_string(&out).expect("the scenario");
    writeln!(std::io::stdout(), "{said}{scenario}").expect("stdout");
    let emulated = apus(&["emulate", &out]);
    let text = String::from_utf8_lossy(&emulated.stdout).into_owned();
    writeln!(std::io::stdout(), "{text}").expect("stdout");
    assert!(emulated.status.success(), "{}", String::from_utf8_lossy(&emulated.stderr));
    for line in said.lines() {
        let mut numbers = line.split_whitespace().filter_map(|word| word.parse::<f64>().ok());
        let (measured, simulated) =
            (numbers.next().expect("measured"), numbers.next().expect("simulated"));
        assert!((simulated / measured - 1.0).abs() < 0.1, "{line}");
    }
    let goodput = text.lines().find(|line| line.contains("goodput")).expect("goodput");
    let mut numbers = goodput.split_whitespace().filter_map(|word| word.parse::<f64>().ok());
    let (simulated, real) = (numbers.next().expect("simulated"), numbers.next().expect("real"));
    // deviation: no source; the speed of a virtual machine's core varies by 10 % from run to run.
    assert!((real / simulated - 1.0).abs() < 0.25, "{goodput}");
    fs::remove_dir_all(dir).expect("the folder");
}
