//! The queue in memory.

use super::{Job, Outcome, Queued, Stage, Taken};
use crate::{Error, Holder, Result};
use komado_core::SessionId;
use std::time::{Duration, Instant};

/// Nothing is hidden for longer than a hundred years: no clock counts that far for ever.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// Jobs in the order they came.
#[derive(Debug, Default)]
pub(crate) struct Line {
    places: Vec<Place>,
    /// Tokens given so far.
    tokens: u64,
}

#[derive(Debug)]
struct Place {
    job: Job,
    /// Nobody takes it before then.
    hidden_until: Option<Instant>,
    held: Option<(Holder, u64)>,
    tries: u32,
    why: Option<String>,
    is_dead: bool,
}

impl Place {
    fn is_hidden(&self, now: Instant) -> bool {
        self.hidden_until.is_some_and(|until| now < until)
    }

    fn stage(&self, now: Instant) -> Stage {
        match &self.held {
            _ if self.is_dead => Stage::Dead,
            Some((holder, _)) if self.is_hidden(now) => Stage::Held(holder.clone()),
            _ => Stage::Waiting,
        }
    }
}

impl Line {
    pub(crate) fn adopt(&mut self, queued: &Queued) -> bool {
        let Queued { job, stage, tries, why } = queued.clone();
        let is_known = |place: &Place| place.job.key == job.key || place.job.session == job.session;
        if self.places.iter().any(is_known) {
            return false;
        }
        let is_dead = stage == Stage::Dead;
        self.places.push(Place { job, hidden_until: None, held: None, tries, why, is_dead });
        true
    }

    pub(crate) fn take(&mut self, holder: &Holder, hidden: Duration) -> Option<Taken> {
        let now = Instant::now();
        let place = self.places.iter_mut().find(|place| !place.is_dead && !place.is_hidden(now))?;
        self.tokens += 1;
        place.held = Some((holder.clone(), self.tokens));
        place.hidden_until = Some(now + hidden.min(LONGEST));
        place.tries += 1;
        Some(Taken { job: place.job.clone(), token: self.tokens, tries: place.tries, why: place.why.clone() })
    }

    /// Where the job of somebody who took it is.
    fn held(&mut self, taken: &Taken) -> Result<usize> {
        let is_theirs = |place: &Place| {
            place.job.session == taken.job.session
                && !place.is_dead
                && place.held.as_ref().is_some_and(|(_, token)| *token == taken.token)
        };
        self.places.iter().position(is_theirs).ok_or_else(|| Error::NotYours(taken.job.session.clone()))
    }

    pub(crate) fn keep(&mut self, taken: &Taken, hidden: Duration) -> Result<()> {
        let at = self.held(taken)?;
        self.places[at].hidden_until = Some(Instant::now() + hidden.min(LONGEST));
        Ok(())
    }

    pub(crate) fn finish(&mut self, taken: &Taken, outcome: &Outcome) -> Result<()> {
        let at = self.held(taken)?;
        let place = &mut self.places[at];
        place.held = None;
        match outcome {
            Outcome::Done => drop(self.places.remove(at)),
            Outcome::Again { pause, why } => {
                place.hidden_until = Some(Instant::now() + (*pause).min(LONGEST));
                place.why = Some(why.clone());
            }
            Outcome::Back => {
                place.hidden_until = None;
                place.tries = place.tries.saturating_sub(1);
            }
            Outcome::Dead { why } => {
                place.is_dead = true;
                place.why = Some(why.clone());
            }
        }
        Ok(())
    }

    pub(crate) fn jobs(&self, after: Option<&SessionId>, limit: usize) -> Vec<Queued> {
        let now = Instant::now();
        let from = after.and_then(|after| self.places.iter().position(|place| place.job.session == *after));
        let limit = if limit == 0 { usize::MAX } else { limit };
        let shown = self.places.iter().skip(from.map_or(0, |at| at + 1)).take(limit);
        let show = |place: &Place| Queued {
            job: place.job.clone(),
            stage: place.stage(now),
            tries: place.tries,
            why: place.why.clone(),
        };
        shown.map(show).collect()
    }

    pub(crate) fn requeue(&mut self, id: &SessionId) -> bool {
        let now = Instant::now();
        let place = self.places.iter_mut().find(|place| place.job.session == *id);
        let Some(place) = place.filter(|place| !matches!(place.stage(now), Stage::Held(_))) else {
            return false;
        };
        (place.is_dead, place.tries, place.hidden_until, place.held) = (false, 0, None, None);
        true
    }

    pub(crate) fn withdraw(&mut self, id: &SessionId) -> bool {
        let before = self.places.len();
        self.places.retain(|place| place.job.session != *id);
        self.places.len() < before
    }
}
