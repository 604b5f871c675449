//! The ops of an emulated host: closed loops, and open loops whose ops are submitted at given times.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use apus_udp::{
    Bytes, Completion, Connection, Histogram, RegionKey, Request, SubmitError, async_channel,
};

use super::spec::{FlowSpec, LoadSpec, OpName};

/// Time between two checks for unfinished ops in the drain. deviation: no source; rationale: short compared with the
/// runs, and each check takes the locks of all flows.
const DRAIN_POLL: Duration = Duration::from_millis(5);
/// Time to wait if the engine accepts no op and no completion will report that it can. deviation: no source; about the
/// time in which a thread wakes up.
const RETRY: Duration = Duration::from_micros(50);

/// A flow with everything that is needed to submit its ops.
pub struct Flow {
    /// Specification of the flow.
    pub spec: FlowSpec,
    /// Its connection.
    pub connection: Connection,
    /// Index of the flow within its connection.
    pub place: usize,
    region: RegionKey,
    payload: Bytes,
    state: Mutex<State>,
    /// Payload of the ops that ended in the measured time.
    pub bytes: AtomicU64,
}

#[derive(Default)]
struct State {
    /// Planned submission time of each outstanding op, by the number of the op.
    under_way: BTreeMap<u32, Duration>,
    /// Ops whose time has come but that the engine could not accept yet.
    waiting: VecDeque<TimedOp>,
    /// Number of the next op of a closed loop.
    next: u32,
}

/// An op with its time of submission, counted from the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimedOp {
    /// Planned submission time.
    pub at: Duration,
    flow: usize,
    /// Number of the op within its flow.
    number: u32,
}

impl TimedOp {
    /// Returns flow and number as one value: there are fewer than 2^32 flows.
    fn mark(self) -> u64 {
        (self.flow as u64) << 32 | u64::from(self.number)
    }
}

impl Flow {
    /// Returns the flow with index `place` of a connection to a peer with this region.
    pub fn new(spec: FlowSpec, connection: Connection, place: usize, region: RegionKey) -> Self {
        let sent = if spec.op == OpName::Read { 0 } else { spec.load.largest() };
        let payload = Bytes::from(vec![0x61; sent as usize]);
        let next = match spec.load {
            LoadSpec::Closed { outstanding, .. } => outstanding,
            LoadSpec::Open(_) => 0,
        };
        let (state, bytes) = (Mutex::new(State { next, ..State::default() }), AtomicU64::new(0));
        Self { spec, connection, place, region, payload, state, bytes }
    }

    /// Returns `true` if the flow has had its first op by this time after the start.
    pub fn has_started(&self, by: Duration) -> bool {
        Duration::from_nanos(self.spec.start_ns) <= by
    }

    fn size(&self, number: u32) -> u64 {
        match &self.spec.load {
            LoadSpec::Closed { size, .. } => *size,
            LoadSpec::Open(ops) => ops[number as usize].1,
        }
    }

    fn request(&self, number: u32) -> Request {
        let size = self.size(number) as usize;
        match self.spec.op {
            OpName::Write => Request::write(self.region, 0, self.payload.slice(..size)),
            OpName::Read => Request::read(self.region, 0, size),
            OpName::Message => Request::message(self.payload.slice(..size)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// State that the threads of a host share.
pub struct Work {
    /// The flows of the host.
    pub flows: Vec<Flow>,
    queue: async_channel::Sender<Completion>,
    /// Time of the start.
    pub begin: Instant,
    /// The measured time, after the start.
    measured: Range<Duration>,
    /// `true` while the bytes of ended ops count.
    pub measuring: AtomicBool,
    /// Latencies of the ops submitted in the measured time, whenever they end. Ops of open loops count from their
    /// planned times, including the time in which they are queued.
    pub latency: Histogram,
    failed: Mutex<Option<String>>,
}

impl Work {
    /// Returns the work of these flows, whose completions arrive on `queue`. The work starts now.
    pub fn new(
        flows: Vec<Flow>,
        queue: async_channel::Sender<Completion>,
        measured: Range<Duration>,
    ) -> Self {
        Self {
            flows,
            queue,
            begin: Instant::now(),
            measured,
            measuring: AtomicBool::new(false),
            latency: Histogram::default(),
            failed: Mutex::new(None),
        }
    }

    /// Returns all ops whose times are known from the start, in the order of time.
    pub fn timed_ops(&self) -> Vec<TimedOp> {
        let mut all = Vec::new();
        for (flow, Flow { spec, .. }) in self.flows.iter().enumerate() {
            match &spec.load {
                LoadSpec::Closed { outstanding, .. } => {
                    let at = Duration::from_nanos(spec.start_ns);
                    all.extend((0..*outstanding).map(|number| TimedOp { at, flow, number }));
                }
                LoadSpec::Open(ops) => {
                    let ops = ops.iter().take_while(|&&(at, _)| at < spec.stop_ns).enumerate();
                    all.extend(ops.map(|(number, &(at, _))| TimedOp {
                        at: Duration::from_nanos(at),
                        flow,
                        number: number as u32,
                    }));
                }
            }
        }
        all.sort();
        all
    }

    /// Submits an op, after the queued ops of its flow.
    pub fn submit(&self, op: &TimedOp) {
        let mut state = self.flows[op.flow].lock();
        state.waiting.push_back(*op);
        self.submit_waiting(&self.flows[op.flow], &mut state);
    }

    fn submit_waiting(&self, flow: &Flow, state: &mut State) {
        while let Some(&op) = state.waiting.front() {
            let request = flow.request(op.number);
            match flow.connection.submit_queued(flow.place, request, &self.queue, op.mark()) {
                Ok(_) => {
                    state.under_way.insert(op.number, op.at);
                    state.waiting.pop_front();
                }
                // The end of an outstanding op will make room.
                Err(SubmitError::Full) if !state.under_way.is_empty() => return,
                Err(SubmitError::Full) => thread::sleep(RETRY),
                Err(error) => {
                    state.waiting.clear();
                    return self.fail(&error.to_string());
                }
            }
        }
    }

    /// Takes completions until the queue is closed. After each completion of a closed loop, submits the next op.
    pub fn follow(&self, ends: &async_channel::Receiver<Completion>) {
        while let Ok(end) = ends.recv_blocking() {
            let (index, number) = ((end.user >> 32) as usize, end.user as u32);
            let flow = &self.flows[index];
            let mut state = flow.lock();
            let submitted = state.under_way.remove(&number);
            match end.result {
                Ok(done) => {
                    let now = self.begin.elapsed();
                    let (latency, next) = match &flow.spec.load {
                        LoadSpec::Closed { .. } => {
                            let goes_on = now < Duration::from_nanos(flow.spec.stop_ns);
                            let next = TimedOp { at: now, flow: index, number: state.next };
                            state.next = state.next.wrapping_add(1);
                            (done.latency, goes_on.then_some(next))
                        }
                        LoadSpec::Open(ops) => {
                            let late =
                                now.saturating_sub(Duration::from_nanos(ops[number as usize].0));
                            let ns = u64::try_from(late.as_nanos()).unwrap_or(u64::MAX);
                            (apus_units::Span::from_ns(ns), None)
                        }
                    };
                    if self.measuring.load(Ordering::Relaxed) {
                        flow.bytes.fetch_add(flow.size(number), Ordering::Relaxed);
                    }
                    if submitted.is_some_and(|at| self.measured.contains(&at)) {
                        self.latency.record(latency);
                    }
                    state.waiting.extend(next);
                }
                Err(error) => self.fail(&error.to_string()),
            }
            self.submit_waiting(flow, &mut state);
        }
    }

    /// Waits at most until `limit` after the start for the ops whose planned times are in the measured time. Returns
    /// the ages of the unfinished ones, in microseconds.
    pub fn drain(&self, limit: Duration) -> Vec<f64> {
        loop {
            let now = self.begin.elapsed();
            let unfinished = self.unfinished_us(now);
            if unfinished.is_empty() || now >= limit {
                return unfinished;
            }
            thread::sleep(DRAIN_POLL.min(limit - now));
        }
    }

    fn unfinished_us(&self, now: Duration) -> Vec<f64> {
        let mut ages = Vec::new();
        for flow in &self.flows {
            let state = flow.lock();
            let begins = state.under_way.values().chain(state.waiting.iter().map(|op| &op.at));
            let counted = begins.filter(|at| self.measured.contains(at));
            ages.extend(counted.map(|at| now.saturating_sub(*at).as_secs_f64() * 1e6));
        }
        ages
    }

    fn fail(&self, why: &str) {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.get_or_insert_with(|| why.to_owned());
    }

    /// Returns why the first failed op failed.
    pub fn failure(&self) -> Option<String> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use apus_udp::session::KeyRing;
    use apus_udp::{Access, Config, Host, Mode, Region};

    use super::*;

    const MEASURED: Range<Duration> = Duration::from_nanos(10)..Duration::from_nanos(20);

    fn host() -> Host {
        let any = "127.0.0.1:0".parse().expect("an address");
        let mut config = Config::new(any, KeyRing::insecure()).expect("defaults");
        config.mode = Mode::Shared;
        Host::start(config).expect("a host")
    }

    /// Returns an open load of three ops; the second is submitted in the measured time.
    fn work(client: &Host, server: &Host) -> (Work, async_channel::Receiver<Completion>, Region) {
        let region = server.register(vec![0; 100], Access::ALL).expect("memory");
        let connection = client.connect(server.local_addr()).expect("connected");
        let spec = FlowSpec {
            index: 0,
            to: 0,
            op: OpName::Write,
            load: LoadSpec::Open(vec![(0, 100), (10, 100), (20, 100)]),
            start_ns: 0,
            stop_ns: u64::MAX,
        };
        let (queue, ends) = async_channel::unbounded();
        let flow = Flow::new(spec, connection, 0, region.key());
        let work = Work::new(vec![flow], queue, MEASURED);
        work.timed_ops().iter().for_each(|op| work.submit(op));
        (work, ends, region)
    }

    #[test]
    fn only_ops_submitted_in_the_measured_time_have_latencies() {
        let (client, server) = (host(), host());
        let (work, ends, _region) = work(&client, &server);
        let work = Arc::new(work);
        let follower = Arc::clone(&work);
        thread::spawn(move || follower.follow(&ends));
        let patience = work.begin.elapsed() + Duration::from_secs(60);
        assert_eq!(work.drain(patience), Vec::<f64>::new());
        while !work.flows[0].lock().under_way.is_empty() {
            assert!(work.begin.elapsed() < patience, "all ops end");
            thread::sleep(DRAIN_POLL);
        }
        assert_eq!(work.latency.count(), 1);
        assert_eq!(work.failure(), None);
    }

    #[test]
    fn ops_that_have_not_ended_after_the_drain_have_ages() {
        let (client, server) = (host(), host());
        // No thread takes the completions.
        let (work, _ends, _region) = work(&client, &server);
        let limit = work.begin.elapsed() + 2 * DRAIN_POLL;
        let ages = work.drain(limit);
        assert_eq!(ages.len(), 1, "{ages:?}");
        // The age counts from 10 ns after the start, and the drain ends at the limit or later.
        assert!(ages[0] >= (limit - MEASURED.start).as_secs_f64() * 1e6, "{ages:?}");
        assert_eq!(work.latency.count(), 0);
    }
}
