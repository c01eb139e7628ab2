//! Calls, put together from the pieces that a stream brings.
//!
//! By the book a piece names its call by `index`, and only the first piece has id and name. Servers repeat both, send
//! no index, or send every whole call with index 0; so a piece is held to belong to a call unless something says that
//! it cannot.

use crate::dialect::json::{number, object, text};
use crate::dialect::tools::fields::Fields;
use crate::event::Event;
use komado_core::message::CallKind;
use komado_core::raw::{Object, Raw};
use serde_json::value::RawValue;

/// Whether calls come in pieces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Given {
    /// Each element is a piece.
    InPieces,
    /// Each element is a call.
    Whole,
}

/// The calls of one answer.
#[derive(Debug, Default)]
pub(super) struct Calls {
    slots: Vec<Piece>,
}

/// One element of `tool_calls`, or all of those that are one call.
#[derive(Debug, Default)]
struct Piece {
    /// The index the server gave it, which need not be its place.
    index: Option<u64>,
    id: String,
    name: String,
    kind: CallKind,
    arguments: String,
    extra: Fields,
    announced: bool,
}

impl Calls {
    /// True when no call was made.
    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Takes one element of `tool_calls` in.
    pub(super) fn take(&mut self, json: &str, given: Given, each: &mut dyn FnMut(Event)) {
        let Ok(object) = Object::parse(json) else { return };
        let piece = read(&object);
        let at = match given {
            Given::InPieces => self.place(&piece),
            Given::Whole => None,
        };
        let index = at.unwrap_or_else(|| {
            self.slots.push(Piece { index: piece.index, kind: piece.kind, ..Piece::default() });
            self.slots.len() - 1
        });
        self.add(index, piece, given, each);
    }

    /// No more comes: a call that never got all it needs is told as far as it is known.
    pub(super) fn close(&mut self, each: &mut dyn FnMut(Event)) {
        (0..self.slots.len()).for_each(|index| self.announce(index, each));
    }

    /// Which call a piece belongs to; `None` when it begins one.
    fn place(&self, piece: &Piece) -> Option<usize> {
        let fits = |slot: &Piece| piece.index.is_none() || slot.index == piece.index;
        if !piece.id.is_empty() {
            if let Some(at) = self.slots.iter().position(|slot| fits(slot) && slot.id == piece.id) {
                return Some(at);
            }
            // An id that comes after the name belongs to the call that has none.
            let waits =
                |slot: &Piece| slot.id.is_empty() && slot.arguments.is_empty() && piece.name.is_empty();
            return self.slots.iter().rposition(|slot| piece.index.is_some() && fits(slot) && waits(slot));
        }
        let at = self.slots.iter().rposition(fits)?;
        let slot = &self.slots[at];
        let another = !piece.name.is_empty() && !slot.name.is_empty() && is_whole(&slot.arguments);
        let begins = piece.name != slot.name || piece.arguments.trim_start().starts_with('{');
        (!(another && begins)).then_some(at)
    }

    fn add(&mut self, index: usize, piece: Piece, given: Given, each: &mut dyn FnMut(Event)) {
        let slot = &mut self.slots[index];
        if slot.id.is_empty() {
            slot.id = piece.id;
        }
        if slot.name.is_empty() {
            slot.name = piece.name;
        }
        slot.arguments.push_str(&piece.arguments);
        let known = !slot.id.is_empty() || !slot.arguments.is_empty() || given == Given::Whole;
        let more = !piece.extra.is_empty();
        piece.extra.iter().for_each(|(key, value)| slot.extra.put(key, value));
        if !slot.announced {
            if known && (!slot.name.is_empty() || given == Given::Whole) {
                self.announce(index, each);
            }
            return;
        }
        if !piece.arguments.is_empty() {
            each(Event::Arguments { index, text: piece.arguments });
        }
        if more {
            tell_extra(index, slot, each);
        }
    }

    fn announce(&mut self, index: usize, each: &mut dyn FnMut(Event)) {
        if self.slots[index].announced {
            return;
        }
        let slot = &mut self.slots[index];
        slot.announced = true;
        // One that came without an id gets it where it is kept: only there is it known which are taken.
        each(Event::Call { index, id: slot.id.clone(), name: slot.name.clone(), kind: slot.kind });
        if !slot.arguments.is_empty() {
            each(Event::Arguments { index, text: slot.arguments.clone() });
        }
        if !slot.extra.is_empty() {
            tell_extra(index, slot, each);
        }
    }
}

fn tell_extra(index: usize, slot: &Piece, each: &mut dyn FnMut(Event)) {
    if let Ok(json) = Raw::parse(slot.extra.json()) {
        each(Event::CallExtra { index, json });
    }
}

fn read(call: &Object<'_>) -> Piece {
    let custom = call.get("custom").filter(|_| call.get("function").is_none());
    let kind = if custom.is_some() { CallKind::Custom } else { CallKind::Function };
    let (holder, argument) = kind.fields();
    let inner = object(call, holder).unwrap_or(Object(Vec::new()));
    let mut extra = Fields::default();
    for (key, value) in call.0.iter().filter(|(_, value)| value.get() != "null") {
        if !["index", "id", "type", "function", "custom"].contains(&key.as_ref()) {
            extra.put(key, value.get());
        }
    }
    // A string by the book; some servers send an object instead.
    let unquoted = |json: &RawValue| json.get().to_owned();
    let arguments = text(&inner, argument).or_else(|| inner.get(argument).map(unquoted));
    Piece {
        index: number(call, "index"),
        id: text(call, "id").unwrap_or_default(),
        name: text(&inner, "name").unwrap_or_default(),
        kind,
        arguments: arguments.unwrap_or_default(),
        extra,
        announced: false,
    }
}

fn is_whole(arguments: &str) -> bool {
    Object::parse(arguments).is_ok()
}
