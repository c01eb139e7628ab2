//! Hands for a playbook that somebody runs in their own process: a mind, tools, limits, and Ctrl-C.

use super::{Hands, Next};
use crate::error::{Error, Result};
use crate::limits::{Limits, Toll};
use crate::mind::Mind;
use crate::progress::Order;
use crate::tools::{Answer, Toolbox};
use komado_core::ThreadId;
use komado_core::message::Call;
use komado_engine::Thread;
use komado_engine::exchange::{News, Turned};
use komado_engine::stelis::Telling;
use komado_provider::Cancel;

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
    toll: Toll,
    cancel: Cancel,
    audience: &'m mut dyn Audience,
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
        Self { mind, tools, toll: Toll::new(limits), cancel, audience }
    }

    /// Turns that were taken.
    pub fn turns(&self) -> u64 {
        self.toll.turns
    }

    /// Unless somebody interrupted it.
    fn go_on(&self) -> Result<()> {
        match self.cancel.is_cancelled() {
            true => Err(Error::Order(Order::Leave("it was interrupted".to_owned()))),
            false => Ok(()),
        }
    }
}

impl<'e> Hands<'e> for Solo<'_, 'e> {
    fn mind(&self) -> &dyn Mind<'e> {
        self.mind
    }

    fn between(&mut self, _thread: &mut Thread<'_>, _next: Next) -> Result<()> {
        self.go_on()?;
        self.toll.reached().map_or(Ok(()), |reached| Err(Error::Limit(reached)))
    }

    fn entered(&mut self, node: &str, label: Option<&str>, thread: &ThreadId) {
        self.audience.node(node, label, thread);
    }

    fn turn(&mut self, thread: &mut Thread<'_>) -> Result<Turned> {
        let audience = &mut *self.audience;
        let turned = self.mind.turn(thread, &self.cancel, &mut |news| audience.news(news))?;
        self.toll.turn(turned.reply.usage.map_or(0, |usage| usage.total()));
        Ok(turned)
    }

    fn call(&mut self, thread: &Thread<'_>, call: &Call) -> Result<Answer> {
        let answer = self.tools.answer(thread, call, &self.cancel)?;
        // A call that was broken off stays open: whoever goes on makes it again, or tells the model.
        self.go_on()?;
        self.toll.call(answer.fault(&call.name));
        self.audience.tool(call, &answer);
        Ok(answer)
    }

    fn may_repeat(&self, name: &str) -> bool {
        self.tools.may_repeat(name)
    }

    fn telling(
        &mut self,
        thread: &Thread<'_>,
        tell: &mut dyn FnMut(Telling<'_>) -> Result<()>,
    ) -> Result<()> {
        self.mind.telling(thread, &self.cancel, tell)
    }
}
