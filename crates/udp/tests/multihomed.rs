//! A host that is bound to all addresses answers from the address that was asked.

mod support;

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::MetadataExt;
use std::process::Command;

use apus_udp::{Access, Host, Request};
use support::{SHARED, host, pattern, steady};

fn bound_to(ip: IpAddr) -> Host {
    let mut settings = steady(SHARED);
    settings.bind = (ip, 0).into();
    host(settings)
}

/// A server at all addresses; a client at `from` that has connections to each of `addresses` at once.
fn serves_at_each_address(all: IpAddr, from: IpAddr, addresses: &[IpAddr]) {
    let server = bound_to(all);
    let region = server.register(vec![0; 1 << 20], Access::ReadWrite).expect("memory");
    let client = bound_to(from);
    let at = |ip: &IpAddr| SocketAddr::new(*ip, server.local_addr().port());
    let connections: Vec<_> = addresses
        .iter()
        .map(|ip| {
            let here = client.connect(at(ip)).unwrap_or_else(|why| panic!("{ip}: {why}"));
            (here, server.accept().expect("a client"))
        })
        .collect();
    for round in 0..3 {
        for (n, (here, there)) in connections.iter().enumerate() {
            // Single datagrams and bursts, both ways.
            for length in [64, 1 << 20] {
                let bytes = pattern(round * 10 + n as u64, length);
                let write = Request::write(region.key(), 0, bytes.clone());
                here.submit(write).expect("room").wait().expect("written");
                let read = here.submit(Request::read(region.key(), 0, length)).expect("room");
                assert!(read.wait().expect("read").bytes == bytes, "connection {n}");
            }
            there.submit(Request::message(vec![n as u8])).expect("room").wait().expect("sent");
            assert_eq!(here.receive().expect("a message").bytes[..], [n as u8]);
        }
    }
    for (here, there) in &connections {
        assert_eq!((here.ended(), there.ended()), (None, None));
    }
}

#[test]
fn a_server_at_all_ipv4_addresses_answers_from_the_one_that_was_asked() {
    let addresses = [1, 2, 3].map(|n| Ipv4Addr::new(127, 0, 0, n).into());
    for from in [Ipv4Addr::UNSPECIFIED, Ipv4Addr::LOCALHOST] {
        serves_at_each_address(Ipv4Addr::UNSPECIFIED.into(), from.into(), &addresses);
    }
}

/// The loopback interface has one IPv6 address, so this takes a network namespace.
#[test]
fn a_server_at_all_ipv6_addresses_answers_from_the_one_that_was_asked() {
    let mut unshare = Command::new("unshare");
    if std::fs::metadata("/proc/self").map_or(true, |own| own.uid() != 0) {
        unshare.args(["--user", "--map-root-user"]);
    }
    let path = std::env::var("PATH").unwrap_or_default();
    unshare.env("PATH", format!("{path}:/usr/sbin:/sbin"));
    let script = "ip link set lo up && ip address add fd00::1/128 dev lo nodad && \
                  ip address add fd00::2/128 dev lo nodad && echo ready && \
                  exec \"$0\" --exact in_a_namespace_with_two_ipv6_addresses --ignored";
    let this = std::env::current_exe().expect("this program");
    let output = unshare.args(["--net", "sh", "-ec", script]).arg(this).output();
    let said = output.as_ref().map(|o| String::from_utf8_lossy(&o.stdout).into_owned());
    let said = said.unwrap_or_default();
    if !said.starts_with("ready") {
        // What a test that passes prints by `eprintln` is not seen.
        let _ = writeln!(std::io::stderr(), "skipped: no namespace with IPv6: {output:?}");
        return;
    }
    assert!(said.contains("1 passed"), "{said}");
}

#[test]
#[ignore = "a part of a_server_at_all_ipv6_addresses_answers_from_the_one_that_was_asked"]
fn in_a_namespace_with_two_ipv6_addresses() {
    let addresses = ["fd00::1", "fd00::2"].map(|text| text.parse().expect("an address"));
    for from in [Ipv6Addr::UNSPECIFIED.into(), addresses[0]] {
        serves_at_each_address(Ipv6Addr::UNSPECIFIED.into(), from, &addresses);
    }
}
