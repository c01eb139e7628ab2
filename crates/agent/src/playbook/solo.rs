//! Hands for a playbook that somebody runs in their own process: a mind, tools, limits, and Ctrl-C.

use super::{Hands, Next, Wanted};
use crate::error::{Error, Result};
use crate::limits::{Limits, Reached};
use crate::mind::Mind;
use crate::progress::Order;
use crate::tools::{Answer, Body, Toolbox};
use komado_core::message::Call;
use komado_core::{SessionId, ThreadId};
use komado_engine::stelis::{Spawn, Telling};
use komado_engine::turn::{News, Turned};
use komado_engine::{Engine, Thread};
use komado_provider::Cancel;
use std::time::Instant;

/// Most of an error that a reason repeats.
const SHOWN: usize = 300;

/// Is told what happens, as far as it wants to know.
pub trait Audience {
    /// A node is entered.
    fn node(&mut self, _id: &str, _label: Option<&str>, _thread: &ThreadId) {}
    /// Something happens in a turn.
    fn news(&mut self, _news: News<'_>) {}
    /// A tool answered.
    fn tool(&mut self, _call: &Call, _answer: &Answer) {}
}

/// Hands over a mind and a box of tools.
pub struct Solo<'m, 'e> {
    mind: &'m mut dyn Mind<'e>,
    tools: &'m mut Toolbox,
    limits: Limits,
    cancel: Cancel,
    audience: &'m mut dyn Audience,
    begun: Instant,
    turns: u32,
    tokens: u64,
    errors: u32,
    last_error: String,
}

impl<'m, 'e> Solo<'m, 'e> {
    /// With these; `cancel` stops at the next node, and a turn or a call at once.
    pub fn new(
        mind: &'m mut dyn Mind<'e>,
        tools: &'m mut Toolbox,
        limits: Limits,
        cancel: Cancel,
        audience: &'m mut dyn Audience,
    ) -> Self {
        let begun = Instant::now();
        Self {
            mind,
            tools,
            limits,
            cancel,
            audience,
            begun,
            turns: 0,
            tokens: 0,
            errors: 0,
            last_error: String::new(),
        }
    }

    /// Turns that were taken.
    pub fn turns(&self) -> u32 {
        self.turns
    }

    /// Unless somebody interrupted it.
    fn go_on(&self) -> Result<()> {
        match self.cancel.is_cancelled() {
            true => Err(Error::Order(Order::Leave("it was interrupted".to_owned()))),
            false => Ok(()),
        }
    }

    fn reached(&self) -> Option<Reached> {
        let Limits { turns, time, tokens, errors } = self.limits;
        let turns = turns.filter(|most| self.turns >= *most).map(Reached::Turns);
        let time = time.filter(|most| self.begun.elapsed() >= *most).map(Reached::Time);
        let tokens = tokens.filter(|most| self.tokens >= *most).map(Reached::Tokens);
        let errors = (errors > 0 && self.errors >= errors)
            .then(|| Reached::Errors(self.errors, self.last_error.clone()));
        turns.or(time).or(tokens).or(errors)
    }

    fn count(&mut self, call: &Call, answer: &Answer) {
        if answer.is_error {
            self.errors += 1;
            self.last_error = match &answer.body {
                Body::Text(text) => text.trim().chars().take(SHOWN).collect(),
                Body::File(_) => call.name.clone(),
            };
        } else {
            self.errors = 0;
        }
    }
}

impl<'e> Hands<'e> for Solo<'_, 'e> {
    fn engine(&self) -> &'e Engine {
        self.mind.engine()
    }

    fn open(&self, session: &SessionId, thread: &ThreadId) -> Result<Thread<'e>> {
        self.mind.open(session, thread)
    }

    fn between(&mut self, _thread: &mut Thread<'_>, _next: Next) -> Result<()> {
        self.go_on()?;
        self.reached().map_or(Ok(()), |reached| Err(Error::Limit(reached)))
    }

    fn entered(&mut self, node: &str, label: Option<&str>, thread: &ThreadId) {
        self.audience.node(node, label, thread);
    }

    fn turn(&mut self, thread: &mut Thread<'_>, _wanted: &Wanted) -> Result<Turned> {
        self.turns += 1;
        let audience = &mut *self.audience;
        let turned = self.mind.turn(thread, &self.cancel, &mut |news| audience.news(news))?;
        if let Some(usage) = &turned.reply.usage {
            self.tokens += usage.input_tokens
                + usage.cache_creation_tokens
                + usage.cache_read_tokens
                + usage.output_tokens;
        }
        Ok(turned)
    }

    fn call(&mut self, thread: &Thread<'_>, call: &Call) -> Result<Answer> {
        let answer = self.tools.answer(thread, call, &self.cancel)?;
        // A call that was broken off stays open: whoever goes on makes it again, or tells the model.
        self.go_on()?;
        self.count(call, &answer);
        self.audience.tool(call, &answer);
        Ok(answer)
    }

    fn may_repeat(&self, name: &str) -> bool {
        self.tools.may_repeat(name)
    }

    fn spawn(&self, thread: &Thread<'_>) -> Result<Spawn> {
        self.mind.spawn(thread)
    }

    fn telling(
        &mut self,
        thread: &Thread<'_>,
        tell: &mut dyn FnMut(Telling<'_>) -> Result<()>,
    ) -> Result<()> {
        self.mind.telling(thread, &self.cancel, tell)
    }
}
