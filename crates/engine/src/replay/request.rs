//! A request as what can be compared: a digest, a weight and a shape for each message.
//!
//! A message looks the same as long as it is shown in the same way, so each is rendered once.

use crate::error::Result;
use crate::thread::Thread;
use komado_core::grammar::{self, Shape};
use komado_core::head::Source;
use komado_core::message::{Message, Role};
use komado_core::openai;
use komado_core::view::{Item, What};
use komado_core::{Seq, View};
use std::collections::HashMap;
use std::io::{self, Write};
use std::rc::Rc;

/// A message that was rendered.
pub(super) struct Rendered {
    digest: blake3::Hash,
    shape: Shape,
}

/// Messages that were rendered, by entry and by the entry that says how it is shown.
#[derive(Default)]
pub(super) struct Seen(HashMap<(Seq, Seq), Rc<[Rendered]>>);

/// A request.
#[derive(Default)]
pub(super) struct Request {
    setup: (u64, Option<Seq>),
    items: Vec<(Rc<[Rendered]>, u64)>,
}

/// What two requests share at their beginning.
pub(super) struct Shared {
    pub(super) messages: usize,
    pub(super) tokens: u64,
}

impl Request {
    /// The request that the thread's view makes.
    pub(super) fn of(thread: &Thread<'_>, seen: &mut Seen) -> Result<Self> {
        let view = thread.view();
        let mut items = Vec::new();
        for item in view.items(thread.source())? {
            items.push((seen.render(view, thread.source(), item)?, u64::from(item.tokens)));
        }
        Ok(Self { setup: (view.weight().setup, view.setup()), items })
    }

    pub(super) fn tokens(&self) -> u64 {
        self.setup.0 + self.items.iter().map(|(_, tokens)| tokens).sum::<u64>()
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    pub(super) fn shared_with(&self, before: &Self) -> Shared {
        if self.setup != before.setup {
            return Shared { messages: 0, tokens: 0 };
        }
        let same = |a: &[Rendered], b: &[Rendered]| {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.digest == b.digest)
        };
        let messages = self.items.iter().zip(&before.items).take_while(|(a, b)| same(&a.0, &b.0)).count();
        let tokens = self.items[..messages].iter().map(|(_, tokens)| tokens).sum::<u64>();
        // Before the first request there is nothing that could be cached.
        let setup = if before.items.is_empty() { 0 } else { self.setup.0 };
        Shared { messages, tokens: tokens + setup }
    }

    /// True when OpenAI would take it, and Anthropic too where a user began the conversation.
    pub(super) fn is_valid(&self, begun_by: Option<Role>) -> bool {
        let shapes: Vec<&Shape> = self.items.iter().flat_map(|(r, _)| r.iter().map(|r| &r.shape)).collect();
        let shapes = shapes.iter().copied();
        match begun_by {
            Some(Role::User) => grammar::anthropic(shapes).is_ok(),
            _ => grammar::openai(shapes).is_ok(),
        }
    }
}

impl Seen {
    fn render<S: Source<Error = komado_store::Error> + ?Sized>(
        &mut self,
        view: &View,
        source: &S,
        item: Item,
    ) -> Result<Rc<[Rendered]>> {
        let by = match item.what {
            What::Replaced(by) => by,
            What::Said(_) | What::Shown => 0,
        };
        if let Some(known) = self.0.get(&(item.seq, by)) {
            return Ok(Rc::clone(known));
        }
        let mut rendered = Vec::new();
        view.pour_item(source, item, &mut |_: Seq, message: &Message| -> Result<()> {
            rendered.push(render(message)?);
            Ok(())
        })?;
        let rendered: Rc<[Rendered]> = rendered.into();
        self.0.insert((item.seq, by), Rc::clone(&rendered));
        Ok(rendered)
    }
}

fn render(message: &Message) -> Result<Rendered> {
    let mut hasher = blake3::Hasher::new();
    openai::write(message, &mut ById, &mut hasher)?;
    Ok(Rendered { digest: hasher.finalize(), shape: Shape::of(message) })
}

/// A picture is as good as its name here.
struct ById;

impl openai::Blobs for ById {
    fn base64(&mut self, id: &str, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(id.as_bytes())
    }
}
