//! Messages, times, and the run that calls back.

use std::ffi::{c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use ::apus_sim::live::{Key, LiveError, Next};
use apus_units::{Span, Time};

use crate::handle::{Call, Callback, Status, apus_sim};

fn call_of(function: Option<Callback>, argument: *mut c_void) -> Option<Call> {
    function.map(|function| Call { function, argument })
}

/// Makes a call with the token of a callback, which is forgotten if the call is refused.
fn submit(
    sim: Option<&apus_sim>,
    call: Option<Call>,
    make: impl FnOnce(&apus_sim, Option<u64>) -> Result<(), LiveError>,
) -> i32 {
    let Some(sim) = sim else { return Status::Invalid as i32 };
    if sim.has_failed.get() {
        return sim.refuse(Status::Failed, "an earlier call ended in a bug of the simulator");
    }
    let token = call.map(|call| sim.calls.borrow_mut().add(call));
    let made = catch_unwind(AssertUnwindSafe(|| make(sim, token)));
    let refused = match made {
        Ok(Ok(())) => return Status::Ok as i32,
        Ok(Err(error)) => sim.refuse(Status::Invalid, error),
        Err(_) => {
            sim.has_failed.set(true);
            sim.refuse(Status::Failed, "a bug of the simulator: it panicked")
        }
    };
    if let Some(token) = token {
        sim.calls.borrow_mut().take(token);
    }
    refused
}

#[unsafe(no_mangle)]
extern "C" fn apus_sim_send(
    sim: Option<&apus_sim>,
    from: u32,
    to: u32,
    tag: u64,
    bytes: u64,
    done: Option<Callback>,
    argument: *mut c_void,
) -> i32 {
    submit(sim, call_of(done, argument), |sim, token| {
        sim.live.borrow_mut().send(Key { from, to, tag }, bytes, token)
    })
}

#[unsafe(no_mangle)]
extern "C" fn apus_sim_recv(
    sim: Option<&apus_sim>,
    rank: u32,
    from: u32,
    tag: u64,
    bytes: u64,
    done: Option<Callback>,
    argument: *mut c_void,
) -> i32 {
    extern "C" fn nothing(_: *mut c_void) {}
    let call = Call { function: done.unwrap_or(nothing), argument };
    submit(sim, Some(call), |sim, token| {
        let token = token.unwrap_or_default();
        sim.live.borrow_mut().receive(Key { from, to: rank, tag }, bytes, token)
    })
}

#[unsafe(no_mangle)]
extern "C" fn apus_sim_schedule(
    sim: Option<&apus_sim>,
    delay_ps: u64,
    function: Option<Callback>,
    argument: *mut c_void,
) -> i32 {
    let call = call_of(function, argument);
    if let (Some(sim), None) = (sim, call) {
        return sim.refuse(Status::Invalid, "`function` is NULL");
    }
    submit(sim, call, |sim, token| {
        let token = token.unwrap_or_default();
        sim.live.borrow_mut().schedule(Span::from_ps(delay_ps), token);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn apus_sim_now(sim: Option<&apus_sim>) -> u64 {
    sim.map_or(0, |sim| sim.live.borrow().now().as_ps())
}

#[unsafe(no_mangle)]
extern "C" fn apus_sim_ranks(sim: Option<&apus_sim>) -> u32 {
    sim.map_or(0, |sim| sim.live.borrow().ranks())
}

#[unsafe(no_mangle)]
extern "C" fn apus_sim_events(sim: Option<&apus_sim>) -> u64 {
    sim.map_or(0, |sim| sim.live.borrow().events())
}

#[unsafe(no_mangle)]
extern "C" fn apus_sim_stop(sim: Option<&apus_sim>) {
    if let Some(sim) = sim {
        sim.is_to_stop.set(true);
    }
}

#[unsafe(no_mangle)]
extern "C" fn apus_sim_last_error(sim: Option<&apus_sim>) -> *const c_char {
    sim.map_or(c"`sim` is NULL".as_ptr(), apus_sim::error)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn apus_sim_run(sim: *mut apus_sim, until_ps: u64) -> i32 {
    if sim.is_null() {
        return Status::Invalid as i32;
    }
    let status = {
        // SAFETY: a handle. It is not freed while `is_running` is set.
        let sim = unsafe { &*sim };
        if sim.is_running.replace(true) {
            return sim
                .refuse(Status::Busy, "apus_sim_run is in progress; it was called in a callback");
        }
        sim.is_to_stop.set(false);
        let status = run(sim, Time::from_ps(until_ps));
        sim.is_running.set(false);
        status
    };
    // SAFETY: as above.
    if unsafe { (*sim).is_destroyed.get() } {
        // SAFETY: a callback destroyed it, and no function of it is running any more.
        drop(unsafe { Box::from_raw(sim) });
    }
    status
}

fn run(sim: &apus_sim, until: Time) -> i32 {
    if sim.has_failed.get() {
        return sim.refuse(Status::Failed, "an earlier call ended in a bug of the simulator");
    }
    while !sim.is_to_stop.get() && !sim.is_destroyed.get() {
        let next = catch_unwind(AssertUnwindSafe(|| sim.live.borrow_mut().next(until)));
        match next {
            Err(_) => {
                sim.has_failed.set(true);
                return sim.refuse(Status::Failed, "a bug of the simulator: it panicked");
            }
            Ok(Next::Reached) => return Status::Ok as i32,
            Ok(Next::Idle) => {
                let unfinished = sim.live.borrow().unfinished();
                return match unfinished {
                    Some(what) => sim.refuse(
                        Status::Unfinished,
                        format_args!("nothing is left that could happen, but {what}"),
                    ),
                    None => Status::Idle as i32,
                };
            }
            Ok(Next::Event(token)) => {
                let call = sim.calls.borrow_mut().take(token);
                if let Some(Call { function, argument }) = call {
                    // SAFETY: the header requires a function for this argument. Nothing is borrowed.
                    unsafe { function(argument) };
                }
            }
        }
    }
    Status::Ok as i32
}
