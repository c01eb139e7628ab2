//! The words of two languages: headings that are written, cues that are looked for.
//!
//! English and Japanese stand side by side here and nowhere else. A cue only says that a sentence may be a rule or a
//! decision; how much it weighs is the gatherer's business.

use super::fact::DigestSection;
use super::scan::is_japanese;
use super::timeline::StepKind;
use crate::Span;

/// The language of headings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Language {
    English,
    Japanese,
}

/// How much of each language the user spoke.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct LanguageCount {
    japanese: u64,
    latin: u64,
}

impl LanguageCount {
    /// Listens to what the user said. A Japanese word has about two characters.
    pub(super) fn hear(&mut self, text: &str) {
        let mut in_word = false;
        for c in text.chars() {
            self.japanese += u64::from(is_japanese(c));
            self.latin += u64::from(c.is_ascii_alphabetic() && !in_word);
            in_word = c.is_ascii_alphanumeric() || (in_word && matches!(c, '_' | '-' | '.' | '/' | '\''));
        }
    }

    /// An earlier digest was in `language`.
    pub(super) fn recall(&mut self, language: Language) {
        match language {
            Language::English => self.latin += 40,
            Language::Japanese => self.japanese += 80,
        }
    }

    pub(super) const fn language(self) -> Language {
        if self.japanese > 2 * self.latin { Language::Japanese } else { Language::English }
    }
}

/// The headings of all sections, in their order, in English and Japanese.
const HEADINGS: [(DigestSection, [&str; 2]); 18] = [
    (DigestSection::Newest, ["Last request in this span", "この範囲の最後の依頼"]),
    (DigestSection::First, ["First request in this span", "この範囲の最初の依頼"]),
    (DigestSection::Rules, ["Rules", "守ること"]),
    (DigestSection::Open, ["Open", "未完了"]),
    (DigestSection::Earlier, ["Earlier summary", "以前の要約"]),
    (DigestSection::Timeline, ["What was done", "行ったこと"]),
    (DigestSection::Errors, ["Errors", "エラー"]),
    (DigestSection::Changed, ["Files changed", "変更したファイル"]),
    (DigestSection::Commands, ["Commands", "コマンド"]),
    (DigestSection::Git, ["Git", "Git の状態"]),
    (DigestSection::Decisions, ["Notes", "メモ"]),
    (DigestSection::Results, ["Results", "結果"]),
    (DigestSection::Read, ["Files read", "読んだファイル"]),
    (DigestSection::Ids, ["Ids and numbers", "ID と数値"]),
    (DigestSection::Symbols, ["Symbols", "シンボル"]),
    (DigestSection::Outputs, ["Kept outputs", "保存した出力"]),
    (DigestSection::Seen, ["Paths seen", "見たパス"]),
    (DigestSection::Requests, ["Other requests", "他の依頼"]),
];

/// The heading of a section.
pub(super) const fn heading(section: DigestSection, language: Language) -> &'static str {
    HEADINGS[section as usize].1[language as usize]
}

/// The section under a heading, in either language.
pub(super) fn section(name: &str) -> Option<(DigestSection, Language)> {
    HEADINGS.into_iter().find_map(|(section, [english, japanese])| match name {
        _ if name == english => Some((section, Language::English)),
        _ if name == japanese => Some((section, Language::Japanese)),
        _ => None,
    })
}

/// The words for one kind of step.
pub(super) struct StepWords {
    /// Before a single step; one word, and no other kind's.
    pub(super) verb: &'static str,
    /// Behind a number, which counts one.
    pub(super) one: &'static str,
    pub(super) many: &'static str,
}

/// The words for a kind of step.
pub(super) const fn step_words(kind: StepKind, language: Language) -> StepWords {
    let (verb, one, many) = match (kind, language) {
        (StepKind::Edit, Language::English) => ("edit", "edit", "edits"),
        (StepKind::Run, Language::English) => ("run", "run", "runs"),
        (StepKind::Read, Language::English) => ("read", "read", "reads"),
        (StepKind::Search, Language::English) => ("search", "search", "searches"),
        (StepKind::Call, Language::English) => ("call", "call", "calls"),
        (StepKind::Edit, Language::Japanese) => ("編集", "編集", "編集"),
        (StepKind::Run, Language::Japanese) => ("実行", "実行", "実行"),
        (StepKind::Read, Language::Japanese) => ("読む", "読み取り", "読み取り"),
        (StepKind::Search, Language::Japanese) => ("検索", "検索", "検索"),
        (StepKind::Call, Language::Japanese) => ("呼出", "呼び出し", "呼び出し"),
    };
    StepWords { verb, one, many }
}

/// What a digest or a ledger begins with; `kind` in every language, so that it is known again. Paths below `root`, if
/// there is one, are told from there.
/// The first line. Where it is to be short it says only what is there.
pub(super) fn title(
    kind: &str,
    span: Option<Span>,
    messages: u64,
    (root, is_short): (&str, bool),
    language: Language,
) -> String {
    let Span { from, to } = span.unwrap_or(Span::new(0, 0));
    if is_short {
        let messages = match (language, messages) {
            (Language::Japanese, _) => format!("{messages}件"),
            (Language::English, 1) => "1 message".to_owned(),
            (Language::English, _) => format!("{messages} messages"),
        };
        return format!("{kind}{from}..@{to}: {messages}]");
    }
    let said = match (language, messages) {
        (Language::Japanese, _) => "件、",
        (Language::English, 1) => " message; ",
        (Language::English, _) => " messages; ",
    };
    let root = match (root, language) {
        ("", _) => String::new(),
        (root, Language::English) => format!("{}{root}; ", ROOT[0]),
        (root, Language::Japanese) => format!("{}{root}、", ROOT[1]),
    };
    let what = match (kind == LEDGER, language) {
        (false, Language::English) => "look details up by @seq or ref",
        (false, Language::Japanese) => "詳細は @seq か ref で引ける",
        (true, Language::English) => "what the summary leaves out",
        (true, Language::Japanese) => "要約にない事実",
    };
    format!("{kind}{from}..@{to}: {messages}{said}{root}{what}]")
}

/// What stands before the root of paths in a title.
pub(super) const ROOT: [&str; 2] = ["./ is ", "./ は "];

/// The root that a title names.
pub(super) fn root_of(title: &str) -> &str {
    let root = ROOT.iter().find_map(|mark| title.split_once(mark)).map_or("", |(_, root)| root);
    root.split_once([';', '、']).map_or("", |(root, _)| root)
}

pub(super) const DIGEST: &str = "[digest @";
pub(super) const LEDGER: &str = "[ledger @";
/// The place of what an earlier summary told without one.
pub(super) const EARLIER: [&str; 2] = ["earlier", "以前"];

pub(super) const fn earlier(language: Language) -> &'static str {
    EARLIER[language as usize]
}

/// A sentence with one of these is a rule.
pub(super) const STRONG_RULES: &str = "must|never|always|don't|don’t|do not|make sure|be sure|forbidden|\
                                       not allowed|必ず|しないで|ないでください|てはいけ|てはなら|\
                                       ではならな|禁止|絶対|厳守|ないこと|すること。|必須|いけません";

/// A sentence with one of these may be a rule; said by the user it is taken for one.
pub(super) const WEAK_RULES: &str = "only|important|please use|prefer|should|avoid|のみ|べき|ください|\
                                     してほしい";

/// With one of these a sentence tells about the speaker, though it has a word of command.
pub(super) const NO_RULES: &str = "i don't|i don’t|i do not|we don't|it must be|you don't have|\
                                   わけではない";

/// A sentence of the model with one of these tells of a decision or of its reason.
pub(super) const DECISIONS: &str = "decided|decision|will use|i'll use|chose|choose|instead of|the fix is|\
                                    fixed by|root cause|the issue is|the problem is|the bug is|turns out|\
                                    because|plan:|approach:|going with|go with|conclusion|the solution|\
                                    in summary|ことにした|ことにし|方針|決定|決めた|原因は|修正は|採用|\
                                    代わりに|解決|結論";

/// Words by which the model tells what comes next.
pub(super) const NEXT: &str = "next steps|next step|remaining:|still need to|still needs to|left to do|\
                               follow-up:|残りは|次に|次は|今後|残タスク";

/// The first of `cues` that stands in `sentence`, which is in lower case.
pub(super) fn cue(sentence: &str, cues: &'static str) -> Option<&'static str> {
    cues.split('|').find(|cue| super::scan::has_word(sentence, cue))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_heading_is_known_again() {
        for (wanted, _) in HEADINGS {
            for language in [Language::English, Language::Japanese] {
                assert_eq!(section(heading(wanted, language)), Some((wanted, language)));
            }
        }
    }

    #[test]
    fn the_language_is_the_one_most_words_are_in() {
        let mut speech = LanguageCount::default();
        assert_eq!(speech.language(), Language::English);
        speech.hear("src/main.rs の parse 関数を直してください。テストも必ず追加すること。");
        assert_eq!(speech.language(), Language::Japanese);
        speech.hear(
            "Now please answer in English and explain what you have changed in this file and why you did so.",
        );
        speech.hear(
            "Thanks, that is all I wanted to know about it for now, so let us move on to the next one.",
        );
        assert_eq!(speech.language(), Language::English);
    }
}
