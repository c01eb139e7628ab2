//! Playbooks: read, checked, followed, cut off at every call of the store and taken up again.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod cuts;
mod drawn;
mod examples;
mod kit;
mod nodes;
mod random;
mod seed;
mod served;
mod wrong;
