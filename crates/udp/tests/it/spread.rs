//! Connections of several source ports, over the loopback interface.

use apus_udp::{Access, AckPath, Config, Connection, Host, LossDetection, OnePort, Paths, Request};
use apus_units::Span;

use crate::support::{SHARED, config, host, pattern, until};

const LENGTH: usize = 4 << 20;

/// Returns a host that spreads packets by this policy over 8 ports.
fn spreading(balancer: &str) -> Host {
    spreading_with(balancer, |_| ())
}

/// Returns a host with other settings.
fn server(change: impl FnOnce(&mut Config)) -> Host {
    let mut config = config(SHARED);
    change(&mut config);
    host(config)
}

fn paths(connection: &Connection) -> Paths {
    connection.paths().expect("open")
}

/// Waits until the peer has confirmed all ports; returns their state.
fn confirmed(connection: &Connection) -> Paths {
    until("the peer has confirmed all ports", || {
        let paths = paths(connection);
        paths.ports.len() == 8 && paths.ports.iter().all(|port| port.usable)
    });
    paths(connection)
}

/// Writes to the server and reads the bytes back.
fn exchange(client: &Host, server: &Host, mut look: impl FnMut(&Connection)) {
    let region = server.register(vec![0; LENGTH], Access::ALL).expect("memory");
    let connection = client.connect(server.local_addr()).expect("connected");
    let _accepted = server.accept().expect("a client");
    look(&connection);
    let bytes = pattern(3, LENGTH);
    let op = connection.submit(Request::write(region.key(), 0, bytes.clone())).expect("room");
    op.wait().expect("written");
    let op = connection.submit(Request::read(region.key(), 0, LENGTH)).expect("room");
    assert!(op.wait().expect("read").bytes == bytes);
    look(&connection);
}

#[test]
fn one_flow_leaves_by_all_ports_and_the_counters_say_so() {
    for balancer in ["oblivious", "reps", "bitmap", "mixed"] {
        let (client, server) = (spreading(balancer), server(|_| ()));
        let mut calls = 0;
        exchange(&client, &server, |connection| {
            calls += 1;
            let paths = confirmed(connection);
            assert_eq!((paths.one_port, paths.peer_ports), (None, 1));
            let own: std::collections::BTreeSet<u16> = paths.ports.iter().map(|p| p.port).collect();
            assert_eq!(own.len(), 8, "{balancer}");
            assert!(own.contains(&client.local_addr().port()));
            if calls == 2 {
                for port in &paths.ports {
                    let c = port.counters;
                    assert!(c.sent > 0 && c.good > 0, "{balancer}: {c:?}");
                    assert!(c.good + c.marked + c.lost <= c.sent, "{balancer}: {c:?}");
                }
            }
        });
    }
}

/// Returns a host that spreads packets over 8 ports, with other settings.
fn spreading_with(balancer: &str, change: impl FnOnce(&mut Config)) -> Host {
    let mut config = config(SHARED);
    config.set_balancer(Some(balancer), Some(8)).expect("a policy");
    change(&mut config);
    host(config)
}

#[test]
fn policies_that_keep_a_path_use_one_port_at_a_time() {
    for balancer in ["ecmp", "plb", "flowlet"] {
        let (client, server) = (spreading(balancer), server(|_| ()));
        exchange(&client, &server, |connection| {
            assert_eq!(confirmed(connection).one_port, None, "{balancer}");
        });
    }
}

/// Each flow of a connection uses one path.
#[test]
fn ecmp_divides_flows_among_ports() {
    let (client, server) = (spreading("ecmp"), server(|_| ()));
    let connection = client.connect_with(server.local_addr(), &[0; 16], None).expect("connected");
    let _accepted = server.accept().expect("a client");
    confirmed(&connection);
    for flow in 0..16 {
        let op = connection.submit_to(flow, Request::message(vec![1; 100])).expect("room");
        op.wait().expect("delivered");
    }
    let used = paths(&connection).ports.iter().filter(|port| port.counters.sent > 0).count();
    // 16 flows on 8 ports: the probability that fewer than 3 ports are used is below 28 * (1/4)^16.
    assert!(used >= 3, "{used} ports");
}

#[test]
fn both_sides_may_spread_and_acknowledgements_may_have_paths_of_their_own() {
    for ack_path in [AckPath::Symmetric, AckPath::Own] {
        let hosts = [(); 2].map(|()| {
            spreading_with("oblivious", |config| {
                config.ack_path = ack_path;
                config.range = 256;
            })
        });
        let [client, server] = &hosts;
        exchange(client, server, |connection| {
            let paths = confirmed(connection);
            assert_eq!((paths.peer_ports, paths.range), (8, Some(256)));
        });
    }
}

#[test]
fn every_rule_of_losses_moves_all_bytes() {
    let delay = Span::from_ms(2);
    for loss in [LossDetection::EvOrder, LossDetection::Time(delay), LossDetection::Timeout] {
        let client = spreading_with("oblivious", |config| {
            config.spreading.as_mut().expect("set").loss = loss;
        });
        exchange(&client, &server(|_| ()), |connection| _ = confirmed(connection));
    }
}

#[test]
fn a_server_that_has_a_balancer_spreads_answers_to_a_client_that_has_none() {
    let (client, server) = (server(|_| ()), spreading("oblivious"));
    let region = server.register(vec![7; LENGTH], Access::READ).expect("memory");
    let connection = client.connect(server.local_addr()).expect("connected");
    let accepted = server.accept().expect("a client");
    confirmed(&accepted);
    let op = connection.submit(Request::read(region.key(), 0, LENGTH)).expect("room");
    assert_eq!(op.wait().expect("read").bytes, vec![7; LENGTH]);
    assert!(paths(&accepted).ports.iter().all(|port| port.counters.sent > 0));
    let ours = paths(&connection);
    assert_eq!((ours.one_port, ours.peer_ports, ours.ports.len()), (Some(OnePort::Off), 8, 1));
}

#[test]
fn a_peer_that_takes_one_port_gets_one_and_the_statistics_say_why() {
    let one = |config: &mut Config| config.accept_ports = Some(1);
    let engines = |config: &mut Config| config.engines = 2;
    for server in [server(one), server(engines)] {
        let client = spreading("reps");
        exchange(&client, &server, |connection| {
            let paths = paths(connection);
            assert_eq!(paths.one_port, Some(OnePort::PeerAcceptsOne));
            assert_eq!((paths.ports.len(), paths.ports[0].usable), (1, true));
            let page = client.metrics().page();
            assert!(page.contains("reason=\"peer_accepts_one\""), "{page}");
        });
    }
}

#[test]
fn fewer_ports_are_used_if_the_peer_accepts_fewer() {
    let client = spreading("reps");
    let server = server(|config| config.accept_ports = Some(4));
    exchange(&client, &server, |connection| {
        until("four ports are confirmed", || {
            let paths = paths(connection);
            paths.ports.len() == 4 && paths.ports.iter().all(|port| port.usable)
        });
        let page = client.metrics().page();
        assert!(page.contains("state=\"usable\"} 4"), "{page}");
        assert_eq!(page.matches("fate=\"good\"").count(), 4, "{page}");
    });
}

#[test]
fn ports_may_be_chosen_and_are_named_if_one_is_taken() {
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("bound").port();
    let mut config = config(SHARED);
    config.set_balancer(Some("reps"), Some(2)).expect("a policy");
    config.spreading.as_mut().expect("set").next_port = Some(port);
    let error = Host::start(config.clone()).err().expect("the port is taken").to_string();
    assert!(error.contains(&format!("127.0.0.1:{port}")), "{error}");
    config.spreading.as_mut().expect("set").next_port = Some(0);
    let error = Host::start(config.clone()).err().expect("no port").to_string();
    assert!(error.contains("source_port is 0"), "{error}");
    config.spreading.as_mut().expect("set").next_port = None;
    config.departure_timestamps = true;
    let error = Host::start(config).err().expect("a contradiction").to_string();
    assert!(error.contains("departure_timestamps"), "{error}");
}

/// Swift has a target delay, and DCTCP needs marks. CUBIC, TIMELY and a constant window have neither.
#[test]
fn policies_that_would_hear_of_no_queue_are_refused_and_the_error_says_what_to_choose() {
    for policy in ["reps", "bitmap", "mixed", "plb"] {
        for algorithm in ["cubic", "timely", "constant"] {
            let mut config = config(SHARED);
            config.set_algorithm(Some(algorithm), &[]).expect("built in");
            config.set_balancer(Some(policy), Some(2)).expect("a policy");
            let error = Host::start(config).err().expect("no signal").to_string();
            for part in [policy, algorithm, "such as swift or dctcp", "such as oblivious"] {
                assert!(error.contains(part), "{part}: {error}");
            }
        }
    }
    let pairs =
        [("reps", "swift"), ("bitmap", "dctcp"), ("oblivious", "cubic"), ("flowlet", "timely")];
    for (policy, algorithm) in pairs {
        let mut config = config(SHARED);
        config.set_algorithm(Some(algorithm), &[]).expect("built in");
        config.set_balancer(Some(policy), Some(2)).expect("a policy");
        Host::start(config).expect(policy);
    }
}

/// Several engines have their ports at one address. The kernel distributes the peer's ports over the engines, so packets of a
/// connection would reach engines that do not know the connection.
#[test]
fn several_engines_at_one_address_refuse_the_peers_ports_in_words() {
    let mut config = config(SHARED);
    (config.engines, config.accept_ports) = (2, Some(256));
    let error = Host::start(config.clone()).err().expect("a contradiction").to_string();
    for part in ["accept_ports is 256", "2 engines", "an address of its own"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    config.accept_ports = Some(1);
    Host::start(config).expect("as agreed");
}
