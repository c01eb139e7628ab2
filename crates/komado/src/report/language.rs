//! The words of a report, in English and in Japanese.

use clap::ValueEnum;
use schemars::JsonSchema;
use serde::Deserialize;

/// A language.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum ReportLanguage {
    #[default]
    En,
    Ja,
}

/// A name in the JSON of a report, and what people read for it.
const WORDS: &[(&str, &str, &str)] = &[
    ("report", "Report", "レポート"),
    ("usage_by_day", "Usage by day", "日別の利用状況"),
    ("usage_by_week", "Usage by week", "週別の利用状況"),
    ("usage_by_user", "Usage by user", "利用者別の利用状況"),
    ("usage_by_model", "Usage by model", "モデル別の利用状況"),
    ("questions", "Common questions", "よくある質問"),
    ("performance", "Performance", "エージェントの性能"),
    ("performance_by_model", "Performance by model", "モデル別の性能"),
    ("tools", "Tools", "ツール"),
    ("day", "day", "日"),
    ("week", "week", "週"),
    ("user", "user", "利用者"),
    ("model", "model", "モデル"),
    ("total", "total", "合計"),
    ("others", "others", "その他"),
    ("sessions_made", "made", "作成"),
    ("sessions_active", "active", "稼働"),
    ("turns", "turns", "ターン"),
    ("messages", "messages", "発言"),
    ("model_calls", "calls", "呼出"),
    ("tokens", "tokens", "トークン"),
    ("tokens_in", "tokens in", "入力"),
    ("tokens_out", "tokens out", "出力"),
    ("tool_calls", "tools", "ツール"),
    ("compactions", "compactions", "圧縮"),
    ("bytes", "bytes", "バイト"),
    ("question", "question", "質問"),
    ("count", "asked", "件数"),
    ("at_most", "at most", "最大"),
    ("users", "users", "人数"),
    ("share", "share", "割合"),
    ("last_seen", "last", "最終"),
    ("example", "for example", "例"),
    ("figure", "figure", "項目"),
    ("value", "value", "値"),
    ("completed", "completed", "完了"),
    ("failed", "failed", "失敗"),
    ("stopped", "stopped", "中止"),
    ("turns_to_finish", "turns to finish", "完了までのターン"),
    ("seconds_per_turn", "seconds per turn", "ターンの秒数"),
    ("seconds_to_first_answer", "seconds to first answer", "最初の応答までの秒数"),
    ("requests", "requests", "要求"),
    ("retries", "retries", "再試行"),
    ("retry_rate", "retry rate", "再試行率"),
    ("overflows", "overflows", "ウィンドウ超過"),
    ("overflow_rate", "overflow rate", "ウィンドウ超過率"),
    ("failures", "other failures", "その他の失敗"),
    ("tool_errors", "tool errors", "ツールの失敗"),
    ("tool_error_rate", "tool error rate", "ツール失敗率"),
    ("condensed", "condensed", "要約"),
    ("truncated", "truncated", "切詰"),
    ("trimmed", "trimmed", "省略"),
    ("compression_ratio", "left after compaction", "圧縮後の割合"),
    ("recalls", "recalls", "想起"),
    ("tool", "tool", "ツール"),
    ("calls", "calls", "呼出"),
    ("errors", "errors", "失敗"),
    ("interrupted", "interrupted", "中断"),
    ("error_rate", "error rate", "失敗率"),
    ("mean_ms", "mean ms", "平均ms"),
    (
        "range",
        "From {from} until before {to}, in days of UTC{offset}",
        "{from} から {to} の前まで（日付は UTC{offset}）",
    ),
    ("read", "{sessions} and {entries} read", "セッション {sessions} 件、記録 {entries} 件を読みました"),
    ("nothing", "nothing", "なし"),
    (
        "narrow",
        "more columns with --format csv, json or html",
        "ほかの列は --format csv、json、html にあります",
    ),
    (
        "unreadable",
        "{count} could not be read to the end: counted only up to the damage",
        "セッション {count} 件は途中までしか読めず、読めた所までを数えています",
    ),
    (
        "missed",
        "Counts are lower bounds where two are given; no question that is not here was asked more often than this: {count}.",
        "二つの数がある所は下限と上限です。ここにない質問は多くても {count} 回です。",
    ),
];

impl ReportLanguage {
    /// What people read for a name; the name itself where it has no other.
    pub(super) fn say(self, name: &str) -> &str {
        let found = WORDS.iter().find(|(known, ..)| *known == name);
        match (found, self) {
            (Some((_, english, _)), Self::En) => english,
            (Some((_, _, japanese)), Self::Ja) => japanese,
            (None, _) => name,
        }
    }

    /// The same with figures in it.
    pub(super) fn fill(self, name: &str, values: &[(&str, &str)]) -> String {
        values.iter().fold(self.say(name).to_owned(), |text, (slot, value)| {
            text.replace(&format!("{{{slot}}}"), value)
        })
    }

    /// As browsers name it.
    pub(super) const fn tag(self) -> &'static str {
        match self {
            Self::En => "en",
            Self::Ja => "ja",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_is_there_twice() {
        let mut names: Vec<&str> = WORDS.iter().map(|(name, ..)| *name).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn both_languages_have_the_same_slots() {
        let slots = |text: &str| {
            let mut slots: Vec<String> = text
                .split('{')
                .skip(1)
                .filter_map(|rest| rest.split('}').next())
                .map(str::to_owned)
                .collect();
            slots.sort_unstable();
            slots
        };
        for (name, english, japanese) in WORDS {
            assert_eq!(slots(english), slots(japanese), "{name}");
        }
        let told = ReportLanguage::Ja.fill("unreadable", &[("count", "3")]);
        assert_eq!(told, "セッション 3 件は途中までしか読めず、読めた所までを数えています");
    }
}
