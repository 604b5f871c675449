//! A method as a `tower::Service`.

use std::future::poll_fn;
use std::time::Duration;

use apus_rpc::{Bytes, CallError, ClientOptions, MethodService, Methods, ServerOptions};
use tower_service::Service;

use crate::pair::{Door, echo, pair, pair_with};
use crate::support::PATIENCE;

#[test]
fn service_answers_requests() {
    let pair = pair(echo());
    let method = pair.client.method("echo").expect("the method");
    let mut service = MethodService::new(pair.client.clone(), method, Some(PATIENCE));
    let answers = async {
        for n in 0..600u32 {
            poll_fn(|context| service.poll_ready(context)).await.expect("a connection");
            let request = Bytes::copy_from_slice(&n.to_be_bytes());
            assert_eq!(service.call(request).await.expect("an answer")[..], n.to_be_bytes());
        }
    };
    pair.client_host.block_on(answers, None).expect("the host runs");
}

#[test]
fn service_is_ready_when_the_client_has_room() {
    let door = Door::new();
    let at_door = door.clone();
    let methods = Methods::new().with("wait", move |_| {
        at_door.pass();
        Ok(())
    });
    let options = ClientOptions { max_calls: 1, ..Default::default() };
    let pair = pair_with(methods, ServerOptions::default(), &options);
    let method = pair.client.method("wait").expect("the method");
    let mut service = MethodService::new(pair.client.clone(), method, None);
    let mut other = service.clone();
    let ready = |service: &mut MethodService, timeout| {
        pair.client_host.block_on(poll_fn(|context| service.poll_ready(context)), timeout)
    };
    assert_eq!(ready(&mut service, None), Some(Ok(())));
    assert_eq!(ready(&mut other, Some(Duration::from_millis(1))), None, "the place is reserved");
    let call = service.call(Bytes::new());
    assert_eq!(ready(&mut other, Some(Duration::from_millis(1))), None, "the place is used");
    let late = pair.client_host.block_on(other.call(Bytes::new()), None).expect("the host runs");
    assert_eq!(late.map(drop), Err(CallError::Busy { limit: 1 }));
    door.open();
    pair.client_host.block_on(call, None).expect("the host runs").expect("an answer");
    assert_eq!(ready(&mut other, None), Some(Ok(())));
    // A reservation that is not used is returned.
    drop(other);
    assert_eq!(ready(&mut service, None), Some(Ok(())));
}
