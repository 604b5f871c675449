//! `apus emulate`: scenarios in network namespaces, compared with their simulation.
//!
//! Without namespaces these tests are skipped and print the reason. Tests of the measured numbers need an idle machine
//! and `APUS_EMULATE=1`.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

/// Only one network runs at a time, because networks share the cores.
static MACHINE: Mutex<()> = Mutex::new(());

fn apus(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_apus"));
    command.args(arguments);
    command
}

/// Prints the reason of a skipped test directly to standard error: the output of `eprintln` in a passing test is
/// hidden.
fn skipped(why: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {}", why.trim());
}

/// Returns a command in new namespaces, as root or as an ordinary user. The user's PATH may lack the folders of `ip`
/// and `tc`.
fn unshare() -> Command {
    let mut command = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{path}:/usr/sbin:/sbin"));
    command
}

/// Returns `true` if this machine can create namespaces with veth and HTB in them; prints the reason if not.
fn possible() -> bool {
    let script = "ip link add name v0 type veth peer name v1 && \
                  tc qdisc add dev v0 root handle 1: htb && nsenter --version && mount --version";
    let mut unshare = unshare();
    let tried = unshare.args(["--net", "--mount", "sh", "-ec", script]).output();
    let why = match tried {
        Ok(output) if output.status.success() => return true,
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(error) => error.to_string(),
    };
    skipped(&format!("no network namespaces with veth and HTB: {why}"));
    false
}

/// Returns `true` if this kernel can delay packets.
fn netem() -> bool {
    let mut unshare = unshare();
    let tried =
        unshare.args(["--net", "tc", "qdisc", "add", "dev", "lo", "root", "netem"]).output();
    tried.is_ok_and(|output| output.status.success())
}

/// Returns `true` if the numbers are to be measured.
fn measuring() -> bool {
    if std::env::var_os("APUS_EMULATE").is_none() {
        skipped("it measures only with APUS_EMULATE=1, and wants an idle machine");
        return false;
    }
    possible()
}

fn emulate(arguments: &[&str]) -> Value {
    let _alone = MACHINE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let output = apus(&[&["emulate", "--json"], arguments].concat()).output().expect("run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn number(side: &Value, name: &str) -> f64 {
    side[name].as_f64().unwrap_or_else(|| panic!("{name} in {side}"))
}

fn scenario(name: &str, text: &str) -> PathBuf {
    let path =
        std::env::temp_dir().join(format!("apus-emulate-{}-{name}.toml", std::process::id()));
    fs::File::create(&path).and_then(|mut file| file.write_all(text.as_bytes())).expect("a file");
    path
}

fn refused(name: &str, text: &str) -> String {
    let path = scenario(name, text);
    let output: Output = apus(&["emulate"]).arg(&path).output().expect("run");
    fs::remove_file(path).expect("the file");
    assert_eq!(output.status.code(), Some(2));
    String::from_utf8(output.stderr).expect("text")
}

/// The targets hold on a machine with busy cores, and the drain is long enough for all ops there.
const SMALL: &str = r#"
duration = "1200ms"
warmup = "200ms"
drain = "60s"
topology = { kind = "star", hosts = 3, rate = "1Gbps", delay = "5us", buffer = "4MB" }
algorithm = { name = "swift", base_target = "5ms", endpoint_target = "100ms", min_rto = "100ms" }
[[workload]]
kind = "incast"
op = "message"
size = "32kB"
outstanding = 2
"#;

#[test]
fn a_scenario_runs_both_ways_and_beside_the_kernels_tcp() {
    if !possible() {
        return;
    }
    let path = scenario("small", SMALL);
    let report = path.with_extension("md");
    let (file, markdown) = (path.to_str().expect("path"), report.to_str().expect("path"));
    let all = emulate(&[file, "--tcp", "cubic", "--report", markdown]);
    let run = &all["runs"][0];
    let text = fs::read_to_string(&report).expect("the report");
    for path in [&path, &report] {
        fs::remove_file(path).expect("the file");
    }
    assert!(text.contains("| simulator | real | real / simulator | TCP cubic |"), "{text}");
    for side in ["simulated", "real"] {
        // The largest window is 256 packets per sender, which fit the buffer.
        assert_eq!(number(&run[side], "drops"), 0.0, "{side}");
        assert_eq!(run[side]["busiest_port"], "switch 0 -> host 2");
        // The goodput does not exceed the link rate.
        let goodput = number(&run[side], "goodput_gbps");
        assert!(goodput > 0.0 && goodput < 1.1, "{side}: {goodput}");
        assert!(number(&run[side], "jain") >= 0.5, "{side}"); // of two flows
        // base_target plus one hop of 1 us; flow scaling adds at most its range.
        assert!(number(&run[side], "target_us") >= 5001.0, "{side}");
        for name in ["fabric_rtt_p50_us", "fabric_cwnd", "endpoint_cwnd", "op_latency_p50_us"] {
            assert!(number(&run[side], name) > 0.0, "{side} {name}");
        }
        // The drain lets every op of the measured time end.
        assert_eq!(number(&run[side], "ops_unfinished"), 0.0, "{side}");
    }
    assert!(number(&run["real"], "endpoint_delay_p50_us") > 0.0);
    assert!(number(&run["tcp"], "goodput_gbps") > 0.0);
    assert!(number(&run["tcp"], "fabric_rtt_p50_us") > 0.0);
}

/// The run cannot be repeated with equal results, so they are printed.
#[test]
fn results_are_printed_if_the_disk_is_full() {
    if !possible() {
        return;
    }
    let path = scenario("full", SMALL);
    let page = path.with_extension("html");
    let script = "trap '' XFSZ; ulimit -f 1; exec \"$0\" emulate \"$1\" --report \"$2\"";
    let _alone = MACHINE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let output = Command::new("bash")
        .args(["-c", script, env!("CARGO_BIN_EXE_apus")])
        .args([&path, &page])
        .output()
        .expect("bash");
    fs::remove_file(path).expect("the file");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("cannot be written: File too large"), "{stderr}");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.contains("goodput"), "{printed}");
    assert!(!page.exists());
}

#[test]
fn what_cannot_be_emulated_is_refused_by_name() {
    if possible() && !netem() {
        let delay = refused("delay", &SMALL.replace("5us", "1ms"));
        assert!(delay.contains("topology.delay: links may take at most 20us, not 1ms"), "{delay}");
    }
    let rate = refused("rate", &SMALL.replace("\"1Gbps\"", "\"100Gbps\""));
    assert!(rate.contains("topology.rate: a core forwards"), "{rate}");
    let bolt = r#"algorithm = { name = "bolt" }"#;
    let swift = SMALL.lines().find(|line| line.starts_with("algorithm")).expect("its algorithm");
    let bolt = refused("bolt", &SMALL.replace(swift, bolt));
    assert!(bolt.contains("algorithm: needs switches that mark, stamp or signal"), "{bolt}");
    let falcon = r#"algorithm = { name = "swift", profile = "falcon" }"#;
    let falcon = refused("falcon", &SMALL.replace(swift, falcon));
    assert!(falcon.contains("algorithm.profile: reads how full the receiver's NIC is"), "{falcon}");
    let rounds = SMALL.replace("\"incast\"", "\"partition-aggregate\"").replace(
        "op = \"message\"\nsize = \"32kB\"\noutstanding = 2",
        "request = \"1kB\"\nanswer = \"32kB\"",
    );
    let rounds = refused("rounds", &rounds);
    assert!(rounds.contains("workload.kind: rounds of requests and answers"), "{rounds}");
    let recovery = refused("recovery", &format!("transport.recovery = \"go-back-n\"\n{SMALL}"));
    assert!(recovery.contains("transport.recovery: the real engine has its default"), "{recovery}");
    // 1024 ps is not the default of any algorithm. The second scenario is refused too, but not because of its timers:
    // the default of timely is finer than that of swift.
    let timers = format!("transport.timer_granularity = \"1024ps\"\n{SMALL}");
    let timers = refused("timers", &timers);
    let expected = "transport.timer_granularity: the real engine has its default; remove it";
    assert!(timers.contains(expected), "{timers}");
    let timely = SMALL.replace(swift, r#"algorithm = { name = "timely" }"#);
    let timely = format!("transport.recovery = \"go-back-n\"\n{timely}");
    let timely = refused("timely", &timely);
    assert!(timely.contains("transport.recovery"), "{timely}");
    assert!(!timely.contains("timer_granularity"), "{timely}");
    let pfc = SMALL.replace(
        "buffer = \"4MB\"",
        "buffer = \"4MB\", pfc = { pause = \"100kB\", resume = \"50kB\", headroom = \"10kB\" }",
    );
    let pfc = refused("pfc", &pfc);
    assert!(pfc.contains("topology.pfc: no qdisc pauses"), "{pfc}");
    let paths = SMALL.replace(
        r#"kind = "star", hosts = 3,"#,
        r#"kind = "leaf-spine", leaves = 2, hosts_per_leaf = 2, spines = 2,"#,
    );
    let paths = refused("paths", &paths);
    assert!(paths.contains("topology: has several paths"), "{paths}");
}

/// 3 hosts that send to each other at random times; each offers 30 of its link's 100 Mb/s.
const OPEN: &str = r#"
duration = "2s"
warmup = "200ms"
drain = "60s"
topology = { kind = "star", hosts = 3, rate = "100Mbps", delay = "5us", buffer = "4MB" }
algorithm = { name = "swift", base_target = "5ms", endpoint_target = "100ms", min_rto = "100ms" }
[[workload]]
kind = "poisson"
op = "write"
size = "8kB"
load = 0.3
"#;

#[test]
fn an_open_load_has_the_same_ops_both_ways_and_over_tcp() {
    if !possible() {
        return;
    }
    let path = scenario("open", OPEN);
    let all = emulate(&[path.to_str().expect("path"), "--tcp", "cubic"]);
    fs::remove_file(path).expect("the file");
    let run = &all["runs"][0];
    // 3 hosts offer 30 Mb/s of payload each, in about 420 ops after the warm-up: 1 / sqrt(3 * 420) = 3 %.
    let simulated = number(&run["simulated"], "goodput_gbps");
    assert!((0.07..0.11).contains(&simulated), "{simulated}");
    for side in ["real", "tcp"] {
        // The ops are the same, but on a busy machine any number of them may end too late. Closed loops would carry the
        // links' 0.3 Gb/s.
        let goodput = number(&run[side], "goodput_gbps");
        assert!(goodput > 0.0 && goodput < 1.5 * simulated, "{side}: {goodput} of {simulated}");
        assert_eq!(number(&run[side], "drops"), 0.0, "{side}");
    }
    assert!(number(&run["real"], "op_latency_p50_us") > 0.0);
    assert_eq!(number(&run["real"], "ops_unfinished"), 0.0);
}

#[test]
fn a_link_takes_as_long_as_the_scenario_says() {
    if !possible() {
        return;
    }
    if !netem() {
        return skipped("this kernel has no netem");
    }
    let path = scenario("far", &SMALL.replace("5us", "2ms"));
    let all = emulate(&[path.to_str().expect("path")]);
    fs::remove_file(path).expect("the file");
    // Two links in each direction, plus the delay of a busy machine.
    let rtt = number(&all["runs"][0]["real"], "fabric_rtt_p50_us");
    assert!(rtt >= 8_000.0, "{rtt} us");
}

/// Returns the process ids of all descendants of this process.
fn descendants(ancestor: u32) -> BTreeSet<u32> {
    let mut parents = Vec::new();
    for entry in fs::read_dir("/proc").expect("/proc").flatten() {
        let Some(process) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok())
        else {
            continue;
        };
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        // The format is "pid (name) state ppid"; the name may contain anything and ends at the last parenthesis.
        let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1));
        if let Some(parent) = parent.and_then(|parent| parent.parse::<u32>().ok()) {
            parents.push((process, parent));
        }
    }
    let mut found = BTreeSet::from([ancestor]);
    loop {
        let before = found.len();
        let more = parents.iter().filter(|(_, parent)| found.contains(parent)).map(|(p, _)| *p);
        found.extend(more.collect::<Vec<_>>());
        if found.len() == before {
            found.remove(&ancestor);
            return found;
        }
    }
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let from = Instant::now();
    while !holds() {
        assert!(from.elapsed() < Duration::from_secs(60), "{what}");
        sleep(Duration::from_millis(20));
    }
}

#[test]
fn an_interrupted_emulation_leaves_nothing_behind() {
    if !possible() {
        return;
    }
    let _alone = MACHINE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    for signal in [rustix::process::Signal::INT, rustix::process::Signal::KILL] {
        let path =
            scenario("long", &SMALL.replace("1200ms", "600s").replace("\"1Gbps\"", "\"1Mbps\""));
        let mut child = apus(&["emulate"])
            .arg(&path)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("run");
        // unshare, the first process in the namespaces, and three hosts.
        let mut below = BTreeSet::new();
        wait_until("the hosts start", || {
            below = descendants(child.id());
            below.len() >= 5
        });
        let process = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(process, signal).expect("a signal");
        let status = child.wait().expect("it ends");
        assert!(!status.success());
        let alive = |process: &u32| PathBuf::from(format!("/proc/{process}")).exists();
        wait_until("all processes end", || !below.iter().any(alive));
        fs::remove_file(path).expect("the file");
    }
}

#[test]
fn one_flow_keeps_its_target_at_full_goodput_where_cubic_fills_the_buffer() {
    if !measuring() {
        return;
    }
    let all = emulate(&["real/bottleneck", "--tcp", "cubic"]);
    for run in all["runs"].as_array().expect("runs") {
        let real = &run["real"];
        let ratio = number(real, "fabric_rtt_over_target");
        assert!((0.9..=1.1).contains(&ratio), "{ratio}: {real}");
        assert!(number(real, "goodput_gbps") >= 0.92, "{real}");
        assert_eq!(number(real, "drops"), 0.0, "{real}");
        // facts: 18 to 25 ms in this buffer; 4 MB are 32 ms.
        assert!(number(&run["tcp"], "fabric_rtt_p50_us") > 10_000.0, "{}", run["tcp"]);
    }
}

#[test]
fn sixty_four_senders_share_a_hundred_megabits_without_loss() {
    if !measuring() {
        return;
    }
    let all = emulate(&["real/incast-64"]);
    let real = &all["runs"][0]["real"];
    assert_eq!(number(real, "drops"), 0.0, "{real}");
    assert!(number(real, "fabric_rtt_over_target") <= 1.5, "{real}");
    assert!(number(real, "jain") >= 0.9, "{real}");
}

#[test]
fn a_slow_receiver_shrinks_the_endpoint_window_and_only_that_one() {
    if !measuring() {
        return;
    }
    let all = emulate(&["real/slow-receiver"]);
    let (fast, slow) = (&all["runs"][0]["real"], &all["runs"][1]["real"]);
    assert!(number(fast, "endpoint_cwnd") > number(fast, "fabric_cwnd"), "{fast}");
    assert!(number(slow, "endpoint_cwnd") < number(fast, "endpoint_cwnd") / 4.0, "{slow}");
    assert!(number(slow, "fabric_cwnd") > number(fast, "fabric_cwnd"), "{slow}");
    // The endpoint delay is at its target of 1.5 ms, and the fabric delay is below its own target.
    let delay = number(slow, "endpoint_delay_p50_us");
    assert!((1_350.0..=1_650.0).contains(&delay), "{slow}");
    assert!(number(slow, "fabric_rtt_over_target") < 1.0, "{slow}");
}

#[test]
fn an_open_load_is_carried_with_latencies_of_the_simulators_order() {
    if !measuring() {
        return;
    }
    let all = emulate(&["real/open-load"]);
    let (simulated, real) = (&all["runs"][0]["simulated"], &all["runs"][0]["real"]);
    // The offered load is carried without losses.
    let carried = number(real, "goodput_gbps") / number(simulated, "goodput_gbps");
    assert!((0.98..=1.02).contains(&carried), "{carried}: {real}");
    assert_eq!(number(real, "drops"), 0.0, "{real}");
    // Each side has in addition one wake-up, which takes 0.1 to 1.2 ms (docs/udp.md).
    let (ours, theirs) =
        (number(simulated, "op_latency_p50_us"), number(real, "op_latency_p50_us"));
    assert!(theirs > 0.9 * ours && theirs < ours + 2_400.0, "{theirs} us, {ours} simulated");
}
