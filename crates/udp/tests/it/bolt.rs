//! Bolt between processes: a switch without keys on the path marks packets and sends signals to their source (Bolt §4.3).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use apus_algorithms::build;
use apus_udp::switch::{Config, Direction, Report, Switch};
use apus_udp::{Access, Request};
use apus_units::{Bytes, Rate};

use crate::support::{PATIENCE, SHARED, any, config, host, pattern};

/// A switch in a thread of its own.
struct Running {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Report>,
}

impl Running {
    fn start(mut switch: Switch) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                switch.forward(Duration::from_millis(10)).expect("the sockets");
            }
            switch.report()
        });
        Self { stop, thread }
    }

    fn stop(self) -> Report {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("the switch")
    }
}

#[test]
fn a_switch_in_the_path_of_sealed_packets_takes_the_window_down() {
    let mut settings = config(SHARED);
    // Losses cannot reduce the window as far as the switch must: a loss cuts it to half at most.
    settings.algorithm =
        build("bolt", None, &[("ai", "0"), ("min_rto", "60s"), ("max_rto", "60s")]).expect("bolt");
    // Fixed packet length: a probe that allowed longer packets would make the window smaller in packets.
    settings.max_mtu = 1280;
    let (server, client) = (host(settings.clone()), host(settings.clone()));
    let region = server.register(vec![0; 1 << 20], Access::ALL).expect("region");
    let mut between = Config::new(any(), server.local_addr(), Rate::from_gbps(1));
    (between.algorithm, between.max_mtu) = (Some(settings.algorithm), settings.max_mtu);
    // The buffer has room for the window, so no packet is lost.
    between.buffer = Bytes::new(1 << 20);
    let switch = Switch::open(&between).expect("a switch");
    let address = switch.local_addr();
    let running = Running::start(switch);
    let here = client.connect(address).expect("connect");
    let there = server.accept().expect("accept");
    let bytes = pattern(1, 1 << 20);
    let from = Instant::now();
    let write = || {
        let write = here.submit(Request::write(region.key(), 0, bytes.clone())).expect("room");
        write.wait().expect("written");
    };
    let read = || {
        let read = here.submit(Request::read(region.key(), 0, 1 << 20)).expect("room");
        assert!(read.wait().expect("read").bytes == bytes, "what was written");
    };
    // Each flow state is that of the side that sends the data.
    let window = |connection: &apus_udp::Connection| connection.flow_state(0).expect("open").0.cwnd;
    assert_eq!((window(&here), window(&there)), (64.0, 64.0), "the default");
    // A burst is a quarter of the window, so it finds a queue as long as the window exceeds a few packets.
    while window(&here) > 48.0 || window(&there) > 48.0 {
        assert!(from.elapsed() < PATIENCE, "windows of {}, {}", window(&here), window(&there));
        write();
        read();
    }
    region.read(|memory| assert!(memory == bytes, "what switches write on packets is not payload"));
    let report = running.stop();
    for direction in Direction::ALL {
        let port = report.port(direction);
        assert!(port.signals >= 16, "each takes one packet at most: {port:?}");
        assert!(port.written >= port.signals, "each packet behind a signal has DEC: {port:?}");
    }
    assert_eq!(report.clients, 1);
}
