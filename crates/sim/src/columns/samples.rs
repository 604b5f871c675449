//! `samples.csv` and `sample_percentiles.csv`.

use std::fmt::Display;

use super::declare::{Cell, Columns, Declared, Kind, Row, row, us};
use crate::record::{FlowSample, Quantity, Recording};

/// State of a flow at a sample time.
#[derive(Clone, Debug)]
pub struct SampleRow {
    /// Time, microseconds.
    pub time_us: f64,
    /// The connection.
    pub flow: u32,
    /// State.
    pub sample: FlowSample,
}

impl Declared for SampleRow {
    fn declare(to: &mut Columns) {
        let fact = Kind::Fact;
        to.push(
            fact,
            "time_us",
            "end of the interval of this sample, since the start of the run",
            "-",
        );
        let flow = "the connection, numbered from 0 in the scenario's order";
        to.push(fact, "flow", flow, "key column");
        for quantity in Quantity::ALL {
            let (definition, aggregation) = quantity.definition();
            to.push(fact, quantity.column(), definition, aggregation);
        }
        let active =
            "1 if the flow had an outstanding op or delivered data in the interval, else 0";
        to.push(fact, "active", active, "instant");
    }
}

impl Row for SampleRow {
    const FILE: &'static str = "samples.csv";
    const MEANING: &'static str = "\
        One row per sample time and sampled flow: the state of the side that sends the data. \
        `[record] flows` says how many flows are sampled.";

    fn cells(&self, put: &mut dyn FnMut(&dyn Display)) {
        self.time_us.put(put);
        self.flow.put(put);
        self.sample.values.iter().for_each(|value| value.put(put));
        u8::from(self.sample.active).put(put);
    }
}

row! {
    "sample_percentiles.csv"
    /// One row per sample time and column of samples.csv: the column over all active flows.
    #[derive(Clone, Debug)]
    pub struct BandRow {
        /// end of the interval of this sample, since the start of the run
        pub time_us: f64 = "-",
        /// the column of samples.csv, whose unit the values have
        pub column: &'static str = "key column",
        /// active flows that have the value
        pub flows: u32 = "count over flows",
        /// the column
        pub mean: f64 = "mean over active flows" => "of the column",
        /// the column
        pub p5: f64 = "5th percentile over active flows, nearest rank" => "of the column",
        /// the column
        pub p25: f64 = "25th percentile over active flows, nearest rank" => "of the column",
        /// the column
        pub p50: f64 = "median over active flows, nearest rank" => "of the column",
        /// the column
        pub p75: f64 = "75th percentile over active flows, nearest rank" => "of the column",
        /// the column
        pub p95: f64 = "95th percentile over active flows, nearest rank" => "of the column",
    }
}

impl Recording {
    /// Returns the rows of samples.csv.
    pub fn sample_rows(&self) -> impl Iterator<Item = SampleRow> {
        self.times.iter().zip(&self.samples).flat_map(move |(time, samples)| {
            let time_us = us(*time);
            let flows = self.sampled_flows.iter().zip(samples);
            flows.map(move |(&flow, &sample)| SampleRow { time_us, flow, sample })
        })
    }

    /// Returns the rows of sample_percentiles.csv.
    pub fn band_rows(&self) -> impl Iterator<Item = BandRow> {
        self.times.iter().zip(&self.bands).flat_map(|(time, bands)| {
            let bands = Quantity::ALL.iter().zip(bands).filter(|(_, band)| band.flows > 0);
            bands.map(move |(quantity, band)| {
                let [p5, p25, p50, p75, p95] = band.percentiles;
                let (column, flows, mean) = (quantity.column(), band.flows, band.mean);
                BandRow { time_us: us(*time), column, flows, mean, p5, p25, p50, p75, p95 }
            })
        })
    }
}
