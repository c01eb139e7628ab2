//! What a gateway asks of this crate: to find its way in a request without holding it, to read and write a part of one,
//! to send it on as it is, and to make one answer of several.

mod elements;
mod forward;
mod memory;
use crate::client::server;
mod several;
mod skim;
mod torture;
