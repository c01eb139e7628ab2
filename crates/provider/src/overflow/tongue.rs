//! Japanese, Chinese and Korean words of size, put into the one language the grammar reads.
//!
//! This is no translation: only the words that carry a size, a limit or an excess are turned, everything else is passed
//! over. Full-width digits and signs become narrow ones first. The longest phrase at a place wins, so that 超过 inside
//! a longer word is not read twice.

use super::latin;

/// Phrases and what they say. `beyondthat` is an excess over the number before it, as Japanese puts it.
const PHRASES: &[(&str, &str)] = &[
    // things of size
    ("コンテキストウィンドウ", "context window"),
    ("コンテキストウインドウ", "context window"),
    ("コンテキスト長", "context length"),
    ("コンテキストサイズ", "context size"),
    ("コンテキスト", "context"),
    ("コンテクスト", "context"),
    ("文脈長", "context length"),
    ("文脈", "context"),
    ("プロンプト", "prompt"),
    ("入力", "input"),
    ("会話", "conversation"),
    ("メッセージ", "messages"),
    ("リクエスト", "request"),
    ("ペイロード", "payload"),
    ("トークン数", "tokens count"),
    ("トークン", "tokens"),
    ("文字数", "characters"),
    ("文字", "characters"),
    ("バイト", "bytes"),
    ("長さ", "length"),
    ("サイズ", "size"),
    ("出力", "output"),
    ("生成", "generated"),
    ("応答", "output"),
    ("画像", "image"),
    ("ファイル", "file"),
    ("上下文窗口", "context window"),
    ("上下文視窗", "context window"),
    ("上下文长度", "context length"),
    ("上下文長度", "context length"),
    ("上下文", "context"),
    ("提示词", "prompt"),
    ("提示詞", "prompt"),
    ("提示", "prompt"),
    ("输入", "input"),
    ("輸入", "input"),
    ("对话", "conversation"),
    ("對話", "conversation"),
    ("消息", "messages"),
    ("訊息", "messages"),
    ("请求", "request"),
    ("請求", "request"),
    ("序列", "sequence"),
    ("令牌", "tokens"),
    ("词元", "tokens"),
    ("字符", "characters"),
    ("字元", "characters"),
    ("字数", "characters"),
    ("字节", "bytes"),
    ("长度", "length"),
    ("長度", "length"),
    ("大小", "size"),
    ("输出", "output"),
    ("輸出", "output"),
    ("图片", "image"),
    ("图像", "image"),
    ("圖片", "image"),
    ("文件", "file"),
    ("컨텍스트", "context"),
    ("프롬프트", "prompt"),
    ("입력", "input"),
    ("대화", "conversation"),
    ("메시지", "messages"),
    ("요청", "request"),
    ("토큰", "tokens"),
    ("길이", "length"),
    ("윈도우", "window"),
    ("출력", "output"),
    // limits
    ("最大", "maximum"),
    ("上限", "limit"),
    ("制限", "limit"),
    ("限制", "limit"),
    ("限度", "limit"),
    ("最多", "at most"),
    ("不超过", "not exceed"),
    ("支持", "supports"),
    ("以内", "orless"),
    ("以下", "orless"),
    ("まで", "orless"),
    ("최대", "maximum"),
    ("한도", "limit"),
    ("제한", "limit"),
    // excess
    ("を超え", "beyondthat"),
    ("を超過", "beyondthat"),
    ("を上回", "beyondthat"),
    ("をオーバー", "beyondthat"),
    ("超え", "exceeded"),
    ("超過", "exceeded"),
    ("オーバー", "exceeded"),
    ("あふれ", "overflow"),
    ("溢れ", "overflow"),
    ("長すぎ", "too long"),
    ("長過ぎ", "too long"),
    ("大きすぎ", "too large"),
    ("多すぎ", "too many"),
    ("短くして", "shorten input"),
    ("に収まり", "beyondthat"),
    ("に入りき", "beyondthat"),
    ("収まりません", "does not fit"),
    ("超过", "exceeds"),
    ("超出", "exceeds"),
    ("超长", "too long"),
    ("超長", "too long"),
    ("超限", "exceeded limit"),
    ("溢出", "overflow"),
    ("过长", "too long"),
    ("過長", "too long"),
    ("太长", "too long"),
    ("太長", "too long"),
    ("过大", "too large"),
    ("過大", "too large"),
    ("太大", "too large"),
    ("过多", "too many"),
    ("大于", "greater than"),
    ("초과", "beyondthat"),
    ("너무 길", "too long"),
    ("너무 깁", "too long"),
    ("너무 큽", "too large"),
    // what was sent
    ("要求", "requested"),
    ("現在", "current"),
    ("当前", "current"),
    ("目前", "current"),
    ("实际", "actual"),
    ("実際", "actual"),
    ("合計", "total"),
    ("总共", "total"),
    ("共", "total"),
    ("現行", "current"),
    ("현재", "current"),
    // what is no overflow
    ("レート", "rate limit"),
    ("分あたり", "per minute"),
    ("日あたり", "per day"),
    ("毎分", "per minute"),
    ("每分钟", "per minute"),
    ("每分鐘", "per minute"),
    ("每天", "per day"),
    ("每日", "daily"),
    ("频率", "rate limit"),
    ("限流", "throttled"),
    ("频繁", "rate limit"),
    ("额度", "quota"),
    ("余额", "balance"),
    ("配额", "quota"),
    ("超时", "timeout"),
    ("超時", "timeout"),
    ("タイムアウト", "timeout"),
    ("時間切れ", "timeout"),
    ("認証", "authentication"),
    ("密钥", "api key"),
    ("분당", "per minute"),
    ("시간 초과", "timeout"),
    // boundaries
    ("ですが", ","),
    ("但", ","),
];

/// The text with wide signs made narrow and the phrases above in plain words.
pub(super) fn plain(text: &str) -> String {
    let narrow = latin::plain(&text.chars().map(narrow).collect::<String>());
    if narrow.is_ascii() {
        return narrow;
    }
    let mut out = String::with_capacity(narrow.len());
    let mut rest = narrow.as_str();
    while let Some(c) = rest.chars().next() {
        if !c.is_ascii()
            && let Some((phrase, word)) = longest(rest)
        {
            out.push(' ');
            out.push_str(word);
            out.push(' ');
            rest = &rest[phrase.len()..];
            continue;
        }
        out.push(c);
        rest = &rest[c.len_utf8()..];
    }
    out
}

fn longest(rest: &str) -> Option<&'static (&'static str, &'static str)> {
    PHRASES.iter().filter(|(phrase, _)| rest.starts_with(phrase)).max_by_key(|(phrase, _)| phrase.len())
}

fn narrow(c: char) -> char {
    match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c),
        '\u{3000}' => ' ',
        '。' => '.',
        '、' => ',',
        '「' | '」' | '『' | '』' | '“' | '”' | '‘' | '’' => '\'',
        '【' => '(',
        '】' => ')',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn wide_digits_and_phrases_become_plain_words() {
        let words = |text: &str| {
            super::plain(text).split_whitespace().filter(|w| w.is_ascii()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(words("最大コンテキスト長（８１９２）を超え"), "maximum context length (8192) beyondthat");
        assert_eq!(words("上下文长度超过限制"), "context length exceeds limit");
        assert_eq!(super::plain("prompt is too long"), "prompt is too long");
    }
}
