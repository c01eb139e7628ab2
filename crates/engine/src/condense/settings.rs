//! What a person can choose about summaries.
//!
//! One set of names for what people know from elsewhere, in camel case and in snake case. When a summary is due and which
//! messages stay is the policy's, who is to be asked is the caller's.

use super::Language;
use serde::{Deserialize, Serialize};

/// What can be chosen.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Settings {
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
    pub language: Option<Language>,
    /// What the heading of a summary tells the model about the originals.
    pub reach: Reach,
}

/// What the heading of a summary tells the model about the originals.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// How to read and search them, for a model that has the tools.
    #[default]
    Tools,
    /// Only that they are kept.
    Kept,
}

impl Default for Settings {
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
            reach: Reach::default(),
        }
    }
}

impl Settings {
    /// The same settings for a summary that a person asked for: no span is too small.
    #[must_use]
    pub fn by_hand(mut self) -> Self {
        self.auto = false;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_and_none_at_all_are_read() {
        let camel = r#"{"summaryPrompt":"p","summaryDirectives":["a"],"retainPrompt":null,
            "retainDirectives":["b"],"minMessagesToSummarize":4,
            "language":"ja","model":null}"#;
        let snake = r#"{"summary_prompt":"p","summary_directives":["a"],
            "retain_prompt":null,"retain_directives":["b"],"min_messages_to_summarize":4,"language":"ja"}"#;
        let read = |text: &str| serde_json::from_str::<Settings>(text).unwrap();
        assert_eq!(read(camel), read(snake));
        assert_eq!(read(camel).language, Some(Language::Japanese));
        assert_eq!(read("{}"), Settings::default());
        let written = serde_json::to_string(&read(camel)).unwrap();
        assert_eq!(read(&written), read(camel));
    }
}
