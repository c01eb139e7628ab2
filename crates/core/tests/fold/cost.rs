//! What a view costs is counted, not timed.

use komado_core::head::{EntrySource, Head};
use komado_core::journal::{Cause, Edit, EditKind, Entry, Record, Replace};
use komado_core::message::{Call, CallKind, Message, MessagePart, Role, ToolOutcome};
use komado_core::{Seq, ThreadId};
use komado_testkit::{Book, BookRows};
use std::cell::Cell;
use std::convert::Infallible;

/// Entries, and how many were read.
struct Counted<'a>(&'a BookRows, Cell<usize>);

impl EntrySource for Counted<'_> {
    type Error = Infallible;

    fn last(&self) -> Seq {
        self.0.last()
    }

    fn head(&self, seq: Seq) -> Result<Head, Infallible> {
        self.0.head(seq)
    }

    fn record(&self, seq: Seq) -> Result<Record, Infallible> {
        self.1.set(self.1.get() + 1);
        self.0.record(seq)
    }

    fn above(&self, thread: &ThreadId) -> Result<Box<dyn EntrySource<Error = Infallible> + '_>, Infallible> {
        self.0.above(thread)
    }
}

fn said(book: &mut Book, message: Message) -> Seq {
    book.push(Entry::Message(message, None), 100, "t").unwrap()
}

fn output(book: &mut Book, n: usize) -> Seq {
    let id = format!("call_{n}");
    let call = Call {
        id: id.clone(),
        name: "look".into(),
        arguments: "{}".into(),
        kind: CallKind::Function,
        extra: None,
    };
    said(book, Message::of(Role::Assistant, vec![MessagePart::Call(call)]));
    let content = vec![MessagePart::text("a long answer")];
    let outcome = ToolOutcome {
        call_id: id,
        name: None,
        content,
        is_error: false,
        output_ref: None,
        duration_ms: None,
        interrupted: false,
        replaces: None,
    };
    said(book, Message::of(Role::Tool, vec![MessagePart::Result(outcome)]))
}

fn trim(book: &mut Book, seqs: impl Iterator<Item = Seq>) {
    let replace = seqs.map(|seq| Replace { seq, text: format!("[{seq}]"), tokens: 1 }).collect();
    let edit = Edit { kind: EditKind::Trim, hide: vec![], show: vec![], replace, cause: Cause::default() };
    book.push(Entry::Edit(edit), 0, "t").unwrap();
}

#[test]
fn a_view_is_rendered_by_reading_each_entry_and_each_edit_once() {
    let mut book = Book::default();
    let outputs: Vec<Seq> = (0..300).map(|n| output(&mut book, n)).collect();
    // Two trims that take turns: what was stale, and then the rest.
    trim(&mut book, outputs.iter().copied().step_by(2));
    trim(&mut book, outputs.iter().copied().skip(1).step_by(2));
    let source = Counted(book.rows(), Cell::new(0));
    let mut shown = Vec::new();
    let Ok(()) = book.view().pour(&source, &mut |seq: Seq, message: &Message| {
        shown.push((seq, message.words()));
        Ok::<(), Infallible>(())
    });
    assert_eq!(source.1.get(), 600 + 2);
    for seq in outputs {
        assert!(shown.contains(&(seq, format!("[{seq}]"))), "{seq}");
    }
}
