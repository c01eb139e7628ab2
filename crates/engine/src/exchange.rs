//! One exchange with a model: fit, render, announce, send, receive, journal, learn; smaller and again when it was too large.
//!
//! `exchange` serves `ask`, tasks, summaries, chronicles and the gateway. What differs between them is an `ExchangeWire`: how a
//! request is made (a rendered file, or a splice of a client's bytes) and where its response goes. The journal has the
//! request before it leaves and the reply before the caller goes on.

use crate::edits::{lost, reply};
use crate::error::{Error, Result};
use crate::fit::{DoneEdit, FitResult, Ladder, reach_of};
use crate::lesson::AppliedLesson;
use crate::output::{DEFINITIONS, is_reader};
use crate::recall;
use crate::recall::RecallScope;
use crate::repeat::RepeatedCall;
use crate::thread::Thread;
use komado_core::budget::{Budget, BudgetVerdict};
use komado_core::journal::{Entry, Record, Reply, Sent, Setup};
use komado_core::ladder::{LadderStep, OriginalsHint, Rung};
use komado_core::message::{Call, Message, MessagePart, ToolOutcome};
use komado_core::raw::{RawJson, RawObject};
use komado_core::view::ItemSource;
use komado_core::{Kind, Role, Seq, ladder};
use komado_provider::client::RetryWait;
use komado_provider::{Dialect, ModelEvent, ModelRequest, ModelResponse};
use komado_store::Store;
use learning::{learn_refusal, learn_usage};
use request::{
    LIMITS, OutgoingRequest, RequestRoom, StoredBlobs, lowered_thoughts, uncertain, window, write_file,
};
use response::{LostResponse, SendOutcome, TooLarge, post, words};
use tracing::debug_span;

mod learning;
pub(crate) mod request;
pub(crate) mod response;

pub use request::ModelTarget;
pub use response::UnansweredReason;

/// How one kind of request is made, and where its response goes.
pub(crate) trait ExchangeWire<'t> {
    /// Which model is asked, and the thread that keeps the exchange.
    fn context(&mut self) -> ExchangeContext<'_, 't>;

    /// Makes what is shown fit into `room`. False when it cannot be made to, and the request may leave all the same.
    fn fit(&mut self, room: &mut RequestRoom) -> Result<bool>;

    /// Writes the request.
    fn render(&mut self, room: &RequestRoom) -> Result<OutgoingRequest>;

    /// Sends it, and hands on the response.
    fn send(&mut self, request: &OutgoingRequest) -> SendOutcome;

    /// Hears what happens. An error ends the exchange.
    fn tell(&mut self, news: ExchangeEvent<'_>) -> Result<()>;

    /// The name under which a reply is found again by the provider's own id.
    fn reply_id(&self, _id: &str) -> Option<String> {
        None
    }

    /// Tokens that a provider may count in its own way, where rendering did not count them.
    fn uncertain(&self) -> Result<u64> {
        Ok(0)
    }
}

/// Which model is asked, and the thread that keeps the exchange.
pub(crate) struct ExchangeContext<'w, 't> {
    pub(crate) asking: &'w ModelTarget,
    /// What is known about the model, followed from answer to answer.
    pub(crate) lesson: &'w mut AppliedLesson,
    pub(crate) store: &'w dyn Store,
    /// `None` for a question that its caller journals.
    pub(crate) thread: Option<&'w mut Thread<'t>>,
}

/// How an exchange ended. `journaled` is the entry that says so.
pub(crate) enum ExchangeOutcome {
    /// With an answer.
    Answer { response: Box<ModelResponse>, reply: Reply, journaled: Result<Seq> },
    /// Without one, or with half of one.
    Lost { lost: LostResponse, journaled: Result<Seq> },
    /// The request was too large to the end.
    TooLarge(Option<TooLarge>),
}

/// Asks a model until it answers, or cannot.
pub(crate) fn exchange<'t>(
    wire: &mut dyn ExchangeWire<'t>,
    mut room: RequestRoom,
) -> Result<ExchangeOutcome> {
    let (mut refused, mut digests) = (None, Vec::new());
    for attempt in 1..=wire.context().asking.tries + 1 {
        let Some(request) = next_request(wire, &mut room, &digests)? else { break };
        let sent = announce(wire, &request)?;
        match debug_span!("upstream").in_scope(|| wire.send(&request)) {
            SendOutcome::Answer(response) => return receive(wire, sent, request, response),
            SendOutcome::Lost(lost) => return Ok(lose(wire, sent, lost)),
            SendOutcome::TooLarge(mut why) => {
                learn_refusal(wire, sent, &request, &mut why)?;
                wire.tell(ExchangeEvent::TooLarge { attempt, why: &why.why, limit: why.refusal.limit })?;
                let ExchangeContext { asking, lesson, .. } = wire.context();
                room.shrink(&why, &request, asking, lesson);
                digests.push(request.digest()?);
                refused = Some(why);
            }
        }
    }
    Ok(ExchangeOutcome::TooLarge(refused))
}

/// The next request, made to fit. After a refusal it is none of those that were `refused`, byte for byte: where the same
/// bytes would leave again, the view gives way further; `None` when it cannot.
fn next_request<'t>(
    wire: &mut dyn ExchangeWire<'t>,
    room: &mut RequestRoom,
    refused: &[String],
) -> Result<Option<OutgoingRequest>> {
    for _ in 0..MOST_ROUNDS {
        let has_bound = room.budget.is_some();
        let fits = debug_span!("fit").in_scope(|| if has_bound { wire.fit(room) } else { Ok(true) })?;
        if !fits && !refused.is_empty() {
            return Ok(None);
        }
        let request = wire.render(room)?;
        if refused.is_empty() || !refused.contains(&request.digest()?) {
            return Ok(Some(request));
        }
        room.tighten(&request, wire.context().asking);
    }
    Ok(None)
}

/// Journals that a request is about to leave; gives its entry.
fn announce(wire: &mut dyn ExchangeWire<'_>, request: &OutgoingRequest) -> Result<Seq> {
    if let Some(seq) = request.announced {
        return Ok(seq);
    }
    let ExchangeContext { asking, thread: Some(thread), .. } = wire.context() else { return Ok(0) };
    let seq = thread.append(request.announcement(&asking.model))?;
    wire.tell(ExchangeEvent::Sent { seq, tokens: request.tokens, bytes: request.body.len() })?;
    Ok(seq)
}

/// Journals a whole answer, and learns from it.
fn receive(
    wire: &mut dyn ExchangeWire<'_>,
    sent: Seq,
    request: OutgoingRequest,
    response: Box<ModelResponse>,
) -> Result<ExchangeOutcome> {
    let _span = debug_span!("journal").entered();
    let id = response.id.as_deref().filter(|id| !id.is_empty()).and_then(|id| wire.reply_id(id));
    let ExchangeContext { asking, thread, .. } = wire.context();
    let model = response.model.clone().unwrap_or_else(|| asking.model.clone());
    let finish = response.finish.as_deref().unwrap_or_default();
    let reply = Reply { id, ..reply(Some(sent), Some(model), finish, response.usage) };
    let message = response.message().unwrap_or_else(|| Message::text(Role::Assistant, ""));
    let journaled = match thread.map_or(Ok(sent), |thread| thread.reply(message, reply.clone())) {
        Err(Error::Refused(why)) => {
            let error = UnansweredReason::Answer(format!("the answer cannot be taken in: {why}"));
            return Ok(lose(wire, sent, LostResponse { finish: "refused", error, response: Some(response) }));
        }
        journaled => journaled,
    };
    if journaled.is_ok() {
        // What is learned and tidied up beside an answer is not a reason to lose it.
        let learned = response.usage.map_or(Ok(()), |usage| learn_usage(wire, sent, &request, &usage));
        for error in [learned, request.body.remove()].into_iter().filter_map(Result::err) {
            wire.tell(ExchangeEvent::Trouble(&error))?;
        }
    }
    Ok(ExchangeOutcome::Answer { response, reply, journaled })
}

/// Journals that a request brought no message, and what had come of one.
fn lose(wire: &mut dyn ExchangeWire<'_>, to: Seq, lost: LostResponse) -> ExchangeOutcome {
    let ExchangeContext { asking, thread, .. } = wire.context();
    let heard = lost.response.as_deref();
    let (usage, said) = (heard.and_then(|heard| heard.usage), heard.and_then(ModelResponse::message));
    let entry = Entry::Lost(Reply {
        error: Some(lost.error.to_string()),
        heard: said.map(|message| words(&message)),
        ..reply(Some(to), Some(asking.model.clone()), lost.finish, usage)
    });
    let journaled = thread.map_or(Ok(to), |thread| thread.append(entry));
    ExchangeOutcome::Lost { lost, journaled }
}

// The turn: a thread's view is rendered to a file, sent from there, and answered.
//
// [`Thread::turn`] is an exchange (`exchange.rs`) over a rendered request. What was said before it is durable before it;
// what comes back is handed on as it comes, and journaled when it is whole. When the provider finds even the smallest
// request too large, the thread answers itself, shortly and honestly. Whatever happens, the thread goes on.
/// The rule of a bound on turns, in the journal.
const MAX_HISTORY: &str = "max_history";

/// What happens during an exchange, as it happens.
#[derive(Debug)]
#[non_exhaustive]
pub enum ExchangeEvent<'a> {
    /// The view was made to fit.
    Fitted(&'a FitResult),
    /// A request is about to leave.
    Sent {
        /// Its entry.
        seq: Seq,
        /// Tokens of the view.
        tokens: u64,
        /// Its size.
        bytes: u64,
    },
    /// The provider wants us to wait.
    Waiting(&'a RetryWait),
    /// The model says something. Never before it is sure that the request was taken.
    Said(&'a ModelEvent),
    /// The request was too large; it goes out again, smaller.
    TooLarge {
        /// Which try that was, from 1.
        attempt: u32,
        /// What the provider said.
        why: &'a str,
        /// The limit it named.
        limit: Option<u64>,
    },
    /// The server read far less than was sent, and did not say so.
    Truncated {
        /// Tokens it read.
        reported: u64,
        /// Tokens that were sent.
        expected: u64,
    },
    /// Something beside the answer went wrong; the answer is there.
    Trouble(&'a Error),
    /// The model made a call again, because an edit hides what it answered.
    Repeated(&'a RepeatedCall),
    /// A hint that something will leave the view before the next request.
    Hint(BudgetHint),
}

/// When a hint is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HintTime {
    /// A reply has come.
    AfterReply,
    /// Tools have answered.
    AfterTools,
    /// The loop is about to end.
    BeforeEnd,
}

/// What the budget says between requests. Nothing is done about it before the next one: only then everything counts.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BudgetHint {
    /// When it was given.
    pub when: HintTime,
    /// What the budget says.
    pub verdict: BudgetVerdict,
}

/// How a turn ended.
#[derive(Clone, Debug)]
pub struct TurnResult {
    /// The reply's entry.
    pub seq: Seq,
    /// What was said.
    pub message: Message,
    /// What it took, and why it stopped.
    pub reply: Reply,
    /// Requests that were sent.
    pub attempts: u32,
    /// True when no model said it: the request was too large to the end.
    pub is_ours: bool,
    /// What the budget says now.
    pub hint: BudgetHint,
}

/// A request that is rendered from a thread's view.
struct Rendered<'w, 't, 'l> {
    thread: &'w mut Thread<'t>,
    asking: &'w ModelTarget,
    lesson: AppliedLesson,
    ladder: &'w mut Ladder<'l>,
    news: &'w mut dyn FnMut(ExchangeEvent<'_>),
    /// Requests that were announced.
    attempts: u32,
}

impl<'t> ExchangeWire<'t> for Rendered<'_, 't, '_> {
    fn context(&mut self) -> ExchangeContext<'_, 't> {
        let store = self.thread.store();
        ExchangeContext {
            asking: self.asking,
            lesson: &mut self.lesson,
            store,
            thread: Some(&mut *self.thread),
        }
    }

    fn fit(&mut self, room: &mut RequestRoom) -> Result<bool> {
        if let Some(budget) = &room.budget {
            self.ladder.budget = budget.clone();
        }
        if let Some(repeated) = self.thread.guard(&self.ladder.budget)? {
            (self.news)(ExchangeEvent::Repeated(&repeated));
        }
        match self.thread.fit(self.ladder) {
            Ok(fitted) => (self.news)(ExchangeEvent::Fitted(&fitted)),
            Err(error) if error.is_no_room() && self.attempts > 0 => return Ok(false),
            Err(other) => return Err(other),
        }
        // A spawned thread works in its share, whatever it was handed.
        room.budget = Some(self.ladder.budget.clone());
        Ok(true)
    }

    fn render(&mut self, room: &RequestRoom) -> Result<OutgoingRequest> {
        let (thread, asking) = (&*self.thread, self.asking);
        // A summariser may have learned something since.
        self.lesson = AppliedLesson::known(thread.store(), &asking.about(), thread.session())?;
        let (mut setup, tokens) = (thread.setup()?, thread.view().tokens());
        let is_messages = asking.provider.dialect == Dialect::Messages;
        let thoughts = thoughts(&setup).filter(|_| is_messages);
        let wished = asking.max_tokens.or_else(|| wished(&setup));
        // An answer that is shorter than the thoughts may be stands behind them.
        let beside = |wished: u64| wished + thoughts.filter(|thoughts| *thoughts >= wished).unwrap_or(0);
        let max_tokens = room.longest_answer(wished.map(beside), thoughts, tokens, asking, &self.lesson);
        if let (Some(most), Some(params)) = (max_tokens, &setup.params)
            && let Some(lowered) = lowered_thoughts(params.get(), most)
        {
            setup.params = RawJson::parse(lowered).ok();
        }
        let ask = ModelRequest { max_tokens, ..asking.ask(&setup) };
        let mut blobs = StoredBlobs { store: thread.store(), session: thread.session() };
        let mut doubtful = 0;
        let written = write_file(
            thread.source().request_file()?,
            asking.provider.dialect,
            &ask,
            &mut blobs,
            &mut |put| {
                thread.view().pour_said(thread.source(), &mut |_, message: &Message| {
                    doubtful += uncertain(&message.parts, thread.meter());
                    put(message)
                })
            },
        )?;
        let uncertain = Some(doubtful);
        Ok(OutgoingRequest { max_tokens, thoughts, uncertain, ..OutgoingRequest::new(written, tokens) })
    }

    fn send(&mut self, request: &OutgoingRequest) -> SendOutcome {
        self.attempts += 1;
        post(self.asking, &request.body.body(), self.news)
    }

    fn tell(&mut self, news: ExchangeEvent<'_>) -> Result<()> {
        (self.news)(news);
        Ok(())
    }
}

/// The longest answer that the parameters in force name.
fn wished(setup: &Setup) -> Option<u64> {
    let object = setup.params.as_ref().and_then(|params| RawObject::parse(params.get()).ok())?;
    let named = |key: &&str| object.read::<u64>(key).ok().flatten();
    let nested = || {
        let options = object.get("options")?;
        RawObject::parse(options.get()).ok()?.read::<u64>("num_predict").ok().flatten()
    };
    LIMITS.iter().find_map(named).or_else(nested)
}

/// How much of an answer the parameters in force let the model think.
fn thoughts(setup: &Setup) -> Option<u64> {
    let own = setup.dialect.as_deref() == Some(Dialect::Messages.name());
    let object = RawObject::parse(setup.params.as_ref().filter(|_| own)?.get()).ok()?;
    RawObject::parse(object.get("thinking")?.get()).ok()?.read("budget_tokens").ok().flatten()
}

impl Thread<'_> {
    /// Asks the model and journals what it answers. `news` is told what happens, word by word.
    pub fn turn(
        &mut self,
        asking: &ModelTarget,
        ladder: &mut Ladder<'_>,
        news: &mut dyn FnMut(ExchangeEvent<'_>),
    ) -> Result<TurnResult> {
        self.give_up_earlier()?;
        self.answer_open_calls()?;
        self.tend()?;
        self.hear()?;
        if let Some(turns) = asking.history
            && let Some(fitted) = self.bound_history(turns, &ladder.budget, ladder.settings.reach)?
        {
            news(ExchangeEvent::Fitted(&fitted));
        }
        // What was learned since the budget was made counts, too.
        let lesson = AppliedLesson::known(self.store(), &asking.about(), self.session())?;
        let mut room = RequestRoom::new(ladder.budget.clone());
        room.keep_within(lesson.ours(window(asking, &lesson)));
        let mut wire = Rendered { thread: self, asking, lesson, ladder, news, attempts: 0 };
        let exchanged = exchange(&mut wire, room)?;
        let attempts = wire.attempts;
        match exchanged {
            ExchangeOutcome::Answer { reply, journaled, .. } => {
                let seq = journaled?;
                let hint = self.hint(HintTime::AfterReply, &ladder.budget)?;
                news(ExchangeEvent::Hint(hint));
                // What was journaled has ids for calls that came without, and blobs for what is not words.
                let Entry::Message(message, _) = self.record(seq)?.entry else {
                    return Err(self.no_moment(seq));
                };
                Ok(TurnResult { seq, message, reply, attempts, is_ours: false, hint })
            }
            ExchangeOutcome::Lost { lost, journaled } => {
                Err(Error::Unanswered { seq: journaled?, why: lost.error })
            }
            ExchangeOutcome::TooLarge(why) => self.answer_honestly(asking, why, attempts, &ladder.budget),
        }
    }

    /// A request whose process ended before the answer came is given up: the journal says so before the next one.
    pub(crate) fn give_up_earlier(&mut self) -> Result<()> {
        use Kind::{
            Anchor, AnchorUpdate, Heard, LateResult, Note, Pin, Setup, Share, System, Tell, Tool, Unpin, User,
        };
        let is_between = |kind| {
            matches!(kind, User | Tool | System | Setup | Pin | Unpin | Share | Tell | Heard)
                || matches!(kind, Anchor | AnchorUpdate | LateResult | Note)
        };
        let last = self.newest(|kind| !is_between(kind), Some)?;
        let Some(Record { seq, entry: Entry::Sent(Sent { model, .. }), .. }) = last else { return Ok(()) };
        let why = "the process ended before an answer came".to_owned();
        self.append(lost(seq, &model, "lost", why, None)).map(|_| ())
    }

    /// System prompt, tools and parameters in force, those of the threads above included.
    pub fn setup(&self) -> Result<Setup> {
        Ok(self.view().setup_in(self.source())?)
    }

    /// What the budget says now; nothing is done about it.
    pub fn hint(&self, when: HintTime, budget: &Budget) -> Result<BudgetHint> {
        Ok(BudgetHint { when, verdict: self.will_manage(budget)? })
    }

    /// Hides what was said before the last `turns` turns of the user. The first request, pins and what stands before the
    /// conversation stay, and so does what is smaller than the marker. Gives what was done, if anything was needed.
    pub fn bound_history(
        &mut self,
        turns: u32,
        budget: &Budget,
        reach: Option<OriginalsHint>,
    ) -> Result<Option<FitResult>> {
        let verdict = self.will_manage(budget)?;
        let reach = reach_of(self.view(), self.source(), reach)?;
        let step = ladder::bound_turns(self.view(), self.source(), budget, self.meter(), (turns, reach))?;
        let Some(LadderStep::Truncate { hide, marker }) = step else { return Ok(None) };
        let seq = self.truncate(hide, &marker, MAX_HISTORY)?;
        let Entry::Edit(edit) = self.record(seq)?.entry else { return Err(self.no_moment(seq)) };
        let done = vec![DoneEdit { seq, rung: Rung::Truncate, edit }];
        let after = self.view().tokens();
        let (returned, declined) = (Vec::new(), Vec::new());
        Ok(Some(FitResult { verdict, done, returned, declined, share: None, after }))
    }

    /// Says in the conversation that the model could not be asked, and why.
    fn answer_honestly(
        &mut self,
        asking: &ModelTarget,
        refused: Option<TooLarge>,
        attempts: u32,
        budget: &Budget,
    ) -> Result<TurnResult> {
        let limit = refused.as_ref().and_then(|why| why.refusal.limit);
        // In the language of what the user said last.
        let asked = self.last_words(|kind| kind == Kind::User)?.unwrap_or_default();
        let text = apology(&asked, &asking.model, self.view().tokens(), limit);
        let error = refused.map(|why| why.why);
        let reply = Reply { error, ..reply(None, None, "overflow", None) };
        let message = Message::text(Role::Assistant, text);
        let seq = self.reply(message.clone(), reply.clone())?;
        let hint = self.hint(HintTime::AfterReply, budget)?;
        Ok(TurnResult { seq, message, reply, attempts, is_ours: true, hint })
    }
}

/// The reply when nothing helped: short, honest, and ours.
fn apology(asked: &str, model: &str, tokens: u64, limit: Option<u64>) -> String {
    let kana = |c: char| ('\u{3041}'..='\u{30ff}').contains(&c);
    if asked.chars().any(kana) {
        let limit = limit.map(|limit| format!("（上限 {limit} トークン）")).unwrap_or_default();
        return format!(
            "申し訳ありません。会話を {tokens} トークンまで短くしましたが、{model} には長すぎて{limit}お答えできませんでした。\
             会話の記録はすべて残っています。質問を短くするか、より大きなコンテキストのモデルをお使いください。"
        );
    }
    let limit = limit.map(|limit| format!(" (it takes {limit})")).unwrap_or_default();
    format!(
        "I could not answer: even cut down to {tokens} tokens, this conversation is more than {model} takes{limit}. \
         Nothing is lost. Please ask for less at once, or use a model with a larger window."
    )
}

// Turn after turn, while the model calls tools that the conversation can answer itself.
//
// What left the view is one call away: outputs that were shortened can be read on, and everything ever said can be
// searched. Those calls are answered here, and the model is asked again. Calls of other tools are handed to the caller:
// nothing is run on anyone's machine. A model that does not stop calling is told to, once, and then the loop ends.

/// Most rounds of calls that are answered for one question.
pub const MOST_ROUNDS: u32 = 8;

/// What a call is told when there were too many before it.
const ENOUGH: &str = "[not run: that were enough calls for one question; answer now with what you know]";

/// Answers calls of tools.
pub trait ToolAnswerer {
    /// True when it answers calls of the tool `name`.
    fn knows(&self, name: &str) -> bool;

    /// Answers a call. What the model got wrong is an answer, too.
    fn call(&mut self, thread: &Thread<'_>, call: &Call) -> Result<ToolReply>;
}

/// What a tool says to a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ToolReply {
    /// The words.
    pub text: String,
    /// True when they say what was wrong with the call.
    pub is_error: bool,
}

/// The tools that lead back to what left the view: reading outputs, and recall.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecallTools;

impl RecallTools {
    /// `setup` with the definitions of these tools added, for the beginning of a session. Later it would cost the
    /// provider's cache.
    pub fn offered(setup: Setup) -> Setup {
        let own = DEFINITIONS.trim().trim_start_matches('[').trim_end_matches(']').trim();
        let before = setup.tools.as_ref().map(|tools| tools.get().trim());
        let before = before.and_then(|text| text.strip_prefix('[')?.strip_suffix(']')).map(str::trim);
        let all = [before.unwrap_or_default(), own, recall::TOOL];
        let all: Vec<&str> = all.into_iter().filter(|text| !text.is_empty()).collect();
        // What is put together from arrays of JSON is one.
        let tools = RawJson::parse(format!("[{}]", all.join(","))).ok();
        let dialect = setup.dialect.or_else(|| Some(komado_core::openai::DIALECT.to_owned()));
        Setup { tools, dialect, ..setup }
    }
}

impl ToolAnswerer for RecallTools {
    fn knows(&self, name: &str) -> bool {
        is_reader(name) || name == recall::NAME
    }

    fn call(&mut self, thread: &Thread<'_>, call: &Call) -> Result<ToolReply> {
        if call.name == recall::NAME {
            let scope = RecallScope::Session(thread.session().clone());
            // The reply whose calls are being answered is the last one.
            let reply = thread.newest(|kind| kind == Kind::Assistant, |record| Some(record.seq))?;
            let here = (thread.id(), reply.unwrap_or(Seq::MAX));
            let text = recall::call(thread.engine(), &scope, here, &call.arguments)?;
            return Ok(ToolReply { text, is_error: false });
        }
        Ok(match crate::output::call(thread, &call.name, &call.arguments) {
            Ok(text) => ToolReply { text, is_error: false },
            Err(why) => ToolReply { text: why.to_string(), is_error: true },
        })
    }
}

/// How a conversation came to rest.
#[derive(Clone, Debug)]
pub struct ConversationResult {
    /// The last turn.
    pub turned: TurnResult,
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
            Some((_, ItemSource::Said(kind))) => kind,
            Some((_, ItemSource::Shown)) => return Ok(()),
            Some((seq, ItemSource::Replaced(_))) => self.source().head(seq)?.kind,
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
        asking: &ModelTarget,
        ladder: &mut Ladder<'_>,
        tools: &mut dyn ToolAnswerer,
        news: &mut dyn FnMut(ExchangeEvent<'_>),
    ) -> Result<ConversationResult> {
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
                news(ExchangeEvent::Hint(self.hint(HintTime::AfterTools, &budget)?));
            }
            if own.is_empty() || !open.is_empty() || turns > MOST_ROUNDS + 1 {
                news(ExchangeEvent::Hint(self.hint(HintTime::BeforeEnd, &budget)?));
                let gave_up = !own.is_empty() && open.is_empty();
                return Ok(ConversationResult { turned, turns, attempts, open, gave_up });
            }
        }
    }

    /// Answers calls of the round `round`, counted from 1, and journals the answers.
    pub(crate) fn answer_calls(
        &mut self,
        tools: &mut dyn ToolAnswerer,
        calls: &[Call],
        round: u32,
    ) -> Result<()> {
        let enough = || ToolReply { text: ENOUGH.to_owned(), is_error: true };
        let mut answers = Vec::with_capacity(calls.len());
        for call in calls {
            let told = if round > MOST_ROUNDS { enough() } else { tools.call(self, call)? };
            let outcome = ToolOutcome::text(&call.id, Some(call.name.clone()), told.text);
            let outcome = ToolOutcome { is_error: told.is_error, ..outcome };
            answers.push((Message::of(Role::Tool, vec![MessagePart::Result(outcome)]), None));
        }
        self.say_all(answers).map(|_| ())
    }
}

#[cfg(test)]
mod converse_tests {
    use super::*;

    fn names(setup: &Setup) -> Vec<String> {
        let tools: Vec<serde_json::Value> =
            serde_json::from_str(setup.tools.as_ref().unwrap().get()).unwrap();
        tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn the_tools_are_offered_beside_those_that_were_there() {
        let own = ["tool_output_cache", "tool_output_cache_grep", "tool_output_cache_line", "recall"];
        let setup = RecallTools::offered(Setup::default());
        assert_eq!(names(&setup), own);
        assert_eq!(setup.dialect.as_deref(), Some("openai"));
        assert!(own.iter().all(|name| RecallTools.knows(name)) && !RecallTools.knows("read"));
        let read = RawJson::parse(r#"[ {"type":"function","function":{"name":"read"}} ]"#).unwrap();
        let both =
            RecallTools::offered(Setup { tools: Some(read), system: Some("s".into()), ..Setup::default() });
        assert_eq!(names(&both)[0], "read");
        assert_eq!((names(&both).len(), both.system.as_deref()), (5, Some("s")));
    }
}
