//! `job_ops.csv`.

use apus_jobs::{ANY, Action};
use apus_units::Time;

use super::declare::{row, us};
use crate::record::Recording;

row! {
    "job_ops.csv"
    /// One row per operation of a job, ordered by job, rank and operation. Times count from the start of the run.
    #[derive(Clone, Debug)]
    pub struct JobOpRow {
        /// name of the job
        pub job: String = "key column",
        /// rank, numbered from 0
        pub rank: u32 = "key column",
        /// number of the operation within the rank, in the order of the file
        pub op: u32 = "key column",
        /// label of the operation in the file, or name of its part of a generated job, such as all-reduce; empty if
        /// it has none
        pub label: Option<String> = "-",
        /// send, receive or compute
        pub kind: &'static str = "-",
        /// other rank of the message; empty for a computation, and for a receive from any rank that has taken no
        /// message
        pub peer: Option<u32> = "-",
        /// size of the message; empty for a computation
        pub bytes: Option<u64> = "-",
        /// time at which the operation started; a receive starts when it is posted; empty if it has not started
        pub start_us: Option<f64> = "-",
        /// time at which the operation ended: a receive when its message had arrived, a send as `done` of the job
        /// defines; empty if it has not ended
        pub end_us: Option<f64> = "-",
    }
}

impl Recording {
    /// Returns the rows of job_ops.csv.
    pub fn job_op_rows(&self) -> impl Iterator<Item = JobOpRow> {
        self.job_ops.iter().filter_map(|record| {
            let job = self.jobs.get(record.job as usize)?;
            let program = job.graph.program(record.rank);
            let named = |rank: u32| Some(rank).filter(|rank| *rank != ANY);
            let (kind, peer, bytes) = match program.op(record.op).action {
                Action::Send { to, bytes, .. } => ("send", Some(to), Some(bytes)),
                Action::Receive { from, bytes, .. } => {
                    ("receive", record.source.or_else(|| named(from)), Some(bytes))
                }
                Action::Compute { .. } => ("compute", None, None),
            };
            let part = || {
                let part = job.graph.parts().get(program.part_of(record.op)? as usize);
                part.map(|part| part.name)
            };
            let us = |time: Time| (time < Time::MAX).then(|| us(time));
            Some(JobOpRow {
                job: job.name.clone(),
                rank: record.rank,
                op: record.op,
                label: program.label(record.op).or_else(part).map(str::to_owned),
                kind,
                peer,
                bytes,
                start_us: us(record.start),
                end_us: us(record.end),
            })
        })
    }
}
