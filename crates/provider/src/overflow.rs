//! Is this error an overflow of the window, and what can be learned from it?
//!
//! Every provider words it in its own way, and words it anew with each release. So this is not a list of texts but a small
//! grammar: the body is unwrapped (`body`), its words are taken apart (`words`; Japanese, Chinese and Korean words
//! of size, and those of western Europe, are put into the same language first), each number gets a role (`sizes`), and a few named rules look for
//! a thing of size together with an excess (`rules`), unless the answer is about something else (`by_words`): a
//! rate, a quota, time, a key, the length of the answer alone, an image.
//!
//! It refuses to guess: a text that names no size in tokens gives no limit, and an overflow counted in bytes or in
//! characters is told without numbers.

mod body;
mod languages;
mod rules;
mod sizes;
mod words;

use body::FieldContent;
use rules::{OverflowRule, RuleWeight};
use serde::Serialize;
use sizes::OverflowSizes;
use words::TextPiece;

/// What an error is taken for.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Explained"))]
pub struct OverflowVerdict {
    /// True when the request was too large for the window, or for the server.
    pub overflow: bool,
    /// The limit in tokens, when the text names it.
    pub limit: Option<u64>,
    /// What was sent, in tokens, when the text names it: the input, or input and answer together, whichever is named
    /// first.
    pub actual: Option<u64>,
    /// What was sent without the room for the answer, when the text tells the two apart.
    #[serde(skip)]
    pub input: Option<u64>,
    /// The room for an answer that was asked for, when the text names it.
    pub output: Option<u64>,
    /// What would help.
    pub remedy: Remedy,
    /// The rule that held, or what the answer is about instead, and the words it was read from.
    pub why: String,
}

/// What would help.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Remedy {
    /// The conversation must become smaller.
    Shrink,
    /// The conversation fits; only the answer asked for is too long beside it.
    LowerMaxTokens,
    /// Nothing of this kind: it is not an overflow.
    #[default]
    None,
}

/// Judges an answer by its status and body. A status below 400 is that of a stream or of an error inside an answer that
/// began well.
pub fn classify(status: u16, body: &str) -> OverflowVerdict {
    let said = body::read(status, body);
    let texts = Texts::new(&said);
    match texts.rule(status, &said) {
        Ok((rule, excerpt)) => OverflowVerdict::overflow(rule, &excerpt, texts.sizes()),
        Err(why) => OverflowVerdict { why: why.to_owned(), ..OverflowVerdict::default() },
    }
}

impl OverflowVerdict {
    fn overflow(rule: &str, excerpt: &str, sizes: OverflowSizes) -> Self {
        let why = if excerpt.is_empty() { rule.to_owned() } else { format!("{rule}: {excerpt}") };
        let OverflowSizes { limit, actual, input, output } = sizes;
        Self { overflow: true, limit, actual, input, output, remedy: remedy(&sizes), why }
    }
}

/// A shorter answer is enough when input and answer together are too long, and the input alone is not.
fn remedy(sizes: &OverflowSizes) -> Remedy {
    let (Some(limit), Some(sent), Some(output)) = (sizes.limit, sizes.sent(), sizes.output) else {
        return Remedy::Shrink;
    };
    if sent < limit && sent.saturating_add(output) > limit { Remedy::LowerMaxTokens } else { Remedy::Shrink }
}

/// Everything said, taken apart.
struct Texts {
    /// Each text with its pieces and sizes; codes after texts, figures last.
    all: Vec<(String, Vec<TextPiece>, OverflowSizes)>,
    codes: usize,
    /// The field of the request that is meant: by a name for programs, or by the text itself.
    field: Option<FieldContent>,
}

impl Texts {
    fn new(said: &body::ErrorText) -> Self {
        let taken = |text: &String| {
            let pieces = words::split(&body::veiled(text));
            let sizes = OverflowSizes::read(&pieces);
            (text.clone(), pieces, sizes)
        };
        let mut all: Vec<_> = said.texts.iter().chain(&said.codes).map(taken).collect();
        if !said.figures.is_empty() {
            all.push(taken(&said.figures));
        }
        let named = || said.texts.iter().find_map(|text| Some(body::named(text)?.1));
        let field = said.field.as_deref().or_else(named).map(body::holds);
        Self { all, codes: said.texts.len(), field }
    }

    /// The rule that holds, with the words it holds for; or why none does.
    fn rule(&self, status: u16, said: &body::ErrorText) -> Result<(&'static str, String), &'static str> {
        let judged: Vec<(usize, OverflowRule)> = self
            .all
            .iter()
            .enumerate()
            .filter_map(|(at, (_, pieces, sizes))| Some((at, self.judge(pieces, sizes)?)))
            .collect();
        let strong = judged.iter().find(|(_, rule)| rule.weight == RuleWeight::Strong);
        let coded = strong.filter(|(at, _)| *at >= self.codes);
        let vetoed = self.all.iter().find_map(|(_, pieces, _)| rules::by_words(pieces));
        if let Some(why) = rules::by_status(status)
            && (coded.is_none() || status != 429 || vetoed.is_some())
        {
            return Err(why);
        }
        if let Some((at, rule)) = strong.filter(|_| !self.elsewhere()) {
            return Ok((rule.name, excerpt(&self.all[*at].0)));
        }
        if let Some(why) = vetoed {
            return Err(why);
        }
        // What an answer that began well says of a window is no refusal.
        let may = |rule: &OverflowRule| status < 500 && (status >= 400 || rule.name != rules::NAMED);
        if let Some((at, rule)) = judged.first().filter(|(_, rule)| may(rule) && !self.elsewhere()) {
            return Ok((rule.name, excerpt(&self.all[*at].0)));
        }
        if status == 413 && !self.of_other() {
            return Ok(("the status says that the request is too large", String::new()));
        }
        Err(if said.empty { "it says nothing" } else { "nothing in it speaks of a size that was exceeded" })
    }

    /// A schema's complaint is judged by the field it is about, everything else by its words.
    fn judge(&self, pieces: &[TextPiece], sizes: &OverflowSizes) -> Option<OverflowRule> {
        match (rules::of_schema(pieces), self.field) {
            (true, Some(FieldContent::Conversation)) => Some(OverflowRule {
                name: "a field that holds the conversation is too long",
                weight: RuleWeight::Strong,
            }),
            (true, _) => None,
            (false, _) => rules::judge(pieces, sizes),
        }
    }

    /// True when a field is named that is not the conversation, and no window or token is spoken of.
    fn elsewhere(&self) -> bool {
        let mut pieces = self.all.iter().flat_map(|(_, pieces, _)| pieces);
        self.field == Some(FieldContent::Other)
            && !pieces.any(|piece| {
                matches!(words::sense(piece), words::WordSense::Window | words::WordSense::Tokens)
            })
    }

    fn of_other(&self) -> bool {
        self.all
            .iter()
            .flat_map(|(_, pieces, _)| pieces)
            .any(|piece| words::sense(piece) == words::WordSense::Other)
    }

    /// The numbers: those of the first text that has any, filled up from the others.
    fn sizes(&self) -> OverflowSizes {
        let tokens = self.all.iter().filter(|(_, pieces, _)| !sizes::counts_messages(pieces));
        tokens.fold(OverflowSizes::default(), |found, (_, _, sizes)| found.or(*sizes))
    }
}

/// The beginning of a text, on one line.
fn excerpt(text: &str) -> String {
    let line: Vec<&str> = text.split_whitespace().collect();
    let line = line.join(" ");
    let cut: String = line.chars().take(160).collect();
    if cut.len() < line.len() { format!("{cut}…") } else { cut }
}
