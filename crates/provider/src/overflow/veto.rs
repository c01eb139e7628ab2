//! What an answer is instead: a rate, a time-out, a closed door.

use super::sense::{Sense, sense};
use super::words::Piece;

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
pub(super) fn by_words(pieces: &[Piece]) -> Option<&'static str> {
    let words: Vec<&str> = pieces.iter().map(Piece::word).collect();
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
fn retry(pieces: &[Piece], at: usize) -> Option<&'static str> {
    let words: Vec<&str> = pieces[at..].iter().take(3).map(Piece::word).collect();
    let waits =
        matches!(words[..], ["try", "again", "in"] | ["retry", "in" | "after", ..] | ["again", "later", ..]);
    let soon = pieces[at..].iter().take(5).any(|piece| matches!(piece, Piece::Number(_)));
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
fn many(pieces: &[Piece]) -> Option<&'static str> {
    let sized = |piece: &Piece| {
        matches!(sense(piece), Sense::Tokens | Sense::Bytes | Sense::AnswerCap)
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
        let many = before(1).is_some_and(|piece| matches!(piece, Piece::Number(_)) || piece.word() == "many")
            || (before(1).is_some_and(|piece| piece.word() == "of")
                && before(2).is_some_and(|piece| piece.word() == "number"));
        let next = pieces.get(at + 1).map_or("", Piece::word);
        let batch = pieces[at].word() == "batch" && matches!(next, "size" | "limit" | "count");
        let told = before(1).is_some_and(|piece| matches!(piece.word(), "physical" | "current"));
        (plural && many) || (batch && !told)
    };
    (0..pieces.len()).any(counted).then_some("it speaks of how many inputs come at once")
}
