//! In which language to ask and to head a summary.
//!
//! What people say decides, not what tools print: code and logs are English everywhere. Only a sample is read. Two
//! languages are known; everything else is asked in English, which the instructions answer in its own language.

use super::leaving::{Item, Leaving};
use komado_core::head::{Kind, Source};
use serde::{Deserialize, Serialize};

/// How many messages of a span are looked at.
const SAMPLE: usize = 16;
/// How many characters of each.
const LOOK: usize = 2000;

/// A language that instructions and headings are written in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Language {
    /// English.
    #[default]
    #[serde(rename = "en", alias = "english")]
    English,
    /// Japanese.
    #[serde(rename = "ja", alias = "japanese")]
    Japanese,
}

impl Language {
    /// The language of a text.
    pub fn of(text: &str) -> Self {
        let mut letters = Letters::default();
        letters.take(text);
        letters.language()
    }

    /// The language of the people in a span; that of everyone when no user speaks there.
    pub(super) fn spoken<S: Source + ?Sized>(source: &S, leaving: &Leaving) -> Result<Self, S::Error> {
        for only_users in [true, false] {
            let mut letters = Letters::default();
            let mut items = leaving.items();
            let chosen = |kind: Kind| !only_users || kind == Kind::User;
            for _ in 0..SAMPLE {
                match items.next_where(source, chosen)? {
                    Some(Item::Said { message, .. }) => letters.take(&message.words()),
                    Some(Item::Earlier { show }) => show.iter().for_each(|s| letters.take(&s.text)),
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
struct Letters {
    kana: usize,
    han: usize,
    other: usize,
}

impl Letters {
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
    fn language(&self) -> Language {
        let (kana, own) = (self.kana, self.kana + self.han);
        if kana * 10 >= own && kana > 0 && own * 2 >= self.other {
            Language::Japanese
        } else {
            Language::English
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn japanese_is_known_by_its_kana_also_between_names_of_files() {
        for text in [
            "テストを直してください。",
            "`src/lexer.rs` の parse_line が panic します。原因を調べて直してください。",
            "ﾃｽﾄ",
        ] {
            assert_eq!(Language::of(text), Language::Japanese, "{text}");
        }
        for text in ["", "please fix the tests", "请修复这些测试", "the word 猫 means cat", "the kana の"]
        {
            assert_eq!(Language::of(text), Language::English, "{text}");
        }
    }
}
