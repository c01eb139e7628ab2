//! What is asked, and the terms it comes down to.

use super::terms::{self, Kind, is_script};
use crate::error::{Error, Result};
use komado_store::shelf::Filter;
use regex::bytes::{Regex as BytesRegex, RegexBuilder as BytesRegexBuilder};
use regex::{Regex, RegexBuilder};
use unicode_normalization::is_nfkc;

/// How the query is meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub enum How {
    /// As words: the entries that best fit them, best first.
    #[default]
    Ranked,
    /// As it stands, byte for byte; the last entry first.
    Exact,
    /// As a regular expression; the last entry first.
    Regex,
}

impl How {
    /// The way called `name`.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "ranked" => Some(Self::Ranked),
            "exact" => Some(Self::Exact),
            "regex" => Some(Self::Regex),
            _ => None,
        }
    }
}

/// What is asked.
#[derive(Clone, Debug)]
pub struct Ask {
    /// What to look for.
    pub query: String,
    /// How that is meant.
    pub how: How,
    /// Which entries count.
    pub filter: Filter,
    /// At most so many results.
    pub k: usize,
    /// At most so many tokens in all.
    pub budget: Option<u64>,
    /// So many entries before and after each result are told, too.
    pub neighbours: u32,
    /// Characters of a result's text.
    pub snippet: usize,
}

impl Ask {
    /// The ten best entries for `query`.
    pub fn new(query: impl Into<String>) -> Self {
        Self {
            query: query.into(),
            how: How::Ranked,
            filter: Filter::default(),
            k: 10,
            budget: None,
            neighbours: 0,
            snippet: 240,
        }
    }
}

/// The most terms that one query comes down to.
const MOST_TERMS: usize = 48;

/// The terms of a query, each with what it counts for before its rarity; none when it has none.
pub(crate) fn terms_of(query: &str) -> Vec<(String, f32)> {
    let mut found: Vec<(String, f32)> = Vec::new();
    terms::each(query, &mut |term| {
        let share = share(term.kind, &term.text);
        if let Some((_, most)) = found.iter_mut().find(|(known, _)| *known == term.text) {
            *most = most.max(share);
        } else if share > 0.0 && found.len() < 4 * MOST_TERMS {
            found.push((term.text.into_owned(), share));
        }
    });
    if found.len() > MOST_TERMS {
        found.sort_by(|a, b| b.1.total_cmp(&a.1));
        found.truncate(MOST_TERMS);
    }
    found
}

/// What a term of a query counts for. Pairs of endings and particles say little; a single ideograph says something,
/// because the same verb is written with it in all its forms.
fn share(kind: Kind, text: &str) -> f32 {
    let is_hiragana = |c: char| matches!(c, '\u{3041}'..='\u{309f}');
    let is_kana = |c: char| matches!(c, '\u{3041}'..='\u{30ff}');
    match kind {
        Kind::Word | Kind::Alone => 1.0,
        Kind::Whole => 1.2,
        Kind::Part => 0.7,
        Kind::Pair => match text.chars().filter(|c| is_hiragana(*c)).count() {
            0 => 1.0,
            1 => 0.4,
            _ => 0.15,
        },
        Kind::Single if text.chars().any(is_kana) => 0.0,
        Kind::Single => 0.35,
    }
}

/// Terms that an entry must have to hold `phrase` as it stands; few, but none of them in doubt.
///
/// A word at either end of the phrase may be the middle of another one, so only those between spaces count. A pair of
/// a script without spaces counts wherever it stands, unless a mark that is still to come could change its last
/// character.
pub(crate) fn needed(phrase: &str) -> Vec<String> {
    let mut needed: Vec<String> = Vec::new();
    let mut add = |text: &str| {
        if !needed.iter().any(|known| known == text) {
            needed.push(text.to_owned());
        }
    };
    if !is_nfkc(phrase) {
        return needed;
    }
    let words: Vec<&str> = phrase.split(char::is_whitespace).collect();
    let inner = words.get(1..words.len().saturating_sub(1)).unwrap_or_default();
    for word in inner.iter().filter(|word| !word.chars().any(is_script)) {
        terms::each(word, &mut |term| {
            if term.kind == Kind::Word {
                add(&term.text);
            }
        });
    }
    let is_fixed = |c: char| matches!(c, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}');
    terms::each(phrase, &mut |term| {
        let settled = term.span.end < phrase.len() || term.text.chars().all(is_fixed);
        if term.kind == Kind::Pair && settled {
            add(&term.text);
        }
    });
    needed
}

/// A pattern for texts, and the same for bytes.
pub(crate) struct Pattern {
    pub(crate) text: Regex,
    pub(crate) bytes: BytesRegex,
    /// Bytes that a match is expected to fit into.
    pub(crate) reach: usize,
}

impl Pattern {
    /// The pattern of a query that is not ranked.
    pub(crate) fn of(query: &str, how: How) -> Result<Self> {
        let source = if how == How::Regex { query.to_owned() } else { regex::escape(query) };
        let text = RegexBuilder::new(&source).multi_line(true).build().map_err(Error::BadPattern)?;
        let bytes = BytesRegexBuilder::new(&source).multi_line(true).build().map_err(Error::BadPattern)?;
        Ok(Self { text, bytes, reach: query.len().max(4096) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_that_must_be_there_are_needed() {
        assert_eq!(needed("open the window slowly please now"), ["window", "slowli"]);
        assert!(needed("window").is_empty() && needed("open window").is_empty());
        assert_eq!(needed("小窓"), ["小窓"]);
        assert_eq!(needed("窓を開けた"), ["窓を", "を開", "開け"]);
        assert!(needed("ｶﾞﾗｽ").is_empty());
    }

    #[test]
    fn particles_count_for_less_than_names() {
        let terms = terms_of("窓を開けた");
        let share = |text: &str| terms.iter().find(|(term, _)| term == text).map_or(0.0, |(_, share)| *share);
        assert!(share("開け") > share("けた") && share("窓") > 0.0 && share("を") == 0.0);
        assert_eq!(terms_of("を"), [("を".to_owned(), 1.0)]);
        assert!(terms_of("what did they do").is_empty());
        assert!(terms_of(&"word1 word2 word3 ".repeat(500)).len() <= 3);
        let many: String = (0..1000).map(|n| format!("word{n} ")).collect();
        assert_eq!(terms_of(&many).len(), MOST_TERMS);
    }
}
