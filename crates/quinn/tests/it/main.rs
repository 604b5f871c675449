//! Connections of quinn with Swift, in virtual time.

mod connections;
mod network;
mod plaintext;
mod table;
