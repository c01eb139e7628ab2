//! From a span that is about to leave the view to the text that will stand in its place.
//!
//! Which span leaves is decided elsewhere, and the edit is appended elsewhere; here the words are written. The
//! writer is exchangeable: a [`Summariser`] gets one text and gives one back. The default, [`ByDigest`], needs
//! no model. [`compose`] reads the span message by message, hands it over in parts that fit the summariser's own
//! window, checks what came back, and returns the texts or a [`Declined`] with numbers.
//!
//! It refuses to touch the conversation. It gets no handle that could append, so neither its question nor the answer
//! can ever become part of what it summarises, and a failure leaves everything as it was.

use komado_core::digest::{Digest, Fact};
use komado_core::head::{EntrySource, Kind};
use komado_core::journal::{Setup, Show, Usage};
use komado_core::message::Message;
use komado_core::{Meter, Seq};
use leaving::{Leaving, LeavingItem};
use serde::{Deserialize, Serialize};

mod answer;
mod command;
mod compose;
mod leaving;
#[cfg(feature = "client")]
mod model;
mod prompt;
mod render;

pub use answer::{ParsedSummary, parse};
pub use command::SummaryCommand;
pub use compose::compose;
pub(crate) use compose::{SummaryGoal, write};
pub use komado_core::ladder::OriginalsHint;
#[cfg(feature = "client")]
pub use model::ByModel;
pub(crate) use render::{cut_prefix, cut_split};

/// Writes a summary. It blocks, like the store.
pub trait Summariser {
    /// The model's name, for the cause of the edit; `digest` when there is none.
    fn name(&self) -> &str;

    /// How many tokens it takes, question and answer together; `None` when it does not matter.
    ///
    /// Without a bound the span is still handed over in parts of a million tokens, so that memory stays flat.
    fn window(&self) -> Option<u64>;

    /// True when no caller waits for its answers any more.
    fn is_cancelled(&self) -> bool {
        false
    }

    /// What it is given.
    fn reads(&self) -> SummaryInput {
        SummaryInput::Request
    }

    /// Answers one request.
    fn summarise(&mut self, request: &SummaryRequest) -> Result<SummaryAnswer, SummaryFailure>;

    /// Answers a request that stands behind the conversation itself, for one whose provider has that in its cache; `None`
    /// when it has not, or when both together would not fit.
    fn go_on(
        &mut self,
        _talk: &dyn Transcript,
        _request: &SummaryRequest,
    ) -> Option<Result<SummaryAnswer, SummaryFailure>> {
        None
    }
}

/// The conversation up to the end of what leaves, as the model was last sent it.
pub trait Transcript {
    /// Its tokens, by the session's meter.
    fn tokens(&self) -> u64;

    /// System prompt, tools and parameters.
    fn setup(&self) -> crate::Result<Setup>;

    /// Hands on every message, one at a time.
    fn pour(&self, each: &mut dyn FnMut(&Message) -> crate::Result<()>) -> crate::Result<()>;
}

/// What a summariser is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SummaryInput {
    /// A [`SummaryRequest`]: instructions, and the messages as the model sees them.
    Request,
    /// No request: the facts of the messages as they were said, also of those that are shown trimmed.
    Facts,
}

/// One question to a summariser. It never has tools.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SummaryRequest {
    /// The system prompt.
    pub system: Option<String>,
    /// The whole user message: instructions and messages.
    pub text: String,
    /// The longest answer that is of use.
    pub max_tokens: u64,
    /// Which part of the span this is, from 1.
    pub part: u32,
}

/// What a summariser wrote.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SummaryAnswer {
    /// The whole answer, tags and all.
    pub text: String,
    /// What it took.
    pub usage: Option<Usage>,
    /// The model that wrote it, when it is not the one that was asked.
    pub model: Option<String>,
}

/// Why a summariser wrote nothing.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{why}")]
pub struct SummaryFailure {
    /// The reason, in its own words.
    pub why: String,
    /// What it took all the same.
    pub usage: Option<Usage>,
}

impl SummaryFailure {
    /// A failure that cost nothing.
    pub fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), usage: None }
    }
}

/// The texts for an edit, and what they took.
#[derive(Clone, PartialEq, Debug)]
pub struct ComposedSummary {
    /// What is kept word for word (if anything), then the summary.
    pub show: Vec<Show>,
    /// Who wrote it.
    pub model: Option<String>,
    /// What all parts took together.
    pub usage: Option<Usage>,
    /// How many facts of the span are still told, and what else is worth knowing.
    pub note: Option<String>,
    /// In how many parts the span was read; 0 when no model was asked.
    pub chunks: u32,
    /// Tokens of what will no longer be shown.
    pub hidden: u64,
    /// Facts of the span that the summary does not tell. The most important ones stand in the ledger under it.
    pub lost: Vec<Fact>,
}

impl ComposedSummary {
    /// Tokens of all texts together.
    pub fn tokens(&self) -> u64 {
        self.show.iter().map(|show| u64::from(show.tokens)).sum()
    }
}

/// Tells the facts of a span. The default: it costs nothing, waits for nothing and cannot fail.
#[derive(Clone, Copy, Debug)]
pub struct ByDigest {
    meter: Meter,
}

impl ByDigest {
    /// Counts tokens with `meter`.
    pub fn new(meter: Meter) -> Self {
        Self { meter }
    }
}

impl Summariser for ByDigest {
    fn name(&self) -> &str {
        "digest"
    }

    fn window(&self) -> Option<u64> {
        None
    }

    fn reads(&self) -> SummaryInput {
        SummaryInput::Facts
    }

    /// No caller sends it a request where facts can be had; asked all the same, it tells those of the request.
    fn summarise(&mut self, request: &SummaryRequest) -> Result<SummaryAnswer, SummaryFailure> {
        let mut digest = Digest::new(self.meter);
        digest.earlier(&request.text);
        Ok(SummaryAnswer { text: digest.text(request.max_tokens), ..SummaryAnswer::default() })
    }
}

// What a person can choose about summaries.
//
// One set of names for what people know from elsewhere, in camel case and in snake case. When a summary is due and which
// messages stay is the policy's, who is to be asked is the caller's.

/// What can be chosen.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CondenseSettings {
    /// False leaves them to people: none is due by itself, and none is too small to be worth it.
    pub auto: bool,
    /// The model that writes them; the conversation's own when there is none.
    pub model: Option<String>,
    /// Instructions in place of the built-in ones. `{messages}` stands for the messages; without it they follow.
    #[serde(alias = "summary_prompt")]
    pub summary_prompt: Option<String>,
    /// Added to the instructions as bullets.
    #[serde(alias = "summary_directives")]
    pub summary_directives: Vec<String>,
    /// What to keep word for word.
    #[serde(alias = "retain_prompt")]
    pub retain_prompt: Option<String>,
    /// Added to that as bullets.
    #[serde(alias = "retain_directives")]
    pub retain_directives: Vec<String>,
    /// The fewest messages worth a summary.
    #[serde(alias = "min_messages_to_summarize")]
    pub min_messages_to_summarize: u32,
    /// The language of instructions and headings; that of the conversation when there is none.
    pub language: Option<PromptLanguage>,
    /// What headings, markers and notices tell the model about the originals; as the set-up in force has the tools for it,
    /// when there is none.
    pub reach: Option<OriginalsHint>,
}

impl Default for CondenseSettings {
    fn default() -> Self {
        Self {
            auto: true,
            model: None,
            summary_prompt: None,
            summary_directives: Vec::new(),
            retain_prompt: None,
            retain_directives: Vec::new(),
            min_messages_to_summarize: 10,
            language: None,
            reach: None,
        }
    }
}

impl CondenseSettings {
    /// The same settings for a summary that a person asked for: no span is too small.
    #[must_use]
    pub fn by_hand(mut self) -> Self {
        self.auto = false;
        self
    }
}

// In which language to ask and to head a summary.
//
// What people say decides, not what tools print: code and logs are English everywhere. Only a sample is read. Two
// languages are known; everything else is asked in English, which the instructions answer in its own language.

/// How many messages of a span are looked at.
const SAMPLE: usize = 16;
/// How many characters of each.
const LOOK: usize = 2000;

/// A language that instructions and headings are written in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum PromptLanguage {
    /// English.
    #[default]
    #[serde(rename = "en", alias = "english")]
    English,
    /// Japanese.
    #[serde(rename = "ja", alias = "japanese")]
    Japanese,
}

impl PromptLanguage {
    /// The language of a text.
    pub fn of(text: &str) -> Self {
        let mut letters = ScriptCount::default();
        letters.take(text);
        letters.language()
    }

    /// The language of the people in a span; that of everyone when no user speaks there.
    fn spoken<S: EntrySource + ?Sized>(leaving: &Leaving<'_, S>) -> Result<Self, S::Error> {
        for only_users in [true, false] {
            let mut letters = ScriptCount::default();
            let mut items = leaving.items();
            let chosen = |kind: Kind| !only_users || kind == Kind::User;
            for _ in 0..SAMPLE {
                match items.next_where(chosen)? {
                    Some(LeavingItem::Said { message, .. }) => letters.take(&message.words()),
                    Some(LeavingItem::Earlier { show }) => show.iter().for_each(|s| letters.take(&s.text)),
                    None => break,
                }
            }
            if letters.any() {
                return Ok(letters.language());
            }
        }
        Ok(Self::English)
    }
}

/// Letters of a sample, by script.
#[derive(Default)]
struct ScriptCount {
    kana: usize,
    han: usize,
    other: usize,
}

impl ScriptCount {
    fn take(&mut self, text: &str) {
        for c in text.chars().take(LOOK).filter(|c| c.is_alphabetic()) {
            match c {
                '\u{3040}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' | '\u{ff66}'..='\u{ff9f}' => self.kana += 1,
                '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' => self.han += 1,
                _ => self.other += 1,
            }
        }
    }

    fn any(&self) -> bool {
        self.kana + self.han + self.other > 0
    }

    /// Japanese has kana, which Chinese has not, and says in one letter what takes English two or three; names of
    /// files and commands stand among it in Latin letters.
    fn language(&self) -> PromptLanguage {
        let (kana, own) = (self.kana, self.kana + self.han);
        if kana * 10 >= own && kana > 0 && own * 2 >= self.other {
            PromptLanguage::Japanese
        } else {
            PromptLanguage::English
        }
    }
}

// Why nothing was written, with the numbers, what was spent, and the way out.
//
// A summary is never half a success: either there are texts that make the view smaller, or there is one of these.

/// Why there is no summary.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Declined {
    /// Too little to be worth it.
    #[error(
        "only {found} message{} would be summarised and {needed} are worth it; \
         hide more of them, or lower min_messages_to_summarize",
        if *found == 1 { "" } else { "s" }
    )]
    TooFew {
        /// Messages that would leave the view.
        found: u64,
        /// The fewest worth a summary.
        needed: u64,
    },
    /// Only earlier summaries would be summarised.
    #[error("nothing was said in the span since edit @{0} stands for it; go on first, or revert @{0}")]
    JustCondensed(Seq),
    /// The limit leaves no room for words.
    #[error(
        "{limit} tokens for the texts that stand for the span are too few: \
         at least {needed} are needed; raise the limit"
    )]
    NoRoom {
        /// Tokens for all texts together.
        limit: u64,
        /// The fewest that would do.
        needed: u64,
    },
    /// The summariser's window holds the instructions and an answer, and hardly a message.
    #[error(
        "the window of {by} has {window} tokens and the instructions alone take {instructions}: \
         at least {needed} are needed; choose a model with a larger window, or shorten the prompt"
    )]
    Window {
        /// Who was to be asked.
        by: String,
        /// Its window.
        window: u64,
        /// Tokens of instructions without a message.
        instructions: u64,
        /// The smallest window that would do.
        needed: u64,
    },
    /// An answer without words.
    #[error(
        "{by} answered part {part} without a summary; try again, \
         choose another model, or condense with the digest, which needs none"
    )]
    Empty {
        /// Who was asked.
        by: String,
        /// Which part, from 1.
        part: u32,
        /// What was spent.
        usage: Option<Usage>,
    },
    /// What would be shown is no smaller than what would be hidden, or useless when cut to fit.
    #[error(
        "the summary does not make the view smaller: {shown} tokens would stand for {hidden}, \
         and {limit} are allowed; hide more, or ask for a shorter summary"
    )]
    Larger {
        /// Tokens that would leave.
        hidden: u64,
        /// Tokens that would stand for them.
        shown: u64,
        /// Tokens allowed.
        limit: u64,
        /// What was spent.
        usage: Option<Usage>,
    },
    /// The summariser failed.
    #[error(
        "{by} failed on part {part}: {why}; nothing was changed; try again, \
         choose another model, or condense with the digest, which needs none"
    )]
    Failed {
        /// Who was asked.
        by: String,
        /// Which part, from 1.
        part: u32,
        /// What it said.
        why: String,
        /// What was spent, the failure included.
        usage: Option<Usage>,
    },
}

impl Declined {
    /// What was spent before it came to this.
    pub fn usage(&self) -> Option<Usage> {
        match self {
            Self::TooFew { .. } | Self::JustCondensed { .. } => None,
            Self::NoRoom { .. } | Self::Window { .. } => None,
            Self::Empty { usage, .. } | Self::Larger { usage, .. } | Self::Failed { usage, .. } => *usage,
        }
    }
}

#[cfg(test)]
mod settings_tests {
    use super::*;

    #[test]
    fn both_spellings_and_none_at_all_are_read() {
        let camel = r#"{"summaryPrompt":"p","summaryDirectives":["a"],"retainPrompt":null,
            "retainDirectives":["b"],"minMessagesToSummarize":4,
            "language":"ja","model":null}"#;
        let snake = r#"{"summary_prompt":"p","summary_directives":["a"],
            "retain_prompt":null,"retain_directives":["b"],"min_messages_to_summarize":4,"language":"ja"}"#;
        let read = |text: &str| serde_json::from_str::<CondenseSettings>(text).unwrap();
        assert_eq!(read(camel), read(snake));
        assert_eq!(read(camel).language, Some(PromptLanguage::Japanese));
        assert_eq!(read("{}"), CondenseSettings::default());
        let written = serde_json::to_string(&read(camel)).unwrap();
        assert_eq!(read(&written), read(camel));
    }
}

#[cfg(test)]
mod language_tests {
    use super::*;

    #[test]
    fn japanese_is_known_by_its_kana_also_between_names_of_files() {
        for text in [
            "テストを直してください。",
            "`src/lexer.rs` の parse_line が panic します。原因を調べて直してください。",
            "ﾃｽﾄ",
        ] {
            assert_eq!(PromptLanguage::of(text), PromptLanguage::Japanese, "{text}");
        }
        for text in ["", "please fix the tests", "请修复这些测试", "the word 猫 means cat", "the kana の"]
        {
            assert_eq!(PromptLanguage::of(text), PromptLanguage::English, "{text}");
        }
    }
}
