//! The summariser that needs no model, and the check on those that do.
//!
//! Both stand on the facts of a span, which [`Digest`] gathers message by message. This is the only file of the room
//! that knows it.

use super::{Answer, Failure, Reads, Request, Summariser};
use komado_core::Meter;
use komado_core::digest::{Digest, Fact};

/// Tells the facts of a span. The default: it costs nothing, waits for nobody and cannot fail.
#[derive(Clone, Copy, Debug)]
pub struct ByDigest {
    meter: Meter,
}

impl ByDigest {
    /// Counts tokens with `meter`.
    pub fn new(meter: Meter) -> Self {
        Self { meter }
    }
}

impl Summariser for ByDigest {
    fn name(&self) -> &str {
        "digest"
    }

    fn window(&self) -> Option<u64> {
        None
    }

    fn reads(&self) -> Reads {
        Reads::Facts
    }

    /// Nobody sends it a request where facts can be had; asked all the same, it tells those of the request.
    fn summarise(&mut self, request: &Request) -> Result<Answer, Failure> {
        let mut digest = Digest::new(self.meter);
        digest.earlier(&request.text);
        Ok(Answer { text: digest.text(request.max_tokens), ..Answer::default() })
    }
}

/// What became of the facts.
pub(super) struct Checked {
    /// How many there are and how many are still told.
    pub(super) note: String,
    /// Those that are not.
    pub(super) lost: Vec<Fact>,
    /// The most important of these, in few words.
    pub(super) ledger: Option<String>,
}

/// Looks for every fact in `text`; the ledger of missing ones takes at most `limit` tokens.
pub(super) fn check(digest: &Digest, text: &str, limit: u64) -> Checked {
    let audit = digest.audit(text, limit);
    let note = format!("{} of {} facts told, {} not", audit.kept, audit.total, audit.lost.len());
    let ledger = audit.ledger.filter(|ledger| limit > 0 && !ledger.trim().is_empty());
    Checked { note, lost: audit.lost, ledger }
}
