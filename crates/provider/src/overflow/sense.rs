//! What a word means to the grammar.

use super::words::{ANSWER_CAP, FIELD, Piece};

/// The meaning of a word, as far as sizes go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sense {
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
pub(super) fn sense(piece: &Piece) -> Sense {
    match piece {
        Piece::Word(word) => of(word),
        Piece::Sign('l' | '<') => Sense::Past,
        _ => Sense::Plain,
    }
}

fn of(word: &str) -> Sense {
    match word {
        "max" | "maximum" | "maxium" | "limit" | "limits" | "limited" | "cap" | "capacity" | "allowed"
        | "allows" | "allowable" | "permitted" | "most" | "up" | "supports" | "support" | "supported"
        | "only" | "just" | "bound" | "ceiling" | "threshold" | "batch" | "accepts" | "accept" | "orless"
        | "handle" | "fit" | "fits" | "available" => Sense::Cap,
        "exceed" | "exceeds" | "exceeded" | "exceeding" | "execeeds" | "exceds" | "than" | "beyond"
        | "over" | "above" | "under" | "below" | "within" | "surpass" | "surpasses" | "surpassed"
        | "beyondthat" => Sense::Past,
        "context" | "contexts" | "ctx" | "window" | "kv" => Sense::Window,
        "prompt" | "prompts" | "input" | "inputs" | "message" | "messages" | "request" | "conversation"
        | "history" | "transcript" | "sequence" | "seq" | "query" | "chat" | "dialogue" | "text"
        | "texts" | "document" | "documents" => Sense::Input,
        "requested" | "contains" | "contain" | "containing" | "has" | "have" | "had" | "got" | "given"
        | "received" | "sent" | "send" | "resulted" | "results" | "actual" | "current" | "currently"
        | "used" | "uses" | "using" | "provided" | "supplied" | "passed" | "total" | "totals"
        | "totaling" | "consumes" | "takes" | "take" | "needs" | "need" | "requires" | "required"
        | "counted" | "keep" | "submitted" | "found" | "are" | "were" | "estimated" => Sense::Tells,
        "output" | "outputs" | "completion" | "completions" | "generation" | "generated" | "generate"
        | "generating" | "response" | "reply" | "reasoning" | "thinking" | "new" | "prediction" => {
            Sense::Answer
        }
        ANSWER_CAP => Sense::AnswerCap,
        "token" | "tokens" | "tok" => Sense::Tokens,
        "character" | "characters" | "char" | "chars" | "byte" | "bytes" | "kb" | "mb" | "gb" | "kib"
        | "mib" => Sense::Bytes,
        "but" | "while" | "whereas" | "however" | "and" | "so" | "which" => Sense::Turn,
        FIELD | "image" | "images" | "picture" | "pictures" | "photo" | "audio" | "video" | "videos"
        | "file" | "files" | "pdf" | "page" | "pages" | "pixel" | "pixels" | "px" | "dimension"
        | "dimensions" | "resolution" | "tool" | "tools" | "function" | "functions" | "name" | "names"
        | "ids" | "description" | "label" | "metadata" | "column" | "header" | "headers" | "cookie"
        | "uri" | "url" | "username" | "password" | "temperature" | "stop" | "logprobs" | "schema"
        | "depth" | "recursion" | "iterations" | "steps" | "retries" | "retried" | "attempts" | "choices"
        | "candidates" | "requests" | "connections" | "users" | "seconds" | "second" | "sec" | "minutes"
        | "minute" | "hours" | "ms" | "memory" | "disk" | "gpu" | "items" | "times" | "cache_control"
        | "blocks" | "lifetime" | "spend" | "cost" | "usd" | "dollars" | "percent" => Sense::Other,
        _ => Sense::Plain,
    }
}
