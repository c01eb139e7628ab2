//! What may have been meant by a name of a session or thread that is not there, or that fits several.
//!
//! Only what the caller may see is looked through, and no more rows than [`MOST`], so that a misspelt name costs little in a
//! store of any size.

use crate::clock::age;
use crate::{Missing, OpFault, OpResult, OperationContext};
use komado_core::notation::grouped;
use komado_core::session::Session;
use komado_core::suggest::nearest;
use komado_core::{SessionId, ThreadId};
use komado_store::SessionQuery;

/// Rows that are looked through for a name.
const MOST: usize = 1000;
/// Names that are listed where several fit.
const LISTED: usize = 5;
/// Letters that the beginning of a name has, for it to be corrected as one.
const BEGINNING: usize = 5;

impl OperationContext {
    /// A session that is not there, or not for this caller, with the nearest that is.
    pub(crate) fn no_session(&self, given: &SessionId) -> OpFault {
        // A suggestion is a courtesy: where the names cannot be read, there is none.
        let near = self.near_session(given.as_str()).unwrap_or_default();
        OpFault::missing(Missing::Session { given: given.to_string(), near })
    }

    fn near_session(&self, given: &str) -> OpResult<Option<String>> {
        let first: String = given.chars().take(1).collect();
        for prefix in [Some(first), None] {
            let rows =
                self.visible_sessions(SessionQuery { prefix, ..SessionQuery::default() }, MOST, |_| true)?;
            if let Some(near) = nearest_id(given, rows.iter().map(|row| row.meta.uuid.as_str())) {
                return Ok(Some(near));
            }
        }
        Ok(None)
    }

    /// A beginning that several sessions have, with those that changed last.
    pub(crate) fn several_sessions(&self, given: &SessionId) -> OpFault {
        let query = SessionQuery { prefix: Some(given.to_string()), ..SessionQuery::default() };
        match self.visible_sessions(query, MOST, |_| true) {
            Ok(rows) => OpFault::not_found(several(given.as_str(), rows, &self.engine.now())),
            Err(fault) => fault,
        }
    }

    /// A thread that is not there, with the nearest that is.
    pub(crate) fn no_thread(&self, session: &SessionId, given: &ThreadId) -> OpFault {
        let all = self.engine.store().threads(session).unwrap_or_default();
        let near = nearest_id(given.as_str(), all.iter().map(|header| header.thread.as_str()));
        OpFault::missing(Missing::Thread { session: session.to_string(), given: given.to_string(), near })
    }
}

/// The nearest of some ids, by the whole of it or by a beginning as long as what was given.
fn nearest_id<'a>(given: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    let letters = given.chars().count();
    let beginning = |id: &'a str| match id.char_indices().nth(letters) {
        Some((end, _)) if letters >= BEGINNING => &id[..end],
        _ => id,
    };
    nearest(given, known.map(|id| (id, beginning(id)))).map(str::to_owned)
}

fn several(given: &str, mut rows: Vec<Session>, now: &str) -> String {
    rows.sort_by(|a, b| b.updated_at.cmp(&a.updated_at));
    let listed = rows.iter().take(LISTED);
    let listed: Vec<_> =
        listed.map(|row| format!("{} ({})", row.meta.uuid, age(&row.updated_at, now))).collect();
    let left = rows.len().saturating_sub(LISTED);
    let more = match (left, rows.len() == MOST) {
        (0, _) => String::new(),
        (_, true) => " and many more".to_owned(),
        (left, false) => format!(" and {} more", grouped(left as u64)),
    };
    format!("{given:?} fits several sessions: {}{more}; write more of it", listed.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_id_or_beginning_of_one_is_near_and_another_name_is_not() {
        let known = ["licences", "licences-2", "550e8400-e29b-41d4-a716-446655440000", "小窓-1"];
        let near = |given: &str| nearest_id(given, known.into_iter());
        assert_eq!(near("licenses").as_deref(), Some("licences"));
        assert_eq!(near("550e8401").as_deref(), Some(known[2]));
        assert_eq!(near("小空-1").as_deref(), Some("小窓-1"));
        assert_eq!(near("56"), None, "two letters say too little");
        assert_eq!(near("refactor"), None);
    }
}
