//! Take a key back.

use super::by_owner;
use super::file::{self, Keys};
use crate::{Context, Effect, Interfaces, Operation, Outcome};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Take a key back: it opens nothing from the next request on.
#[derive(Clone, Debug, clap::Args, Deserialize, JsonSchema)]
pub struct RevokeKey {
    /// Its name
    pub name: String,
}

/// A key that was taken back.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Revoked {
    /// Its name.
    pub name: String,
    /// True.
    pub revoked: bool,
    /// Nothing undoes it: the secret is gone.
    pub undo: Option<String>,
    /// Keys that are left.
    pub left: u64,
}

impl Operation for RevokeKey {
    const NAME: &'static str = "key_revoke";
    const TITLE: &'static str = "Take a key back";
    const EFFECT: Effect = Effect::Remove;
    const INTERFACES: Interfaces = by_owner("key revoke");
    type Output = Revoked;

    fn run(self, context: &Context) -> Outcome<Revoked> {
        let base_dir = &context.config.base_dir;
        file::revoke(base_dir, &self.name)?;
        let left = Keys::read(&file::place(base_dir))?.iter().count() as u64;
        Ok(Revoked { name: self.name, revoked: true, undo: None, left })
    }
}
