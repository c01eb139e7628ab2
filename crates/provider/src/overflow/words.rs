//! Words, numbers and signs of a text, so that the grammar need not care how they were written.
//!
//! Names are taken apart (`context_length_exceeded`, `ContextWindowExceededError`), numbers are read with their
//! separators and suffixes (`8,192`, `128k`), and what only looks like a number (a date, a model's name) is none.

use super::body::{self, FieldContent};
use super::languages;
use crate::listed;

/// A piece of a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum TextPiece {
    /// A word in small letters.
    Word(String),
    /// A whole number.
    Number(u64),
    /// A number below zero: never a size.
    Negative,
    /// Punctuation: `( ) [ ] , : > < + / = -`, `g` for at least, `l` for at most.
    Sign(char),
    /// A sentence ends.
    Stop,
}

/// The longest answer asked for, by whatever name.
pub(super) const ANSWER_CAP: &str = "answercap";
/// A length counted in characters by a schema.
pub(super) const SCHEMA: &str = "schemalength";
/// A field of the request that is not the conversation.
pub(super) const FIELD: &str = "otherfield";

const ANSWER_CAPS: &str = "max_tokens max_new_tokens max_completion_tokens max_output_tokens \
                           max_generated_tokens max_generation_tokens max_gen_tokens max_gen_len \
                           max_tokens_to_sample max_token min_tokens num_predict n_predict budget_tokens \
                           thinking_budget max_decoding_steps";

/// Last words of a name that says which one, not how much: `prompt_cache_key`.
const LABELS: &str = "id ids key name label type format role url uri hash tag title identifier";

/// Units written right after a number, without a space.
const UNITS: &str = "tokens token tok kb mb gb kib mib bytes s sec ms min px chars m h";

impl TextPiece {
    /// The word; empty for anything else.
    pub(super) fn word(&self) -> &str {
        match self {
            Self::Word(word) => word,
            _ => "",
        }
    }

    pub(super) fn is(&self, sign: char) -> bool {
        *self == Self::Sign(sign)
    }
}

/// Takes a text apart.
pub(super) fn split(text: &str) -> Vec<TextPiece> {
    let text = languages::plain(&text.replace("\\n", "\n").replace("\\u003e", ">").replace("&gt;", ">"));
    let mut lexer = Lexer { chars: text.chars().collect(), at: 0, out: Vec::new() };
    while lexer.at < lexer.chars.len() {
        lexer.step();
    }
    lexer.out
}

/// The words of a name: `maxModelLen`, `max_model_len` and `max-model-len` are the same three.
fn name_words(name: &str) -> Vec<String> {
    let mut snake = String::new();
    let chars: Vec<char> = name.chars().collect();
    for (i, c) in chars.iter().enumerate() {
        let before = i.checked_sub(1).map(|i| chars[i]);
        let starts = c.is_uppercase()
            && before.is_some_and(|b| {
                b.is_lowercase()
                    || (b.is_uppercase() && chars.get(i + 1).is_some_and(|n| n.is_lowercase() && *n != 's'))
            });
        if starts {
            snake.push('_');
        }
        snake.extend(c.to_lowercase());
    }
    if listed(ANSWER_CAPS, &snake) {
        return vec![ANSWER_CAP.to_owned()];
    }
    if matches!(snake.as_str(), "max_length" | "min_length") && !name.contains('_') {
        return vec![SCHEMA.to_owned()];
    }
    let words: Vec<&str> = snake.split(['_', '-']).filter(|word| !word.is_empty()).collect();
    if let [first, .., last] = words[..]
        && listed(LABELS, last)
        && !matches!(snake.as_str(), "input_ids")
        && !words.contains(&"api")
    {
        // What names the request, the model or the error itself says nothing about what is too long.
        let aside = matches!(first, "request" | "trace" | "model" | "error");
        return vec![if aside { "·" } else { FIELD }.to_owned()];
    }
    words.into_iter().map(str::to_owned).collect()
}

struct Lexer {
    chars: Vec<char>,
    at: usize,
    out: Vec<TextPiece>,
}

impl Lexer {
    fn peek(&self, ahead: usize) -> char {
        self.chars.get(self.at + ahead).copied().unwrap_or(' ')
    }

    fn step(&mut self) {
        let c = self.peek(0);
        match c {
            _ if c.is_ascii_digit() => self.number(),
            _ if c.is_ascii_alphabetic() || c == '_' => self.name(),
            _ => self.sign(c),
        }
    }

    fn sign(&mut self, c: char) {
        let next = self.peek(1);
        let (piece, len) = match (c, next) {
            ('.', n) if n.is_whitespace() || !n.is_ascii() || n == '\'' || n == '"' => {
                (Some(TextPiece::Stop), 1)
            }
            (';' | '!' | '?', _) => (Some(TextPiece::Stop), 1),
            ('-' | '=', '>') => (None, 2),
            ('-' | '−', n) if n.is_ascii_digit() && self.opens() => return self.negative(),
            ('>', '=') => (Some(TextPiece::Sign('g')), 2),
            ('<', '=') => (Some(TextPiece::Sign('l')), 2),
            ('≥' | '≧', _) => (Some(TextPiece::Sign('g')), 1),
            ('≤' | '≦', _) => (Some(TextPiece::Sign('l')), 1),
            ('\n', _) => (Some(TextPiece::Sign(',')), 1),
            ('(' | ')' | '[' | ']' | ',' | ':' | '>' | '<' | '+' | '/' | '=', _) => {
                (Some(TextPiece::Sign(c)), 1)
            }
            ('-' | '–' | '—', n) if n.is_whitespace() => (Some(TextPiece::Sign('-')), 1),
            _ => (None, 1),
        };
        self.out.extend(piece);
        self.at += len;
    }

    /// True when nothing stands right before that a hyphen could join.
    fn opens(&self) -> bool {
        self.at.checked_sub(1).is_none_or(|at| !self.chars[at].is_alphanumeric() && self.chars[at] != ')')
    }

    fn negative(&mut self) {
        self.at += 1;
        self.skip_digits();
        self.out.push(TextPiece::Negative);
    }

    fn skip_digits(&mut self) {
        let joins = |lexer: &Self| matches!(lexer.peek(0), ',' | '.' | '_') && lexer.peek(1).is_ascii_digit();
        while self.peek(0).is_ascii_digit() || joins(self) {
            self.at += 1;
        }
    }

    /// A name, with its path: `messages[1].content`, `messages.3`, `litellm.BadRequestError`, `tokens.Please`.
    fn name(&mut self) {
        let start = self.at;
        while self.at < self.chars.len() {
            let c = self.peek(0);
            let inner = c.is_ascii_alphanumeric() || c == '_';
            let joins = matches!(c, '.' | '-') && self.peek(1).is_ascii_alphanumeric();
            let index = c == '[' && self.peek(1).is_ascii_digit() && self.at > start;
            let closes = c == ']' && self.at > 0 && self.chars[self.at - 1].is_ascii_digit();
            if !(inner || joins || index || closes && self.chars[start..self.at].contains(&'[')) {
                break;
            }
            self.at += 1;
        }
        let name: String = self.chars[start..self.at].iter().collect();
        self.named(&name);
    }

    fn named(&mut self, name: &str) {
        let segments: Vec<&str> = name.split(['.', '[', ']']).filter(|s| !s.is_empty()).collect();
        let indexed = segments.len() > 1 && segments.iter().any(|s| s.bytes().all(|b| b.is_ascii_digit()));
        if indexed {
            let word = if body::holds(name) == FieldContent::Conversation { "message" } else { FIELD };
            return self.out.push(TextPiece::Word(word.to_owned()));
        }
        for (i, segment) in segments.iter().enumerate() {
            if i > 0 && segment.starts_with(|c: char| c.is_uppercase()) {
                self.out.push(TextPiece::Stop);
            }
            if segment.bytes().any(|b| b.is_ascii_digit()) {
                self.out.push(TextPiece::Word(segment.to_lowercase()));
                continue;
            }
            // Several names joined by hyphens may hold one that counts.
            for part in segment.split('-') {
                self.out.extend(name_words(part).into_iter().map(TextPiece::Word));
            }
        }
    }

    fn digits(&self, from: usize) -> usize {
        self.chars[from.min(self.chars.len())..].iter().take_while(|c| c.is_ascii_digit()).count()
    }

    fn number(&mut self) {
        let mut text: String = self.take_digits();
        let separates = |c: char| matches!(c, ',' | '_' | '\'' | '\u{a0}' | '\u{202f}' | '\u{2009}');
        if text.len() <= 3 {
            while separates(self.peek(0)) && self.digits(self.at + 1) == 3 {
                self.at += 1;
                text.push_str(&self.take_digits());
            }
        }
        let mut fraction = String::new();
        while self.peek(0) == '.' && self.digits(self.at + 1) > 0 {
            self.at += 1;
            let digits = self.take_digits();
            // 1.048.576 is written so in half of Europe; 1.5 is not.
            if !fraction.is_empty() && fraction.len() == 3 && digits.len() == 3 {
                text.push_str(&fraction);
            }
            fraction = digits;
            if self.peek(0) != '.' && text.len() > 3 && fraction.len() == 3 {
                text.push_str(&std::mem::take(&mut fraction));
            }
        }
        // 9.001 is no fraction: nothing that is counted here has a thousandth part.
        if fraction.len() == 3 && text.len() <= 3 && !text.starts_with('0') && !self.peek(0).is_alphanumeric()
        {
            text.push_str(&std::mem::take(&mut fraction));
        }
        self.suffix(&text, &fraction);
    }

    fn take_digits(&mut self) -> String {
        let len = self.digits(self.at);
        let text = self.chars[self.at..self.at + len].iter().collect();
        self.at += len;
        text
    }

    /// What follows right behind the digits decides whether they are a number at all.
    fn suffix(&mut self, text: &str, fraction: &str) {
        let next = self.peek(0);
        if matches!(next, '-' | ':' | '/') && self.peek(1).is_ascii_digit() && next != '/' {
            return self.skip_name();
        }
        let letters: String =
            self.chars[self.at..].iter().take_while(|c| c.is_ascii_alphanumeric()).collect();
        let scale = match letters.as_str() {
            "k" | "K" => Some(1_000u64),
            "M" => Some(1_000_000),
            "" => Some(1),
            _ => None,
        };
        if let Some(scale) = scale {
            self.at += letters.len();
            return self.out.extend(scaled(text, fraction, scale).map(TextPiece::Number));
        }
        if !listed(UNITS, &letters.to_lowercase()) {
            return self.skip_name();
        }
        self.at += letters.len();
        self.out.extend(scaled(text, fraction, 1).map(TextPiece::Number));
        self.out.push(TextPiece::Word(letters.to_lowercase()));
    }

    fn skip_name(&mut self) {
        while self.peek(0).is_ascii_alphanumeric() || matches!(self.peek(0), '-' | '_' | ':' | '.') {
            self.at += 1;
        }
        self.out.push(TextPiece::Word("·".to_owned()));
    }
}

fn scaled(text: &str, fraction: &str, scale: u64) -> Option<u64> {
    let whole: u64 = text.parse().ok()?;
    let fraction = fraction.trim_end_matches('0');
    if fraction.is_empty() {
        return whole.checked_mul(scale);
    }
    let part = fraction.parse::<u64>().ok()?.checked_mul(scale)?;
    let by = 10u64.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    if scale == 1 { None } else { whole.checked_mul(scale)?.checked_add(part / by) }
}

// What a word means to the grammar.

/// The meaning of a word, as far as sizes go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum WordSense {
    /// A limit: maximum, allowed, at most.
    Cap,
    /// Beyond something: exceeds, than, over.
    Past,
    /// The window itself: context, ctx.
    Window,
    /// What is sent: prompt, input, messages.
    Input,
    /// Says what there is: requested, contains, got.
    Tells,
    /// What comes back: output, completion.
    Answer,
    /// The parameter that caps what comes back.
    AnswerCap,
    /// Tokens.
    Tokens,
    /// Characters and bytes: sizes, but not tokens.
    Bytes,
    /// A thing whose size is not the conversation's: an image, a tool, a name.
    Other,
    /// Parts one statement from the next: but, while.
    Turn,
    /// Anything else.
    Plain,
}

/// The meaning of a piece.
pub(super) fn sense(piece: &TextPiece) -> WordSense {
    match piece {
        TextPiece::Word(word) => of(word),
        TextPiece::Sign('l' | '<') => WordSense::Past,
        _ => WordSense::Plain,
    }
}

fn of(word: &str) -> WordSense {
    match word {
        "max" | "maximum" | "maxium" | "limit" | "limits" | "limited" | "cap" | "capacity" | "allowed"
        | "allows" | "allowable" | "permitted" | "most" | "up" | "supports" | "support" | "supported"
        | "only" | "just" | "bound" | "ceiling" | "threshold" | "batch" | "accepts" | "accept" | "orless"
        | "handle" | "fit" | "fits" | "available" => WordSense::Cap,
        "exceed" | "exceeds" | "exceeded" | "exceeding" | "execeeds" | "exceds" | "than" | "beyond"
        | "over" | "above" | "under" | "below" | "within" | "surpass" | "surpasses" | "surpassed"
        | "beyondthat" => WordSense::Past,
        "context" | "contexts" | "ctx" | "window" | "kv" => WordSense::Window,
        "prompt" | "prompts" | "input" | "inputs" | "message" | "messages" | "request" | "conversation"
        | "history" | "transcript" | "sequence" | "seq" | "query" | "chat" | "dialogue" | "text"
        | "texts" | "document" | "documents" => WordSense::Input,
        "requested" | "contains" | "contain" | "containing" | "has" | "have" | "had" | "got" | "given"
        | "received" | "sent" | "send" | "resulted" | "results" | "actual" | "current" | "currently"
        | "used" | "uses" | "using" | "provided" | "supplied" | "passed" | "total" | "totals"
        | "totaling" | "consumes" | "takes" | "take" | "needs" | "need" | "requires" | "required"
        | "counted" | "keep" | "submitted" | "found" | "are" | "were" | "estimated" => WordSense::Tells,
        "output" | "outputs" | "completion" | "completions" | "generation" | "generated" | "generate"
        | "generating" | "response" | "reply" | "reasoning" | "thinking" | "new" | "prediction" => {
            WordSense::Answer
        }
        ANSWER_CAP => WordSense::AnswerCap,
        "token" | "tokens" | "tok" => WordSense::Tokens,
        "character" | "characters" | "char" | "chars" | "byte" | "bytes" | "kb" | "mb" | "gb" | "kib"
        | "mib" => WordSense::Bytes,
        "but" | "while" | "whereas" | "however" | "and" | "so" | "which" => WordSense::Turn,
        FIELD | "image" | "images" | "picture" | "pictures" | "photo" | "audio" | "video" | "videos"
        | "file" | "files" | "pdf" | "page" | "pages" | "pixel" | "pixels" | "px" | "dimension"
        | "dimensions" | "resolution" | "tool" | "tools" | "function" | "functions" | "name" | "names"
        | "ids" | "description" | "label" | "metadata" | "column" | "header" | "headers" | "cookie"
        | "uri" | "url" | "username" | "password" | "temperature" | "stop" | "logprobs" | "schema"
        | "depth" | "recursion" | "iterations" | "steps" | "retries" | "retried" | "attempts" | "choices"
        | "candidates" | "requests" | "connections" | "users" | "seconds" | "second" | "sec" | "minutes"
        | "minute" | "hours" | "ms" | "memory" | "disk" | "gpu" | "items" | "times" | "cache_control"
        | "blocks" | "lifetime" | "spend" | "cost" | "usd" | "dollars" | "percent" => WordSense::Other,
        _ => WordSense::Plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(text: &str) -> Vec<u64> {
        let number = |piece: &TextPiece| match piece {
            TextPiece::Number(n) => Some(*n),
            _ => None,
        };
        split(text).iter().filter_map(number).collect()
    }

    fn words(text: &str) -> String {
        split(text).iter().map(TextPiece::word).filter(|w| !w.is_empty()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn numbers_are_read_as_people_write_them() {
        assert_eq!(
            numbers("9,001 of 8_192, 128k, 1M, 1.048.576 and 131\u{202f}072"),
            [9001, 8192, 128_000, 1_000_000, 1_048_576, 131_072]
        );
        assert_eq!(numbers("8192tokens 60s 5MB 32.8k 4096.0"), [8192, 60, 5, 32_800, 4096]);
    }

    #[test]
    fn dates_versions_and_names_are_no_numbers() {
        assert_eq!(
            numbers("gpt-4-32k claude-3-5-sonnet-20241022 2024-05-13 12:30:01 llama3.1:8b 1.5 v2"),
            Vec::<u64>::new()
        );
    }

    #[test]
    fn names_are_taken_apart() {
        assert_eq!(
            words("ContextWindowExceededError context_length_exceeded n_ctx"),
            "context window exceeded error context length exceeded n ctx"
        );
        assert_eq!(words("maxTokens max_new_tokens maxLength"), "answercap answercap schemalength");
        assert_eq!(
            words("messages[1].content messages.3 tools[0].function.name"),
            "message message otherfield"
        );
        assert_eq!(words("8192 tokens.Please reduce"), "tokens please reduce");
    }
}
