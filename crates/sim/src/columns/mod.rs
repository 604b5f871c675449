//! Language of results: the declarations of tables and numbers (see `declare.rs` and docs/adding-a-metric.md), and
//! the rows of the tables. [`results`](crate::results) lists all of them.

mod cell;
mod declare;
mod faults;
mod flows;
mod job_ops;
mod metric;
mod ops;
mod ports;
mod samples;
mod stalls;
mod workloads;

pub(crate) use declare::{kind, ratio, summary};
pub(crate) use faults::{faults_of_plan, note_lost};
pub(crate) use metric::{BUCKETS, fits};

pub use cell::{Cell, CellType, Value};
pub use declare::{Cells, Column, Columns, Declared, Kind, Row, Table, gbps};
pub use faults::{FaultRecord, SlowedFlow};
pub use flows::FlowRow;
pub use job_ops::JobOpRow;
pub use metric::{STATS, unit_of};
pub use ops::OpRow;
pub use ports::{PortRow, PortSampleRow};
pub use samples::{BandRow, SampleRow};
pub use stalls::{StallSummary, StalledFlow};
pub use workloads::WorkloadRow;
