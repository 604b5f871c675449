//! Times, sizes and rates compared with exact arithmetic: whole numbers of 128 bits.

mod floats;
mod quantities;
mod rates;
mod support;
mod times;
