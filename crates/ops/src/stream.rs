//! Operations whose result is too large to be held: it is handed on item by item.
//!
//! An interface that knows types takes the items through a [`StreamSink`]; one that knows only names and JSON has the result written
//! ([`crate::OperationRow::stream`]): as one JSON object whose last field is `items`, or as bytes.

use crate::{
    EncodedResult, Interfaces, NamedArguments, OpFault, OpResult, OperationContext, OperationLabel,
    ResultReader,
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::io::{self, Write};

/// An operation whose result is streamed. The doc comments are the description, as with [`crate::Operation`].
pub trait Streamed: DeserializeOwned + JsonSchema + 'static {
    /// What it is called, and what it does to a session.
    const ABOUT: OperationLabel;
    /// Where it is offered.
    const INTERFACES: Interfaces;
    /// How it is written.
    const FORM: StreamForm;
    /// What is known before the first item.
    type Head: Serialize + JsonSchema;
    /// What it is made of.
    type Item: StreamItem;

    /// Runs it: begins once, then gives each item.
    fn run(self, context: &OperationContext, to: &mut dyn StreamSink<Self>) -> OpResult;

    /// The request with what a model means where it leaves something out.
    #[must_use]
    fn for_model(self) -> Self {
        self
    }

    /// An item as a line for a model; the lines then stand in the field `text`, in place of the items.
    fn line(_item: &Self::Item) -> Option<String> {
        None
    }

    /// Which moment the result is of, such as `root@12`.
    fn moment(_head: &Self::Head) -> Option<String> {
        None
    }

    /// The name of a file to keep it in.
    fn file_name(_head: &Self::Head) -> Option<String> {
        None
    }

    /// The media type, where it is not the usual one.
    fn media(_head: &Self::Head) -> Option<&'static str> {
        None
    }
}

/// How the result of a streamed operation is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StreamForm {
    /// One JSON object: the fields of the head, then `items`.
    Object,
    /// The items as they are, one after another, of one of these media types; the first is the usual one.
    Bytes(&'static [&'static str]),
    /// Events without an end ([`crate::watch`]).
    Events,
}

/// Takes what a streamed operation gives.
pub trait StreamSink<S: Streamed> {
    /// It begins: nothing that was asked for is missing.
    fn begin(&mut self, head: S::Head) -> OpResult;
    /// The next item.
    fn item(&mut self, item: S::Item) -> OpResult;
}

/// What a stream is made of.
pub trait StreamItem {
    /// Writes it.
    fn write(&self, out: &mut dyn Write) -> OpResult;
    /// The schema of one.
    fn schema(generator: &mut SchemaGenerator) -> Schema;
}

impl<T: Serialize + JsonSchema> StreamItem for T {
    fn write(&self, out: &mut dyn Write) -> OpResult {
        Ok(serde_json::to_writer(out, self)?)
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<T>()
    }
}

/// Bytes of a stream.
pub struct StreamBytes(pub Vec<u8>);

impl StreamItem for StreamBytes {
    fn write(&self, out: &mut dyn Write) -> OpResult {
        Ok(out.write_all(&self.0)?)
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}

/// Bytes handed on at a time.
const PIECE: usize = 64 << 10;

/// Hands on what `write` writes, piece by piece.
pub(crate) fn pieces<S: Streamed<Item = StreamBytes>>(
    to: &mut dyn StreamSink<S>,
    write: impl FnOnce(&mut dyn Write) -> OpResult,
) -> OpResult {
    let mut out = io::BufWriter::with_capacity(PIECE, Pieces { to, failed: None });
    let written = write(&mut out).and_then(|()| Ok(out.flush()?));
    let (pieces, _) = out.into_parts();
    pieces.failed.map_or(written, Err)
}

/// Hands on what is written to it.
struct Pieces<'a, S> {
    to: &'a mut dyn StreamSink<S>,
    failed: Option<OpFault>,
}

impl<S: Streamed<Item = StreamBytes>> Write for Pieces<'_, S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Err(fault) = self.to.item(StreamBytes(bytes.to_vec())) {
            self.failed.get_or_insert(fault);
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What an interface needs to know before the first byte.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StreamHead {
    /// [`Streamed::moment`].
    pub moment: Option<String>,
    /// [`Streamed::file_name`].
    pub file_name: Option<String>,
    /// [`Streamed::media`].
    pub media: Option<&'static str>,
}

/// Writes a stream to `out`.
struct Written<'a> {
    form: StreamForm,
    begin: &'a mut dyn FnMut(StreamHead) -> OpResult,
    out: &'a mut dyn Write,
    items: u64,
}

impl<S: Streamed> StreamSink<S> for Written<'_> {
    fn begin(&mut self, head: S::Head) -> OpResult {
        (self.begin)(StreamHead {
            moment: S::moment(&head),
            file_name: S::file_name(&head),
            media: S::media(&head),
        })?;
        if self.form != StreamForm::Object {
            return Ok(());
        }
        let head = serde_json::to_string(&head)?;
        let fields = head.strip_suffix('}').unwrap_or(&head);
        let comma = if fields == "{" { "" } else { "," };
        Ok(write!(self.out, "{fields}{comma}\"items\":[")?)
    }

    fn item(&mut self, item: S::Item) -> OpResult {
        if self.form == StreamForm::Object && self.items > 0 {
            self.out.write_all(b",")?;
        }
        self.items += 1;
        item.write(self.out)
    }
}

/// How a row of a streamed operation is run.
pub(crate) type StreamRun = fn(
    &NamedArguments,
    &OperationContext,
    ResultReader,
    &mut dyn FnMut(StreamHead) -> OpResult,
    &mut dyn Write,
) -> OpResult;

fn read<S: Streamed>(given: &NamedArguments, reader: ResultReader) -> OpResult<S> {
    let request: S = given.read()?;
    Ok(if reader == ResultReader::Model { request.for_model() } else { request })
}

/// Runs an operation and writes what it gives.
pub(crate) fn write<S: Streamed>(
    given: &NamedArguments,
    context: &OperationContext,
    reader: ResultReader,
    begin: &mut dyn FnMut(StreamHead) -> OpResult,
    out: &mut dyn Write,
) -> OpResult {
    let mut written = Written { form: S::FORM, begin, out, items: 0 };
    context.stream(read::<S>(given, reader)?, &mut written)?;
    if S::FORM == StreamForm::Object {
        written.out.write_all(b"]}")?;
    }
    Ok(())
}

/// What a stream gave, held: for a reader that wants one answer.
struct Held<S: Streamed> {
    head: Option<S::Head>,
    lines: Vec<String>,
    items: Vec<u8>,
}

impl<S: Streamed> StreamSink<S> for Held<S> {
    fn begin(&mut self, head: S::Head) -> OpResult {
        self.head = Some(head);
        Ok(())
    }

    fn item(&mut self, item: S::Item) -> OpResult {
        if let Some(line) = S::line(&item) {
            self.lines.push(line);
            return Ok(());
        }
        if !self.items.is_empty() {
            self.items.push(b',');
        }
        item.write(&mut self.items)
    }
}

/// Runs an operation and holds what it gives: the fields of its head with `text` where items are lines, else with `items`.
pub(crate) fn hold<S: Streamed>(
    given: &NamedArguments,
    context: &OperationContext,
    reader: ResultReader,
) -> OpResult<EncodedResult> {
    let mut held = Held::<S> { head: None, lines: Vec::new(), items: Vec::new() };
    context.stream(read::<S>(given, reader)?, &mut held)?;
    let moment = held.head.as_ref().and_then(S::moment);
    let Value::Object(mut fields) = serde_json::to_value(&held.head)? else {
        return Ok(EncodedResult::default());
    };
    let text = (held.items.is_empty()).then(|| held.lines.join("\n"));
    match &text {
        Some(text) => fields.insert("text".to_owned(), Value::from(text.as_str())),
        None => {
            let items = [b"[", &held.items[..], b"]"].concat();
            fields.insert("items".to_owned(), serde_json::from_slice(&items)?)
        }
    };
    Ok(EncodedResult { json: Value::Object(fields).to_string(), text, moment, location: None })
}

/// The schema of what is written: the head's fields and `items`, or bytes.
pub(crate) fn schema<S: Streamed>(generator: &mut SchemaGenerator) -> Schema {
    if S::FORM != StreamForm::Object {
        return S::Item::schema(generator);
    }
    let mut head = S::Head::json_schema(generator);
    let items = json_schema!({ "type": "array", "items": S::Item::schema(generator) });
    let fields = head.ensure_object();
    let properties = fields.entry("properties").or_insert_with(|| Map::new().into());
    properties["items"] = items.to_value();
    let required = fields.entry("required").or_insert_with(|| Vec::<Value>::new().into());
    required.as_array_mut().into_iter().for_each(|names| names.push("items".into()));
    head
}
