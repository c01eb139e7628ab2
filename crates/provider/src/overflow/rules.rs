//! The rules that make an overflow out of a sentence: a thing of size, and an excess.

use super::sizes::OverflowSizes;
use super::words::{ANSWER_CAP, SCHEMA, TextPiece, WordSense, sense};
use crate::listed;

/// A rule that held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct OverflowRule {
    /// Its name, for people.
    pub(super) name: &'static str,
    /// How much it can bear.
    pub(super) weight: RuleWeight,
}

/// How much a rule can bear.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum RuleWeight {
    /// Holds only where nothing speaks against it.
    Weak,
    /// Holds unless its own sentence speaks of something else.
    Strong,
}

/// The name of the rule that bears the least.
const ADVICE: &str = "it asks for a shorter input";

/// The name of the rule for a refusal that says no more than how large the window is.
pub(super) const NAMED: &str = "the window is named, and nothing else";

/// Whether a sentence speaks of an overflow.
type Holds = fn(&Sentence<'_>) -> bool;

/// What makes an overflow of a sentence; the first that holds counts.
const RULES: &[(&str, Holds)] = &[
    ("there is no room left for an answer", |s| s.no_answer()),
    ("the context window is exceeded", |s| s.window() && (s.past() || s.no_room())),
    ("what was sent does not fit", |s| (s.tokens() || s.thing()) && s.unfit() && !s.other()),
    ("there are too many tokens", |s| s.tokens() && s.past()),
    ("what was sent is too long", |s| s.thing() && s.past() && !s.other()),
    ("what was sent has more characters than a schema allows", |s| s.thing() && s.words.contains(&SCHEMA)),
    ("what was sent must be smaller", |s| (s.thing() || s.window()) && s.bounded() && !s.other()),
    ("the request is too large", |s| s.payload() && (!s.other() || s.body())),
    (ADVICE, |s| s.advice() && !s.other()),
];

/// Words of one sentence, and what they amount to.
struct Sentence<'a> {
    pieces: &'a [TextPiece],
    words: Vec<&'a str>,
}

/// The best rule that holds in a text.
pub(super) fn judge(pieces: &[TextPiece], sizes: &OverflowSizes) -> Option<OverflowRule> {
    let sentences: Vec<Sentence<'_>> =
        pieces.split(|piece| *piece == TextPiece::Stop).map(Sentence::new).collect();
    let best = sentences.iter().filter_map(Sentence::rule).max_by_key(|rule| rule.weight);
    if best.is_some_and(|rule| rule.weight == RuleWeight::Strong) {
        return best;
    }
    let other = sentences.iter().any(Sentence::other);
    let about = sentences.iter().any(|s| s.window() || s.tokens() || (s.thing() && !other));
    let written = !other && sentences.iter().any(|sentence| sentence.has(WordSense::Input));
    if written && OverflowSizes::written(pieces).over() && by_words(pieces).is_none() {
        return Some(OverflowRule {
            name: "what was sent has more characters than allowed",
            weight: RuleWeight::Strong,
        });
    }
    if sizes.over() && about && by_words(pieces).is_none() {
        return Some(OverflowRule {
            name: "what was sent is more than the limit",
            weight: RuleWeight::Strong,
        });
    }
    let is_refusal = sizes.actual.is_none() && sizes.limit.is_some();
    match sentences.as_slice() {
        [only] | [only, Sentence { pieces: [], .. }]
            if best.is_none() && is_refusal && only.names_window() =>
        {
            Some(OverflowRule { name: NAMED, weight: RuleWeight::Weak })
        }
        _ => best,
    }
}

impl<'a> Sentence<'a> {
    fn new(pieces: &'a [TextPiece]) -> Self {
        Self { pieces, words: pieces.iter().map(TextPiece::word).collect() }
    }

    fn rule(&self) -> Option<OverflowRule> {
        let (name, _) = RULES.iter().find(|(_, holds)| holds(self))?;
        let clean = by_words(self.pieces).is_none() && *name != ADVICE;
        Some(OverflowRule { name, weight: if clean { RuleWeight::Strong } else { RuleWeight::Weak } })
    }

    fn has(&self, wanted: WordSense) -> bool {
        self.pieces.iter().any(|piece| sense(piece) == wanted)
    }

    /// It speaks of something whose size is not the conversation's.
    fn other(&self) -> bool {
        self.has(WordSense::Other)
    }

    /// One of the words of a list.
    fn any(&self, wanted: &str) -> bool {
        self.words.iter().any(|word| listed(wanted, word))
    }

    /// «maximum context length is 65536 tokens»: as the answer to a request, that is what the request broke.
    fn names_window(&self) -> bool {
        let is_brief = self.words.len() <= 12;
        let is_told = self.has(WordSense::Cap) && self.any("is of") && self.has(WordSense::Tokens);
        is_brief && is_told && self.window() && !self.has(WordSense::AnswerCap) && !self.other()
    }

    /// The window by one of its names.
    fn window(&self) -> bool {
        let size = "length len size window limit budget capacity tokens token";
        let named = |at: usize| {
            let near = &self.words[at + 1..(at + 4).min(self.words.len())];
            match self.words[at] {
                "context" | "contexts" if self.aside(at) => false,
                "context" if self.measured(at) => true,
                "context" | "contexts" => near.iter().any(|word| listed(size, word)) || self.past_near(at),
                "ctx" => true,
                "model" | "sequence" | "seq" => {
                    near.first().is_some_and(|word| matches!(*word, "length" | "len"))
                }
                _ => false,
            }
        };
        (0..self.words.len()).any(named)
    }

    /// «context id», «security context»: something else by that name.
    fn aside(&self, at: usize) -> bool {
        let before = at.checked_sub(1).map_or("", |at| self.words[at]);
        let after = self.words.get(at + 1).copied().unwrap_or("");
        listed("id ids key name handle file manager variable cancelled", after)
            || listed("security execution browser error ssl tls cuda thread", before)
    }

    /// «length of the context».
    fn measured(&self, at: usize) -> bool {
        let near = &self.words[at.saturating_sub(5)..at];
        let size = near.iter().position(|word| matches!(*word, "length" | "size" | "limit" | "window"));
        size.is_some_and(|size| near[size..].contains(&"of"))
    }

    /// An excess within a few words: «chat context is too long», but not «the error context … exceeded».
    fn past_near(&self, at: usize) -> bool {
        let near = &self.words[at.saturating_sub(3)..(at + 5).min(self.words.len())];
        near.windows(2).any(|pair| pair[0] == "too" && is_big(pair[1]))
            || near.iter().any(|word| word.starts_with("overflow") || *word == "full" || is_exceed(word))
    }

    /// «max_tokens must be at least 1, got -532»: the server took the prompt from the window, and less than nothing is
    /// left. A schema that dislikes the asker's own value names its bounds.
    fn no_answer(&self) -> bool {
        self.has(WordSense::AnswerCap)
            && self.pieces.contains(&TextPiece::Negative)
            && !self.any("integer expected range between")
    }

    /// Tokens that are not the answer's.
    fn tokens(&self) -> bool {
        if self.answered() {
            return false;
        }
        (0..self.pieces.len()).any(|at| {
            let around = [at.checked_sub(1), Some(at + 1), Some(at + 2)];
            let near = around.into_iter().flatten().filter_map(|at| self.pieces.get(at));
            sense(&self.pieces[at]) == WordSense::Tokens
                && !near
                    .into_iter()
                    .any(|piece| matches!(sense(piece), WordSense::Answer | WordSense::AnswerCap))
                && !self.asked_for(at)
        })
    }

    /// «the output is too long: 9000 tokens»: the answer is what is spoken of, and nothing else.
    fn answered(&self) -> bool {
        let subject = |pair: &[&str]| {
            matches!(pair[0], "output" | "completion" | "response" | "reply")
                && matches!(pair[1], "is" | "was" | "too" | "exceeds" | "exceeded" | "would" | "ist" | "est")
        };
        !self.has(WordSense::Input) && !self.has(WordSense::Window) && self.words.windows(2).any(subject)
    }

    /// «maximum tokens you requested», «maximum tokens value»: the answer's cap in plain words.
    fn asked_for(&self, at: usize) -> bool {
        let before = at.checked_sub(1).map_or("", |at| self.words[at]);
        let after = &self.words[(at + 1).min(self.words.len())..(at + 3).min(self.words.len())];
        matches!(before, "max" | "maximum")
            && matches!(after, ["you", "requested"] | ["value", ..] | ["parameter", ..])
    }

    /// What is sent, by a name that leaves no doubt.
    fn thing(&self) -> bool {
        let weak = "request text texts document documents chat query";
        self.sent().any(|word| !listed(weak, word))
            || (self.sent().next().is_some() && self.any("length size long"))
    }

    /// Names of what is sent, but for those that only say which one: «message id».
    fn sent(&self) -> impl Iterator<Item = &'a str> {
        let which = |at: usize| {
            self.words.get(at + 1).is_some_and(|word| matches!(*word, "id" | "key" | "identifier"))
        };
        let named = move |at: &usize| sense(&self.pieces[*at]) == WordSense::Input && !which(*at);
        (0..self.words.len()).filter(named).map(|at| self.words[at])
    }

    /// An excess, told or shown.
    fn past(&self) -> bool {
        if self.answer_only() {
            return false;
        }
        let plain = self
            .words
            .iter()
            .any(|word| is_exceed(word) || word.starts_with("overflow") || *word == "beyondthat");
        let too = self.words.windows(2).any(|pair| pair[0] == "too" && is_big(pair[1]));
        plain || too || self.than() || self.reached() || self.shown()
    }

    /// The excess is the answer's own: it names the answer, and what is sent or the window not at all.
    fn answer_only(&self) -> bool {
        let answer = self.has(WordSense::AnswerCap) || self.has(WordSense::Answer);
        answer && !self.window() && !self.thing() && !self.tokens()
    }

    /// «longer than the maximum», «more than 8192 tokens».
    fn than(&self) -> bool {
        let comparative = "longer larger bigger greater more higher";
        (1..self.words.len()).any(|at| {
            let reach = &self.pieces[at..(at + 9).min(self.pieces.len())];
            self.words[at] == "than"
                && listed(comparative, self.words[at - 1])
                && reach.iter().any(|piece| {
                    matches!(sense(piece), WordSense::Cap | WordSense::Window | WordSense::Tokens)
                })
        }) || self.less()
    }

    /// «the window is smaller than the prompt».
    fn less(&self) -> bool {
        let capped = |words: &[TextPiece]| {
            words.iter().any(|piece| matches!(sense(piece), WordSense::Cap | WordSense::Window))
        };
        (1..self.words.len()).any(|at| {
            let reach = &self.pieces[at..(at + 5).min(self.pieces.len())];
            self.words[at] == "than"
                && matches!(self.words[at - 1], "smaller" | "less" | "shorter" | "lower")
                && capped(&self.pieces[..at])
                && !capped(reach)
                && reach.iter().any(|piece| sense(piece) == WordSense::Input)
        })
    }

    /// «limit reached», «over the limit», «above max length».
    fn reached(&self) -> bool {
        let verbs = "reached hit over above beyond past outside";
        (0..self.words.len()).filter(|at| listed(verbs, self.words[*at])).any(|at| {
            let near = &self.pieces[at.saturating_sub(4)..(at + 5).min(self.pieces.len())];
            near.iter().any(|piece| {
                matches!(sense(piece), WordSense::Cap | WordSense::Window) && piece.word() != "over"
            })
        })
    }

    /// `9000 > 8192`, `n_keep (9) >= n_ctx (7)`.
    fn shown(&self) -> bool {
        self.pieces.iter().any(|piece| piece.is('>') || piece.is('g'))
            && self.pieces.iter().filter(|piece| matches!(piece, TextPiece::Number(_))).count() >= 2
    }

    /// «must have less than 1024 tokens», «range of input length should be [1, 30720]».
    fn bounded(&self) -> bool {
        let duty = self.any("must should can cannot may expected ensure");
        let bound = self.any("less fewer smaller shorter lower most within between under below range")
            || self.pieces.iter().any(|piece| piece.is('l'));
        let size = self.any("length size") || self.has(WordSense::Tokens) || self.has(WordSense::Bytes);
        duty && bound && size && !self.cap_only()
    }

    fn cap_only(&self) -> bool {
        self.words.contains(&ANSWER_CAP) && !self.thing() && !self.window()
    }

    /// «context is full», «not enough context length».
    fn no_room(&self) -> bool {
        let room = self.negated() && self.any("enough room space");
        room || self.unfit()
            || self.any("insufficient exhausted full")
            || self.words.windows(2).any(|pair| matches!(pair, ["too", "small" | "short"]))
            || self.words.windows(2).any(|pair| matches!(pair, ["ran" | "run" | "running", "out"]))
    }

    /// «does not fit».
    fn unfit(&self) -> bool {
        self.negated() && self.any("fit fits hold accommodate")
    }

    fn negated(&self) -> bool {
        self.any("not cannot doesn don isn no unable")
    }

    /// «payload too large»: the body as such.
    fn body(&self) -> bool {
        self.words.windows(3).any(|three| matches!(three, ["payload" | "entity" | "body", "too", "large"]))
    }

    /// «request exceeds the maximum size», «payload too large», «length limit exceeded».
    fn payload(&self) -> bool {
        let named =
            self.any("request payload body entity content") || self.sent().next().is_some() || self.length();
        let sized = self.any("size length large big long") || self.has(WordSense::Bytes);
        named && sized && !self.has(WordSense::Answer) && !self.has(WordSense::AnswerCap) && self.past()
    }

    /// A length that is not said to be that of anything else.
    fn length(&self) -> bool {
        let of = |at: usize| self.words.get(at + 1).is_some_and(|word| *word == "of");
        (0..self.words.len()).any(|at| self.words[at] == "length" && !of(at))
    }

    /// «please reduce the length of the messages».
    fn advice(&self) -> bool {
        let verbs = "reduce reducing shorten shortening decrease shorter truncate trim compress";
        (0..self.words.len()).filter(|at| listed(verbs, self.words[*at])).any(|at| {
            let reach = &self.pieces[at..(at + 8).min(self.pieces.len())];
            reach.iter().any(|piece| sense(piece) == WordSense::Input || piece.word() == "context")
        })
    }
}

fn is_exceed(word: &str) -> bool {
    listed("exceed exceeds exceeded exceeding execeeds exceds surpasses surpassed overlong oversized", word)
}

fn is_big(word: &str) -> bool {
    listed("long large big many lengthy much", word)
}

/// A schema's complaint about one string or one list; only its field says whether that is the conversation.
pub(super) fn of_schema(pieces: &[TextPiece]) -> bool {
    let words: Vec<&str> = pieces.iter().map(TextPiece::word).collect();
    let kinds = "string array str list";
    let complaint = words.windows(3).any(|three| {
        listed(kinds, three[0])
            && matches!(three[1..], ["too", "long" | "large"] | ["above", "max"] | ["should", "have"])
    });
    complaint
        && !pieces
            .iter()
            .any(|piece| matches!(sense(piece), WordSense::Input | WordSense::Window | WordSense::Tokens))
}

// What an answer is instead: a rate, a time-out, a closed door.

/// What the status alone rules out, whatever the text says.
pub(super) fn by_status(status: u16) -> Option<&'static str> {
    match status {
        401 | 403 | 407 => Some("the status is about who may ask"),
        402 => Some("the status is about payment"),
        408 | 504 | 524 => Some("the status is about time"),
        414 | 431 => Some("the status is about the address or the headers"),
        429 => Some("the status is about rates"),
        _ => None,
    }
}

/// What words say it is instead of an overflow.
pub(super) fn by_words(pieces: &[TextPiece]) -> Option<&'static str> {
    let words: Vec<&str> = pieces.iter().map(TextPiece::word).collect();
    (0..words.len())
        .find_map(|at| {
            let next = words.get(at + 1).copied().unwrap_or("");
            rate(words[at], next)
                .or_else(|| time(words[at], next))
                .or_else(|| door(words[at], next))
                .or_else(|| retry(pieces, at))
                .or_else(|| rules_of_speech(&words, at))
        })
        .or_else(|| many(pieces))
}

fn rate(word: &str, next: &str) -> Option<&'static str> {
    let of_rates = match (word, next) {
        ("tpm" | "rpm" | "tpd" | "rpd" | "itpm" | "otpm" | "ratelimit" | "concurrent" | "concurrency", _) => {
            true
        }
        ("per", "minute" | "min" | "hour" | "day" | "second" | "sec" | "month" | "week") => true,
        ("rate", "limit" | "limits" | "limited" | "limiting" | "exceeded") => true,
        ("this", "month" | "week" | "day" | "hour" | "minute") => true,
        ("daily" | "hourly" | "weekly" | "monthly", _) => true,
        ("many", "requests") => true,
        ("please", "wait") => true,
        _ => word.starts_with("throttl"),
    };
    let of_money =
        matches!(word, "quota" | "quotas" | "billing" | "credit" | "credits" | "balance" | "afford");
    match (of_rates, of_money) {
        (true, _) => Some("it speaks of a rate"),
        (_, true) => Some("it speaks of a quota or of credit"),
        _ => None,
    }
}

fn time(word: &str, next: &str) -> Option<&'static str> {
    let of_time = matches!(
        (word, next),
        ("deadline" | "timeout" | "timeouts" | "canceled" | "cancelled", _)
            | ("timed", "out")
            | ("time", "limit" | "out" | "to")
            | ("lifetime" | "ttl" | "expires" | "expiry" | "expiration", _)
            | ("took" | "taking" | "takes", "too" | "longer")
    );
    of_time.then_some("it speaks of time")
}

fn door(word: &str, next: &str) -> Option<&'static str> {
    match (word, next) {
        ("api", "key" | "keys")
        | ("access" | "auth" | "bearer" | "refresh" | "session", "token" | "tokens") => {
            Some("it speaks of who may ask")
        }
        (
            "unauthorized" | "unauthenticated" | "authentication" | "forbidden" | "jwt" | "apikey"
            | "expired",
            _,
        ) => Some("it speaks of who may ask"),
        ("content", "filter" | "management" | "filtering") => Some("it speaks of what may be said"),
        ("of", "memory") | ("recursion", _) => Some("it speaks of the server's own memory"),
        _ => None,
    }
}

/// «try again in 4 s», «retry after 10».
fn retry(pieces: &[TextPiece], at: usize) -> Option<&'static str> {
    let words: Vec<&str> = pieces[at..].iter().take(3).map(TextPiece::word).collect();
    let waits =
        matches!(words[..], ["try", "again", "in"] | ["retry", "in" | "after", ..] | ["again", "later", ..]);
    let soon = pieces[at..].iter().take(5).any(|piece| matches!(piece, TextPiece::Number(_)));
    (waits && (soon || words[0] == "again")).then_some("it asks to wait")
}

/// What may be said. A policy that counts tokens, or says what happens to an overflow, is one of size.
fn rules_of_speech(words: &[&str], at: usize) -> Option<&'static str> {
    let before = at.checked_sub(1).map_or("", |at| words[at]);
    let of_speech = match words[at] {
        "policy" | "policies" => {
            let counts = words.iter().any(|word| matches!(*word, "token" | "tokens"));
            before == "content" || !(counts || matches!(before, "overflow" | "truncation"))
        }
        "moderation" | "safety" | "toxicity" | "severity" | "flagged" | "guardrail" | "guardrails"
        | "guideline" | "guidelines" | "violates" | "violating" | "violation" | "profanity" | "unsafe"
        | "jailbreak" | "risk" | "harm" | "harmful" | "disallowed" | "inappropriate" | "rating" => true,
        _ => false,
    };
    of_speech.then_some("it speaks of what may be said")
}

/// «batch size exceeded», «512 inputs», «too many inputs»: so many at once, not so long a one.
fn many(pieces: &[TextPiece]) -> Option<&'static str> {
    let sized = |piece: &TextPiece| {
        matches!(sense(piece), WordSense::Tokens | WordSense::Bytes | WordSense::AnswerCap)
            || matches!(piece.word(), "context" | "ctx" | "long" | "length")
    };
    if pieces.iter().any(sized) {
        return None;
    }
    let counted = |at: usize| {
        let before = |back: usize| at.checked_sub(back).map(|at| &pieces[at]);
        let plural = matches!(
            pieces[at].word(),
            "inputs" | "texts" | "prompts" | "documents" | "queries" | "sentences" | "items"
        );
        let many = before(1)
            .is_some_and(|piece| matches!(piece, TextPiece::Number(_)) || piece.word() == "many")
            || (before(1).is_some_and(|piece| piece.word() == "of")
                && before(2).is_some_and(|piece| piece.word() == "number"));
        let next = pieces.get(at + 1).map_or("", TextPiece::word);
        let batch = pieces[at].word() == "batch" && matches!(next, "size" | "limit" | "count");
        let told = before(1).is_some_and(|piece| matches!(piece.word(), "physical" | "current"));
        (plural && many) || (batch && !told)
    };
    (0..pieces.len()).any(counted).then_some("it speaks of how many inputs come at once")
}
