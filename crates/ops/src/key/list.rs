//! List the keys, without their secrets.

use super::by_owner;
use super::file::{self, Key, Keys, Sees};
use crate::{Context, Effect, Interfaces, Operation, Outcome, Page};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// List the keys, without their secrets.
#[derive(Clone, Copy, Debug, Default, clap::Args, Deserialize, JsonSchema)]
pub struct ListKeys {}

/// A key, without its secret.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct KeyRow {
    /// Its name.
    pub name: String,
    /// Whose sessions are made with it.
    pub user: Option<String>,
    /// Which sessions it leads to.
    pub sees: Sees,
    /// Sessions it leads to beside the user's own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<String>,
    /// Requests a second, at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<u32>,
    /// Requests at a time, at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// When it is of no more use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
    /// When it was made.
    pub created_at: String,
}

impl From<Key> for KeyRow {
    fn from(key: Key) -> Self {
        let Key { name, digest: _, user, sees, sessions, rate, concurrency, expires, created_at } = key;
        Self { name, user, sees, sessions, rate, concurrency, expires, created_at }
    }
}

impl Operation for ListKeys {
    const NAME: &'static str = "key_list";
    const TITLE: &'static str = "List the keys";
    const EFFECT: Effect = Effect::Read;
    const INTERFACES: Interfaces = by_owner("key list");
    type Output = Page<KeyRow>;

    fn run(self, context: &Context) -> Outcome<Page<KeyRow>> {
        let keys = Keys::read(&file::place(&context.config.base_dir))?;
        Ok(Page::whole(keys.iter().cloned().map(KeyRow::from).collect()))
    }
}
