//! Turn after turn, while the model calls tools that the conversation can answer itself.
//!
//! What left the view is one call away: outputs that were shortened can be read on, and everything ever said can be
//! searched. Those calls are answered here, and the model is asked again. Calls of other tools are handed to the caller:
//! nothing is run on anyone's machine. A model that does not stop calling is told to, once, and then the loop ends.

use crate::error::{Error, Result};
use crate::fit::Ladder;
use crate::output::{DEFINITIONS, is_reader};
use crate::recall;
use crate::recall::Scope;
use crate::thread::Thread;
use crate::turn::{Asking, News, Turned, When};
use komado_core::head::Kind;
use komado_core::journal::Setup;
use komado_core::message::{Call, Message, Outcome, Part};
use komado_core::raw::Raw;
use komado_core::view::What;
use komado_core::{Role, Seq};

/// Most rounds of calls that are answered for one question.
pub const MOST_ROUNDS: u32 = 8;

/// What a call is told when there were too many before it.
const ENOUGH: &str = "[not run: that were enough calls for one question; answer now with what you know]";

/// Answers calls of tools.
pub trait Toolbox {
    /// True when it answers calls of the tool `name`.
    fn knows(&self, name: &str) -> bool;

    /// Answers a call. What the model got wrong is an answer, too.
    fn call(&mut self, thread: &Thread<'_>, call: &Call) -> Result<Told>;
}

/// What a tool says to a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Told {
    /// The words.
    pub text: String,
    /// True when they say what was wrong with the call.
    pub is_error: bool,
}

/// The tools that lead back to what left the view: reading outputs, and recall.
#[derive(Clone, Copy, Debug, Default)]
pub struct Library;

impl Library {
    /// `setup` with the definitions of these tools added, for the beginning of a session. Later it would cost the
    /// provider's cache.
    pub fn offered(setup: Setup) -> Setup {
        let own = DEFINITIONS.trim().trim_start_matches('[').trim_end_matches(']').trim();
        let before = setup.tools.as_ref().map(|tools| tools.get().trim());
        let before = before.and_then(|text| text.strip_prefix('[')?.strip_suffix(']')).map(str::trim);
        let all = [before.unwrap_or_default(), own, recall::TOOL];
        let all: Vec<&str> = all.into_iter().filter(|text| !text.is_empty()).collect();
        // What is put together from arrays of JSON is one.
        let tools = Raw::parse(format!("[{}]", all.join(","))).ok();
        let dialect = setup.dialect.or_else(|| Some(komado_core::openai::DIALECT.to_owned()));
        Setup { tools, dialect, ..setup }
    }
}

impl Toolbox for Library {
    fn knows(&self, name: &str) -> bool {
        is_reader(name) || name == recall::NAME
    }

    fn call(&mut self, thread: &Thread<'_>, call: &Call) -> Result<Told> {
        if call.name == recall::NAME {
            let scope = Scope::Session(thread.session().clone());
            // The reply whose calls are being answered is the last one.
            let reply = thread.newest(|kind| kind == Kind::Assistant, |record| Some(record.seq))?;
            let here = (thread.id(), reply.unwrap_or(Seq::MAX));
            let text = recall::call(thread.engine(), &scope, here, &call.arguments)?;
            return Ok(Told { text, is_error: false });
        }
        Ok(match crate::output::call(thread, &call.name, &call.arguments) {
            Ok(text) => Told { text, is_error: false },
            Err(why) => Told { text: why.to_string(), is_error: true },
        })
    }
}

/// How a conversation came to rest.
#[derive(Clone, Debug)]
pub struct Conversed {
    /// The last turn.
    pub turned: Turned,
    /// Turns that it took.
    pub turns: u32,
    /// Requests that were sent, all turns together.
    pub attempts: u32,
    /// Calls of the last turn that someone else has to answer.
    pub open: Vec<Call>,
    /// True when the model did not stop calling, and was not asked again.
    pub gave_up: bool,
}

impl Thread<'_> {
    /// There must be something to answer: a conversation that is empty, or whose last word is the model's, is not sent.
    pub fn check_question(&self) -> Result<()> {
        let mut last = None;
        self.view().each_item(self.source(), |item| last = Some(item))?;
        let kind = match last.map(|item| (item.seq, item.what)) {
            None => return Err(Error::NothingToAnswer("nothing was said yet: ask something")),
            Some((_, What::Said(kind))) => kind,
            Some((_, What::Shown)) => return Ok(()),
            Some((seq, What::Replaced(_))) => self.source().head(seq)?.kind,
        };
        if kind == Kind::Assistant && self.view().open().calls.is_empty() {
            let why = "the last word is the model's: ask something new, or rewind first";
            return Err(Error::NothingToAnswer(why));
        }
        Ok(())
    }

    /// Asks the model, answers the calls that `tools` knows, and asks again, until it says something or calls another tool.
    pub fn converse(
        &mut self,
        asking: &Asking,
        ladder: &mut Ladder<'_>,
        tools: &mut dyn Toolbox,
        news: &mut dyn FnMut(News<'_>),
    ) -> Result<Conversed> {
        let budget = ladder.budget.clone();
        let (mut turns, mut attempts) = (0, 0);
        loop {
            turns += 1;
            // A request that was too large left a smaller budget behind; the next one begins anew.
            ladder.budget = budget.clone();
            let turned = self.turn(asking, ladder, news)?;
            attempts += turned.attempts;
            let (own, open): (Vec<Call>, Vec<Call>) =
                turned.message.calls().cloned().partition(|call| tools.knows(&call.name));
            if !own.is_empty() {
                self.answer_calls(tools, &own, turns)?;
                news(News::Hint(self.hint(When::AfterTools, &budget)));
            }
            if own.is_empty() || !open.is_empty() || turns > MOST_ROUNDS + 1 {
                news(News::Hint(self.hint(When::BeforeEnd, &budget)));
                let gave_up = !own.is_empty() && open.is_empty();
                return Ok(Conversed { turned, turns, attempts, open, gave_up });
            }
        }
    }

    /// Answers calls of the round `round`, counted from 1, and journals the answers.
    pub(crate) fn answer_calls(&mut self, tools: &mut dyn Toolbox, calls: &[Call], round: u32) -> Result<()> {
        let enough = || Told { text: ENOUGH.to_owned(), is_error: true };
        let mut answers = Vec::with_capacity(calls.len());
        for call in calls {
            let told = if round > MOST_ROUNDS { enough() } else { tools.call(self, call)? };
            let outcome = Outcome::text(&call.id, Some(call.name.clone()), told.text);
            let outcome = Outcome { is_error: told.is_error, ..outcome };
            answers.push((Message::of(Role::Tool, vec![Part::Result(outcome)]), None));
        }
        self.say_all(answers).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(setup: &Setup) -> Vec<String> {
        let tools: Vec<serde_json::Value> =
            serde_json::from_str(setup.tools.as_ref().unwrap().get()).unwrap();
        tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn the_tools_are_offered_beside_those_that_were_there() {
        let own = ["tool_output_cache", "tool_output_cache_grep", "tool_output_cache_line", "recall"];
        let setup = Library::offered(Setup::default());
        assert_eq!(names(&setup), own);
        assert_eq!(setup.dialect.as_deref(), Some("openai"));
        assert!(own.iter().all(|name| Library.knows(name)) && !Library.knows("read"));
        let read = Raw::parse(r#"[ {"type":"function","function":{"name":"read"}} ]"#).unwrap();
        let both =
            Library::offered(Setup { tools: Some(read), system: Some("s".into()), ..Setup::default() });
        assert_eq!(names(&both)[0], "read");
        assert_eq!((names(&both).len(), both.system.as_deref()), (5, Some("s")));
    }
}
