//! Calls, put together from the pieces that a stream brings.
//!
//! By the book a piece names its call by `index`, and only the first piece has id and name. Servers repeat both, send
//! no index, or send every whole call with index 0; so a piece is held to belong to a call unless something says that
//! it cannot.

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
    slots: Vec<Slot>,
}

#[derive(Debug, Default)]
struct Slot {
    /// The index the server gave it, which need not be its place.
    wire: Option<u64>,
    id: String,
    name: String,
    kind: CallKind,
    arguments: String,
    extra: Fields,
    announced: bool,
}

/// One element of `tool_calls`.
struct Piece<'a> {
    index: Option<u64>,
    id: String,
    name: String,
    kind: CallKind,
    arguments: String,
    extra: Vec<(&'a str, &'a RawValue)>,
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
            self.slots.push(Slot { wire: piece.index, kind: piece.kind, ..Slot::default() });
            self.slots.len() - 1
        });
        self.add(index, piece, given, each);
    }

    /// No more comes: a call that never got all it needs is told as far as it is known.
    pub(super) fn close(&mut self, each: &mut dyn FnMut(Event)) {
        (0..self.slots.len()).for_each(|index| self.announce(index, each));
    }

    /// Which call a piece belongs to; `None` when it begins one.
    fn place(&self, piece: &Piece<'_>) -> Option<usize> {
        let fits = |slot: &Slot| piece.index.is_none() || slot.wire == piece.index;
        if !piece.id.is_empty() {
            if let Some(at) = self.slots.iter().position(|slot| fits(slot) && slot.id == piece.id) {
                return Some(at);
            }
            // An id that comes after the name belongs to the call that has none.
            let waits =
                |slot: &Slot| slot.id.is_empty() && slot.arguments.is_empty() && piece.name.is_empty();
            return self.slots.iter().rposition(|slot| piece.index.is_some() && fits(slot) && waits(slot));
        }
        let at = self.slots.iter().rposition(fits)?;
        let slot = &self.slots[at];
        let another = !piece.name.is_empty() && !slot.name.is_empty() && is_whole(&slot.arguments);
        let begins = piece.name != slot.name || piece.arguments.trim_start().starts_with('{');
        (!(another && begins)).then_some(at)
    }

    fn add(&mut self, index: usize, piece: Piece<'_>, given: Given, each: &mut dyn FnMut(Event)) {
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
        piece.extra.iter().for_each(|(key, value)| slot.extra.put(key, value.get()));
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

fn tell_extra(index: usize, slot: &Slot, each: &mut dyn FnMut(Event)) {
    if let Ok(json) = Raw::parse(slot.extra.json()) {
        each(Event::CallExtra { index, json });
    }
}

fn read<'a>(object: &'a Object<'a>) -> Piece<'a> {
    let custom = object.get("custom").filter(|_| object.get("function").is_none());
    let (kind, holder, argument) = match custom {
        Some(_) => (CallKind::Custom, "custom", "input"),
        None => (CallKind::Function, "function", "arguments"),
    };
    let inner = object.get(holder).and_then(|inner| Object::parse(inner.get()).ok());
    let text = |object: &Object<'_>, key: &str| object.read::<String>(key).ok().flatten().unwrap_or_default();
    let arguments = inner.as_ref().and_then(|inner| inner.get(argument)).map(RawValue::get);
    let known = ["index", "id", "type", "function", "custom"];
    let extra =
        object.0.iter().filter(|(key, value)| !known.contains(&key.as_ref()) && value.get() != "null");
    Piece {
        index: object.read("index").ok().flatten(),
        id: text(object, "id"),
        name: inner.as_ref().map(|inner| text(inner, "name")).unwrap_or_default(),
        kind,
        // A string by the book; some servers send an object instead.
        arguments: arguments
            .map(|json| serde_json::from_str(json).unwrap_or_else(|_| json.to_owned()))
            .unwrap_or_default(),
        extra: extra.map(|(key, value)| (key.as_ref(), *value)).collect(),
    }
}

fn is_whole(arguments: &str) -> bool {
    Object::parse(arguments).is_ok()
}
