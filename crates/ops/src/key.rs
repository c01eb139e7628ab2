//! The keys of those who may reach a server: made, listed, revoked.

mod add;
pub mod file;
mod list;
mod revoke;

pub use add::{AddKey, Added};
pub use list::{KeyRow, ListKeys};
pub use revoke::{RevokeKey, Revoked};

use crate::Interfaces;

/// A verb of the owner of the machine.
const fn by_owner(verb: &'static str) -> Interfaces {
    Interfaces::only_cli(verb, "who may reach a server is for the owner of its machine to say")
}
