//! The tests of this crate through its public interface, as one program: it is linked once.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod access;
mod ask;
mod bad_input;
mod chat;
mod cli;
mod confine;
mod deploy;
mod doctor;
mod explain_error;
mod fit;
mod found;
mod gateway;
mod kill;
mod mcp;
mod migrate;
mod model_server;
mod models;
mod operations;
mod output;
mod pages;
mod playbook;
mod playbook_json;
mod private;
mod reading;
mod recall;
mod report;
mod run;
mod sandbox;
mod sdk;
mod seed_commands;
#[path = "../../store/tests/servers/mod.rs"]
mod servers;
mod sessions;
mod shell;
mod task;
mod tasks;
mod thread;
mod tidy;
mod trust;
mod two_gateways;
mod user;
mod width;
