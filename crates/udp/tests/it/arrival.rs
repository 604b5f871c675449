//! Arrival times of datagrams, as the kernel reports them.

use std::time::Duration;

use crate::support::pair::{Pair, submit};
use crate::support::until;
use apus_udp::{Access, Request};

/// Swift §3.3: the time in the receive queue is a part of the endpoint delay.
#[test]
fn a_datagram_that_waits_in_the_socket_counts_as_endpoint_delay() {
    let (pair, [connection, _peer]) = Pair::connect(|_| ());
    let region = pair.server.register(vec![0; 100], Access::WRITE).expect("memory");
    let wait = Duration::from_millis(20);
    // The kernel begins to stamp datagrams some time after the request; until then it stamps them when they are read.
    until("an endpoint delay as long as the wait", || {
        let write = submit(&connection, Request::write(region.key(), 0, vec![1; 64]));
        for _ in 0..10 {
            pair.client.drive();
        }
        std::thread::sleep(wait);
        pair.until(1, write).expect("written");
        let longest = pair.stats()[0].endpoint_delay.quantile_us(1.0).expect("samples");
        // The histogram reports the middle of a bucket, within 1/64.
        longest > wait.as_secs_f64() * 1e6 * 63.0 / 64.0
    });
}
