//! The simulator on plans: physics, hosts, metrics and threads.

mod adding_a_workload;
mod builder;
mod columns;
mod drain;
mod ecmp;
mod ends;
mod faults;
mod job_results;
mod jobs;
mod loads;
mod loggops;
mod measure;
mod monitor;
mod physics;
mod record;
mod runs;
mod stalls;
mod steps;
mod support;
mod threads;
