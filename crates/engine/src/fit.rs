//! Carrying plans out: from a budget to edits in the journal, until the view fits.
//!
//! The [`ladder`] says what to do next; here it is done, one edit at a time, each durable before the
//! next is thought of. A dry run takes the same steps over a copy that is never written. A summary that cannot be
//! had changes nothing: the attempt and its cost are journaled, and the ladder goes one rung down.

use crate::condense::{self, ByDigest, Declined, Reads, Settings, Summariser};
use crate::error::{Error, Result};
use crate::exchange::{self, Purpose};
use crate::share::{check_budget, moved};
use crate::staged::Staged;
use crate::thread::{Thread, check_gain};
use komado_core::budget::{Budget, Preset, Rule, Verdict};
use komado_core::head::Source;
use komado_core::journal::{Cause, Edit, Entry, Share, Show, ShowKind};
use komado_core::ladder::{self, Next, Rung, Step, Tried};
use komado_core::share::Shares;
use komado_core::{Kind, Meter, Seq, Span, View};

/// More rounds than there are rungs mean a fault of ours, not of the conversation.
const MOST_STEPS: usize = 16;

/// Why nothing was condensed by hand.
const TOO_LITTLE: &str =
    "beside what is kept there is too little to condense; say more first, or name the entries";

/// A budget, and who writes summaries under it.
pub struct Ladder<'a> {
    /// How much may be shown, and when something must leave.
    pub budget: Budget,
    /// How a span is condensed.
    pub settings: Settings,
    /// Who writes the summary.
    pub by: &'a mut dyn Summariser,
}

/// What was done, or would be.
#[derive(Clone, Debug)]
pub struct Fitted {
    /// What the budget said before.
    pub verdict: Verdict,
    /// The edits, in order.
    pub done: Vec<Done>,
    /// Summaries that could not be had, and why.
    pub declined: Vec<String>,
    /// What is seen of the threads above was cut anew, because the window is another.
    pub share: Option<Resliced>,
    /// Tokens of the view after.
    pub after: u64,
}

/// Slices that were cut anew for a window, or would be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Resliced {
    /// The entry that says so.
    pub seq: Seq,
    /// The window.
    pub window: u64,
    /// Tokens of all slices before.
    pub before: u32,
    /// Tokens of all slices since.
    pub after: u32,
}

/// One edit that was made, or would be.
#[derive(Clone, Debug)]
pub struct Done {
    /// Its entry.
    pub seq: Seq,
    /// Which rung.
    pub rung: Rung,
    /// The edit, with its cause and its numbers.
    pub edit: Edit,
}

impl Done {
    /// What leaves the view or is shown otherwise.
    pub fn touched(&self) -> Vec<Span> {
        let replaced = self.edit.replace.iter().map(|replace| Span::new(replace.seq, replace.seq));
        self.edit.hide.iter().copied().chain(replaced).collect()
    }
}

/// A step made into an edit, or the reason why it could not be.
enum Made {
    Edit(Box<Edit>),
    Declined(Declined),
}

/// Where edits are put: a thread, or a copy of it that is thrown away.
trait Desk {
    fn view(&self) -> &View;
    fn meter(&self) -> Meter;
    /// True when a model was asked for nothing and little was said since: below the limit it is not asked again at once.
    fn in_vain_lately(&self, budget: &Budget) -> Result<bool>;
    /// The share in force, and one with other slices when those in force are too much for the window, or too little.
    fn shares(&self, budget: &Budget) -> Result<Option<(Share, Option<Share>)>>;
    /// Says a share anew.
    fn say_share(&mut self, share: Share) -> Result<Seq>;
    fn next(&self, budget: &Budget, tried: Tried) -> Result<Next>;
    fn write(&self, step: Step, verdict: Verdict, ladder: &mut Ladder<'_>) -> Result<Made>;
    /// A model is about to be asked: the journal says so first.
    fn asking(&mut self, model: &str) -> Result<Seq>;
    /// It was asked for nothing.
    fn in_vain(&mut self, asked: Seq, model: &str, why: &Declined) -> Result<()>;
    /// Gives the edit with its numbers; an edit that frees nothing is an error.
    fn put(&mut self, edit: Edit) -> Result<(Seq, Edit)>;
}

/// Step by step, until the view fits or nothing more is worth doing.
fn climb<D: Desk>(desk: &mut D, ladder: &mut Ladder<'_>) -> Result<Fitted> {
    let share = keep_to_share(desk, &mut ladder.budget)?;
    let mut fitted = Fitted { share, ..Fitted::begun(desk.view(), &ladder.budget) };
    let mut tried =
        Tried { condense: ladder.by.reads() == Reads::Request && desk.in_vain_lately(&ladder.budget)? };
    for _ in 0..MOST_STEPS {
        match desk.next(&ladder.budget, tried)? {
            Next::Rest => return Ok(fitted.ended(desk.view())),
            Next::Floor(floor) => return Err(Error::Floor(floor)),
            Next::Do(step) => {
                tried.condense |= matches!(step, Step::Condense { .. });
                take(desk, step, &mut fitted, ladder)?;
            }
        }
    }
    Err(Error::Endless { steps: MOST_STEPS, tokens: desk.view().tokens() })
}

/// Whatever budget was brought: a spawned thread works in its share, beside what it sees of the threads above. Gives the
/// entry that cut that anew, where the window is another.
fn keep_to_share<D: Desk>(desk: &mut D, budget: &mut Budget) -> Result<Option<Resliced>> {
    let Some((share, moved)) = desk.shares(budget)? else { return Ok(None) };
    let before = share.tokens();
    let share = moved.as_ref().unwrap_or(&share);
    let shares = Shares::of(share, budget.window);
    *budget = budget.reshared(&shares);
    check_budget(share, &shares, budget)?;
    let Some(share) = moved else { return Ok(None) };
    let (window, after) = (share.window, share.tokens());
    Ok(Some(Resliced { seq: desk.say_share(share)?, window, before, after }))
}

/// One step: written, and put where it belongs.
fn take<D: Desk>(desk: &mut D, step: Step, fitted: &mut Fitted, ladder: &mut Ladder<'_>) -> Result<()> {
    let rung = step.rung();
    let verdict = Verdict { rule: fitted.verdict.rule, ..ladder.budget.will_manage(desk.view()) };
    let model = ladder.by.name().to_owned();
    let asks = rung == Rung::Condense && ladder.by.reads() == Reads::Request;
    let asked = if asks { Some(desk.asking(&model)?) } else { None };
    let again = step.clone();
    match desk.write(step, verdict, ladder)? {
        Made::Edit(edit) => {
            let (seq, edit) = desk.put(*edit)?;
            fitted.done.push(Done { seq, rung, edit });
        }
        Made::Declined(why) => {
            fitted.declined.push(why.to_string());
            if let Some(asked) = asked {
                desk.in_vain(asked, &model, &why)?;
                // Who stopped waiting did not ask for something else in its place.
                if ladder.by.is_cancelled() {
                    return Err(Error::Cancelled);
                }
                return by_digest(desk, again, verdict, fitted, ladder);
            }
        }
    }
    Ok(())
}

/// A model could not write the summary, and the window is full: the digest, which needs none, says more than a marker.
fn by_digest<D: Desk>(
    desk: &mut D,
    step: Step,
    verdict: Verdict,
    fitted: &mut Fitted,
    ladder: &Ladder<'_>,
) -> Result<()> {
    // The other presets go on to the marker, as what they are named after does.
    if verdict.rule != Rule::HardGate || ladder.budget.policy.preset != Preset::Komado {
        return Ok(());
    }
    let (budget, settings) = (ladder.budget.clone(), ladder.settings.clone());
    let mut by = ByDigest::new(desk.meter());
    take(desk, step, fitted, &mut Ladder { budget, settings, by: &mut by })
}

impl Desk for Thread<'_> {
    fn view(&self) -> &View {
        Self::view(self)
    }

    fn meter(&self) -> Meter {
        Self::meter(self)
    }

    fn in_vain_lately(&self, budget: &Budget) -> Result<bool> {
        in_vain_lately(self.view(), self.source(), budget)
    }

    fn shares(&self, budget: &Budget) -> Result<Option<(Share, Option<Share>)>> {
        shares(self.view(), self.source(), self.meter(), budget)
    }

    fn say_share(&mut self, share: Share) -> Result<Seq> {
        self.append(Entry::Share(share))
    }

    fn next(&self, budget: &Budget, tried: Tried) -> Result<Next> {
        Ok(ladder::next(self.view(), self.source(), budget, self.meter(), tried)?)
    }

    fn write(&self, step: Step, verdict: Verdict, ladder: &mut Ladder<'_>) -> Result<Made> {
        write(self.view(), self.source(), self.meter(), step, verdict, ladder)
    }

    fn asking(&mut self, model: &str) -> Result<Seq> {
        self.append(exchange::sent(model, self.view().tokens(), PURPOSE))
    }

    fn in_vain(&mut self, asked: Seq, model: &str, why: &Declined) -> Result<()> {
        self.append(declined(asked, model, why)).map(|_| ())
    }

    fn put(&mut self, edit: Edit) -> Result<(Seq, Edit)> {
        let seq = self.edit(edit)?;
        match self.record(seq)?.entry {
            Entry::Edit(edit) => Ok((seq, edit)),
            _ => Err(self.no_moment(seq)),
        }
    }
}

/// What a desk says of its share.
fn shares<S: Source<Error = komado_store::Error> + ?Sized>(
    view: &View,
    source: &S,
    meter: Meter,
    budget: &Budget,
) -> Result<Option<(Share, Option<Share>)>> {
    let Some(share) = view.share_in(source)? else { return Ok(None) };
    Ok(Some((share, moved(view, source, meter, budget.window, budget.policy.buffer)?)))
}

/// Why a model is asked for a summary, in the journal.
const PURPOSE: Purpose<'_> = Purpose::Apart("condense");

/// How a summary ends that could not be had.
const DECLINED: &str = "declined";

/// What the journal says of a summary that was asked for in vain, and what it cost.
fn declined(asked: Seq, model: &str, why: &Declined) -> Entry {
    exchange::lost(asked, model, DECLINED, why.to_string(), why.usage())
}

/// Entries among which a failed attempt counts as the last one.
const LATELY: Seq = 64;

fn in_vain_lately<S: Source<Error = komado_store::Error> + ?Sized>(
    view: &View,
    source: &S,
    budget: &Budget,
) -> Result<bool> {
    let last = view.last();
    if view.tokens() > budget.usable {
        return Ok(false);
    }
    for seq in (last.saturating_sub(LATELY) + 1..=last).rev().filter(|seq| view.on_path(*seq)) {
        let head = source.head(seq)?;
        if head.kind == Kind::Lost && is_declined(&source.record(seq)?.entry) {
            let said = |sums: [u64; 4]| sums.iter().sum::<u64>();
            return Ok(said(source.head(last)?.sums) - said(head.sums) < budget.min_gain() / 4);
        }
        if head.kind.is_edit() {
            break;
        }
    }
    Ok(false)
}

/// True for a summary that was asked for in vain; a request of the conversation that was lost says nothing about that.
fn is_declined(entry: &Entry) -> bool {
    matches!(entry, Entry::Lost(reply) if reply.finish == DECLINED)
}

/// A copy of a thread on which steps are tried.
struct Draft<'a> {
    staged: Staged<'a>,
    meter: Meter,
}

impl Desk for Draft<'_> {
    fn view(&self) -> &View {
        self.staged.view()
    }

    fn meter(&self) -> Meter {
        self.meter
    }

    fn in_vain_lately(&self, budget: &Budget) -> Result<bool> {
        in_vain_lately(self.view(), self.staged.source(), budget)
    }

    fn shares(&self, budget: &Budget) -> Result<Option<(Share, Option<Share>)>> {
        shares(self.view(), self.staged.source(), self.meter, budget)
    }

    fn say_share(&mut self, share: Share) -> Result<Seq> {
        Ok(self.staged.share(share, String::new())??)
    }

    fn next(&self, budget: &Budget, tried: Tried) -> Result<Next> {
        Ok(ladder::next(self.view(), self.staged.source(), budget, self.meter, tried)?)
    }

    fn write(&self, step: Step, verdict: Verdict, ladder: &mut Ladder<'_>) -> Result<Made> {
        write(self.view(), self.staged.source(), self.meter, step, verdict, ladder)
    }

    fn asking(&mut self, model: &str) -> Result<Seq> {
        let sent = exchange::sent(model, self.view().tokens(), PURPOSE);
        Ok(self.staged.push(sent, 0, String::new())??)
    }

    fn in_vain(&mut self, asked: Seq, model: &str, why: &Declined) -> Result<()> {
        self.staged.push(declined(asked, model, why), 0, String::new())??;
        Ok(())
    }

    fn put(&mut self, mut edit: Edit) -> Result<(Seq, Edit)> {
        let before = self.view().tokens();
        let seq = self.staged.push(Entry::Edit(edit.clone()), edit.shown_tokens(), String::new())??;
        (edit.cause.before, edit.cause.after) = (before, self.view().tokens());
        check_gain(&edit).map(|()| (seq, edit))
    }
}

impl Thread<'_> {
    /// Says, before doing anything, whether something will be done before the next request.
    pub fn will_manage(&self, budget: &Budget) -> Verdict {
        budget.will_manage(self.view())
    }

    /// Makes the view fit, and journals each edit. Nothing happens while there is room.
    pub fn fit(&mut self, ladder: &mut Ladder<'_>) -> Result<Fitted> {
        climb(self, ladder)
    }

    /// What [`Thread::fit`] would do; nothing is written. A summariser is asked all the same.
    pub fn plan(&self, ladder: &mut Ladder<'_>) -> Result<Fitted> {
        climb(&mut self.draft(), ladder)
    }

    /// What [`Thread::relax`] and then [`Thread::fit`] would do; nothing is written.
    pub fn plan_relaxed(&self, ladder: &mut Ladder<'_>) -> Result<(Vec<Seq>, Fitted)> {
        let mut draft = self.draft();
        let back = draft.relax(&ladder.budget)?;
        Ok((back, climb(&mut draft, ladder)?))
    }

    fn draft(&self) -> Draft<'_> {
        Draft { staged: Staged::new(self.source(), self.view().clone()), meter: self.meter() }
    }

    /// Condenses now, whether or not there is room: everything but what the policy keeps. Nothing is done when that is
    /// too little.
    pub fn condense_now(&mut self, ladder: &mut Ladder<'_>) -> Result<Fitted> {
        let mut fitted = Fitted::begun(self.view(), &ladder.budget);
        fitted.verdict.rule = Rule::ByHand;
        match ladder::condense_now(self.view(), self.source(), &ladder.budget, self.meter())? {
            Some(step) => take(self, step, &mut fitted, ladder)?,
            None => fitted.declined.push(TOO_LITTLE.to_owned()),
        }
        Ok(fitted.ended(self.view()))
    }

    /// Takes back the newest edits of the ladder, one by one, as long as the view then still fits without acting: for a
    /// window that has grown. What a person did by hand stays. Gives the edits taken back.
    pub fn relax(&mut self, budget: &Budget) -> Result<Vec<Seq>> {
        let back = self.draft().relax(budget)?;
        for &edit in &back {
            self.revert(edit)?;
        }
        Ok(back)
    }
}

impl Draft<'_> {
    fn relax(&mut self, budget: &Budget) -> Result<Vec<Seq>> {
        let mut back = Vec::new();
        while let Some(target) = self.view().edits().last() {
            let Entry::Edit(edit) = self.staged.source().record(target)?.entry else { break };
            let before = self.staged.mark();
            if edit.cause.rule == Rule::ByHand.name()
                || self.staged.push(Entry::Revert { target }, 0, String::new())?.is_err()
            {
                break;
            }
            if budget.will_manage(self.view()).will_manage {
                self.staged.back_to(before);
                break;
            }
            back.push(target);
        }
        Ok(back)
    }
}

impl Fitted {
    fn begun(view: &View, budget: &Budget) -> Self {
        let verdict = budget.will_manage(view);
        Self { verdict, done: Vec::new(), declined: Vec::new(), share: None, after: verdict.tokens }
    }

    fn ended(mut self, view: &View) -> Self {
        self.after = view.tokens();
        self
    }
}

/// Makes a step into an edit; only a summary has to be written first.
fn write<S: Source<Error = komado_store::Error> + ?Sized>(
    view: &View,
    source: &S,
    meter: Meter,
    step: Step,
    verdict: Verdict,
    ladder: &mut Ladder<'_>,
) -> Result<Made> {
    let kind = step.kind();
    let mut cause = Cause { rule: verdict.rule.name().to_owned(), ..Cause::default() };
    let numbers = verdict.numbers();
    let edit = |hide, show, replace, cause| Edit { kind, hide, show, replace, cause };
    Ok(Made::Edit(Box::new(match step {
        Step::Replace { rung, replace } => {
            cause.note = Some(format!("{} of {}; {numbers}", rung.name(), replace.len()));
            edit(Vec::new(), Vec::new(), replace, cause)
        }
        Step::Truncate { hide, marker } => {
            cause.note = Some(numbers);
            let show = Show { kind: ShowKind::Marker, tokens: meter.said(&marker), text: marker };
            edit(hide, vec![show], Vec::new(), cause)
        }
        Step::Condense { hide, limit } => {
            // How many messages are worth it was the ladder's to say.
            let settings = ladder.settings.clone().by_hand();
            let composed = condense::compose(source, view, &hide, &settings, ladder.by, meter, limit)?;
            match composed {
                Err(why) => return Ok(Made::Declined(why)),
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
    })))
}
