//! Calls the C interface of the simulator in any order, also from callbacks: no undefined behaviour occurs, every
//! failure has a description, time never decreases, and each callback is called at most once. The header's requirement
//! is met: a simulation is not used after it has been destroyed.
#![no_main]
#![expect(unsafe_code, reason = "calls of C")]

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::{from_ref, null_mut};

use apus_simulator as _;
use libfuzzer_sys::fuzz_target;

/// A C handle.
type Handle = *mut c_void;
type Callback = extern "C" fn(*mut c_void);

unsafe extern "C" {
    fn apus_sim_create(scenario: *const c_char, error: *mut c_char, size: usize) -> Handle;
    fn apus_sim_destroy(sim: Handle);
    fn apus_sim_ranks(sim: Handle) -> u32;
    fn apus_sim_send(
        sim: Handle,
        from: u32,
        to: u32,
        tag: u64,
        bytes: u64,
        done: Option<Callback>,
        argument: *mut c_void,
    ) -> c_int;
    fn apus_sim_recv(
        sim: Handle,
        rank: u32,
        from: u32,
        tag: u64,
        bytes: u64,
        done: Option<Callback>,
        argument: *mut c_void,
    ) -> c_int;
    fn apus_sim_schedule(
        sim: Handle,
        delay_ps: u64,
        function: Option<Callback>,
        argument: *mut c_void,
    ) -> c_int;
    fn apus_sim_now(sim: Handle) -> u64;
    fn apus_sim_events(sim: Handle) -> u64;
    fn apus_sim_run(sim: Handle, until_ps: u64) -> c_int;
    fn apus_sim_stop(sim: Handle);
    fn apus_sim_last_error(sim: Handle) -> *const c_char;
}

/// Scenarios, two of which are invalid.
const SCENARIOS: [&str; 4] = [
    "duration = \"1ms\"\ntopology = \"star hosts=4 100Gbps 1us\"\nalgorithm = { name = \"constant\", window = 64 }\n\
     [[workload]]\nkind = \"external\"\n",
    "duration = \"100us\"\ntopology = \"dumbbell hosts=4 25Gbps 1us\"\nalgorithm = \"swift\"\n\
     [[workload]]\nkind = \"external\"\ndone = \"local\"\n",
    "duration = \"1ms\"\ntopology = \"star hosts=4 100Gbps 1us\"\nalgorithm = \"swift\"\n",
    "duration = ",
];
/// Last status of the header, then the first one with an error text.
const FAILED: c_int = 5;
const INVALID: c_int = 2;
/// Maximum number of messages per input, which bounds the simulated packets.
const MESSAGES: usize = 64;
/// Maximum number of simulations per input. Creating one takes milliseconds, so more of them would take most of the
/// time.
const SIMULATIONS: usize = 8;

/// A call that requested a callback.
struct Asked {
    of: *const Calls,
    called: Cell<bool>,
}

struct Calls {
    input: RefCell<Vec<u8>>,
    sim: Cell<Handle>,
    is_running: Cell<bool>,
    last: Cell<u64>,
    messages: Cell<usize>,
    simulations: Cell<usize>,
    asked: RefCell<Vec<Box<Asked>>>,
}

impl Calls {
    fn byte(&self) -> u8 {
        self.input.borrow_mut().pop().unwrap_or(0)
    }

    fn number(&self) -> u64 {
        match self.byte() {
            255 => u64::MAX,
            254 => 1 << 40,
            n => u64::from(n) * 97,
        }
    }

    /// Returns the argument for a callback.
    fn ask(&self) -> *mut c_void {
        let mut asked = self.asked.borrow_mut();
        asked.push(Box::new(Asked { of: from_ref(self), called: Cell::new(false) }));
        asked.last().map_or(null_mut(), |asked| from_ref::<Asked>(asked).cast_mut().cast())
    }

    fn check(&self, status: c_int) {
        assert!((0..=FAILED).contains(&status), "status {status}");
        assert_ne!(status, FAILED, "a bug of the simulator");
        let sim = self.sim.get();
        if status >= INVALID && !sim.is_null() {
            // SAFETY: a handle; its text is valid until the next failed call.
            let text = unsafe { CStr::from_ptr(apus_sim_last_error(sim)) };
            assert!(!text.to_str().expect("UTF-8").is_empty(), "status {status} without a text");
        }
    }

    fn create(&self) {
        if self.simulations.replace(self.simulations.get() + 1) >= SIMULATIONS {
            return;
        }
        let scenario = SCENARIOS[usize::from(self.byte()) % SCENARIOS.len()];
        let scenario = CString::new(scenario).expect("no zero byte");
        let mut error = [1; 64];
        // SAFETY: a text, and room for the error.
        let sim = unsafe { apus_sim_create(scenario.as_ptr(), error.as_mut_ptr(), error.len()) };
        assert!(!sim.is_null() || error.contains(&0), "a text of an error that does not end");
        self.destroy();
        self.sim.set(sim);
        self.last.set(0);
    }

    fn destroy(&self) {
        // SAFETY: a handle or NULL, which is not used again.
        unsafe { apus_sim_destroy(self.sim.replace(null_mut())) };
    }

    fn run(&self) {
        let until = self.number().saturating_mul(1000);
        self.is_running.set(true);
        // SAFETY: a handle or NULL. A callback may destroy it.
        let status = unsafe { apus_sim_run(self.sim.get(), until) };
        self.is_running.set(false);
        self.check(status);
    }

    fn message(&self) {
        if self.messages.replace(self.messages.get() + 1) >= MESSAGES {
            return;
        }
        let sim = self.sim.get();
        let (a, b) = (u32::from(self.byte() % 5), u32::from(self.byte() % 5));
        let (tag, bytes, is_send) =
            (u64::from(self.byte() % 3), self.number().min(1 << 20), self.byte() % 2 == 0);
        let done = (self.byte() % 4 != 0).then_some(called as Callback);
        let call = if is_send { apus_sim_send } else { apus_sim_recv };
        // SAFETY: a handle or NULL, and an argument that stays valid.
        self.check(unsafe { call(sim, a, b, tag, bytes, done, self.ask()) });
    }

    fn call(&self) {
        let sim = self.sim.get();
        match self.byte() % 16 {
            0 if !self.is_running.get() => self.create(),
            1 => self.destroy(),
            // SAFETY: a handle or NULL.
            2 => unsafe { apus_sim_stop(sim) },
            3 | 4 => {
                let function = (self.byte() % 8 != 0).then_some(called as Callback);
                // SAFETY: a handle or NULL, and an argument that stays valid.
                self.check(unsafe { apus_sim_schedule(sim, self.number(), function, self.ask()) });
            }
            5..=7 if !self.is_running.get() => self.run(),
            // The call is refused within a callback.
            5 => {
                // SAFETY: a handle or NULL.
                let status = unsafe { apus_sim_run(sim, 0) };
                assert!(status >= INVALID, "a run within a run");
            }
            8 => {
                // SAFETY: a handle or NULL.
                let (now, ranks) = unsafe { (apus_sim_now(sim), apus_sim_ranks(sim)) };
                assert_eq!(ranks, if sim.is_null() { 0 } else { 4 });
                assert!(sim.is_null() || now >= self.last.get(), "time went back");
                self.last.set(now);
                // SAFETY: a handle or NULL.
                unsafe { apus_sim_events(sim) };
            }
            _ => self.message(),
        }
    }
}

extern "C" fn called(argument: *mut c_void) {
    // SAFETY: the argument of `ask`, which lives as long as its `Calls`.
    let asked = unsafe { &*argument.cast::<Asked>() };
    assert!(!asked.called.replace(true), "called twice");
    // SAFETY: as above.
    let calls = unsafe { &*asked.of };
    assert!(calls.is_running.get(), "called outside a run");
    assert!(!calls.sim.get().is_null(), "called after the simulation was destroyed");
    for _ in 0..calls.byte() % 4 {
        calls.call();
    }
}

fuzz_target!(|input: &[u8]| {
    let calls = Calls {
        input: RefCell::new(input.iter().rev().copied().collect()),
        sim: Cell::new(null_mut()),
        is_running: Cell::new(false),
        last: Cell::new(0),
        messages: Cell::new(0),
        simulations: Cell::new(0),
        asked: RefCell::default(),
    };
    calls.create();
    while !calls.input.borrow().is_empty() {
        calls.call();
    }
    calls.destroy();
});
