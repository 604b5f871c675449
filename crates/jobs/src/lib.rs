//! Jobs as graphs of operations: the sends, receives and computations of each rank, and their order.
//!
//! A [`Graph`] comes from a [generator](collectives), a [file](goal) or a [`ProgramBuilder`]. A [`Rank`]
//! executes the operations of one rank: time is an argument, and the owner carries the messages. [`ideal`]
//! runs jobs on NICs without congestion between them; [`loggops`] runs them in the model of LogGOPSim.
//!
//! # Example
//!
//! ```
#![doc = include_str!("../examples/ring.rs")]
//! ```
#![no_std]

extern crate alloc;

pub mod collectives;
pub mod goal;
mod graph;
pub mod ideal;
pub mod loggops;
mod matching;
mod rank;

pub use graph::{ANY, Action, Flaw, Graph, GraphError, Op, Part, Program, ProgramBuilder};
pub use rank::{Done, Message, OpTimes, PartTimes, Progress, Rank, Unexpected};
