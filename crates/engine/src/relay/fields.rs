//! Changes to a request outside its transcript: the model's name, our tools, the room for the answer.
//!
//! The least that will do, in the places where they stand; everything else stays the client's own bytes.

use super::request::text;
use crate::error::Result;
use komado_core::raw::Object;
use komado_provider::{Dialect, Piece, Skim, Splice};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// The names of the longest answer.
const LIMITS: [&str; 3] = ["max_completion_tokens", "max_tokens", "max_output_tokens"];

/// Changes to a body, each in its place.
pub(super) struct Patch<'a> {
    skim: &'a Skim,
    body: &'a Arc<File>,
    changes: Vec<(Range<u64>, Vec<Piece>)>,
    /// Ollama's options that are set: however many, they are one change.
    options: Vec<(&'static str, u64)>,
}

impl<'a> Patch<'a> {
    pub(super) fn new(skim: &'a Skim, body: &'a Arc<File>) -> Self {
        Self { skim, body, changes: Vec::new(), options: Vec::new() }
    }

    /// Puts pieces in place of a range.
    pub(super) fn put(&mut self, range: Range<u64>, pieces: Vec<Piece>) {
        self.changes.push((range, pieces));
    }

    fn say(&mut self, range: Range<u64>, text: String) {
        self.put(range, vec![Piece::New(text.into_bytes())]);
    }

    /// Sets a field to a JSON value; one that is not there is added behind all others.
    pub(super) fn set(&mut self, key: &str, json: &str) -> Result<()> {
        match self.skim.field(key) {
            Some(range) => self.say(range, json.to_owned()),
            None => {
                let end = self.end()?;
                self.say(end..end, format!(",\"{key}\":{json}"));
            }
        }
        Ok(())
    }

    /// Where the request's own brace closes.
    fn end(&self) -> Result<u64> {
        let (mut at, mut byte) = (self.skim.len, [0]);
        while at > 0 {
            at -= 1;
            self.body.read_exact_at(&mut byte, at)?;
            if byte[0] == b'}' {
                break;
            }
        }
        Ok(at)
    }

    /// Another name for the model.
    pub(super) fn model(&mut self, name: &str) -> Result<()> {
        self.set("model", &serde_json::Value::from(name).to_string())
    }

    /// Tools behind the client's own, whose list must have some.
    pub(super) fn tools(&mut self, definitions: &str) {
        if let Some(range) = self.skim.field("tools") {
            self.say(range.end - 1..range.end - 1, format!(",{definitions}"));
        }
    }

    /// The longest answer.
    pub(super) fn limit(&mut self, most: u64) -> Result<()> {
        if self.skim.dialect == Dialect::Ollama {
            self.option("num_predict", most);
            return Ok(());
        }
        let given = LIMITS.into_iter().find(|key| self.skim.field(key).is_some());
        let usual = if self.skim.dialect == Dialect::Responses { "max_output_tokens" } else { "max_tokens" };
        self.set(given.unwrap_or(usual), &most.to_string())
    }

    /// One of Ollama's options.
    pub(super) fn option(&mut self, key: &'static str, value: u64) {
        self.options.retain(|(other, _)| *other != key);
        self.options.push((key, value));
    }

    /// Writes the options that are set behind those that the client has.
    fn set_options(&mut self) -> Result<()> {
        let set = std::mem::take(&mut self.options);
        if set.is_empty() {
            return Ok(());
        }
        let place = self.skim.field("options");
        let old = place.map(|range| text(self.body, &range)).transpose()?.unwrap_or_default();
        let object = Object::parse(&old).ok();
        let is_kept = |name: &str| set.iter().all(|(key, _)| *key != name);
        let kept = object.iter().flat_map(|object| &object.0).filter(|(name, _)| is_kept(name));
        let kept =
            kept.map(|(name, json)| format!("{}:{}", serde_json::Value::from(name.as_ref()), json.get()));
        let fields: Vec<String> =
            kept.chain(set.iter().map(|(key, value)| format!("\"{key}\":{value}"))).collect();
        self.set("options", &format!("{{{}}}", fields.join(",")))
    }

    /// The request with its changes; whole and untouched when there are none.
    pub(super) fn finish(mut self) -> Result<Splice> {
        self.set_options()?;
        if self.changes.is_empty() {
            return Ok(Splice::whole(Arc::clone(self.body), self.skim.len));
        }
        self.changes.sort_by_key(|(range, _)| (range.start, range.end));
        let (mut at, mut pieces) = (0, Vec::new());
        for (range, new) in self.changes {
            pieces.push(Piece::Kept(at..range.start));
            pieces.extend(new);
            at = range.end;
        }
        pieces.push(Piece::Kept(at..self.skim.len));
        Ok(Splice::new(Arc::clone(self.body), joined(pieces)))
    }
}

/// Neighbours that were neighbours before are one piece; empty ones are none.
fn joined(pieces: Vec<Piece>) -> Vec<Piece> {
    let mut joined: Vec<Piece> = Vec::with_capacity(pieces.len());
    for piece in pieces.into_iter().filter(|piece| !piece.is_empty()) {
        match (joined.last_mut(), piece) {
            (Some(Piece::Kept(before)), Piece::Kept(range)) if before.end == range.start => {
                before.end = range.end
            }
            (Some(Piece::New(before)), Piece::New(bytes)) => before.extend(bytes),
            (_, piece) => joined.push(piece),
        }
    }
    joined
}

/// True when Ollama's client says how large the window is to be.
pub(super) fn names_window(skim: &Skim, body: &File) -> Result<bool> {
    let Some(range) = skim.field("options") else { return Ok(false) };
    let options = text(body, &range)?;
    Ok(Object::parse(&options).is_ok_and(|options| options.get("num_ctx").is_some()))
}
