//! htsim's connection matrices (.cm) as jobs: flows that triggers start.
//!
//! A node is a rank; a connection is a send and a receive. Between the end of one flow and the start of
//! another:
//! * A flow whose sender sent or received the previous flow waits for that send or receive.
//! * Otherwise the rank where the trigger is activated sends a message of 1 B to the flow's sender. deviation: in htsim
//!   triggers take no time.
//! * A send is done at the time that the job sets (`done`). deviation: in htsim a flow that a
//!   `send_done_trigger` of its receiver starts also waits for the acknowledgement; here it starts when the
//!   message has arrived.
//! * `recv_done_trigger` is activated when the message has arrived, as htsim's documentation defines; csg-htsim
//!   never activates it.
//! * The k-th activation of a `multishot` is that of the k-th connection of the file that activates it. deviation: in
//!   htsim it is the k-th in time; both are equal if equal flows end in the order of their start.

use std::collections::BTreeMap;

use apus_jobs::{Graph, Op, ProgramBuilder};
use apus_units::{Span, shorten, suggestion};

use super::htsim::TWICE;
use super::text::{ImportError, MAX_RANKS, content, number, time, wrong};

/// The start of a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Start {
    At(Span),
    Trigger(u32),
}

#[derive(Clone, Debug)]
struct Flow {
    line: usize,
    from: u32,
    to: u32,
    bytes: u64,
    start: Start,
    send_done: Option<u32>,
    recv_done: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Oneshot,
    Multishot,
    Barrier(u64),
}

/// An end of a flow that activates a trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Activation {
    flow: usize,
    is_send: bool,
}

#[derive(Debug, Default)]
struct Matrix {
    nodes: u32,
    flows: Vec<Flow>,
    triggers: BTreeMap<u32, (usize, Kind)>,
}

/// Maximum number of connections of a file.
const MAX_FLOWS: usize = 5_000_000;
/// Maximum number of activations for which the flows of a file wait. Rationale: each may be a message, so two
/// operations of about 100 B.
const MAX_WAITS: u64 = 10_000_000;

/// Reads a connection matrix as a job.
///
/// # Errors
/// An error with line and remedy.
pub fn parse_job(text: &str) -> Result<Graph, ImportError> {
    let matrix = Matrix::parse(text)?;
    let starts = matrix.starts()?;
    matrix.check_order(&starts)?;
    matrix.graph(&starts).map_err(|why| ImportError { line: 1, message: why.to_string() })
}

impl Matrix {
    fn parse(text: &str) -> Result<Self, ImportError> {
        let mut matrix = Self::default();
        let mut announced: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for (line, row) in content(text) {
            let words: Vec<&str> = row.split_whitespace().collect();
            match words.as_slice() {
                ["Nodes", n] => {
                    if matrix.nodes > 0 {
                        return wrong(line, TWICE);
                    }
                    matrix.nodes = number(line, n, "a number of nodes")?;
                    if matrix.nodes > MAX_RANKS {
                        return wrong(line, format!("a job has at most {MAX_RANKS} nodes"));
                    }
                }
                [what @ ("Connections" | "Triggers" | "Failures"), n] => {
                    let count = number(line, n, "a number of lines")?;
                    if announced.insert(what, (line, count)).is_some() {
                        return wrong(line, format!("`{what}` stands twice; write it once"));
                    }
                }
                ["failure", ..] => {
                    let why =
                        "failures are not read; write them as `[[fault]]` in the scenario instead";
                    return wrong(line, why);
                }
                ["trigger", rest @ ..] => matrix.trigger(line, rest)?,
                [pair, rest @ ..] if pair.contains("->") => {
                    let flow = parse_flow(line, pair, rest, matrix.nodes)?;
                    if matrix.flows.len() >= MAX_FLOWS {
                        return wrong(line, format!("more than {MAX_FLOWS} connections"));
                    }
                    matrix.flows.push(flow);
                }
                _ => {
                    let row = shorten(row);
                    let right = "a connection is `src->dst id K start PS size BYTES`, a trigger `trigger id K oneshot`";
                    return wrong(line, format!("`{row}` is unknown; {right}"));
                }
            }
        }
        let found = [
            ("Connections", matrix.flows.len()),
            ("Triggers", matrix.triggers.len()),
            ("Failures", 0),
        ];
        for (what, found) in found {
            if let Some((line, count)) = announced.get(what)
                && *count != found
            {
                let what = what.to_lowercase();
                let why =
                    format!("{count} {what} are announced, but there are {found}; correct it");
                return wrong(*line, why);
            }
        }
        if matrix.flows.is_empty() {
            return wrong(
                1,
                "the file has no connections; add lines like `0->1 id 1 start 0 size 2000000`",
            );
        }
        Ok(matrix)
    }

    fn trigger(&mut self, line: usize, words: &[&str]) -> Result<(), ImportError> {
        let (id, kind) = match words {
            ["id", id, "oneshot"] => (id, Kind::Oneshot),
            ["id", id, "multishot"] => (id, Kind::Multishot),
            ["id", id, "barrier", "count", n] => {
                (id, Kind::Barrier(number(line, n, "a number of activations")?))
            }
            ["id", _, "barrier"] => {
                return wrong(line, "a barrier needs `count N`, the activations that it waits for");
            }
            _ => {
                let right = "`trigger id K oneshot`, `trigger id K multishot` or `trigger id K barrier count N`";
                return wrong(line, format!("this trigger is not {right}"));
            }
        };
        let id: u32 = number(line, id, "the number of a trigger")?;
        if let Some((first, _)) = self.triggers.insert(id, (line, kind)) {
            return wrong(line, format!("trigger {id} is defined in line {first} too; remove one"));
        }
        Ok(())
    }

    /// Returns the activations for which each flow waits.
    fn starts(&self) -> Result<Vec<Vec<Activation>>, ImportError> {
        let mut activations: BTreeMap<u32, Vec<Activation>> = BTreeMap::new();
        let mut started: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (index, flow) in self.flows.iter().enumerate() {
            let known = |id: u32| match self.triggers.contains_key(&id) {
                true => Ok(id),
                false => wrong(
                    flow.line,
                    format!("trigger {id} is defined nowhere; add `trigger id {id} oneshot`"),
                ),
            };
            if let Start::Trigger(id) = flow.start {
                started.entry(known(id)?).or_default().push(index);
            }
            for (id, is_send) in [(flow.send_done, true), (flow.recv_done, false)] {
                if let Some(id) = id {
                    let activation = Activation { flow: index, is_send };
                    activations.entry(known(id)?).or_default().push(activation);
                }
            }
        }
        let mut waits = vec![Vec::new(); self.flows.len()];
        let mut total = 0;
        for (id, (line, kind)) in &self.triggers {
            let flows = started.get(id).map_or(&[][..], Vec::as_slice);
            let by = activations.get(id).map_or(&[][..], Vec::as_slice);
            if flows.is_empty() {
                let remedy = match by.is_empty() {
                    true => "remove it",
                    false => "remove it, and what activates it in the lines of flows",
                };
                return wrong(*line, format!("trigger {id} starts no flow: {remedy}"));
            }
            if by.is_empty() {
                return wrong(
                    *line,
                    format!("nothing activates trigger {id}: its flows would never start"),
                );
            }
            let fits = match kind {
                Kind::Oneshot if by.len() > 1 => Some(format!(
                    "{} flows activate the oneshot {id}; its second activation ends a run of htsim: use `barrier count N` or `multishot`",
                    by.len()
                )),
                Kind::Barrier(count) if *count != by.len() as u64 => Some(format!(
                    "the barrier {id} waits for {count} activations, but {} flows activate it",
                    by.len()
                )),
                Kind::Multishot if flows.len() > by.len() => Some(format!(
                    "the multishot {id} starts {} flows, but is activated {} times: the others would never start",
                    flows.len(),
                    by.len()
                )),
                _ => None,
            };
            if let Some(why) = fits {
                return wrong(*line, why);
            }
            let each = if *kind == Kind::Multishot { 1 } else { by.len() as u64 };
            total += flows.len() as u64 * each;
            if total > MAX_WAITS {
                let (flows, by) = (flows.len(), by.len());
                return wrong(
                    *line,
                    format!(
                        "with trigger {id}, whose {flows} flows wait for {by} activations, the flows wait for {total}; a \
                         file has at most {MAX_WAITS}: let the trigger start one flow, whose end starts the others by a oneshot"
                    ),
                );
            }
            for (place, flow) in flows.iter().enumerate() {
                waits[*flow] = match kind {
                    Kind::Multishot => vec![by[place]],
                    Kind::Oneshot | Kind::Barrier(_) => by.to_vec(),
                };
            }
        }
        Ok(waits)
    }

    /// Refuses flows that wait for each other.
    fn check_order(&self, waits: &[Vec<Activation>]) -> Result<(), ImportError> {
        let mut left: Vec<usize> = waits.iter().map(Vec::len).collect();
        let mut followers = vec![Vec::new(); waits.len()];
        for (flow, waits) in waits.iter().enumerate() {
            waits.iter().for_each(|activation| followers[activation.flow].push(flow));
        }
        let mut free: Vec<usize> = (0..left.len()).filter(|flow| left[*flow] == 0).collect();
        while let Some(flow) = free.pop() {
            for next in &followers[flow] {
                left[*next] -= 1;
                if left[*next] == 0 {
                    free.push(*next);
                }
            }
        }
        match left.iter().position(|left| *left > 0) {
            Some(flow) => {
                let Flow { line, from, to, .. } = self.flows[flow];
                wrong(line, format!("the flow {from}->{to} waits for itself, through its trigger"))
            }
            None => Ok(()),
        }
    }

    fn graph(&self, waits: &[Vec<Activation>]) -> Result<Graph, apus_jobs::GraphError> {
        let mut programs: Vec<ProgramBuilder> =
            (0..self.nodes).map(|rank| ProgramBuilder::new(rank, self.nodes)).collect();
        let delays = self.delays(&mut programs)?;
        let mut ops = Vec::with_capacity(self.flows.len());
        for (tag, flow) in (0..).zip(&self.flows) {
            let label = format!("c{}", tag + 1);
            let sender = &mut programs[flow.from as usize];
            let send = sender.push(Op::send(flow.to, flow.bytes, tag))?;
            sender.label(&label)?;
            if let Start::At(at) = flow.start
                && let Some(delay) = delays.get(&(flow.from, at))
            {
                sender.requires(send, *delay);
            }
            let receiver = &mut programs[flow.to as usize];
            let receive = receiver.push(Op::receive(flow.from, flow.bytes, tag))?;
            receiver.label(&label)?;
            ops.push((send, receive));
        }
        let mut tag = self.flows.len() as u32;
        for (flow, waits) in waits.iter().enumerate() {
            let (rank, send) = (self.flows[flow].from, ops[flow].0);
            for Activation { flow, is_send } in waits {
                let (of, (sent, received)) = (&self.flows[*flow], ops[*flow]);
                let (own, other) = ((of.from, sent), (of.to, received));
                let ends = if *is_send { [own, other] } else { [other, own] };
                if let Some((_, op)) = ends.iter().find(|(at, _)| *at == rank) {
                    programs[rank as usize].requires(send, *op);
                    continue;
                }
                let (at, op) = ends[0];
                let notice = programs[at as usize].push(Op::send(rank, 1, tag))?;
                programs[at as usize].requires(notice, op);
                let hears = programs[rank as usize].push(Op::receive(at, 1, tag))?;
                programs[rank as usize].requires(send, hears);
                tag += 1;
            }
        }
        Graph::new(programs.into_iter().map(ProgramBuilder::finish).collect::<Result<_, _>>()?)
    }

    /// Adds a computation on a separate stream up to each time at which flows of a rank start.
    fn delays(
        &self,
        programs: &mut [ProgramBuilder],
    ) -> Result<BTreeMap<(u32, Span), u32>, apus_jobs::GraphError> {
        let mut delays = BTreeMap::new();
        for flow in &self.flows {
            if let Start::At(at) = flow.start
                && !at.is_zero()
            {
                delays.insert((flow.from, at), 0);
            }
        }
        let mut before: Option<(u32, Span, u32)> = None;
        for ((rank, at), op) in &mut delays {
            let program = &mut programs[*rank as usize];
            let last = before.filter(|(of, ..)| of == rank);
            let passed = last.map_or(Span::ZERO, |(_, at, _)| at);
            *op = program.push(Op::compute(*at - passed).on_cpu(1))?;
            if let Some((_, _, last)) = last {
                program.requires(*op, last);
            }
            before = Some((*rank, *at, *op));
        }
        Ok(delays)
    }
}

fn parse_flow(line: usize, pair: &str, rest: &[&str], nodes: u32) -> Result<Flow, ImportError> {
    let (from, to) = pair.split_once("->").unwrap_or((pair, ""));
    let (from, to): (u32, u32) = (number(line, from, "a node")?, number(line, to, "a node")?);
    if nodes == 0 {
        return wrong(line, "`Nodes N` must come before the connections");
    }
    if from.max(to) >= nodes {
        let node = from.max(to);
        return wrong(line, format!("unknown node {node}: the file has {nodes}, numbered from 0"));
    }
    if from == to {
        return wrong(line, format!("node {from} sends to itself; the two must differ"));
    }
    let (mut start, mut trigger, mut bytes) = (None, None, None);
    let (mut send_done, mut recv_done, mut is_message) = (None, None, false);
    let mut words = rest.iter().peekable();
    while let Some(key) = words.next() {
        match *key {
            // The key has no effect in htsim either.
            "addon" => continue,
            "msg" => {
                is_message = true;
                words.next_if(|word| word.parse::<u64>().is_ok());
                continue;
            }
            _ => {}
        }
        let Some(value) = words.next() else {
            return wrong(line, format!("`{}` has no value", shorten(key)));
        };
        match *key {
            "id" => {
                number::<u64>(line, value, "an id")?;
            }
            "start" => start = Some(number::<u64>(line, value, "a start time")?),
            "trigger" => trigger = Some(number(line, value, "the number of a trigger")?),
            "size" => bytes = Some(number(line, value, "a size in bytes")?),
            "send_done_trigger" => {
                send_done = Some(number(line, value, "the number of a trigger")?)
            }
            "recv_done_trigger" => {
                recv_done = Some(number(line, value, "the number of a trigger")?)
            }
            "prio" => {
                return wrong(line, "`prio` is not read; use several jobs with a `class` each");
            }
            other => {
                let known = [
                    "id",
                    "start",
                    "trigger",
                    "size",
                    "send_done_trigger",
                    "recv_done_trigger",
                    "msg",
                    "addon",
                ];
                let hint = suggestion(other, known.into_iter());
                return wrong(line, format!("unknown word `{}`{hint}", shorten(other)));
            }
        }
    }
    let start = match (start, trigger) {
        (Some(us), None) if is_message => Start::At(time(line, us, Span::from_us(1), "us")?),
        (Some(ps), None) => Start::At(Span::from_ps(ps)),
        (None, Some(id)) => Start::Trigger(id),
        _ => return wrong(line, "it needs either `start TIME` or `trigger K`"),
    };
    let Some(bytes) = bytes.filter(|bytes| *bytes > 0) else {
        return wrong(line, "the size is missing or 0; write `size BYTES`");
    };
    Ok(Flow { line, from, to, bytes, start, send_done, recv_done })
}
