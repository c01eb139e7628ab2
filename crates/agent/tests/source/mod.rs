//! Sources against trackers that behave like the real ones: every verb, both trackers, and what goes wrong on the way.

mod file;
mod kit;
mod labels;
mod listing;
mod review;
mod talk;
mod trouble;
