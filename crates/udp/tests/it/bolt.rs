//! Bolt between processes: a switch without keys stands in the path, marks packets and answers their
//! source (Bolt §4.3).

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::support::{HYBRID, PATIENCE, any, config, host, pattern};
use apus_udp::{Access, Request};
use apus_wire::{Extension, SwitchView};

/// `t_data_tx` of a packet of Bolt's: four bytes after those of its flags.
fn sent(packet: &SwitchView<'_>) -> u32 {
    let Extension::Own(fields) = packet.extension() else { panic!("no packet of Bolt's") };
    let &[_, a, b, c, d] = fields.authenticated else { panic!("no packet of Bolt's") };
    assert_eq!((fields.id, fields.writable.len()), (1, 1));
    u32::from_be_bytes([a, b, c, d])
}

/// A switch in front of a host that is congested for every packet: 1 MB wait at 10 Gb/s.
struct Switch {
    address: SocketAddr,
    signals: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Switch {
    fn new(server: SocketAddr) -> Self {
        let (front, back) =
            (UdpSocket::bind(any()).expect("front"), UdpSocket::bind(any()).expect("back"));
        back.connect(server).expect("connect");
        for socket in [&front, &back] {
            socket.set_nonblocking(true).expect("nonblocking");
        }
        let address = front.local_addr().expect("address");
        let (signals, stop) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (made, stopped) = (Arc::clone(&signals), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            let mut client = None;
            let mut buffer = vec![0; 65_536];
            while !stopped.load(Ordering::Relaxed) {
                let mut idle = true;
                while let Ok((length, from)) = front.recv_from(&mut buffer) {
                    idle = false;
                    client = Some(from);
                    if let Some(mut packet) = SwitchView::new(&mut buffer[..length]) {
                        let src = packet.signal(1_000_000, 2, sent(&packet)).expect("in range");
                        // DEC.
                        packet.writable().copy_from_slice(&[8]);
                        made.fetch_add(1, Ordering::Relaxed);
                        let _ = front.send_to(&src, from);
                    }
                    let _ = back.send(&buffer[..length]);
                }
                while let Ok(length) = back.recv(&mut buffer) {
                    idle = false;
                    if let Some(client) = client {
                        let _ = front.send_to(&buffer[..length], client);
                    }
                }
                if idle {
                    std::thread::sleep(Duration::from_micros(50));
                }
            }
        });
        Self { address, signals, stop, thread: Some(thread) }
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[test]
fn a_switch_in_the_path_of_sealed_packets_takes_the_window_down() {
    let mut settings = config(HYBRID);
    // No loss can take the window below what the switch must: a cut is to half of it at most.
    settings.algorithm =
        apus_algorithms::registry::build("bolt", None, &[("ai", "0"), ("min_rto", "60s")])
            .expect("bolt");
    // Packets that no probe makes longer, which would make the window smaller in packets.
    settings.max_mtu = 1280;
    let (server, client) = (host(settings.clone()), host(settings));
    let region = server.register(vec![0; 1 << 20], Access::Write).expect("region");
    let switch = Switch::new(server.local_addr());
    let here = client.connect(switch.address).expect("connect");
    let _there = server.accept().expect("accept");
    let bytes = pattern(1, 1 << 20);
    let from = Instant::now();
    let window = || here.flow_state(0).expect("connected").0.cwnd;
    assert_eq!(window(), 64.0, "the default");
    while window() > 1.0 {
        assert!(from.elapsed() < PATIENCE, "the window stays at {}", window());
        let write = here.submit(Request::write(region.key(), 0, bytes.clone())).expect("room");
        write.wait().expect("written");
    }
    region.read(|memory| assert!(memory == bytes, "what switches write on packets is not payload"));
    assert!(switch.signals.load(Ordering::Relaxed) > 62, "each takes one packet at most");
}
