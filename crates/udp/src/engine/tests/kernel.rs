//! An engine over the kernel's sockets, with faults that only the kernel can cause.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};

use apus_units::FlowId;

use super::config;
use crate::{Access, Connection, Host, RegionKey, Request};

fn inline() -> Host {
    let mut config = config();
    config.listen = vec![([127, 0, 0, 1], 0).into()];
    Host::start(config).expect("a host")
}

/// Drives inline hosts until a future is done.
fn until<T>(hosts: &[Host], future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
        for host in hosts {
            host.drive();
        }
    }
}

/// Writes 1 MiB from the first host; returns the numbers of datagrams and of system calls.
fn write(hosts: &[Host], connection: &Connection, region: RegionKey) -> [u64; 2] {
    let counts = || {
        let stats = hosts[0].stats().next().expect("an engine");
        [&stats.datagrams_sent, &stats.send_calls].map(|count| count.load(Ordering::Relaxed))
    };
    let before = counts();
    let write = connection.submit(Request::write(region, 0, vec![1; 1 << 20])).expect("room");
    until(hosts, write).expect("written");
    let after = counts();
    [0, 1].map(|n| after[n] - before[n])
}

#[test]
fn a_kernel_that_cannot_segment_for_one_peer_gets_single_datagrams_for_that_peer_only() {
    let hosts = [(); 3].map(|()| inline());
    let [client, first, second] = &hosts;
    let sockets = client.engine().as_ref().expect("it runs").sockets();
    let socket = sockets.first();
    if !socket.segmentation {
        return; // a kernel without UDP_SEGMENT
    }
    let regions =
        [first, second].map(|host| host.register(vec![0; 1 << 20], Access::WRITE).expect("memory"));
    let connections = [first, second].map(|host| {
        until(&hosts, client.connect_async(host.local_addr(), &[0], None)).expect("connected")
    });
    socket.omit_checksums(true);
    write(&hosts, &connections[0], regions[0].key());
    socket.omit_checksums(false);
    let lost = client.stats().map(|s| s.send_failures.load(Ordering::Relaxed)).sum::<u64>();
    assert_eq!(lost, 0, "each datagram was sent by itself");
    let locked = client.engine();
    let engine = locked.as_ref().expect("it runs");
    let routes =
        [0, 1].map(|flow| engine.protocol.connections.route(FlowId::new(flow)).expect("open"));
    for route in routes {
        assert_eq!(route.segmentation, route.to.address == second.local_addr());
    }
    drop(locked);
    // A quarter of the window of 64 packets is sent by one call.
    let [datagrams, calls] = write(&hosts, &connections[1], regions[1].key());
    assert!(calls * 4 < datagrams, "{datagrams} datagrams by {calls} calls");
}
