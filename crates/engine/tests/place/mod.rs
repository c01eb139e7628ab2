//! Which thread a client's transcript belongs to: stories of one or several clients, in every dialect and on every store.

mod alone;
mod kit;
mod mixed;
mod named;
mod spool;
mod stories;
