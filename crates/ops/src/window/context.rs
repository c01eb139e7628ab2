//! Context: the window, and what fills it.

use crate::address::AtMoment;
use crate::session::{SessionCost, cost};
use crate::thread::WindowShare;
use crate::{Interfaces, OpResult, Operation, OperationContext, OperationLabel, Route};
use komado_core::amount::count;
use komado_core::budget::BudgetRule;
use komado_core::journal::Entry;
use komado_core::notation::grouped;
use komado_core::session::Counters;
use komado_core::view::ViewWeight;
use komado_core::{Seq, Span, View};
use komado_engine::Thread;
use komado_engine::lesson::LearnedWindow;
use komado_engine::repeat::RepeatedCall;
use komado_engine::share::ThreadPortion;
use komado_store::OpenMode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Say how full the model's window is: tokens by kind, what is free, edits in force, pins and open calls.
#[derive(Clone, Debug, clap::Args, Deserialize, JsonSchema)]
pub struct ReadContext {
    /// The session, SESSION/THREAD, or a moment SESSION@SEQ
    #[arg(value_name = "ADDRESS")]
    #[serde(flatten)]
    pub at: AtMoment,
    /// The model's window in tokens, in place of the session's own
    #[arg(long, value_name = "TOKENS", value_parser = crate::choice::tokens::<u32>(1))]
    #[schemars(range(min = 1))]
    pub window: Option<u32>,
}

/// A window, and what fills it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ContextUse {
    /// The session.
    pub session: String,
    /// The thread.
    pub thread: String,
    /// The moment.
    pub seq: Seq,
    /// The state of the session.
    pub status: &'static str,
    /// The first line that the user wrote in the session.
    pub title: Option<String>,
    /// The program that talks in it.
    pub agent: Option<String>,
    /// The folder that program works in.
    pub project: Option<String>,
    /// Tokens that all calls of the session took.
    pub total_tokens: u64,
    /// Tokens by which edits made its windows smaller.
    pub saved_tokens: u64,
    /// What its tokens cost; null where no price is known for its model, and where only their sum is known.
    pub cost: Option<SessionCost>,
    /// The model.
    pub model: Option<String>,
    /// How tokens are counted.
    pub meter: String,
    /// All that the view may take, in tokens.
    pub window: Option<u32>,
    /// Where that is from, when it was learned from the model's answers.
    pub learned_window: Option<LearnedWindow>,
    /// Tokens of the view.
    pub context_tokens: u64,
    /// What is left of the window.
    pub free_tokens: Option<u64>,
    /// Number of things that are shown.
    pub items: u64,
    /// Tokens that are seen of the threads above.
    pub above: u64,
    /// How the window is shared out, for a child thread.
    pub share: Option<WindowShare>,
    /// Tokens by where they come from.
    pub parts: Parts,
    /// The edits in force.
    pub edits: Vec<Seq>,
    /// The same, with what each did.
    pub edits_in_force: Vec<EditInForce>,
    /// What is pinned, as first and last entry.
    pub pins: Vec<[Seq; 2]>,
    /// The last call that the model made again while an edit hid its answer.
    pub repeated: Option<RepeatedCall>,
    /// The calls that wait for a result.
    pub open_calls: Vec<String>,
    /// The same, with the tools they call.
    pub waiting: Vec<OpenCall>,
}

/// An edit that is in force.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct EditInForce {
    /// Its entry.
    pub seq: Seq,
    /// Its kind.
    pub op: &'static str,
    /// The first and the last entry that it touches.
    pub span: Option<[Seq; 2]>,
    /// Tokens of the view before.
    pub tokens_before: u64,
    /// Tokens of the view after.
    pub tokens_after: u64,
    /// The rule that asked for it.
    pub rule: String,
}

/// A call that waits for a result.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct OpenCall {
    /// The call.
    pub id: String,
    /// The tool.
    pub name: String,
}

impl Operation for ReadContext {
    const ABOUT: OperationLabel = OperationLabel::read("context", "The window and what fills it");
    const INTERFACES: Interfaces =
        Interfaces::everywhere("context", Route::get("view", "/sessions/{session}/threads/{thread}/context"));
    type Output = ContextUse;

    fn run(self, context: &OperationContext) -> OpResult<ContextUse> {
        let found = context.find(&self.at)?;
        let session = context.session(&found.session)?;
        let thread = context.engine.open(&found.session, &found.thread, OpenMode::Read)?;
        let view = match found.seq {
            Some(seq) => thread.view_at(seq)?,
            None => thread.view().clone(),
        };
        let cost = cost(&context.config.models.prices()?, &session);
        let Counters { total_tokens, saved_tokens, .. } = session.counters;
        let config = session.meta.config;
        let models = context.models();
        let models = models.of(&found.session);
        let learned = models.own_learned_window(&config, self.window);
        let learned_ours = learned.as_ref().and_then(|_| models.own_window(&config, None));
        let given = self.window.or(learned_ours).or(config.context_length);
        let share = view.share_in(thread.source()).map_err(komado_engine::Error::from)?;
        let portion = share.map(|share| ThreadPortion::new(share, given.map(u64::from)));
        // A child may fill its room beside what it sees of the threads above.
        let window = match &portion {
            Some(portion) => Some(u32::try_from(portion.window()).unwrap_or(u32::MAX)),
            None => given,
        };
        let weight = view.weight();
        let waiting = view.open().calls.iter();
        let waiting = waiting.map(|call| OpenCall { id: call.id.clone(), name: call.name.clone() });
        let waiting: Vec<OpenCall> = waiting.collect();
        Ok(ContextUse {
            session: found.session.to_string(),
            thread: found.thread.to_string(),
            seq: view.last(),
            status: session.status.name(),
            title: context.engine.title(&found.session),
            agent: config.agent,
            project: config.project,
            total_tokens,
            saved_tokens,
            cost,
            model: config.model,
            meter: config.meter,
            window,
            learned_window: learned,
            context_tokens: weight.tokens(),
            free_tokens: window.map(|window| u64::from(window).saturating_sub(weight.tokens())),
            items: weight.items,
            above: weight.above,
            share: portion.as_ref().map(WindowShare::from),
            parts: weight.into(),
            edits: view.edits().collect(),
            edits_in_force: edits(&thread, &view)?,
            pins: view.pins().iter().map(|pin| [pin.from, pin.to]).collect(),
            repeated: if view.last() == thread.last() { thread.repeated()? } else { None },
            open_calls: waiting.iter().map(|call| call.id.clone()).collect(),
            waiting,
        })
    }

    fn text(used: &ContextUse) -> Option<String> {
        Some(used.lines().join("\n"))
    }
}

impl ContextUse {
    /// The window in words: what fills it, edits in force, pins and open calls.
    fn lines(&self) -> Vec<String> {
        let Self { session, thread, seq, status, context_tokens, .. } = self;
        let used = match self.window {
            Some(window) => {
                let percent = 100.0 * *context_tokens as f64 / f64::from(window);
                let (free, window) = (self.free_tokens.unwrap_or_default(), grouped(window.into()));
                format!(
                    "{} of {window} tokens ({percent:.1} %), {} free",
                    grouped(*context_tokens),
                    grouped(free)
                )
            }
            None => format!("{}; the window is not set", count(*context_tokens, "token")),
        };
        let parts = self.parts.named().into_iter().filter(|(_, tokens)| *tokens > 0);
        let parts: Vec<String> = parts.map(|(name, tokens)| format!("{name} {}", grouped(tokens))).collect();
        let mut lines = vec![format!("{session}/{thread}@{seq}  {status}"), used, parts.join(", ")];
        lines.extend(self.details());
        lines
    }

    /// Edits in force, pins, a repeated call and open calls, in words.
    pub fn details(&self) -> Vec<String> {
        let one = if self.items == 1 { "item" } else { "items" };
        let mut lines = vec![format!("  {} {one} shown", grouped(self.items))];
        lines.extend(self.learned_window.as_ref().map(|learned| format!("  {}", learned_line(learned))));
        for edit in &self.edits_in_force {
            let span = edit.span.map(|[from, to]| Span::new(from, to).to_string()).unwrap_or_default();
            let (before, after) = (grouped(edit.tokens_before), grouped(edit.tokens_after));
            let why = BudgetRule::named(&edit.rule)
                .map_or_else(|| edit.rule.clone(), |rule| rule_words(rule).to_owned());
            lines.push(format!("  @{} {} {span}: {before} → {after} tokens ({why})", edit.seq, edit.op));
        }
        if !self.pins.is_empty() {
            let pins = self.pins.iter().map(|[from, to]| format!("@{}", Span::new(*from, *to)));
            lines.push(format!("  pinned: {}", pins.collect::<Vec<_>>().join(", ")));
        }
        if let Some(repeated) = &self.repeated {
            lines.push(format!("  {}", repeated.told()));
        }
        if !self.waiting.is_empty() {
            let calls = self.waiting.iter().map(|call| format!("{} ({})", call.id, call.name));
            lines.push(format!("  waiting for results: {}", calls.collect::<Vec<_>>().join(", ")));
        }
        lines
    }
}

/// A learned window in words: how large, how it is known, and by which request.
pub fn learned_line(learned: &LearnedWindow) -> String {
    let request = learned.request.as_deref().map(|at| format!(", {at}")).unwrap_or_default();
    format!("window learned: {} of the model's tokens ({}{request})", grouped(learned.tokens), learned.why())
}

/// Why an edit was made, in words.
fn rule_words(rule: BudgetRule) -> &'static str {
    match rule {
        BudgetRule::SoftMark | BudgetRule::Threshold => "over the mark",
        rule => rule.words(),
    }
}

fn edits(thread: &Thread<'_>, view: &View) -> OpResult<Vec<EditInForce>> {
    let mut edits = Vec::new();
    for seq in view.edits() {
        let Entry::Edit(edit) = thread.record(seq)?.entry else { continue };
        edits.push(EditInForce {
            seq,
            op: edit.kind.name(),
            span: edit.hull().map(|span| [span.from, span.to]),
            tokens_before: edit.cause.before,
            tokens_after: edit.cause.after,
            rule: edit.cause.rule,
        });
    }
    Ok(edits)
}

/// Tokens of a view, by where they come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Parts {
    /// System prompt and tool definitions.
    pub setup: u64,
    /// What is seen of the threads above.
    pub above: u64,
    /// System messages.
    pub system: u64,
    /// Messages of the user.
    pub user: u64,
    /// Messages of the model.
    pub assistant: u64,
    /// Results of tools.
    pub tool: u64,
    /// Summaries, markers and placeholders.
    pub stand_ins: u64,
}

impl Parts {
    /// Each with its name, in the order they are told.
    pub fn named(&self) -> [(&'static str, u64); 7] {
        let Self { setup, above, system, user, assistant, tool, stand_ins } = *self;
        [
            ("setup", setup),
            ("above", above),
            ("system", system),
            ("user", user),
            ("assistant", assistant),
            ("tool", tool),
            ("replaced", stand_ins),
        ]
    }

    /// All of them.
    pub fn tokens(&self) -> u64 {
        self.named().iter().map(|(_, tokens)| tokens).sum()
    }
}

impl From<&ViewWeight> for Parts {
    fn from(weight: &ViewWeight) -> Self {
        let [system, user, assistant, tool] = weight.said;
        let (setup, above, stand_ins) = (weight.setup, weight.above, weight.shown);
        Self { setup, above, system, user, assistant, tool, stand_ins }
    }
}
