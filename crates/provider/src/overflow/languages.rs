//! Japanese, Chinese and Korean words of size, put into the one language the grammar reads.
//!
//! This is no translation: only the words that carry a size, a limit or an excess are turned, everything else is passed
//! over. Full-width digits and signs become narrow ones first. The longest phrase at a place wins, so that 超过 inside
//! a longer word is not read twice.

/// What is said, and the phrases that say it.
pub(super) type Phrases = [(&'static str, &'static [&'static str])];

/// What is said, and the phrases that say it. `beyondthat` is an excess over the number before it, as Japanese puts it.
const PHRASES: &Phrases = &[
    // things of size
    ("context window", &["コンテキストウィンドウ", "コンテキストウインドウ", "上下文窗口", "上下文視窗"]),
    ("context length", &["コンテキスト長", "文脈長", "上下文长度", "上下文長度"]),
    ("context size", &["コンテキストサイズ"]),
    ("context", &["コンテキスト", "コンテクスト", "文脈", "上下文", "컨텍스트"]),
    ("prompt", &["プロンプト", "提示词", "提示詞", "提示", "프롬프트"]),
    ("input", &["入力", "输入", "輸入", "입력"]),
    ("conversation", &["会話", "对话", "對話", "대화"]),
    ("messages", &["メッセージ", "消息", "訊息", "메시지"]),
    ("request", &["リクエスト", "请求", "請求", "요청"]),
    ("payload", &["ペイロード"]),
    ("tokens count", &["トークン数"]),
    ("tokens", &["トークン", "令牌", "词元", "토큰"]),
    ("characters", &["文字数", "文字", "字符", "字元", "字数"]),
    ("bytes", &["バイト", "字节"]),
    ("length", &["長さ", "长度", "長度", "길이"]),
    ("size", &["サイズ", "大小"]),
    ("output", &["出力", "応答", "输出", "輸出", "출력"]),
    ("generated", &["生成"]),
    ("image", &["画像", "图片", "图像", "圖片"]),
    ("file", &["ファイル", "文件"]),
    ("sequence", &["序列"]),
    ("window", &["윈도우"]),
    // limits
    ("maximum", &["最大", "최대"]),
    ("limit", &["上限", "制限", "限制", "限度", "한도", "제한"]),
    ("at most", &["最多"]),
    ("not exceed", &["不超过"]),
    ("supports", &["支持"]),
    ("orless", &["以内", "以下", "まで"]),
    // excess
    ("beyondthat", &["を超え", "を超過", "を上回", "をオーバー", "に収まり", "に入りき", "초과"]),
    ("exceeded", &["超え", "超過", "オーバー"]),
    ("overflow", &["あふれ", "溢れ", "溢出"]),
    ("too long", &["長すぎ", "長過ぎ", "超长", "超長", "过长", "過長", "太长", "太長", "너무 길", "너무 깁"]),
    ("too large", &["大きすぎ", "过大", "過大", "太大", "너무 큽"]),
    ("too many", &["多すぎ", "过多"]),
    ("shorten input", &["短くして"]),
    ("does not fit", &["収まりません"]),
    ("exceeds", &["超过", "超出"]),
    ("exceeded limit", &["超限"]),
    ("greater than", &["大于"]),
    // what was sent
    ("requested", &["要求"]),
    ("current", &["現在", "当前", "目前", "現行", "현재"]),
    ("actual", &["实际", "実際"]),
    ("total", &["合計", "总共", "共"]),
    // what is not an overflow
    ("rate limit", &["レート", "频率", "频繁"]),
    ("per minute", &["分あたり", "毎分", "每分钟", "每分鐘", "분당"]),
    ("per day", &["日あたり", "每天"]),
    ("daily", &["每日"]),
    ("throttled", &["限流"]),
    ("quota", &["额度", "配额"]),
    ("balance", &["余额"]),
    ("timeout", &["超时", "超時", "タイムアウト", "時間切れ", "시간 초과"]),
    ("authentication", &["認証"]),
    ("api key", &["密钥"]),
    // boundaries
    (",", &["ですが", "但"]),
];

/// The text with wide signs made narrow and the phrases above in plain words.
pub(super) fn plain(text: &str) -> String {
    let narrow = from_latin(&text.chars().map(narrow).collect::<String>());
    if narrow.is_ascii() {
        return narrow;
    }
    let mut out = String::with_capacity(narrow.len());
    let mut rest = narrow.as_str();
    while let Some(c) = rest.chars().next() {
        if !c.is_ascii()
            && let Some((phrase, word)) = longest(PHRASES, rest, |_| true)
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

/// Every phrase, with what it says.
pub(super) fn each(phrases: &'static Phrases) -> impl Iterator<Item = (&'static str, &'static str)> {
    phrases.iter().flat_map(|(word, phrases)| phrases.iter().map(move |phrase| (*phrase, *word)))
}

/// The longest phrase that stands at the beginning of `rest`, with what it says; `ends` judges what follows it.
pub(super) fn longest(
    phrases: &'static Phrases,
    rest: &str,
    ends: impl Fn(&str) -> bool,
) -> Option<(&'static str, &'static str)> {
    let begins = |(phrase, _): &(&str, &str)| rest.strip_prefix(phrase).is_some_and(&ends);
    each(phrases).filter(begins).max_by_key(|(phrase, _)| phrase.len())
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

// German, French, Spanish, Portuguese and Italian words of size, put into the one language the grammar reads.
//
// Whole words only, and only such as English does not have; the longest phrase at a place wins.

/// What is said, and the phrases that say it, in small letters.
const LATIN: &Phrases = &[
    // things of size
    ("input", &["eingabe", "eingaben", "entrée", "entrées", "l'entrée", "entrada", "l'input"]),
    ("input tokens", &["eingabetoken", "eingabetokens"]),
    ("input length", &["eingabelänge"]),
    ("request", &["anfrage", "requête", "demande", "solicitud", "solicitação", "richiesta"]),
    ("requests", &["anfragen", "requêtes"]),
    ("message", &["nachricht", "mensaje", "mensagem", "messaggio"]),
    ("messages", &["nachrichten", "mensajes", "mensagens", "messaggi"]),
    ("conversation", &["unterhaltung", "gespräch", "konversation", "conversación", "conversa"]),
    ("conversation", &["conversazione"]),
    ("context", &["kontext", "contexte", "contexto", "contesto"]),
    ("context window", &["kontextfenster", "kontextfensters", "fenêtre de contexte", "fenêtre contextuelle"]),
    ("context window", &["ventana de contexto", "janela de contexto", "finestra di contesto"]),
    ("context length", &["kontextlänge"]),
    ("context size", &["kontextgröße"]),
    ("context limit", &["kontextlimit"]),
    ("token limit", &["tokenlimit"]),
    ("input limit", &["eingabelimit"]),
    ("token count", &["tokenanzahl"]),
    ("length", &["länge", "longueur", "longitud", "lunghezza"]),
    ("size", &["größe", "taille", "tamanho", "tamaño"]),
    ("characters", &["zeichen", "caractères", "caracteres", "caratteri"]),
    ("output", &["ausgabe", "antwort", "sortie", "réponse", "salida", "saída", "respuesta", "resposta"]),
    ("output", &["risposta"]),
    ("image", &["bild", "imagen", "imagem", "immagine"]),
    ("images", &["bilder"]),
    ("file", &["datei", "fichier", "archivo", "arquivo"]),
    ("files", &["dateien", "fichiers"]),
    ("prompt", &["l'invite", "votre invite"]),
    ("history", &["historique"]),
    ("token", &["jeton"]),
    ("tokens", &["jetons"]),
    ("bytes", &["octets"]),
    ("mb", &["mo"]),
    // limits
    ("maximum", &["maximal", "maximale", "maximalen", "maximales", "máximo", "máxima", "massimo", "massima"]),
    ("at most", &["höchstens", "au plus"]),
    ("allowed", &["erlaubt", "erlaubte", "erlaubten", "zulässig", "zulässige", "zulässigen", "autorisé"]),
    ("allowed", &["autorisée", "autorisés", "permitido", "permitida", "consentito", "consentita"]),
    ("limit", &["grenze", "obergrenze", "limite", "plafond", "límite"]),
    // excess
    ("too long", &["zu lang", "trop long", "trop longs", "trop longue", "trop longues", "demasiado largo"]),
    ("too long", &["demasiado larga", "muito longo", "muito longa", "troppo lungo", "troppo lunga"]),
    ("too large", &["zu groß", "zu gross", "trop grand", "trop grande", "trop volumineux"]),
    ("too large", &["trop volumineuse", "demasiado grande", "muito grande", "troppo grande"]),
    ("too many", &["zu viele", "trop de", "demasiados", "troppi"]),
    ("longer than", &["länger als", "plus long que", "plus longue que"]),
    ("larger than", &["größer als", "plus grand que", "plus grande que"]),
    ("more than", &["mehr als"]),
    ("exceeds", &["überschreitet", "übersteigt", "dépasse", "excède", "supera", "excede", "ultrapassa"]),
    ("exceed", &["überschreiten", "übersteigen", "dépassent"]),
    ("exceeded", &["überschritten", "dépassé", "dépassée", "superato", "superada", "excedido", "excedida"]),
    ("does not fit", &["passt nicht", "passen nicht", "ne tient pas"]),
    ("shorten", &["kürzen", "verkürzen", "raccourcir", "raccourcissez"]),
    ("reached", &["erreicht", "atteint", "atteinte", "alcanzado", "raggiunto"]),
    ("greater than", &["supérieur à", "supérieure à"]),
    ("overflow", &["dépassement"]),
    ("reduce", &["réduire", "réduisez"]),
    // what was sent
    ("contains", &["enthält", "contient", "contiene", "contém"]),
    ("sent", &["envoyé", "envoyés", "gesendet"]),
    ("requested", &["demandé", "demandés", "angefordert"]),
    // joints
    ("but", &["aber", "jedoch", "mais", "pero", "ma il", "mas"]),
    ("of", &["du", "von", "des", "del", "do"]),
    // what is not an overflow
    ("per minute", &["pro minute", "par minute", "por minuto", "al minuto"]),
    ("per hour", &["pro stunde", "par heure"]),
    ("per day", &["pro tag", "par jour"]),
    ("rate limit", &["ratenlimit", "débit"]),
    ("quota", &["kontingent", "cuota", "cota"]),
    ("credit", &["guthaben", "crédit", "crédits"]),
    ("timeout", &["zeitüberschreitung", "délai"]),
    ("expired", &["abgelaufen", "expiré", "expirée"]),
    ("policy", &["richtlinie", "richtlinien", "politique", "política"]),
    ("seconds", &["sekunden", "secondes", "segundos", "secondi"]),
];

/// Little words of these languages; without one of them, or a long word of the list above, nothing is turned.
const MARKS: &[&str] = &[
    "die", "der", "das", "ist", "sind", "zu", "von", "wurde", "bitte", "le", "la", "les", "est", "trop",
    "votre", "el", "es", "il", "è", "é", "o", "os", "um", "por", "maximale", "limite",
];

/// The text with the phrases above in plain words, if it is written in one of these languages.
pub(super) fn from_latin(text: &str) -> String {
    let small = text.to_lowercase().replace('’', "'");
    let own = |word: &str| word.len() >= 7 && each(LATIN).any(|(phrase, _)| phrase == word);
    let foreign = small.split(|c: char| !c.is_alphanumeric()).any(|word| MARKS.contains(&word) || own(word));
    if !foreign {
        return text.to_owned();
    }
    let ends = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    let (mut out, mut turned) = (String::with_capacity(text.len()), false);
    let mut rest = small.as_str();
    let mut before = ' ';
    while let Some(c) = rest.chars().next() {
        let starts = !(before.is_alphanumeric() || before == '_');
        if starts && let Some((phrase, word)) = longest(LATIN, rest, ends) {
            out.push_str(word);
            rest = &rest[phrase.len()..];
            (before, turned) = ('x', true);
            continue;
        }
        out.push(c);
        before = c;
        rest = &rest[c.len_utf8()..];
    }
    if turned { joined(&out) } else { text.to_owned() }
}

/// `9 001` is one number where thousands are parted by spaces.
fn joined(text: &str) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    let digits = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
    let mut out = String::with_capacity(text.len());
    for (i, word) in words.iter().enumerate() {
        let head: String = word.chars().take_while(char::is_ascii_digit).collect();
        let tail = word.chars().nth(3).is_none_or(|c| !c.is_alphanumeric());
        let thousands = i > 0 && head.len() == 3 && tail;
        let leads = |word: &str| {
            let word = word.trim_start_matches('(');
            digits(word) && word.len() <= 3
        };
        if i > 0 && !(thousands && leads(words[i - 1])) {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
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

#[cfg(test)]
mod latin_tests {
    use super::from_latin;

    #[test]
    fn whole_words_are_turned_and_english_is_left_as_it_is() {
        assert_eq!(from_latin("Die Eingabe ist zu lang"), "die input ist too long");
        assert_eq!(from_latin("L’entrée est trop longue : 9 001 jetons"), "input est too long : 9001 tokens");
        assert_eq!(from_latin("Prompt is too long, do reduce it"), "Prompt is too long, do reduce it");
    }
}
