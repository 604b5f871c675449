//! Acknowledgements that are held until a waiting thread submits its answer.

use super::*;

/// Returns a pair whose client has sent a message of 64 bytes that the server has not received.
fn with_message() -> (Pair, oneshot::Receiver<OpResult>) {
    let mut pair = Pair::connect(&config());
    let message = submit(&pair.client, OpKind::Message, Buffers::Payload(bytes(64).into()));
    pair.hosts[0].engine.flush();
    deliver(&pair, 1);
    (pair, message)
}

/// Delivers what the other host sent to host `to`; returns the number of datagrams.
fn deliver(pair: &Pair, to: usize) -> usize {
    let [to, from] = [to, 1 - to].map(|host| &pair.hosts[host].engine.network);
    to.deliver_from(from)
}

#[test]
fn acknowledgement_leaves_with_the_answer_in_one_burst() {
    let (mut pair, message) = with_message();
    let messages = pair.server.messages.clone();
    assert!(pair.hosts[1].engine.step_and_hold(true, || !messages.is_empty()));
    assert!(pair.hosts[1].engine.holds() && pair.hosts[1].engine.rest().is_none());
    assert!(pair.hosts[1].engine.network.sent.borrow().is_empty(), "held");
    submit(&pair.server, OpKind::Message, Buffers::Payload(bytes(64).into()));
    pair.hosts[1].engine.flush();
    let sent = pair.hosts[1].engine.network.sent.borrow().clone();
    assert_eq!(sent.iter().map(|burst| burst.datagrams.len()).collect::<Vec<_>>(), [2]);
    assert!(!pair.hosts[1].engine.holds());
    assert_eq!(deliver(&pair, 0), 2);
    pair.hosts[0].engine.step(true);
    pair.hosts[0].engine.step(true);
    message.try_recv().expect("ended").expect("delivered");
    assert_eq!(pair.client.messages.try_recv().expect("an answer").bytes, bytes(64));
}

/// Swift §3.1: remote_queuing is t4 - t2, and the sender counts it as endpoint delay.
#[test]
fn time_of_holding_counts_as_endpoint_delay() {
    let (mut pair, message) = with_message();
    pair.hosts[0].engine.mailbox.status.stats.endpoint_delay.clear();
    pair.hosts[1].engine.step_and_hold(true, || true);
    for host in &pair.hosts {
        host.engine.network.advance(Span::from_us(700));
    }
    // The engine flushes without a command.
    pair.hosts[1].engine.flush();
    assert_eq!(deliver(&pair, 0), 1);
    pair.hosts[0].engine.step(true);
    message.try_recv().expect("ended").expect("delivered");
    let stats = &pair.hosts[0].engine.mailbox.status.stats;
    let delay = stats.endpoint_delay.quantile_us(0.5).expect("a sample");
    let error = (delay - 700.0).abs() / 700.0;
    assert!(error <= crate::stats::Histogram::RESOLUTION, "{delay} us");
}

/// A thread that may not wait again soon holds only acknowledgements for which no application waits.
#[test]
fn acknowledgement_of_an_answer_is_held_for_any_thread() {
    let (mut pair, _message) = with_message();
    let region = pair.register(0, bytes(64), Access::READ);
    let kind = OpKind::Read { region: region.key(), address: 0 };
    pair.hosts[1].engine.step_and_hold(false, || true);
    assert!(!pair.hosts[1].engine.holds(), "the client may wait for its message");
    deliver(&pair, 0);
    let read = submit(&pair.server, kind, Buffers::Vec(vec![0; 64]));
    pair.hosts[1].engine.flush();
    deliver(&pair, 0);
    // Each host sends two datagrams: an acknowledgement, and the request or its answer.
    for _ in 0..2 {
        pair.hosts[0].engine.step(true);
    }
    deliver(&pair, 1);
    for _ in 0..2 {
        if !pair.hosts[1].engine.holds() {
            pair.hosts[1].engine.step_and_hold(false, || read.has_message());
        }
    }
    assert!(pair.hosts[1].engine.holds() && !pair.hosts[1].engine.has_left());
    assert_eq!(read.try_recv().expect("ended").expect("read").bytes, bytes(64));
    assert_eq!(deliver(&pair, 0), 0);
    pair.hosts[1].engine.flush();
    assert_eq!(deliver(&pair, 0), 1);
}

#[test]
fn any_step_sends_what_is_held() {
    let (mut pair, _message) = with_message();
    pair.hosts[1].engine.step_and_hold(true, || true);
    // This is the step of the background thread after its alarm.
    pair.hosts[1].engine.step(true);
    assert_eq!(deliver(&pair, 0), 1);
}

#[test]
fn nothing_is_held_if_the_wait_goes_on_or_much_has_arrived() {
    let (mut pair, _message) = with_message();
    pair.hosts[1].engine.step_and_hold(true, || false);
    assert!(!pair.hosts[1].engine.holds());
    assert_eq!(deliver(&pair, 0), 1);
    // A message of three packets, which arrive as an aggregate.
    submit(&pair.client, OpKind::Message, Buffers::Payload(bytes(3000).into()));
    pair.hosts[0].engine.flush();
    let burst = pair.hosts[0].engine.network.sent.borrow_mut().pop().expect("a burst");
    assert_eq!(burst.datagrams.len(), 3);
    let from = pair.hosts[0].engine.network.local;
    let meta = VirtualNetwork::meta(from, burst.datagrams[0].len(), 0);
    pair.hosts[1].engine.network.put_aggregate(meta, burst.datagrams.concat());
    pair.hosts[1].engine.step_and_hold(true, || true);
    assert!(!pair.hosts[1].engine.holds() && deliver(&pair, 0) > 0);
}
