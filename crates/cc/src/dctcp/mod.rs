//! DCTCP (RFC 8257).

pub mod switch;
