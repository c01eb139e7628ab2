//! Which thread a client's transcript belongs to: stories of one or several clients, in every dialect and on every store.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod alone;
mod kit;
mod mixed;
mod named;
mod spool;
mod stories;
