//! How much of a view a provider may count otherwise, added up while a thread grows.
//!
//! Each part of a conversation is looked at once, not with every answer. What is remembered is only an economy: after an
//! edit, a way back or a restart it is found out anew.

use super::visit::Visit;
use crate::error::{Error, Result};
use crate::turn::render::doubt;
use komado_core::message::Message;
use komado_core::{Seq, SessionId, ThreadId};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Most threads that are remembered; with one more all are forgotten.
const MOST: usize = 4_096;

type Name = (SessionId, ThreadId);

/// What was doubtful in which thread.
#[derive(Debug, Default)]
pub(super) struct Doubts(Mutex<HashMap<Name, Sum>>);

/// Doubtful tokens of a view up to an entry, with the edits that were in force.
#[derive(Clone, Debug, Default)]
struct Sum {
    upto: Seq,
    edits: Vec<Seq>,
    tokens: u64,
}

impl Doubts {
    fn sums(&self) -> MutexGuard<'_, HashMap<Name, Sum>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, name: Name, sum: Sum) {
        let mut sums = self.sums();
        if sums.len() >= MOST && !sums.contains_key(&name) {
            sums.clear();
        }
        sums.insert(name, sum);
    }
}

impl Visit<'_> {
    /// Tokens of the view that a provider may count otherwise, or not at all.
    pub(super) fn uncertain(&self) -> Result<u64> {
        let (view, source, meter) = (self.thread.view(), self.thread.source(), self.thread.meter());
        let name = (self.thread.session().clone(), self.thread.id().clone());
        let edits: Vec<Seq> = view.edits().collect();
        let known = self.relay.doubts.sums().get(&name).cloned();
        let is_same = |sum: &Sum| sum.edits == edits && view.on_path(sum.upto);
        let Sum { upto, mut tokens, .. } = known.filter(is_same).unwrap_or_default();
        for item in view.items(source)?.into_iter().filter(|item| item.seq > upto) {
            view.pour_item(source, item, &mut |_, message: &Message| {
                let parts = message.parts.iter().map(|part| doubt(part, meter));
                tokens = tokens.saturating_add(parts.sum());
                Ok::<(), Error>(())
            })?;
        }
        self.relay.doubts.keep(name, Sum { upto: self.thread.last(), edits, tokens });
        Ok(tokens)
    }
}
