//! Carrying plans out: from a budget to edits in the journal, until the view fits.
//!
//! The [`ladder`] says what to do next; here it is done, one edit at a time, each durable before the
//! next is thought of. A dry run takes the same steps over a copy that is never written. A summary that cannot be
//! had changes nothing: the attempt and its cost are journaled, and the ladder goes one rung down.

use crate::condense;
use crate::condense::{ByDigest, CondenseSettings, Declined, Summariser, SummaryInput};
use crate::edits::{asked_apart, check_gain, lost};
use crate::error::{Error, Result};
use crate::share::{check_budget, moved};
use crate::thread::{Staged, StagedRows, Thread};
use komado_core::budget::{Budget, BudgetRule, BudgetVerdict, Preset};
use komado_core::clip::READ;
use komado_core::head::EntrySource;
use komado_core::journal::{Cause, Edit, Entry, Show, ShowKind};
use komado_core::ladder::{LadderNext, LadderRound, LadderStep, OriginalsHint, Rung};
use komado_core::share::Shares;
use komado_core::{Kind, Meter, Seq, Span, View, ladder};
use komado_store::Journal;

/// More rounds than there are rungs mean a fault of ours, not of the conversation.
const MOST_STEPS: usize = 16;

/// Earlier edits that are looked at when an edit left room.
const MOST_BACK: usize = 4;

/// Why nothing was condensed by hand.
const TOO_LITTLE: &str =
    "beside what is kept there is too little to condense; say more first, or name the entries";

/// A budget, and who writes summaries under it.
pub struct Ladder<'a> {
    /// How much may be shown, and when something must leave.
    pub budget: Budget,
    /// How a span is condensed.
    pub settings: CondenseSettings,
    /// Who writes the summary.
    pub by: &'a mut dyn Summariser,
}

/// What was done, or would be.
#[derive(Clone, Debug)]
pub struct FitResult {
    /// What the budget said before.
    pub verdict: BudgetVerdict,
    /// The edits, in order.
    pub done: Vec<DoneEdit>,
    /// Earlier edits that were taken back after them, because they left room.
    pub returned: Vec<Seq>,
    /// Summaries that could not be had, and why.
    pub declined: Vec<String>,
    /// What is seen of the threads above was cut anew, because the window is another.
    pub share: Option<Resliced>,
    /// Tokens of the view after.
    pub after: u64,
}

/// What is seen of the threads above, cut anew for a window.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Recut"))]
pub struct Resliced {
    /// The entry that says so.
    pub seq: Seq,
    /// The window.
    pub window: u64,
    /// Tokens before.
    #[serde(rename = "tokens_before")]
    pub before: u32,
    /// Tokens after.
    #[serde(rename = "tokens_after")]
    pub after: u32,
}

/// One edit that was made, or would be.
#[derive(Clone, Debug)]
pub struct DoneEdit {
    /// Its entry.
    pub seq: Seq,
    /// Which rung.
    pub rung: Rung,
    /// The edit, with its cause and its numbers.
    pub edit: Edit,
}

impl DoneEdit {
    /// What leaves the view or is shown otherwise.
    pub fn touched(&self) -> Vec<Span> {
        let replaced = self.edit.replace.iter().map(|replace| Span::new(replace.seq, replace.seq));
        self.edit.hide.iter().copied().chain(replaced).collect()
    }
}

/// Where edits are put: a thread, or a copy of it that is thrown away.
trait Target {
    type Source: EntrySource<Error = komado_store::Error> + ?Sized;
    /// The view, where its entries are looked up, and how tokens are counted.
    fn parts(&self) -> (&View, &Self::Source, Meter);
    fn append(&mut self, entry: Entry) -> Result<Seq>;
    /// Gives the edit with its numbers; an edit that frees nothing is an error.
    fn put(&mut self, edit: Edit) -> Result<(Seq, Edit)>;
    /// Takes an edit back, if that makes the view larger and leaves it no more than `most` tokens. True when it was.
    fn take_back(&mut self, edit: Seq, most: u64) -> Result<bool>;
}

/// Step by step, until the view fits or nothing more is worth doing.
fn climb<T: Target>(to: &mut T, ladder: &mut Ladder<'_>) -> Result<FitResult> {
    let share = keep_to_share(to, &mut ladder.budget)?;
    let (view, source, _) = to.parts();
    ladder.budget = ladder.budget.in_view(view);
    let (verdict, since) = (ladder.budget.will_manage(view, source)?, view.last());
    let mut fitted = FitResult { share, ..FitResult::begun(verdict) };
    let asks = ladder.by.reads() == SummaryInput::Request;
    let condensed = asks && in_vain_lately(view, source, &ladder.budget)?;
    let reach = match ladder.budget.has_room(view) {
        true => OriginalsHint::default(),
        false => reach_of(view, source, ladder.settings.reach)?,
    };
    let mut round = LadderRound { condensed, edited: false, reach };
    for _ in 0..MOST_STEPS {
        let (view, source, meter) = to.parts();
        match ladder::next(view, source, &ladder.budget, meter, round)? {
            LadderNext::Rest => {
                if round.edited {
                    fitted.returned = give_back(to, &ladder.budget, since)?;
                }
                return Ok(fitted.ended(to.parts().0));
            }
            LadderNext::Floor(floor) => return Err(Error::Floor(floor)),
            LadderNext::Do(step) => {
                round.condensed |= matches!(step, LadderStep::Condense { .. });
                take(to, step, &mut fitted, ladder)?;
                round.edited = !fitted.done.is_empty();
            }
        }
    }
    Err(Error::Endless { steps: MOST_STEPS, tokens: to.parts().0.tokens() })
}

/// What texts may say of the originals: what the caller knows, or else what the set-up in force has tools for. Without a
/// set-up nothing is known of the model.
pub(crate) fn reach_of<S: EntrySource<Error = komado_store::Error> + ?Sized>(
    view: &View,
    source: &S,
    known: Option<OriginalsHint>,
) -> Result<OriginalsHint> {
    if let Some(reach) = known {
        return Ok(reach);
    }
    let setup = view.setup_in(source)?;
    let is_unknown = setup.tools.is_none() && setup.system.is_none();
    let has_tool = setup.tools.is_some_and(|tools| tools.get().contains(&format!("\"{READ}\"")));
    Ok(if is_unknown || has_tool { OriginalsHint::Tools } else { OriginalsHint::Kept })
}

/// The prefix was broken anyway, and the view came out below the low mark: the newest edits of the ladder before this round
/// are taken back, as long as the view stays under the high mark. What a person did by hand stays.
fn give_back<T: Target>(to: &mut T, budget: &Budget, since: Seq) -> Result<Vec<Seq>> {
    let mut back = Vec::new();
    if budget.policy.preset != Preset::Komado {
        return Ok(back);
    }
    let earlier: Vec<Seq> =
        to.parts().0.edits().rev().filter(|edit| *edit <= since).take(MOST_BACK).collect();
    for edit in earlier {
        let (view, source, _) = to.parts();
        let marks = budget.marks(budget.will_manage(view, source)?.fixed);
        let rule = match source.record(edit)?.entry {
            Entry::Edit(edit) => BudgetRule::named(&edit.cause.rule),
            _ => None,
        };
        if view.tokens() >= marks.low || rule.is_none_or(|rule| rule == BudgetRule::ByHand) {
            break;
        }
        if to.take_back(edit, marks.high)? {
            back.push(edit);
        }
    }
    Ok(back)
}

/// Whatever budget was brought: a spawned thread works in its share, beside what it sees of the threads above. Gives the
/// entry that cut that anew, where the window is another.
fn keep_to_share<T: Target>(to: &mut T, budget: &mut Budget) -> Result<Option<Resliced>> {
    let (view, source, meter) = to.parts();
    let Some(share) = view.share_in(source)? else { return Ok(None) };
    let moved = moved(view, source, meter, budget.window, budget.policy.buffer)?;
    let before = share.tokens();
    let share = moved.as_ref().unwrap_or(&share);
    let shares = Shares::of(share, budget.window);
    *budget = budget.reshared(&shares);
    check_budget(share, &shares, budget)?;
    let Some(share) = moved else { return Ok(None) };
    let (window, after) = (share.window, share.tokens());
    Ok(Some(Resliced { seq: to.append(Entry::Share(share))?, window, before, after }))
}

/// One step: written, and put where it belongs.
fn take<T: Target>(
    to: &mut T,
    step: LadderStep,
    fitted: &mut FitResult,
    ladder: &mut Ladder<'_>,
) -> Result<()> {
    let rung = step.rung();
    let (view, source, _) = to.parts();
    let verdict = BudgetVerdict { rule: fitted.verdict.rule, ..ladder.budget.will_manage(view, source)? };
    let model = ladder.by.name().to_owned();
    let asks = rung == Rung::Condense && ladder.by.reads() == SummaryInput::Request;
    // The journal says that a model is about to be asked.
    let asking = |to: &mut T| to.append(asked_apart(&model, to.parts().0.tokens(), "condense"));
    let asked = asks.then(|| asking(to)).transpose()?;
    let (view, source, meter) = to.parts();
    match write(view, source, meter, step.clone(), verdict, ladder)? {
        Ok(edit) => {
            let (seq, edit) = to.put(edit)?;
            fitted.done.push(DoneEdit { seq, rung, edit });
        }
        Err(why) => {
            fitted.declined.push(why.to_string());
            if let Some(asked) = asked {
                to.append(lost(asked, &model, DECLINED, why.to_string(), why.usage()))?;
                // Who stopped waiting did not ask for something else in its place.
                if ladder.by.is_cancelled() {
                    return Err(Error::Cancelled);
                }
                return by_digest(to, step, verdict, fitted, ladder);
            }
        }
    }
    Ok(())
}

/// A model could not write the summary, and the window is full: the digest, which needs none, says more than a marker.
fn by_digest<T: Target>(
    to: &mut T,
    step: LadderStep,
    verdict: BudgetVerdict,
    fitted: &mut FitResult,
    ladder: &Ladder<'_>,
) -> Result<()> {
    // The other presets go on to the marker, as what they are named after does.
    if verdict.rule != BudgetRule::HardGate || ladder.budget.policy.preset != Preset::Komado {
        return Ok(());
    }
    let (budget, settings) = (ladder.budget.clone(), ladder.settings.clone());
    let mut by = ByDigest::new(to.parts().2);
    take(to, step, fitted, &mut Ladder { budget, settings, by: &mut by })
}

impl Target for Thread<'_> {
    type Source = dyn Journal;

    fn parts(&self) -> (&View, &Self::Source, Meter) {
        (self.view(), self.source(), self.meter())
    }

    fn append(&mut self, entry: Entry) -> Result<Seq> {
        Self::append(self, entry)
    }

    fn put(&mut self, edit: Edit) -> Result<(Seq, Edit)> {
        let seq = self.edit(edit)?;
        match self.record(seq)?.entry {
            Entry::Edit(edit) => Ok((seq, edit)),
            _ => Err(self.no_moment(seq)),
        }
    }

    fn take_back(&mut self, edit: Seq, most: u64) -> Result<bool> {
        let fits = self.stage().take_back(edit, most)?;
        if fits {
            self.revert(edit)?;
        }
        Ok(fits)
    }
}

/// How a summary ends that could not be had.
const DECLINED: &str = "declined";

/// Entries among which a failed attempt counts as the last one.
const LATELY: Seq = 64;

/// True when a model was asked for nothing and little was said since: below the limit it is not asked again at once.
fn in_vain_lately<S: EntrySource<Error = komado_store::Error> + ?Sized>(
    view: &View,
    source: &S,
    budget: &Budget,
) -> Result<bool> {
    let last = view.last();
    if view.tokens() > budget.usable {
        return Ok(false);
    }
    for entry in view.back(source, last) {
        let (seq, head) = entry?;
        if seq + LATELY <= last {
            break;
        }
        // A request of the conversation that was lost says nothing about summaries.
        if head.kind == Kind::Lost
            && matches!(source.record(seq)?.entry, Entry::Lost(reply) if reply.finish == DECLINED)
        {
            let said = |sums: [u64; 4]| sums.iter().sum::<u64>();
            let marks = budget.marks(view.weight().setup + view.weight().above);
            return Ok(said(source.head(last)?.sums) - said(head.sums) < marks.min_gain / 4);
        }
        if head.kind.is_edit() {
            break;
        }
    }
    Ok(false)
}

/// A copy of a thread on which steps are tried.
impl<'a> Target for Staged<'a> {
    type Source = StagedRows<'a>;

    fn parts(&self) -> (&View, &StagedRows<'a>, Meter) {
        (self.view(), self.source(), self.meter)
    }

    fn append(&mut self, entry: Entry) -> Result<Seq> {
        self.push(entry, String::new())
    }

    fn put(&mut self, mut edit: Edit) -> Result<(Seq, Edit)> {
        let before = self.view().tokens();
        let seq = self.append(Entry::Edit(edit.clone()))?;
        (edit.cause.before, edit.cause.after) = (before, self.view().tokens());
        check_gain(&edit).map(|()| (seq, edit))
    }

    fn take_back(&mut self, edit: Seq, most: u64) -> Result<bool> {
        let (before, tokens) = (self.mark(), self.view().tokens());
        match self.append(Entry::Revert { target: edit }) {
            Err(Error::Refused(_)) => return Ok(false),
            reverted => drop(reverted?),
        }
        let fits = (tokens + 1..=most).contains(&self.view().tokens());
        if !fits {
            self.back_to(before);
        }
        Ok(fits)
    }
}

impl Thread<'_> {
    /// Says, before doing anything, whether something will be done before the next request.
    pub fn will_manage(&self, budget: &Budget) -> Result<BudgetVerdict> {
        Ok(budget.will_manage(self.view(), self.source())?)
    }

    /// True when [`Thread::fit`] would do nothing, as far as that can be seen without reading anything.
    pub(crate) fn has_room(&self, budget: &Budget) -> bool {
        self.view().share().is_none() && budget.in_view(self.view()).has_room(self.view())
    }

    /// Makes the view fit, and journals each edit. Nothing happens while there is room.
    pub fn fit(&mut self, ladder: &mut Ladder<'_>) -> Result<FitResult> {
        climb(self, ladder)
    }

    /// What [`Thread::fit`] would do; nothing is written. A summariser is asked all the same.
    pub fn plan(&self, ladder: &mut Ladder<'_>) -> Result<FitResult> {
        climb(&mut self.stage(), ladder)
    }

    /// What [`Thread::relax`] and then [`Thread::fit`] would do; nothing is written.
    pub fn plan_relaxed(&self, ladder: &mut Ladder<'_>) -> Result<(Vec<Seq>, FitResult)> {
        let mut draft = self.stage();
        let back = draft.relax(&ladder.budget)?;
        Ok((back, climb(&mut draft, ladder)?))
    }

    /// Condenses now, whether or not there is room: everything but what the policy keeps. Nothing is done when that is
    /// too little.
    pub fn condense_now(&mut self, ladder: &mut Ladder<'_>) -> Result<FitResult> {
        let verdict = self.will_manage(&ladder.budget)?;
        let mut fitted = FitResult::begun(BudgetVerdict { rule: BudgetRule::ByHand, ..verdict });
        match ladder::condense_now(self.view(), self.source(), &ladder.budget, self.meter())? {
            Some(step) => take(self, step, &mut fitted, ladder)?,
            None => fitted.declined.push(TOO_LITTLE.to_owned()),
        }
        Ok(fitted.ended(self.view()))
    }

    /// Takes back the newest edits of the ladder, one by one, as long as the view then still fits without acting: for a
    /// window that has grown. What a person did by hand stays. Gives the edits taken back.
    pub fn relax(&mut self, budget: &Budget) -> Result<Vec<Seq>> {
        let back = self.stage().relax(budget)?;
        for &edit in &back {
            self.revert(edit)?;
        }
        Ok(back)
    }
}

impl Staged<'_> {
    fn relax(&mut self, budget: &Budget) -> Result<Vec<Seq>> {
        let mut back = Vec::new();
        while let Some(target) = self.view().edits().last() {
            let Entry::Edit(edit) = self.source().record(target)?.entry else { break };
            if edit.cause.rule == BudgetRule::ByHand.name() {
                break;
            }
            let before = self.mark();
            match self.append(Entry::Revert { target }) {
                Err(Error::Refused(_)) => break,
                reverted => drop(reverted?),
            }
            if budget.will_manage(self.view(), self.source())?.will_manage {
                self.back_to(before);
                break;
            }
            back.push(target);
        }
        Ok(back)
    }
}

impl FitResult {
    fn begun(verdict: BudgetVerdict) -> Self {
        let (done, returned, declined) = (Vec::new(), Vec::new(), Vec::new());
        Self { verdict, done, returned, declined, share: None, after: verdict.tokens }
    }

    fn ended(mut self, view: &View) -> Self {
        self.after = view.tokens();
        self
    }
}

/// Makes a step into an edit; only a summary has to be written first.
fn write<S: EntrySource<Error = komado_store::Error> + ?Sized>(
    view: &View,
    source: &S,
    meter: Meter,
    step: LadderStep,
    verdict: BudgetVerdict,
    ladder: &mut Ladder<'_>,
) -> Result<std::result::Result<Edit, Declined>> {
    let kind = step.kind();
    let mut cause = Cause { rule: verdict.rule.name().to_owned(), ..Cause::default() };
    let numbers = verdict.numbers();
    let edit = |hide, show, replace, cause| Edit { kind, hide, show, replace, cause };
    Ok(Ok(match step {
        LadderStep::Replace { rung, replace } => {
            cause.note = Some(format!("{} of {}; {numbers}", rung.name(), replace.len()));
            edit(Vec::new(), Vec::new(), replace, cause)
        }
        LadderStep::Truncate { hide, marker } => {
            cause.note = Some(numbers);
            let show = Show { kind: ShowKind::Marker, tokens: meter.said(&marker), text: marker };
            edit(hide, vec![show], Vec::new(), cause)
        }
        LadderStep::Condense { hide, limit } => {
            // How many messages are worth it was the ladder's to say.
            let reach = Some(reach_of(view, source, ladder.settings.reach)?);
            let settings = CondenseSettings { reach, ..ladder.settings.clone().by_hand() };
            let composed = condense::compose(source, view, &hide, &settings, ladder.by, meter, limit)?;
            match composed {
                Err(why) => return Ok(Err(why)),
                Ok(composed) => {
                    cause.note = Some(match composed.note {
                        Some(note) => format!("{note}; {numbers}"),
                        None => numbers,
                    });
                    (cause.model, cause.usage) = (composed.model, composed.usage);
                    edit(hide, composed.show, Vec::new(), cause)
                }
            }
        }
    }))
}
