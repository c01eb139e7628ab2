//! Find again what was said, whether or not the model still sees it.

mod all;
mod found;
mod one;
mod time;

pub use all::Recall;
pub use found::{Beside, Recalled};
pub use one::RecallSession;

use crate::name::one_of;
use crate::{Context, Outcome, Page, Progress};
use komado_core::Role;
use komado_engine::recall::{Ask, How, Scope};
use schemars::JsonSchema;
use serde::Deserialize;

/// Results, unless a request says otherwise.
const USUAL: u32 = 10;

/// What to look for, and among what.
#[derive(Clone, Debug, Default, clap::Args, Deserialize, JsonSchema)]
pub struct Search {
    /// What to look for; a name, a path or an error message is best
    #[arg(skip)]
    #[schemars(length(min = 1))]
    pub query: String,
    /// ranked: best fit first; exact: the text as it stands; regex: a regular expression. ranked when left out
    #[arg(skip)]
    pub mode: Option<How>,
    /// Results at most; 10 when left out
    #[arg(short = 'k', long, value_name = "N")]
    #[schemars(range(min = 1, max = 1000))]
    pub limit: Option<u32>,
    /// Only what this speaker said
    #[arg(long, value_parser = one_of(&Role::ALL, Role::name))]
    pub role: Option<Role>,
    /// Only calls and results of this tool
    #[arg(long)]
    pub tool: Option<String>,
    /// Only calls and results about this file or folder
    #[arg(long)]
    pub file: Option<String>,
    /// Only what was said then or later: 2024-01-15, 2024-01-15T10:30:00Z, or 3h, 2d, 1w ago
    #[arg(long, value_name = "TIME")]
    #[schemars(example = &"2d")]
    pub since: Option<String>,
    /// Only what was said then or earlier
    #[arg(long, value_name = "TIME")]
    #[schemars(example = &"2030-01-01")]
    pub until: Option<String>,
    /// As many results as fit into so many tokens
    #[arg(long, value_name = "TOKENS")]
    pub budget: Option<u64>,
    /// Also show so many entries before and after each result
    #[arg(long, alias = "neighbors", value_name = "N")]
    #[schemars(range(max = 20))]
    pub neighbours: Option<u32>,
}

impl Search {
    fn ask(&self, now: &str) -> Outcome<Ask> {
        let mut ask = Ask::new(self.query.as_str());
        ask.how = self.mode.unwrap_or_default();
        ask.k = self.most();
        (ask.budget, ask.neighbours) = (self.budget, self.neighbours.unwrap_or(0));
        ask.filter.role = self.role;
        (ask.filter.tool, ask.filter.file) = (self.tool.clone(), self.file.clone());
        ask.filter.since = self.since.as_deref().map(|text| time::since(text, now)).transpose()?;
        ask.filter.until = self.until.as_deref().map(|text| time::until(text, now)).transpose()?;
        Ok(ask)
    }

    fn most(&self) -> usize {
        self.limit.unwrap_or(USUAL) as usize
    }
}

/// Looks in each scope, and gives the best results of all of them.
fn look(context: &Context, scopes: &[Scope], search: &Search) -> Outcome<Page<Recalled>> {
    let ask = search.ask(&context.engine.now())?;
    let mut found = Vec::new();
    for scope in scopes {
        catch_up(context, scope)?;
        found.extend(context.engine.recall(scope, &ask)?);
    }
    if scopes.len() > 1 {
        found.sort_by(|a, b| b.score.total_cmp(&a.score));
        found.truncate(search.most());
    }
    Ok(Page::whole(found.into_iter().map(Recalled::from).collect()))
}

/// Brings the index up to date.
fn catch_up(context: &Context, scope: &Scope) -> Outcome {
    let mut told = Ok(());
    context.engine.index(scope, &mut |done, total| {
        if told.is_ok() {
            told = context.progress(Progress::Indexing { done, total });
        }
    })?;
    told
}

/// The results as lines for a model.
fn lines(page: &Page<Recalled>) -> String {
    match page.items.is_empty() {
        true => "nothing was found; try other words, or fewer filters".to_owned(),
        false => page.items.iter().map(Recalled::line).collect::<Vec<_>>().join("\n"),
    }
}
