//! From a view to a reply: made to fit, announced, sent, heard, journaled; smaller and again when it was too large.
//!
//! The same steps as a turn of the library, with the client's bytes in place of a rendered view. Calls of our own tools
//! are answered and the model is asked again, all for one answer to the client.

use super::letter::{Freight, Parcel, whole};
use super::listen::{Came, Refused};
use super::mouth::Mouth;
use super::offer::is_own;
use super::visit::Visit;
use super::{Fault, GONE, Outlet};
use crate::condense::{ByDigest, Reach};
use crate::converse::MOST_ROUNDS;
use crate::error::{Error, Result};
use crate::fit::{Done, Ladder};
use crate::lesson::{self, Read, Size};
use crate::place::reply_name;
use crate::turn::Asking;
use crate::turn::listen::TooLarge;
use crate::turn::room::Room;
use komado_core::journal::{Entry, Reply, Sent, Usage};
use komado_core::message::{Call, Message};
use komado_core::{Role, Seq};
use komado_provider::{Failed, Heard};
use tracing::debug_span;

/// A window that never fills, while nobody knows how large it is.
const ENDLESS: u64 = u64::MAX / 8;

impl Visit<'_> {
    /// Asks the model, as often as it takes, and answers the client.
    pub(super) fn answer(mut self, outlet: &mut dyn Outlet) -> std::result::Result<(), Fault> {
        let mut mouth = Mouth::new(outlet);
        let mut round = 0;
        let ended = loop {
            match self.exchange(&mut mouth, round) {
                Ok(true) => round += 1,
                Ok(false) => break Ok(()),
                Err(fault) if !mouth.begun() => break Err(fault),
                Err(Fault::Ours(error)) => {
                    self.notes.fault = Some(error.to_string());
                    mouth.finish(Some("stop"));
                    break Ok(());
                }
                Err(Fault::Theirs(error)) => {
                    self.notes.cut = Some(error.to_string());
                    let body = serde_json::json!({"error": {"message": error.to_string()}}).to_string();
                    mouth.fail(Failed { status: 502, body });
                    break Ok(());
                }
            }
        };
        if mouth.gone() && self.notes.cut.is_none() {
            self.notes.cut = Some(GONE.to_owned());
        }
        // The client may go on as soon as it hears the end: by then nobody else is in its thread.
        let notes = self.leave();
        ended?;
        mouth.close(&notes).into()
    }

    /// One question and its answer. True when the model is to be asked again.
    fn exchange(&mut self, mouth: &mut Mouth<'_>, round: u32) -> std::result::Result<bool, Fault> {
        let mut room = match self.window() {
            0 => None,
            window => Some(Room::new(self.budget(window))),
        };
        if round == 0 {
            self.bound(room.as_ref())?;
        }
        let mut refused: Option<Refused> = None;
        for _ in 0..=self.upstream.asking.tries {
            let fits = debug_span!("fit").in_scope(|| self.fit(room.as_mut()))?;
            if !fits && refused.is_some() {
                break;
            }
            let (parcel, sent) = self.announce(room.as_ref())?;
            let tokens = self.thread.view().tokens();
            let added = self.added(parcel.offers);
            self.notes.after = tokens + added;
            self.notes.attempts += 1;
            self.notes.untouched = parcel.freight.is_untouched(self.arrival.skim.len);
            let came = debug_span!("upstream").in_scope(|| self.listen(&parcel, mouth));
            if let (Freight::Written(letter, _), Came::Whole(_)) = (parcel.freight, &came) {
                // It is not needed any more; the next one takes its place whatever becomes of this one.
                let _ = letter.answered();
            }
            match came {
                Came::Whole(heard) => {
                    let size = (tokens + added, parcel.offers);
                    return self.take_reply(sent, size, *heard, mouth, round);
                }
                Came::TooLarge(refusal) => {
                    self.notes.overflows += 1;
                    self.shrink(&mut room, &refusal, sent, tokens, parcel.max_tokens)?;
                    refused = Some(refusal);
                }
                Came::Over { finish, why, heard, is_cut } => {
                    self.notes.cut = is_cut.then(|| why.clone());
                    self.give_up(sent, finish, &why, Some(&heard), mouth)?;
                    return Ok(false);
                }
                Came::Unsent(error, heard) => {
                    let finish =
                        if self.upstream.asking.cancel.is_cancelled() { "cancelled" } else { "lost" };
                    self.give_up(sent, finish, &error.to_string(), heard.as_deref(), mouth)?;
                    return Err(Fault::Theirs(error));
                }
            }
        }
        if let Some(refusal) = refused {
            self.tell_too_large(mouth, &refusal);
        }
        Ok(false)
    }

    /// Leaves the last few turns in view, where a bound was set, whatever the window.
    fn bound(&mut self, room: Option<&Room>) -> Result<()> {
        let Some(turns) = self.upstream.asking.history else { return Ok(()) };
        let budget = room.map_or_else(|| self.budget(u64::from(u32::MAX)), |room| room.budget.clone());
        if let Some(fitted) = self.thread.bound_history(turns, &budget)? {
            self.count(&fitted.done);
            self.announced = None;
        }
        Ok(())
    }

    /// Makes the view fit. False when it cannot be made to.
    fn fit(&mut self, room: Option<&mut Room>) -> Result<bool> {
        let Some(room) = room else { return Ok(true) };
        let (session, meter) = (self.thread.session().clone(), self.thread.meter());
        let mut digest = ByDigest::new(meter);
        let mut own = (self.manner.summariser)(&session, meter, &self.upstream.asking.cancel);
        let mut settings = self.manner.settings.clone();
        if self.own_tokens == 0 {
            // What cannot be reached is not promised.
            settings.reach = Reach::Kept;
        }
        let by = own.as_deref_mut().unwrap_or(&mut digest);
        let mut ladder = Ladder { budget: room.budget.clone(), settings, by };
        let fitted = match self.thread.fit(&mut ladder) {
            Ok(fitted) => fitted,
            Err(Error::Floor(_) | Error::NoRoom(_) | Error::TooMuch(_)) => return Ok(false),
            Err(other) => return Err(other),
        };
        room.budget = ladder.budget;
        self.count(&fitted.done);
        if !fitted.done.is_empty() {
            // What was announced is not what will be sent.
            self.announced = None;
        }
        Ok(true)
    }

    /// Counts the edits that were made.
    pub(super) fn count(&mut self, done: &[Done]) {
        for done in done {
            self.notes.edits += 1;
            let name = done.rung.name();
            match self.notes.rungs.iter_mut().find(|(other, _)| *other == name) {
                Some((_, times)) => *times += 1,
                None => self.notes.rungs.push((name, 1)),
            }
        }
    }

    /// Writes the request and journals that it is about to leave.
    fn announce(&mut self, room: Option<&Room>) -> Result<(Parcel, Seq)> {
        if let Some(seq) = self.announced.take() {
            let freight = Freight::Spliced(whole(self.arrival));
            let parcel =
                Parcel { freight, digest: String::new(), max_tokens: self.request.wish, offers: false };
            return Ok((parcel, seq));
        }
        // What an earlier request wished for is no wish of this one.
        let most =
            room.and_then(|room| room.most(self.request.wish, &self.thread, &self.asking(), &self.lesson));
        let parcel = self.parcel(most)?;
        let sent = Sent {
            digest: parcel.digest.clone(),
            model: self.upstream.asking.model.clone(),
            context_tokens: self.thread.view().tokens(),
            purpose: None,
            mark: Some(self.mark.clone()),
        };
        let seq = self.thread.append(Entry::Sent(sent))?;
        self.noted(seq)?;
        Ok((parcel, seq))
    }

    /// Who is asked, with what the client wants and what our own tools leave of the window.
    fn asking(&self) -> Asking {
        let window = match self.window() {
            0 => ENDLESS,
            window => window.saturating_sub(self.lesson.theirs(self.own_tokens)),
        };
        Asking { window, max_tokens: self.request.wish, ..self.upstream.asking.clone() }
    }

    /// Learns from a refusal, and makes the next request smaller.
    fn shrink(
        &mut self,
        room: &mut Option<Room>,
        refusal: &Refused,
        sent: Seq,
        tokens: u64,
        max_tokens: Option<u64>,
    ) -> Result<()> {
        let asking = &self.upstream.asking;
        let mut why: TooLarge = refusal.why.clone();
        // Without numbers it may be the room for the answer that was too much: that says nothing of the window.
        why.is_vague |= why.limit.is_none() && max_tokens.is_some();
        self.thread.lose(sent, &asking.model, "overflow", &why.why, None)?;
        let (about, size) = (asking.about(), Size::certain(tokens));
        let mut refused = |lesson: &mut lesson::Lesson| {
            lesson.refused(size, why.refusal(), asking.probed);
            *lesson
        };
        // A lesson that cannot be kept is no reason not to try again.
        match lesson::learn(self.thread.store(), &about, &mut refused) {
            Ok(Some(learned)) => self.lesson = learned,
            _ => drop(refused(&mut self.lesson)),
        }
        let mut next = match room.take() {
            Some(room) => room,
            // Nobody knew the window; now it is what was learned or named, or at most what was refused.
            None => {
                let window = match self.window() {
                    0 => why.limit.unwrap_or_else(|| self.lesson.theirs(tokens + self.own_tokens)).max(1),
                    window => window,
                };
                Room::new(self.budget(window))
            }
        };
        next.shrink(&why, &self.asking(), (tokens, max_tokens), &self.lesson);
        *room = Some(next);
        Ok(())
    }

    /// Journals that no reply came. Once the client hears an answer, a journal that fails is only told.
    fn give_up(
        &mut self,
        sent: Seq,
        finish: &str,
        why: &str,
        heard: Option<&Heard>,
        mouth: &Mouth<'_>,
    ) -> Result<()> {
        let model = self.upstream.asking.model.clone();
        match self.thread.lose(sent, &model, finish, why, heard) {
            Err(error) if mouth.speaks() => self.notes.fault = Some(error.to_string()),
            other => drop(other?),
        }
        Ok(())
    }

    /// Journals a whole answer, learns from it, and answers our own calls in it.
    fn take_reply(
        &mut self,
        sent: Seq,
        (tokens, offers): (u64, bool),
        heard: Heard,
        mouth: &mut Mouth<'_>,
        round: u32,
    ) -> std::result::Result<bool, Fault> {
        let journaled =
            debug_span!("journal").in_scope(|| self.journal_reply(sent, (tokens, offers), &heard));
        let own = match journaled {
            Ok(own) => own,
            Err(error) if !mouth.speaks() => return Err(error.into()),
            Err(error) => {
                self.notes.fault = Some(error.to_string());
                mouth.finish(None);
                return Ok(false);
            }
        };
        let calls = heard.message().map_or(0, |message| message.calls().count());
        if own.is_empty() {
            mouth.finish(None);
            return Ok(false);
        }
        let answered = self.answer_own(&own, round + 1);
        if calls > own.len() {
            self.notes.fault = answered.err().map(|error| error.to_string());
            mouth.finish(None);
            return Ok(false);
        }
        // Where nothing was heard yet the request can still go on untouched.
        answered?;
        if round > MOST_ROUNDS {
            mouth.finish(Some("stop"));
            return Ok(false);
        }
        self.go_inside(own.len());
        Ok(true)
    }

    /// Journals an answer; gives the calls in it that are ours to answer.
    fn journal_reply(
        &mut self,
        sent: Seq,
        (tokens, offers): (u64, bool),
        heard: &Heard,
    ) -> Result<Vec<Call>> {
        let message = heard.message().unwrap_or_else(|| Message::text(Role::Assistant, ""));
        let model = heard.model.clone().or_else(|| Some(self.upstream.asking.model.clone()));
        let finish = heard.finish.clone().unwrap_or_default();
        let id = heard.id.as_ref().filter(|id| !id.is_empty());
        let id = id.map(|id| reply_name(&self.arrival.caller, id));
        let reply = Reply {
            to: Some(sent),
            model,
            usage: heard.usage,
            finish,
            error: None,
            heard: None,
            id: id.clone(),
        };
        let seq = match self.thread.reply(message, reply) {
            Ok(seq) => seq,
            Err(Error::Refused(why)) => {
                let why = format!("the answer cannot be taken in: {why}");
                let model = self.upstream.asking.model.clone();
                self.thread.lose(sent, &model, "refused", &why, Some(heard))?;
                return Ok(Vec::new());
            }
            Err(other) => return Err(other),
        };
        if let Some(usage) = &heard.usage {
            self.learn(tokens, usage)?;
        }
        if let Some(id) = id {
            self.note(id, seq)?;
        }
        if !offers {
            return Ok(Vec::new());
        }
        // What was journaled has ids for calls that came without.
        let Entry::Message(message, _) = self.thread.record(seq)?.entry else { return Ok(Vec::new()) };
        Ok(message.calls().filter(|call| is_own(&call.name)).cloned().collect())
    }

    /// Learns how the provider counts, and whether it left something out.
    fn learn(&mut self, tokens: u64, usage: &Usage) -> Result<()> {
        let reported = usage.input_tokens + usage.cache_creation_tokens + usage.cache_read_tokens;
        // What nobody doubts need not be looked at: only where the counts differ does it matter what they are of.
        let is_near = |expected: u64| reported.abs_diff(expected) * 20 <= expected;
        let is_usual = is_near(tokens) || is_near(self.lesson.theirs(tokens));
        let uncertain = if is_usual { 0 } else { self.uncertain()? };
        let size = Size { tokens, uncertain };
        let (about, probed) = (self.upstream.asking.about(), self.upstream.asking.probed);
        let mut lesson = self.lesson;
        let mut read = lesson.hear(size, usage, probed);
        if lesson.is_news_to(&self.lesson) {
            let learned = lesson::learn(self.thread.store(), &about, |lesson| {
                let read = lesson.hear(size, usage, probed);
                (read, *lesson)
            })?;
            (read, lesson) = learned.unwrap_or((read, lesson));
        }
        self.lesson = lesson;
        if let Read::Truncated { reported, expected } = read {
            self.notes.truncated = Some((reported, expected));
        }
        Ok(())
    }
}
