//! The turn against the scripted server: real HTTP, real counts, a window that is enforced.
//!
//! What the model saw is compared with the files in `snapshots/`; `KOMADO_BLESS=1` writes them anew.

mod broken;
mod converse;
pub(crate) mod kit;
mod learning;
mod lessons;
mod long;
mod overflow;
mod repeat;
mod stelis;
mod summaries;
mod texts;
