//! The clauses of the law, each checked by itself on what a request would show.
//!
//! Nothing here knows how the ladder works. What must be seen is worked out from the messages alone, and what could have
//! been shown instead from the public rule for texts in part ([`clip`]).

use crate::ladder::play::{self, Play, poured};
use crate::ladder::stage::Fitted;
use crate::ladder::working_set::case::{BY_HAND, boundary};
use komado_core::budget::{Budget, Preset, share};
use komado_core::clip::{ClipLimits, clip};
use komado_core::grammar::{self, MessageShape};
use komado_core::head::EntrySource;
use komado_core::journal::{Edit, Entry, ShowKind};
use komado_core::thread::ThreadStatus;
use komado_core::view::{ItemSource, ShownItem};
use komado_core::{Kind, Message, Meter, Role, Seq, Span, harness, ladder};
use komado_testkit::Book;
use std::collections::{BTreeMap, BTreeSet};

/// Bytes below which a text in part says nothing.
const LEAST_BYTES: usize = 400;
/// Tokens that a notice may be longer or shorter than another.
const NOTICE: u64 = 24;
/// What the law asks for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Clause {
    /// The set-up stays.
    Setup,
    /// The first request of the user stays word for word, or in part where it is larger than half of what is usable.
    Task,
    /// So does the latest instruction.
    Latest,
    /// What is pinned is shown as it was said.
    Pins,
    /// Every message that the model has not answered is seen.
    Newest,
    /// None of them as a bare placeholder while there is room for more.
    Bare,
    /// One of them in part is as long as fits.
    Largest,
    /// Parallel results share the room fairly.
    Fair,
    /// What is older goes first.
    OlderFirst,
    /// An edit uses the room it has.
    Room,
    /// Where an edit leaves room, earlier edits are taken back.
    Returned,
    /// No edit frees less than what it shows takes.
    Worth,
    /// What an agent says of itself before the task stays while there is room.
    Harness,
    /// The request fits, or is larger only by the stated stretch and because nothing else is left to leave.
    Fits,
    /// Providers would take it.
    Legal,
    /// A refusal is true.
    Floor,
}

/// How often something was tight.
pub(crate) type Tight = BTreeMap<&'static str, u64>;

/// What was found wrong with one request.
pub(crate) type Broken = Vec<(Clause, String)>;

/// A request, and everything that is said about it.
pub(crate) struct Sight<'a> {
    play: &'a Play,
    budget: &'a Budget,
    meter: Meter,
    before: &'a Book,
    /// Everything that was said and counts, oldest first.
    said: Vec<(Seq, Kind, Message)>,
    shown: BTreeMap<Seq, ShownItem>,
    /// What a person took out.
    away: BTreeSet<Seq>,
    task: Option<Seq>,
    latest: Option<Seq>,
    newest: Vec<Seq>,
    /// The least that was usable in any request so far.
    least_usable: u64,
}

impl<'a> Sight<'a> {
    pub(crate) fn new(
        play: &'a Play,
        budget: &'a Budget,
        meter: Meter,
        before: &'a Book,
        least_usable: u64,
    ) -> Self {
        let view = play.book.view();
        let said: Vec<(Seq, Kind, Message)> = view
            .forth(play.book.rows(), 1)
            .filter_map(|entry| {
                let Ok((seq, head)) = entry;
                match play::entry(&play.book, seq) {
                    Some(Entry::Message(message, _)) => Some((seq, head.kind, message.clone())),
                    Some(Entry::Anchor(anchor)) if anchor.first.is_none() => {
                        Some((seq, head.kind, Message::text(Role::System, anchor.text.clone())))
                    }
                    _ => None,
                }
            })
            .collect();
        let shown = play.items().into_iter().map(|item| (item.seq, item)).collect();
        let is_instruction =
            |entry: &&(Seq, Kind, Message)| entry.1 == Kind::User && !is_harness(&entry.2.words());
        let away = away(play);
        // Where a person took the task out, what is shown decides which it is now.
        let is_left = |entry: &&(Seq, Kind, Message)| before.view().shows(entry.0);
        let is_user = |entry: &&(Seq, Kind, Message)| entry.1 == Kind::User;
        let first = said.iter().find(is_instruction).filter(|entry| !away.contains(&entry.0));
        let last = said.iter().rfind(is_instruction).filter(|entry| !away.contains(&entry.0));
        let left = || said.iter().filter(is_left);
        // Where the user asks for nothing, the first and the last message stand for it: a request begins with a user's.
        let task = first.or_else(|| left().find(is_instruction)).or_else(|| left().find(is_user));
        let latest = last.or_else(|| left().rfind(is_instruction)).or_else(|| left().rfind(is_user));
        let (task, latest) = (task.map(|entry| entry.0), latest.map(|entry| entry.0));
        let newest = newest(&said, task);
        Self { play, budget, meter, before, said, shown, away, task, latest, newest, least_usable }
    }

    /// Everything that is wrong.
    pub(crate) fn broken(&self, fitted: &Fitted, tight: &mut Tight) -> Broken {
        let mut broken = Vec::new();
        if let Fitted::Floor(floor) = fitted {
            count(tight, "refused: what must stay does not fit");
            self.check_floor(floor, &mut broken);
            return broken;
        }
        let edited = self.edits().next().is_some();
        count(tight, if edited { "requests after an edit" } else { "requests without an edit" });
        self.check_kept(tight, &mut broken);
        self.check_newest(tight, &mut broken);
        self.check_fits(tight, &mut broken);
        if edited {
            self.check_room(tight, &mut broken);
            self.check_worth(&mut broken);
            self.check_harness(tight, &mut broken);
        }
        broken
    }

    fn tokens(&self) -> u64 {
        self.play.book.view().tokens()
    }

    fn message(&self, seq: Seq) -> &Message {
        let i = self.said.binary_search_by_key(&seq, |entry| entry.0).unwrap();
        &self.said[i].2
    }

    /// Tokens of a message as it was said.
    fn whole(&self, seq: Seq) -> u64 {
        let Ok(head) = self.play.book.rows().head(seq);
        u64::from(head.tokens)
    }

    /// Tokens of a message as it is shown; 0 where it is not.
    fn now(&self, seq: Seq) -> u64 {
        self.shown.get(&seq).map_or(0, |item| u64::from(item.tokens))
    }

    /// The text in place of a message, and the edit that says so.
    fn replaced(&self, seq: Seq) -> Option<(&str, Seq)> {
        let ItemSource::Replaced(by) = self.shown.get(&seq)?.what else { return None };
        let Some(Entry::Edit(edit)) = play::entry(&self.play.book, by) else { return None };
        edit.replace.iter().find(|swap| swap.seq == seq).map(|swap| (swap.text.as_str(), by))
    }

    /// True for a message that the ladder shows in part since this request.
    fn clipped_now(&self, seq: Seq) -> bool {
        self.replaced(seq).is_some_and(|(_, by)| by > self.before.view().last())
    }

    fn pinned(&self, seq: Seq) -> bool {
        self.play.book.view().is_pinned(seq)
    }

    /// Tokens of what stands in place of all that left, in the language of the latest instruction.
    fn marker(&self) -> u64 {
        let words = self.latest.map_or_else(String::new, |seq| self.message(seq).words());
        u64::from(self.meter.said(&ladder::marker(
            &[Span::new(100, 999)],
            &words,
            ladder::OriginalsHint::Tools,
        )))
    }

    /// The edits of this request.
    fn edits(&self) -> impl Iterator<Item = (Seq, &Edit)> {
        let since = self.before.view().last();
        self.play.book.records().filter(move |record| record.seq > since).filter_map(|record| {
            if let Entry::Edit(edit) = &record.entry { Some((record.seq, edit)) } else { None }
        })
    }

    /// System messages at the beginning.
    fn leading(&self) -> impl Iterator<Item = Seq> {
        self.said.iter().take_while(|entry| entry.1 == Kind::System).map(|entry| entry.0)
    }

    /// What stays whatever happens, beside the newest unit.
    fn fixed(&self) -> BTreeSet<Seq> {
        let mut fixed: BTreeSet<Seq> = self.leading().chain(self.task).chain(self.latest).collect();
        for (seq, kind, _) in &self.said {
            if self.pinned(*seq) || *kind == Kind::Anchor && self.is_open(*seq) {
                fixed.insert(*seq);
            }
        }
        fixed
    }

    fn is_open(&self, first: Seq) -> bool {
        match play::entry(&self.play.book, self.play.book.view().anchor(first)) {
            Some(Entry::Anchor(anchor)) => ThreadStatus::from(anchor.ending).is_open(),
            _ => false,
        }
    }

    /// The mark at this share of what may move.
    fn mark(&self, of: f64) -> u64 {
        let weight = self.play.book.view().weight();
        let fixed: u64 = self.fixed().iter().map(|seq| self.now(*seq)).sum();
        let fixed = fixed + weight.setup + weight.above;
        fixed + share(self.budget.usable.saturating_sub(fixed), of)
    }

    /// Tokens of the message with at least so many bytes of its words.
    fn in_part(&self, seq: Seq, bytes: usize) -> u64 {
        let message = self.message(seq);
        let output = message.outcome().and_then(|outcome| outcome.output_ref.as_ref());
        let name = output.map_or_else(|| format!("@{seq}"), |output| output.id.clone());
        let limits = ClipLimits { max_message_bytes: bytes, max_line_length: bytes };
        let text = clip(&message.words(), &limits, &name);
        text.map_or_else(|| self.whole(seq), |text| u64::from(self.meter.message(&message.saying(&text))))
    }

    /// The least that says something of it.
    fn least(&self, seq: Seq) -> u64 {
        self.whole(seq).min(self.in_part(seq, LEAST_BYTES))
    }

    /// True where more than a tenth more of the message could be shown in no more than `room` tokens.
    fn could_grow(&self, seq: Seq, room: u64) -> bool {
        let now = self.now(seq);
        let wanted = now + (now / 10).max(NOTICE);
        if room < wanted {
            return false;
        }
        if self.whole(seq) <= room {
            return self.whole(seq) >= wanted;
        }
        let words = self.message(seq).words().len();
        let mut bytes = self.replaced(seq).map_or(0, |(text, _)| text.len()).max(LEAST_BYTES);
        while bytes < words {
            let tokens = self.in_part(seq, bytes);
            if (wanted..=room).contains(&tokens) {
                return true;
            }
            if tokens > 2 * room {
                break;
            }
            bytes += bytes / 40;
        }
        false
    }

    /// True where what stands in place of a message says something of it.
    fn tells_of(&self, seq: Seq, text: &str) -> bool {
        let words = self.message(seq).words();
        let (head, tail) = (boundary(&words, 12), boundary(&words, words.len().saturating_sub(12)));
        !words.is_empty() && (text.contains(&words[..head]) || text.contains(words[tail..].trim_end()))
    }
}

fn is_harness(text: &str) -> bool {
    harness::user_text(text).all(|words| words.trim().is_empty())
}

/// Everything that the model has not answered: the last calls with what follows them, or what follows the last reply, or
/// that reply where nothing does.
fn newest(said: &[(Seq, Kind, Message)], task: Option<Seq>) -> Vec<Seq> {
    let from = match said.iter().rposition(|entry| entry.1 == Kind::Assistant) {
        Some(last) if said[last].2.calls().next().is_some() => last,
        Some(last) if said[last + 1..].iter().any(|entry| entry.1 != Kind::Anchor) => last + 1,
        Some(last) => last,
        // Before the first answer: the task, and what was said since.
        None => {
            let begins =
                |entry: &&(Seq, Kind, Message)| task.map_or(entry.1 == Kind::User, |task| entry.0 == task);
            said.iter().take_while(|entry| !begins(entry)).count()
        }
    };
    said[from..].iter().filter(|entry| entry.1 != Kind::Anchor).map(|entry| entry.0).collect()
}

/// What edits by hand that were not undone took out or show otherwise.
fn away(play: &Play) -> BTreeSet<Seq> {
    let view = play.book.view();
    let on_path = || play.book.records().filter(|record| view.on_path(record.seq));
    let undone: BTreeSet<Seq> = on_path()
        .filter_map(|record| if let Entry::Revert { target } = record.entry { Some(target) } else { None })
        .collect();
    let mut away = BTreeSet::new();
    for record in on_path().filter(|record| !undone.contains(&record.seq)) {
        if let Entry::Edit(edit) = &record.entry
            && edit.cause.rule == BY_HAND
        {
            away.extend(edit.hide.iter().flat_map(|span| span.from..=span.to));
            away.extend(edit.replace.iter().map(|swap| swap.seq));
        }
    }
    away
}

pub(crate) fn count(tight: &mut Tight, what: &'static str) {
    *tight.entry(what).or_default() += 1;
}

// What stays word for word.

impl Sight<'_> {
    fn check_kept(&self, tight: &mut Tight, broken: &mut Broken) {
        let view = self.play.book.view();
        if view.setup() != self.before.view().setup()
            || view.weight().setup != self.before.view().weight().setup
        {
            broken.push((Clause::Setup, "the set-up is another".into()));
        }
        for (seq, clause) in [(self.task, Clause::Task), (self.latest, Clause::Latest)] {
            let Some(seq) = seq.filter(|seq| !self.away.contains(seq)) else { continue };
            if let Some(why) = self.not_verbatim(seq) {
                broken.push((clause, why));
            } else if self.replaced(seq).is_some() {
                count(tight, "task or latest instruction shown in part");
            }
        }
        let mut pins = 0;
        for (seq, kind, _) in self.said.iter().filter(|entry| self.pinned(entry.0)) {
            pins += 1;
            let item = self.shown.get(seq).map(|item| item.what);
            let moved = *kind == Kind::Anchor && item.is_some();
            if !moved && item != Some(ItemSource::Said(*kind)) {
                broken.push((Clause::Pins, format!("@{seq} is pinned and shown as {item:?}")));
            }
        }
        if pins > 0 {
            count(tight, "requests with pins");
        }
    }

    /// Why a message is neither shown as it was said, nor in part because it is larger than half of what is usable.
    fn not_verbatim(&self, seq: Seq) -> Option<String> {
        let Some(item) = self.shown.get(&seq) else { return Some(format!("@{seq} is hidden")) };
        let ItemSource::Replaced(_) = item.what else { return None };
        let (text, by) = self.replaced(seq)?;
        // Where a person took out all that the user asked for, what stands for it is the agent's own text. It may have been
        // shown in part before, as any other; the law holds the user's words.
        let is_asked = !is_harness(&self.message(seq).words());
        if is_asked && self.whole(seq) <= self.least_usable / 2 {
            let (whole, usable) = (self.whole(seq), self.least_usable);
            return Some(format!("@{seq} of {whole} tokens is shown in part by @{by}, usable {usable}"));
        }
        let tells = self.tells_of(seq, text) && text.contains('[');
        (!tells).then(|| format!("@{seq} is shown as {text:?}"))
    }

    fn check_fits(&self, tight: &mut Tight, broken: &mut Broken) {
        let (tokens, budget) = (self.tokens(), self.budget);
        if tokens > budget.most() {
            broken.push((Clause::Fits, format!("{tokens} tokens, most {}", budget.most())));
        } else if tokens > budget.usable {
            count(tight, "larger than usable, by the stretch");
            let large = self.newest.iter().find(|&&seq| {
                Some(seq) != self.task
                    && Some(seq) != self.latest
                    && self.message(seq).calls().next().is_none()
                    && !self.pinned(seq)
                    && self.now(seq) > self.least(seq) + self.least(seq) / 4 + NOTICE
            });
            if let Some(seq) = large {
                let now = self.now(*seq);
                let why = format!("{tokens} of {} tokens, and @{seq} takes {now}", budget.usable);
                broken.push((Clause::Fits, why));
            } else if let Some(older) = self.older_left() {
                let why = format!("{tokens} of {} tokens, and {older} of what is older stay", budget.usable);
                broken.push((Clause::Fits, why));
            }
        }
        let shapes: Vec<MessageShape> =
            poured(&self.play.book, self.play.book.view()).iter().map(|(_, m)| MessageShape::of(m)).collect();
        let begins = self.said.iter().find(|entry| entry.1 != Kind::System && entry.1 != Kind::Anchor);
        let by_user = begins.is_some_and(|entry| entry.1 == Kind::User && !self.away.contains(&entry.0));
        // Where a pin or an edit by hand has the model speak first, no edit of the ladder can undo it.
        let was: Vec<MessageShape> =
            poured(self.before, self.before.view()).iter().map(|(_, m)| MessageShape::of(m)).collect();
        let by_user = by_user && grammar::anthropic(&was).is_ok();
        let legal = if by_user { grammar::anthropic(&shapes) } else { grammar::openai(&shapes) };
        if let Err(fault) = legal {
            broken.push((Clause::Legal, fault.to_string()));
        }
    }

    /// The message of the user before the first of what the model and its tools said before the task that stays, because a
    /// pin holds it or because it is of the newest unit. It stays too: a request begins with a user's message.
    fn leads(&self) -> Option<Seq> {
        let task = self.task.unwrap_or(0);
        let is_other = |kind: Kind| matches!(kind, Kind::Assistant | Kind::Tool);
        let stays = |seq: Seq| self.pinned(seq) || self.newest.contains(&seq);
        let held = self.said.iter().position(|e| e.0 < task && is_other(e.1) && stays(e.0))?;
        let mut users =
            self.said[..held].iter().filter(|e| e.1 == Kind::User && self.shown.contains_key(&e.0));
        let last = users.clone().next_back()?.0;
        (!users.any(|entry| self.pinned(entry.0))).then_some(last)
    }

    /// What could still leave of what is older than the newest unit, where that is worth a marker.
    fn older_left(&self) -> Option<u64> {
        let (fixed, leads) = (self.fixed(), self.leads());
        let from = self.newest.first().copied().unwrap_or(Seq::MAX);
        let view = self.play.book.view();
        let is_free = |seq: Seq| {
            let Ok(unit) = view.unit(self.play.book.rows(), seq);
            let is_held = |unit: Span| (unit.from..=unit.to).any(|seq| fixed.contains(&seq));
            seq < from && !fixed.contains(&seq) && Some(seq) != leads && !unit.is_some_and(is_held)
        };
        let left: u64 =
            self.said.iter().filter(|entry| is_free(entry.0)).map(|entry| self.now(entry.0)).sum();
        (left > 2 * self.marker()).then_some(left)
    }

    /// What an agent says of itself before the task stays, up to a quarter of what may move.
    fn check_harness(&self, tight: &mut Tight, broken: &mut Broken) {
        let task = self.task.unwrap_or(0);
        let ours = self.said.iter().filter(|entry| {
            entry.1 == Kind::User && entry.0 < task && !self.away.contains(&entry.0) && !self.pinned(entry.0)
        });
        let ours: Vec<Seq> = ours.map(|entry| entry.0).collect();
        let all: u64 = ours.iter().map(|seq| self.whole(*seq)).sum();
        if all == 0 {
            return;
        }
        let was = |seq: &Seq| self.before.view().shows(*seq);
        let left = ours.iter().filter(|seq| was(seq) && !self.shown.contains_key(seq));
        let left: u64 = left.map(|seq| self.whole(*seq)).sum();
        if left > 0 {
            count(tight, "the agent's own opening left");
        }
        if left > 0 && all <= self.mark(0.25) - self.mark(0.0) && self.tokens() + left <= self.mark(0.6) {
            let why = format!("{left} tokens before the task are hidden at {}", self.tokens());
            broken.push((Clause::Harness, why));
        }
    }
}

// The newest unit.

impl Sight<'_> {
    fn check_newest(&self, tight: &mut Tight, broken: &mut Broken) {
        let usable = self.budget.usable;
        let mut clipped = Vec::new();
        for &seq in self.newest.iter().filter(|seq| !self.away.contains(seq)) {
            if !self.shown.contains_key(&seq) {
                broken.push((Clause::Newest, format!("@{seq} is hidden at {} of {usable}", self.tokens())));
                continue;
            }
            let Some((text, _)) = self.replaced(seq) else { continue };
            let beside = self.tokens() - self.now(seq);
            if !self.tells_of(seq, text) {
                if beside + self.least(seq) <= usable && self.least(seq) > self.now(seq) {
                    let why = format!("@{seq} is shown as {text:?} at {} of {usable}", self.tokens());
                    broken.push((Clause::Bare, why));
                } else {
                    count(tight, "newest as a placeholder: no room for more");
                }
            } else if self.clipped_now(seq) {
                clipped.push(seq);
                if self.could_grow(seq, usable.saturating_sub(beside)) {
                    let (now, tokens) = (self.now(seq), self.tokens());
                    let why = format!("@{seq} is shown with {now} tokens at {tokens} of {usable}");
                    broken.push((Clause::Largest, why));
                }
            }
        }
        self.check_fair(&clipped, tight, broken);
        if clipped.is_empty() {
            return;
        }
        count(tight, "newest shown in part");
        if let Some(older) = self.older_left() {
            let why = format!("@{} is shown in part, and {older} tokens of what is older stay", clipped[0]);
            broken.push((Clause::OlderFirst, why));
        }
    }

    /// No result is cut below another that is shown larger.
    fn check_fair(&self, clipped: &[Seq], tight: &mut Tight, broken: &mut Broken) {
        let is_result = |seq: &&Seq| self.message(**seq).outcome().is_some() && !self.pinned(**seq);
        let results: Vec<Seq> = self.newest.iter().filter(is_result).copied().collect();
        if results.len() > 1 && !clipped.is_empty() {
            count(tight, "parallel results share the room");
        }
        for &seq in clipped.iter().filter(|seq| results.contains(seq)) {
            let larger = results.iter().find(|&&other| self.could_grow(seq, self.now(other)));
            if let Some(&other) = larger {
                let (now, more) = (self.now(seq), self.now(other));
                let why = format!("@{seq} is shown with {now} tokens, @{other} with {more}");
                broken.push((Clause::Fair, why));
            }
        }
    }
}

// What an edit does.

impl Sight<'_> {
    /// At least six tenths of what is usable, in whole tokens, are used after an edit, unless nothing that left would fit. The room of a
    /// summary counts as used: what leaves is decided before the text is written, and a text that comes out short is not
    /// asked for again. Then earlier edits are taken back, which is checked here too.
    fn check_room(&self, tight: &mut Tight, broken: &mut Broken) {
        let (tokens, enough) = (self.tokens(), share(self.budget.usable, 0.6));
        let usable = self.budget.usable;
        if tokens >= enough {
            return;
        }
        if self.budget.policy.preset != Preset::Komado {
            // The presets of the documents come down to their own marks.
            count(tight, "less than 60 % used: another preset");
            return;
        }
        match self.could_stay() {
            Some(_) if tokens + self.room_for_summary() >= enough => {
                count(tight, "less than 60 % used: a summary came out short");
            }
            Some(why) => broken.push((Clause::Room, format!("{tokens} of {usable} are used, {why}"))),
            None => count(tight, "less than 60 % used: nothing more would fit"),
        }
        if let Some((edit, after)) = self.could_return() {
            let why = format!("{tokens} of {usable} are used; without @{edit} it would be {after}");
            broken.push((Clause::Returned, why));
        }
    }

    /// The newest unit that this request shows less of than the one before, where more of it would fit.
    fn could_stay(&self) -> Option<String> {
        let was: BTreeMap<Seq, u64> = play::items(self.before, self.before.view())
            .iter()
            .map(|i| (i.seq, u64::from(i.tokens)))
            .collect();
        let lost = |seq: Seq| was.get(&seq).map_or(0, |was| was.saturating_sub(self.now(seq)));
        let last = self.said.iter().rev().find(|entry| lost(entry.0) > 0)?.0;
        let Ok(unit) = self.play.book.view().unit(self.play.book.rows(), last);
        let unit = unit?;
        let all = || self.said.iter().filter(|entry| unit.holds(entry.0));
        let tokens = self.tokens() + self.room_for_summary();
        let whole: u64 = all().map(|entry| lost(entry.0)).sum();
        if tokens + whole <= self.mark(0.75) {
            return Some(format!("and the {whole} tokens of @{} that left would fit", unit.from));
        }
        let (mut least, mut in_part) = (0, false);
        for (seq, kind, _) in all() {
            let (now, least_of) = (self.now(*seq), self.least(*seq));
            if *kind == Kind::Tool && least_of < self.whole(*seq) {
                let more = if now == 0 { least_of } else { least_of.max(now + now / 10).saturating_sub(now) };
                (least, in_part) = (least + more.min(lost(*seq)), true);
            } else {
                least += lost(*seq);
            }
        }
        (in_part && tokens + least + NOTICE <= self.mark(0.6))
            .then(|| format!("and @{} would fit in part, from {least} tokens on", unit.from))
    }

    /// What the last summary of this request left of the room that was kept for it.
    fn room_for_summary(&self) -> u64 {
        let last = self.edits().filter(|(_, edit)| !edit.show.is_empty()).last();
        let is_summary = |edit: &&Edit| edit.show.iter().any(|show| show.kind == ShowKind::Summary);
        last.map(|(_, edit)| edit).filter(is_summary).map_or(0, |edit| {
            self.budget.marks(self.mark(0.0)).summary.saturating_sub(u64::from(edit.shown_tokens()))
        })
    }

    /// The newest edit of an earlier request whose return would leave room, and the tokens then.
    fn could_return(&self) -> Option<(Seq, u64)> {
        let since = self.before.view().last();
        let edit = self.play.book.view().edits().rfind(|edit| *edit <= since)?;
        let Some(Entry::Edit(was)) = play::entry(&self.play.book, edit) else { return None };
        if was.cause.rule == BY_HAND {
            return None;
        }
        let mut book = self.play.book.clone();
        book.push(Entry::Revert { target: edit }, 0, "t").ok()?;
        let after = book.view().tokens();
        (after > self.tokens() && after <= self.mark(0.75)).then_some((edit, after))
    }

    /// No edit frees less than what it shows takes, except the one that makes the request fit.
    fn check_worth(&self, broken: &mut Broken) {
        for (seq, edit) in self.edits() {
            let (before, after) = (self.play.book.view_at(seq - 1), self.play.book.view_at(seq));
            let freed = before.tokens().saturating_sub(after.tokens());
            let takes = u64::from(edit.shown_tokens());
            // The request fits by this alone.
            let makes_fit = |freed: u64| {
                let holds = |most: u64| after.tokens() <= most && after.tokens() + freed > most;
                holds(self.budget.usable) || holds(self.budget.most())
            };
            if !edit.show.is_empty() && freed < takes && !makes_fit(freed) {
                broken.push((Clause::Worth, format!("@{seq} shows {takes} tokens to free {freed}")));
            }
            let was: BTreeMap<Seq, u64> =
                play::items(&self.play.book, &before).iter().map(|i| (i.seq, u64::from(i.tokens))).collect();
            for swap in edit.replace.iter().filter(|swap| !self.tells_of(swap.seq, &swap.text)) {
                let freed = was.get(&swap.seq).map_or(0, |was| was.saturating_sub(u64::from(swap.tokens)));
                if freed < u64::from(swap.tokens) && !makes_fit(freed) {
                    let (seq, takes) = (swap.seq, swap.tokens);
                    broken
                        .push((Clause::Worth, format!("a placeholder of {takes} for @{seq} frees {freed}")));
                }
            }
        }
    }

    /// A refusal names more than fits, and what must stay does not fit by our own count.
    fn check_floor(&self, floor: &ladder::Floor, broken: &mut Broken) {
        if floor.floor <= floor.most || floor.tokens <= floor.most {
            broken.push((Clause::Floor, format!("its own numbers fit: {floor}")));
        }
        if [self.task, self.latest].iter().flatten().any(|seq| self.away.contains(seq)) {
            return;
        }
        let (fixed, leads, half) = (self.fixed(), self.leads(), self.budget.usable / 2);
        let mut least = self.play.book.view().weight().setup + self.play.book.view().weight().above;
        for (seq, kind, message) in &self.said {
            let whole = if self.away.contains(seq) { self.now(*seq) } else { self.whole(*seq) };
            let is_request = Some(*seq) == self.task || Some(*seq) == self.latest;
            least += match kind {
                _ if self.pinned(*seq) => whole,
                _ if is_request && whole > half => self.least(*seq).min(whole),
                Kind::System => whole,
                _ if fixed.contains(seq) || Some(*seq) == leads => whole,
                _ if !self.newest.contains(seq) => 0,
                _ if message.calls().next().is_some() => whole,
                _ => self.least(*seq).min(whole),
            };
        }
        let least = least + self.marker();
        if least <= self.budget.most() {
            broken.push((Clause::Floor, format!("what must stay takes {least} at most: {floor}")));
        }
    }
}
