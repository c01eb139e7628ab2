//! The gateway's wire: a splice of the client's bytes, or the view in another dialect, and the way back to the client.

use super::client_receiver::ClientReceiver;
use super::client_stream::ClientStream;
use super::session_request::{SessionRequest, seconds};
use super::splice::is_whole;
use crate::condense::Reach;
use crate::error::{Error, Result};
use crate::exchange::request::{OutgoingRequest, RequestBody, uncertain};
use crate::exchange::response::{Outcome, receive};
use crate::exchange::room::Room;
use crate::exchange::{Context, Wire};
use crate::place::reply_name;
use crate::turn::News;
use komado_core::message::Message;
use komado_core::{Seq, SessionId, ThreadId};
use komado_provider::dialect::Stamp;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use tracing::debug_span;

/// A request of a client, with the client's end of it.
pub(super) struct Spliced<'g, 'r, 'o> {
    pub(super) request: &'g mut SessionRequest<'r>,
    pub(super) client: &'g mut ClientStream<'o>,
    /// True when our own tools were offered in the last request.
    pub(super) offers: bool,
}

impl<'r> Wire<'r> for Spliced<'_, 'r, '_> {
    fn context(&mut self) -> Context<'_, 'r> {
        let SessionRequest { upstream, lesson, thread, .. } = &mut *self.request;
        Context { asking: &upstream.asking, lesson, store: thread.store(), thread: Some(thread) }
    }

    fn fit(&mut self, room: &mut Room) -> Result<bool> {
        let _span = debug_span!("fit").entered();
        let Some(budget) = &mut room.budget else { return Ok(true) };
        let mut settings = self.request.manner.settings.clone();
        if self.request.own_tokens == 0 {
            // What cannot be reached is not promised.
            settings.reach = Reach::Kept;
        }
        match self.request.climb(budget, settings, |thread, ladder| thread.fit(ladder)) {
            Ok(_) => Ok(true),
            Err(error) if error.is_no_room() => Ok(false),
            Err(other) => Err(other),
        }
    }

    fn render(&mut self, room: &Room) -> Result<OutgoingRequest> {
        let SessionRequest { request, thread, upstream, lesson, .. } = &*self.request;
        // What an earlier request wished for is no wish of this one.
        let tokens = thread.view().tokens();
        let most = room.longest_answer(request.wish, tokens, &upstream.asking, lesson);
        let outgoing = self.request.outgoing(most)?;
        self.offers = outgoing.added > 0;
        Ok(outgoing)
    }

    fn send(&mut self, outgoing: &OutgoingRequest) -> Outcome {
        let _span = debug_span!("upstream").entered();
        let (translates, offers) = (self.request.translates(), self.offers);
        let SessionRequest { relay, arrival, upstream, request, notes, .. } = &mut *self.request;
        notes.after = outgoing.tokens + outgoing.added;
        notes.attempts += 1;
        let asking = &upstream.asking;
        let body = outgoing.body.body();
        let sent = match &outgoing.body {
            RequestBody::Spliced(splice) => {
                notes.untouched = is_whole(splice, arrival.skim.len);
                upstream.forward(body)
            }
            RequestBody::File(..) => {
                notes.untouched = false;
                asking.client.post(&asking.provider, body, &asking.cancel, &mut |_| {})
            }
        };
        let form = self.client.form();
        if translates || offers {
            let created_at = relay.engine.now();
            let stamp = Stamp { created: seconds(&created_at), created_at, usage: request.usage };
            self.client.encode(form, stamp, offers);
        } else {
            self.client.repeat();
        }
        let mut receiver = ClientReceiver::new(self.client, notes, relay.patience, translates, offers);
        receive(asking, sent, form, &mut receiver)
    }

    fn tell(&mut self, news: News<'_>) -> Result<()> {
        let request = &mut *self.request;
        match news {
            News::Sent { seq, .. } => request.noted(seq)?,
            News::TooLarge { .. } => request.notes.overflows += 1,
            News::Truncated { reported, expected } => request.notes.truncated = Some((reported, expected)),
            News::Trouble(error) => request.notes.fault = Some(error.to_string()),
            _ => {}
        }
        Ok(())
    }

    fn reply_id(&self, id: &str) -> Option<String> {
        Some(reply_name(&self.request.arrival.caller, id))
    }

    fn uncertain(&self) -> Result<u64> {
        self.request.relay.uncertain.of(self.request)
    }
}

/// Most threads that are remembered; with one more all are forgotten.
const MOST: usize = 4_096;

/// How much of each view a provider may count otherwise, added up while a thread grows: each message is read once, not
/// with every answer. After an edit, a rewind or a restart it is counted anew.
#[derive(Debug, Default)]
pub(super) struct UncertainTokens(Mutex<HashMap<(SessionId, ThreadId), Sum>>);

/// Uncertain tokens of a view up to an entry, with the edits that were in force.
#[derive(Clone, Debug, Default)]
struct Sum {
    upto: Seq,
    edits: Vec<Seq>,
    tokens: u64,
}

impl UncertainTokens {
    fn of(&self, request: &SessionRequest<'_>) -> Result<u64> {
        let thread = &request.thread;
        let (view, source, meter) = (thread.view(), thread.source(), thread.meter());
        let name = (thread.session().clone(), thread.id().clone());
        let edits: Vec<Seq> = view.edits().collect();
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = lock().get(&name).cloned();
        let is_same = |sum: &Sum| sum.edits == edits && view.on_path(sum.upto);
        let Sum { upto, mut tokens, .. } = known.filter(is_same).unwrap_or_default();
        for item in view.items(source)?.into_iter().filter(|item| item.seq > upto) {
            view.pour_item(source, item, &mut |_, message: &Message| {
                tokens = tokens.saturating_add(uncertain(&message.parts, meter));
                Ok::<(), Error>(())
            })?;
        }
        let mut sums = lock();
        if sums.len() >= MOST && !sums.contains_key(&name) {
            sums.clear();
        }
        sums.insert(name, Sum { upto: thread.last(), edits, tokens });
        Ok(tokens)
    }
}
