//! Where calls are answered: which session is meant, whether it may be seen, and the verb that does the work.
//!
//! A verb is run as it would be from the command line, with a page in place of standard output. Standard input is never
//! read here: it may be the protocol's.

use super::tool::Answer;
use crate::app::App;
use crate::cli;
use crate::fault::{Exit, Fault, Outcome};
use crate::paper::{Page, Paper};
use crate::server::Caller;
use komado_core::session::Session;
use komado_core::{Address, Seq, SessionId, ThreadId};
use komado_store::Query;
use serde_json::Value;
use std::sync::Arc;

/// Sessions that are looked through at once.
const PAGE: usize = 200;

/// One guest's desk.
pub(super) struct Desk {
    /// Settings, store and engine.
    pub(super) app: Arc<App>,
    /// Who asks.
    pub(super) guest: Caller,
    /// The session that is meant when none is named.
    pub(super) named: Option<String>,
}

/// The place of a session in the order of making.
pub(super) type Place = (String, SessionId);

impl Desk {
    /// The address that `session`, `thread` and `seq` make, with the session's whole name.
    ///
    /// `session` may be an address, as other answers give it; `thread` and `seq` come before what it says.
    pub(super) fn at(
        &self,
        session: Option<&str>,
        thread: Option<&str>,
        seq: Option<Seq>,
    ) -> Outcome<Address> {
        let given = match session.or(self.named.as_deref()) {
            Some(text) => text.parse()?,
            None => Address { session: self.only()?, thread: None, seq: None },
        };
        let thread = thread.map(ThreadId::new).transpose()?.or(given.thread);
        Ok(Address { session: self.find(&given.session)?, thread, seq: seq.or(given.seq) })
    }

    /// The one session there is.
    fn only(&self) -> Outcome<SessionId> {
        match &self.visible(None, 2)?[..] {
            [session] => Ok(SessionId::new(session.meta.uuid.as_str())?),
            [] => Err(Fault::new(Exit::NotFound, "there is no session yet; `new` makes one")),
            _ => Err(Fault::usage("say which session is meant: `sessions` lists them")),
        }
    }

    /// A session by its name or a beginning of it. One that may not be seen is not there.
    fn find(&self, given: &SessionId) -> Outcome<SessionId> {
        if self.guest.sees_all {
            let address = Address { session: given.clone(), thread: None, seq: None };
            return Ok(self.app.find(&address)?.session);
        }
        let query = Query { prefix: Some(given.to_string()), ..Query::default() };
        let mut fits = self.app.engine.store().sessions(&query).map_err(Fault::from)?;
        fits.retain(|session| self.guest.may_see(session));
        let exact = fits.iter().find(|session| session.meta.uuid == given.as_str());
        match (exact, &fits[..]) {
            (Some(session), _) | (None, [session]) => Ok(SessionId::new(session.meta.uuid.as_str())?),
            (None, []) => {
                Err(Fault::new(Exit::NotFound, format!("there is no session {given}; `sessions` lists them")))
            }
            (None, _) => {
                Err(Fault::new(Exit::NotFound, format!("{given} fits several sessions; write more of it")))
            }
        }
    }

    /// Sessions that may be seen, in the order of making, from after `after` on.
    pub(super) fn visible(&self, mut after: Option<Place>, most: usize) -> Outcome<Vec<Session>> {
        let mut seen = Vec::new();
        loop {
            let query = Query { after: after.take(), limit: PAGE, ..Query::default() };
            let page = self.app.engine.store().sessions(&query).map_err(Fault::from)?;
            let is_last = page.len() < PAGE;
            after = page.last().map(place).transpose()?;
            seen.extend(page.into_iter().filter(|session| self.guest.may_see(session)));
            if is_last || seen.len() >= most {
                seen.truncate(most);
                return Ok(seen);
            }
        }
    }

    /// Runs a verb and gives what it prints for people.
    pub(super) fn text(&self, words: &[String]) -> Outcome<String> {
        Ok(self.print(words, false)?.trim_end_matches('\n').to_owned())
    }

    /// Runs a verb and gives what it prints for programs, one value for each line.
    pub(super) fn lines(&self, words: &[String]) -> Outcome<Vec<Value>> {
        let printed = self.print(words, true)?;
        Ok(printed.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
    }

    /// Runs a verb that prints one value.
    pub(super) fn value(&self, words: &[String]) -> Outcome<Value> {
        Ok(self.lines(words)?.pop().unwrap_or_default())
    }

    /// Runs a verb that changes something, once.
    pub(super) fn change(&self, words: &[String]) -> Outcome<Answer> {
        Ok(Answer::of(self.value(words)?))
    }

    fn print(&self, words: &[String], json: bool) -> Outcome<String> {
        let page = Page::default();
        let mut app = self.app.onto(Paper::onto(&page, json));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let done = cli::again(&mut app, &words);
        app.tell_findings();
        done.and_then(|()| app.paper.flush()).map_err(|fault| app.explained(fault))?;
        Ok(page.text())
    }
}

/// Where a session stands in the order of making.
pub(super) fn place(session: &Session) -> Outcome<Place> {
    Ok((session.meta.created_at.clone(), SessionId::new(session.meta.uuid.as_str())?))
}

/// The words of a command line, in which no value can be taken for an option.
#[derive(Clone, Debug)]
pub(super) struct Words {
    options: Vec<String>,
    rest: Vec<String>,
}

impl Words {
    /// A verb, or a verb of a verb: `thread start`.
    pub(super) fn of(verb: &str) -> Self {
        Self { options: verb.split(' ').map(str::to_owned).collect(), rest: Vec::new() }
    }

    /// An option with a value, when there is one.
    pub(super) fn option(mut self, name: &str, value: Option<impl ToString>) -> Self {
        self.options.extend(value.map(|value| format!("--{name}={}", value.to_string())));
        self
    }

    /// An option without a value, when it is wanted.
    pub(super) fn flag(mut self, name: &str, wanted: Option<bool>) -> Self {
        self.options.extend((wanted == Some(true)).then(|| format!("--{name}")));
        self
    }

    /// A word at its place.
    pub(super) fn word(mut self, word: impl ToString) -> Self {
        self.rest.push(word.to_string());
        self
    }

    /// All of them.
    pub(super) fn all(self) -> Vec<String> {
        self.options.into_iter().chain(["--".to_owned()]).chain(self.rest).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_can_be_taken_for_an_option() {
        let words = Words::of("thread end").option("by", Some("--help")).option("x", None::<u32>);
        let words = words.flag("full", Some(true)).flag("json", Some(false)).word("-s").all();
        assert_eq!(words, ["thread", "end", "--by=--help", "--full", "--", "-s"]);
    }
}
