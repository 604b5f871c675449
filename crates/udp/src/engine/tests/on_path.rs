//! Fields outside the authenticated bytes that an attacker on the path can change: the TTL and the ECN marks of the IP
//! header.

use super::*;
use crate::sys::Meta;

/// Delivers all datagrams between two hosts until `patience` has passed, with `change` applied to their control messages.
fn run_with(pair: &mut Pair, patience: Span, change: fn(&mut Meta)) {
    let end = pair.hosts[0].engine.network.now.get() + patience;
    loop {
        let mut busy = false;
        for i in 0..2 {
            busy |= pair.hosts[i].engine.step(true);
            let [to, from] = [1 - i, i].map(|host| &pair.hosts[host].engine.network);
            for burst in from.sent.take() {
                for datagram in burst.datagrams {
                    let mut meta = VirtualNetwork::meta(from.local, datagram.len(), burst.tos);
                    change(&mut meta);
                    to.put_aggregate(meta, datagram);
                    busy = true;
                }
            }
        }
        let now = pair.hosts[0].engine.network.now.get();
        if now >= end {
            return;
        }
        if !busy {
            let timers = pair.hosts.iter_mut().map(|host| host.engine.next_due());
            let next = timers.min().unwrap_or(Time::MAX).max(now + Span::from_us(1)).min(end);
            pair.hosts.iter().for_each(|host| host.engine.network.now.set(next));
        }
    }
}

/// Returns the target of the fabric delay of the client's flow after a message of 100,000 bytes, which must arrive.
fn target_after(algorithm: &str, change: fn(&mut Meta)) -> Option<Span> {
    let mut config = config();
    config.set_algorithm(Some(algorithm), &[]).expect("defaults");
    let mut pair = Pair::connect(&config);
    let message = submit(&pair.client, OpKind::Message, Buffers::Payload(bytes(100_000).into()));
    run_with(&mut pair, Span::from_secs(10), change);
    message.try_recv().expect("ended").expect("delivered");
    assert_eq!((pair.client.state.ended(), pair.server.state.ended()), (None, None));
    let (reply, state) = oneshot::channel();
    pair.client.mailbox.ask(&pair.client.state, ConnectionCommand::Inspect { flow: 0, reply });
    run_with(&mut pair, Span::from_ms(1), change);
    state.try_recv().expect("a state").0.target_delay
}

/// A host sends with a TTL of 64, so a forged TTL gives at most 64 hops: 64 us with `hop_scale` of 1 us. Flow scaling adds up
/// to 100 us in either case, depending on the window.
#[test]
fn a_forged_ttl_raises_the_target_by_64_hops_at_most() {
    let honest = target_after("swift", |_| {}).expect("Swift has a target");
    let forged = target_after("swift", |meta| meta.ttl = Some(0)).expect("Swift has a target");
    let most = Span::from_us(64 + 100);
    assert!(forged > honest && forged <= honest + most, "{honest:?} became {forged:?}");
}

#[test]
fn forged_ecn_marks_slow_a_flow_down_and_end_nothing() {
    for algorithm in ["swift", "dctcp", "dcqcn"] {
        target_after(algorithm, |meta| meta.tos |= 0b11);
        target_after(algorithm, |meta| meta.tos &= !0b11);
    }
}
