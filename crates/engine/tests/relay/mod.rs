//! The gateway's turn against the scripted server: real HTTP, real counts, a window that is enforced.

mod across;
mod apart;
mod crowd;
mod cut;
mod faithful;
mod faults;
mod grow;
mod kit;
mod late;
mod nameless;
mod own;
mod params;
mod random;
mod slow;
