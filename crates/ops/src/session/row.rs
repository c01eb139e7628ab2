//! A session as every interface tells it.

use komado_core::session::Session;
use komado_engine::export::unfinished;
use schemars::JsonSchema;
use serde::Serialize;
use std::ops::Deref;

/// A session.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Session")]
pub struct SessionRow {
    /// Its id; also in `uuid`, as older readers know it.
    #[serde(rename = "session")]
    pub id: String,
    /// What the table of sessions knows of it.
    #[serde(flatten)]
    pub row: Session,
    /// Why it is not whole, where an import of it did not end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<String>,
}

impl From<Session> for SessionRow {
    fn from(row: Session) -> Self {
        let unfinished = unfinished(&row).map(str::to_owned);
        Self { id: row.meta.uuid.clone(), row, unfinished }
    }
}

impl Deref for SessionRow {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.row
    }
}
