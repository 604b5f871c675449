//! Jobs on hosts of the LogGOPS model: one model of all ranks of a job, whose messages the fabric carries.
//!
//! A receiver and a sender that waits for it affect each other without delay, so the network has one part.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use apus_cc::AlgorithmFactory;
use apus_jobs::loggops::{Departure, Model, Parameters, Ranks};
use apus_jobs::{Action, Message, Rank};
use apus_units::{HostId, Time};

use super::{Happened, HostRank, Step};
use crate::host::Host;
use crate::plan::{JobError, JobPlan, Plan};
use crate::world::World;

/// Host of a rank, and the index of the rank at the host.
type Seat = (usize, usize);

/// The hosts with the ranks of a job.
struct Seated<'a, F: AlgorithmFactory> {
    hosts: &'a mut [Host<F>],
    seats: &'a [Seat],
}

impl<F: AlgorithmFactory> Seated<'_, F> {
    fn host_rank(&mut self, number: u32) -> &mut HostRank {
        let (host, place) = self.seats[number as usize];
        &mut self.hosts[host].jobs.get_or_insert_default().ranks[place]
    }
}

impl<F: AlgorithmFactory> Ranks for Seated<'_, F> {
    fn rank(&mut self, number: u32) -> &mut Rank {
        &mut self.host_rank(number).state
    }
}

struct ModelledJob {
    number: u32,
    plan: Arc<JobPlan>,
    model: Model,
    is_started: bool,
    seats: Box<[Seat]>,
    /// Ranks whose operations are all done, ordered by the end of the last operation.
    ends: BinaryHeap<Reverse<(Time, u32)>>,
}

/// All jobs of a run on such hosts.
pub(crate) struct ModelledJobs(Vec<ModelledJob>);

impl ModelledJobs {
    /// Returns the jobs of a plan. `hosts` are all of its hosts.
    ///
    /// # Errors
    /// If the host of a rank is not one of them.
    pub(crate) fn new<F: AlgorithmFactory>(
        plan: &Plan<F>,
        parameters: &Parameters,
        hosts: &[Host<F>],
    ) -> Result<Self, JobError> {
        let seat = |job: &JobPlan, number, rank, host: HostId| {
            let jobs = hosts.get(host.index()).and_then(|host| host.jobs.as_ref());
            let place = jobs.and_then(|jobs| jobs.index_of(number, rank));
            let missing = || job.error(format!("{host} has no rank {rank}"));
            Ok((host.index(), place.ok_or_else(missing)? as usize))
        };
        let job = |(number, job): (u32, &Arc<JobPlan>)| {
            let seats =
                (0..).zip(job.hosts.iter()).map(|(rank, host)| seat(job, number, rank, *host));
            Ok(ModelledJob {
                number,
                plan: Arc::clone(job),
                model: Model::new(&job.graph, parameters),
                is_started: false,
                seats: seats.collect::<Result<_, _>>()?,
                ends: BinaryHeap::new(),
            })
        };
        (0..).zip(&plan.jobs).map(job).collect::<Result<_, _>>().map(Self)
    }

    /// Returns the time of the next event; [`Time::MAX`] if there is none.
    pub(crate) fn next_at(&self) -> Time {
        self.0.iter().map(ModelledJob::next_at).min().unwrap_or(Time::MAX)
    }

    /// Handles all events that are due at `now`.
    pub(crate) fn run_due<F: AlgorithmFactory>(
        &mut self,
        now: Time,
        hosts: &mut [Host<F>],
        world: &mut World<F>,
    ) {
        for job in self.0.iter_mut().filter(|job| job.next_at() <= now) {
            job.run_due(now, hosts, world);
        }
    }

    /// Handles a step of a message on the fabric.
    pub(crate) fn note<F: AlgorithmFactory>(&mut self, news: &Happened, hosts: &mut [Host<F>]) {
        let job = &mut self.0[news.job as usize];
        let mut ranks = Seated { hosts, seats: &job.seats };
        let message = (news.from, news.message);
        match news.step {
            Step::Began => job.model.on_first_byte(news.at, message),
            Step::Arrived => {
                if let Some(rank) = job.model.on_last_byte(news.at, message, &mut ranks) {
                    job.note_end(rank, news.at, hosts);
                }
            }
            Step::Sent | Step::Acknowledged => {}
        }
    }
}

impl ModelledJob {
    fn next_at(&self) -> Time {
        if !self.is_started {
            return self.plan.start;
        }
        let end = self.ends.peek().map_or(Time::MAX, |Reverse((at, _))| *at);
        self.model.next_at().min(end)
    }

    fn run_due<F: AlgorithmFactory>(
        &mut self,
        now: Time,
        hosts: &mut [Host<F>],
        world: &mut World<F>,
    ) {
        let mut ranks = Seated { hosts, seats: &self.seats };
        if !self.is_started {
            self.is_started = true;
            self.model.start(now, &mut ranks);
            for rank in 0..self.plan.graph.ranks() {
                self.note_end(rank, now, hosts);
            }
        }
        while self.model.next_at() <= now {
            let mut ranks = Seated { hosts, seats: &self.seats };
            let Some(step) = self.model.step(&mut ranks) else { break };
            let rank = ranks.host_rank(step.rank);
            if let Some(until) = step.computes_until {
                rank.compute_until(now, until);
            }
            if let Some(until) = step.handles_until {
                rank.handle_until(now, until);
            }
            if let Some(departure) = step.departure {
                self.model.carry(&departure);
                self.send(&departure, hosts, world);
            }
            for rank in [Some(step.rank), step.sender].into_iter().flatten() {
                self.note_end(rank, now, hosts);
            }
        }
        while let Some(Reverse((at, rank))) = self.ends.peek().copied()
            && at <= now
        {
            self.ends.pop();
            let (host, place) = self.seats[rank as usize];
            if let Some(jobs) = &mut hosts[host].jobs {
                jobs.end_rank(place, at);
            }
        }
    }

    fn send<F: AlgorithmFactory>(
        &self,
        departure: &Departure,
        hosts: &mut [Host<F>],
        world: &mut World<F>,
    ) {
        let Departure { from, op, leaves, .. } = *departure;
        let of = self.plan.graph.program(from).op(op);
        let Action::Send { to, bytes, tag } = of.action else { return };
        let message = Message { op, to, bytes, tag, nic: of.nic };
        let host = &mut hosts[self.seats[from as usize].0];
        host.send_from_outside(leaves, (self.number, from), message, world);
    }

    /// Records the end of a rank if all of its operations are done.
    fn note_end<F: AlgorithmFactory>(&mut self, rank: u32, now: Time, hosts: &mut [Host<F>]) {
        let mut ranks = Seated { hosts, seats: &self.seats };
        let of = ranks.host_rank(rank);
        if of.state.is_done() && of.ended_at.is_none() {
            self.ends.push(Reverse((of.state.ended_at().max(now), rank)));
        }
    }
}
