//! The verbs, each in a file of the same shape: `Args`, `run`.

pub(crate) mod append;
pub(crate) mod ask;
pub(crate) mod chat;
pub(crate) mod cleanup;
pub(crate) mod completions;
pub(crate) mod condense;
pub(crate) mod config;
pub(crate) mod confine;
pub(crate) mod demo;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod explain_error;
pub(crate) mod export;
pub(crate) mod import;
pub(crate) mod key;
pub(crate) mod log;
pub(crate) mod mcp;
pub(crate) mod migrate;
pub(crate) mod model_server;
pub(crate) mod models;
pub(crate) mod output;
pub(crate) mod playbook;
pub(crate) mod recall;
pub(crate) mod redact;
pub(crate) mod replay;
pub(crate) mod report;
pub(crate) mod serve;
pub(crate) mod sessions;
pub(crate) mod setup;
pub(crate) mod show;
pub(crate) mod task;
pub(crate) mod thread;
pub(crate) mod trust;
pub(crate) mod user;
pub(crate) mod work;

mod talks;
