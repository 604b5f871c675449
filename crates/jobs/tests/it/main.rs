//! Tests of the crate through its public interface.

mod collectives;
mod goal;
mod graph;
mod loggops;
mod random_graphs;
mod samples;
mod training;
