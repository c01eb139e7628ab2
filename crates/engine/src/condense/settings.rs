//! What a person can choose about summaries.
//!
//! One set of names for what people know from elsewhere, in camel case and in snake case. It decides nothing but
//! [`Settings::due`]; which messages stay is the planner's, who is to be asked is the caller's.

use super::Language;
use serde::{Deserialize, Serialize};

/// What can be chosen.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Settings {
    /// False turns summaries off.
    pub enabled: bool,
    /// False leaves them to people: none is due by itself, and none is too small to be worth it.
    pub auto: bool,
    /// The share of the window at which one is due.
    #[serde(alias = "threshold_ratio", alias = "compression_threshold")]
    pub threshold_ratio: f64,
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
    /// How many of the last turns stay as they are.
    #[serde(alias = "retain_last_turns")]
    pub retain_last_turns: u32,
    /// How many of the last messages stay as they are.
    #[serde(alias = "keep_recent_messages")]
    pub keep_recent_messages: u32,
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
            enabled: true,
            auto: true,
            threshold_ratio: 0.8,
            model: None,
            summary_prompt: None,
            summary_directives: Vec::new(),
            retain_prompt: None,
            retain_directives: Vec::new(),
            retain_last_turns: 1,
            keep_recent_messages: 5,
            min_messages_to_summarize: 10,
            language: None,
            reach: Reach::default(),
        }
    }
}

impl Settings {
    /// True when a conversation of `tokens`, as its last reply reported them, should be summarised by itself.
    pub fn due(&self, tokens: u64, context_limit: u64) -> bool {
        self.enabled && self.auto && tokens as f64 >= context_limit as f64 * self.threshold_ratio
    }

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
        let camel = r#"{"thresholdRatio":0.5,"summaryPrompt":"p","summaryDirectives":["a"],"retainPrompt":null,
            "retainDirectives":["b"],"retainLastTurns":2,"keepRecentMessages":3,"minMessagesToSummarize":4,
            "language":"ja","model":null}"#;
        let snake = r#"{"threshold_ratio":0.5,"summary_prompt":"p","summary_directives":["a"],
            "retain_prompt":null,"retain_directives":["b"],"retain_last_turns":2,"keep_recent_messages":3,
            "min_messages_to_summarize":4,"language":"ja"}"#;
        let read = |text: &str| serde_json::from_str::<Settings>(text).unwrap();
        assert_eq!(read(camel), read(snake));
        assert_eq!(read(camel).language, Some(Language::Japanese));
        assert_eq!(read("{}"), Settings::default());
        let old = read(r#"{"compression_threshold":0.7,"keep_recent_messages":5}"#);
        assert_eq!((old.threshold_ratio, old.retain_last_turns), (0.7, 1));
        let written = serde_json::to_string(&read(camel)).unwrap();
        assert_eq!(read(&written), read(camel));
    }

    #[test]
    fn a_summary_is_due_at_the_threshold_unless_switched_off() {
        let settings = Settings::default();
        assert!(settings.due(80, 100) && settings.due(81, 100) && !settings.due(79, 100));
        assert!(!Settings { enabled: false, ..settings.clone() }.due(100, 100));
        assert!(!settings.by_hand().due(100, 100));
    }
}
