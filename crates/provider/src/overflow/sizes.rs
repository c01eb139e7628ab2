//! Which number of a text is the limit, which is what was sent, and which is the answer asked for.
//!
//! Each number is judged by the words before it, back to the number before, and by the words behind it. Signs between
//! numbers (`A > B`, `A + B > C`) say more than words. Characters and bytes are sizes, too, but not in tokens, so they are
//! left out; so is any number that belongs to something else (a status, an id, a count of images).

use super::words::{FIELD, SCHEMA, TextPiece, WordSense, sense};
use crate::listed;

/// The numbers of a text, by what they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct OverflowSizes {
    /// The limit.
    pub(super) limit: Option<u64>,
    /// What was sent, or sent and asked for together, whichever the text names first.
    pub(super) actual: Option<u64>,
    /// What was sent, without the answer.
    pub(super) input: Option<u64>,
    /// The answer asked for.
    pub(super) output: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Role {
    Limit,
    /// Perhaps the limit: the window is named, without a word like maximum.
    Window,
    /// All there is, or no word which part.
    Total,
    /// What was sent.
    Input,
    /// A part of a sum that the text judges as a whole.
    Part,
    Output,
    /// How long an answer may be.
    AnswerLimit,
    /// By so much it is too long.
    Excess,
    /// The small end of a range.
    Least,
}

/// Names before a number that is not a size.
const LABELS: &str = "· code status id line port http error version column no ret rc errno exit slot task worker \
                      attempt retries";

/// More than any window; an id or a time.
const LARGEST: u64 = 1_000_000_000;

impl OverflowSizes {
    /// Reads the numbers of a text that count tokens.
    pub(super) fn read(pieces: &[TextPiece]) -> Self {
        let tokens = pieces.iter().any(|piece| sense(piece) == WordSense::Tokens);
        let bytes = pieces.iter().any(counts_bytes);
        Self::counted(pieces, |unit| unit == Unit::Tokens || (unit == Unit::None && (tokens || !bytes)))
    }

    /// Reads the numbers of a text that count characters or bytes.
    pub(super) fn written(pieces: &[TextPiece]) -> Self {
        Self::counted(pieces, |unit| unit == Unit::Bytes)
    }

    fn counted(pieces: &[TextPiece], wanted: impl Fn(Unit) -> bool) -> Self {
        let mut found: Vec<(u64, Option<Role>)> = Vec::new();
        let signs = by_signs(pieces);
        for (at, piece) in pieces.iter().enumerate() {
            let TextPiece::Number(n) = piece else { continue };
            let unit = unit(pieces, at);
            if *n == 0 || *n > LARGEST || !wanted(unit) || (unit == Unit::None && is_aside(pieces, at)) {
                continue;
            }
            let signed = signs.iter().find(|(place, _)| *place == at).map(|(_, role)| *role);
            let role = signed.or_else(|| role(pieces, at));
            if role.is_some() || unit == Unit::Tokens {
                found.push((*n, role));
            }
        }
        Self::chosen(&found)
    }

    fn chosen(found: &[(u64, Option<Role>)]) -> Self {
        let first = |roles: &[Role]| {
            found.iter().find(|(_, role)| role.is_some_and(|role| roles.contains(&role))).map(|(n, _)| *n)
        };
        let limit = first(&[Role::Limit]).or_else(|| first(&[Role::Window]));
        let mut actual = first(&[Role::Total, Role::Input]);
        let input = first(&[Role::Input, Role::Part]);
        if let (None, Some(limit)) = (actual, limit) {
            let over = first(&[Role::Excess]).and_then(|by| limit.checked_add(by));
            let nameless = found.iter().find(|(n, role)| role.is_none() && *n > limit).map(|(n, _)| *n);
            actual = over.or(nameless);
        }
        Self { limit, actual, input, output: first(&[Role::Output]) }
    }

    /// What this text does not say, from another.
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            limit: self.limit.or(other.limit),
            actual: self.actual.or(other.actual),
            input: self.input.or(other.input),
            output: self.output.or(other.output),
        }
    }

    /// What was sent, without the answer: as told, or what is left of the total.
    pub(super) fn sent(&self) -> Option<u64> {
        self.input.or_else(|| Some(self.actual?.saturating_sub(self.output.unwrap_or(0))))
    }

    /// True when the numbers alone show that it was too much.
    pub(super) fn over(&self) -> bool {
        let Some(limit) = self.limit else { return false };
        let sum = self.input.zip(self.output).map(|(input, output)| input.saturating_add(output));
        self.actual.is_some_and(|n| n > limit) || sum.is_some_and(|n| n > limit)
    }
}

/// True when a text counts messages, not what is in them.
pub(super) fn counts_messages(pieces: &[TextPiece]) -> bool {
    let counted = |pair: &[TextPiece]| {
        matches!(pair[1].word(), "messages" | "turns")
            && (matches!(pair[0], TextPiece::Number(_)) || matches!(pair[0].word(), "many"))
    };
    let number = |three: &[TextPiece]| {
        matches!([three[0].word(), three[1].word(), three[2].word()], ["number", "of", "messages" | "turns"])
    };
    (pieces.windows(2).any(counted) || pieces.windows(3).any(number))
        && !pieces.iter().any(|piece| sense(piece) == WordSense::Tokens)
}

fn counts_bytes(piece: &TextPiece) -> bool {
    sense(piece) == WordSense::Bytes
        || matches!(piece.word(), SCHEMA | "string" | "array" | "payload" | "body" | "entity" | "items")
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    Tokens,
    Bytes,
    Other,
    None,
}

/// What the number at `at` counts.
fn unit(pieces: &[TextPiece], at: usize) -> Unit {
    let label =
        pieces[..at].iter().rev().find(|piece| !matches!(piece, TextPiece::Sign(':' | '=' | '(' | '-')));
    let label = label.map_or("", TextPiece::word);
    let opens = at <= 1 && matches!(pieces[at], TextPiece::Number(400..=599));
    let counted = label == SCHEMA || label == "actual" && pieces.iter().any(|piece| piece.word() == SCHEMA);
    if opens || counted || label == FIELD || listed(LABELS, label) || nameless(pieces, at) {
        return Unit::Other;
    }
    // «8192 input tokens», «40 MB», «8192 of text»
    for piece in pieces[at + 1..].iter().take(3) {
        match (sense(piece), piece) {
            (WordSense::Tokens, _) => return Unit::Tokens,
            (WordSense::Bytes, _) => return Unit::Bytes,
            (WordSense::Other, _) | (_, TextPiece::Sign('%')) => return Unit::Other,
            (_, TextPiece::Word(word)) if matches!(word.as_str(), "s" | "m" | "h" | "min") => {
                return Unit::Other;
            }
            (_, TextPiece::Word(word)) if matches!(word.as_str(), "個" | "in" | "of") => return Unit::None,
            (_, TextPiece::Word(_)) => {}
            _ => return Unit::None,
        }
    }
    Unit::None
}

/// «context window exceeds limit (2013)»: alone in brackets, in a text that counts nothing by name, a number is more
/// often a code than a size.
fn is_aside(pieces: &[TextPiece], at: usize) -> bool {
    let is = |at: Option<usize>, sign| at.and_then(|at| pieces.get(at)).is_some_and(|piece| piece.is(sign));
    let is_counted = pieces.iter().any(|piece| sense(piece) == WordSense::Tokens);
    let is_other = |other: usize| {
        other != at && matches!(pieces[other], TextPiece::Number(_)) && unit(pieces, other) != Unit::Other
    };
    is(at.checked_sub(1), '(')
        && is(at.checked_add(1), ')')
        && !is_counted
        && !(0..pieces.len()).any(is_other)
}

/// `shard=4`: a value whose name says nothing about a size.
fn nameless(pieces: &[TextPiece], at: usize) -> bool {
    if at == 0 || !pieces[at - 1].is('=') {
        return false;
    }
    let name = pieces[..at - 1].iter().rev().take_while(|piece| matches!(piece, TextPiece::Word(_)));
    let sized = |piece: &TextPiece| {
        !matches!(sense(piece), WordSense::Plain | WordSense::Other | WordSense::Turn)
            || matches!(piece.word(), "size" | "length" | "len" | "count" | "number" | "value" | "sum")
    };
    !name.into_iter().any(sized)
}

/// Roles that signs between numbers give.
fn by_signs(pieces: &[TextPiece]) -> Vec<(usize, Role)> {
    let numbers: Vec<usize> =
        (0..pieces.len()).filter(|at| matches!(pieces[*at], TextPiece::Number(_))).collect();
    let between = |a: usize, b: usize| &pieces[a + 1..b];
    let mut roles = Vec::new();
    for pair in numbers.windows(2) {
        let gap = between(pair[0], pair[1]);
        if gap.len() > 7 || gap.contains(&TextPiece::Stop) {
            continue;
        }
        let has = |signs: &[char]| gap.iter().any(|piece| signs.iter().any(|sign| piece.is(*sign)));
        if has(&['>', 'g']) {
            roles.extend([(pair[0], Role::Total), (pair[1], Role::Limit)]);
        } else if has(&['<', 'l']) {
            roles.extend([(pair[0], Role::Limit), (pair[1], Role::Total)]);
        } else if gap == [TextPiece::Sign('/')] {
            roles.extend([(pair[0], Role::Total), (pair[1], Role::Limit)]);
        } else if gap.first().is_some_and(|piece| piece.is(',')) && bracketed(pieces, pair[0]) {
            roles.extend([(pair[0], Role::Least), (pair[1], Role::Limit)]);
        }
    }
    sums(pieces, &numbers, &mut roles);
    roles
}

/// `A + B > C`, «prompt (A) + max tokens (B) exceed the window (C)»: the input, the answer, the limit.
fn sums(pieces: &[TextPiece], numbers: &[usize], roles: &mut Vec<(usize, Role)>) {
    for triple in numbers.windows(3) {
        let (first, second) = (&pieces[triple[0] + 1..triple[1]], &pieces[triple[1] + 1..triple[2]]);
        let plus = first.iter().any(|piece| piece.is('+') || piece.word() == "plus");
        let past = roles.contains(&(triple[2], Role::Limit)) && roles.contains(&(triple[1], Role::Total));
        let answer = |piece: &TextPiece| {
            matches!(sense(piece), WordSense::Answer | WordSense::AnswerCap | WordSense::Cap)
        };
        let told = first.iter().any(answer)
            && !second.contains(&TextPiece::Stop)
            && second.iter().any(|piece| sense(piece) == WordSense::Past);
        if plus && told && !past {
            roles.retain(|(at, _)| !triple.contains(at));
            roles.extend([(triple[0], Role::Input), (triple[1], Role::Output), (triple[2], Role::Limit)]);
        }
        if plus && past {
            roles.retain(|(at, _)| *at != triple[0] && *at != triple[1]);
            roles.extend([(triple[0], Role::Input), (triple[1], Role::Output)]);
        }
    }
}

/// `[1, 8192]`, a range.
fn bracketed(pieces: &[TextPiece], at: usize) -> bool {
    at > 0 && pieces[at - 1].is('[') && pieces.get(at + 3).is_some_and(|piece| piece.is(']'))
}

fn role(pieces: &[TextPiece], at: usize) -> Option<Role> {
    if parted(&pieces[at + 1..]) {
        return Some(Role::Total);
    }
    let left = left(pieces, at);
    let right = if left.is_some() && labelled(pieces, at) { None } else { right(pieces, at) };
    match (left, right) {
        (Some(Role::Excess), _) | (_, Some(Role::Excess)) => Some(Role::Excess),
        (Some(Role::Limit | Role::AnswerLimit), Some(Role::Output)) => Some(Role::AnswerLimit),
        (_, Some(Role::Output)) => Some(Role::Output),
        (Some(Role::Total), Some(Role::Input)) if given(pieces, at) => Some(Role::Part),
        (Some(Role::Total), Some(Role::Input)) => Some(Role::Input),
        (Some(Role::Window), Some(Role::Total)) if passive(&pieces[at + 1..]) => Some(Role::Window),
        (Some(Role::Window), Some(Role::Total)) => Some(Role::Total),
        (Some(Role::Total | Role::Input), Some(Role::Limit)) if !told(pieces, at) => Some(Role::Limit),
        (Some(role), _) => Some(role),
        (None, right) => right,
    }
}

/// «the window of 8192 tokens was exceeded»: it is what was exceeded, not what exceeds.
fn passive(rest: &[TextPiece]) -> bool {
    let sentence = rest.split(|piece| *piece == TextPiece::Stop).next().unwrap_or(rest);
    let behind = sentence.iter().position(|piece| piece.word() == "exceeded").map(|at| &sentence[at + 1..]);
    let names = |piece: &TextPiece| {
        matches!(piece, TextPiece::Number(_)) || matches!(sense(piece), WordSense::Cap | WordSense::Window)
    };
    let by = |behind: &[TextPiece]| behind.first().is_some_and(|piece| piece.word() == "by");
    behind.is_some_and(|behind| by(behind) || !behind.iter().take_while(|piece| !piece.is(',')).any(names))
}

/// `a=1 b=2`: both have a name before them, so what stands between them belongs to the second.
fn labelled(pieces: &[TextPiece], at: usize) -> bool {
    let sign = |at: usize| at > 0 && (pieces[at - 1].is('=') || pieces[at - 1].is(':'));
    let next = pieces[at + 1..].iter().position(|piece| matches!(piece, TextPiece::Number(_)));
    sign(at) && next.is_some_and(|next| sign(at + 1 + next))
}

/// True when a verb right before the number says that there is so much.
fn told(pieces: &[TextPiece], at: usize) -> bool {
    at > 0 && sense(&pieces[at - 1]) == WordSense::Tells
}

/// `inputs + max_new_tokens must be <= C. Given: A inputs and B max_new_tokens`: the sum is judged, not A.
fn given(pieces: &[TextPiece], at: usize) -> bool {
    let before = &pieces[..at];
    let label = before.iter().rev().find(|piece| !piece.is(':')).map_or("", TextPiece::word);
    label == "given" && before.iter().any(|piece| piece.is('+'))
}

/// What the words before the number say of it.
fn left(pieces: &[TextPiece], at: usize) -> Option<Role> {
    let start =
        pieces[..at].iter().rposition(|piece| matches!(piece, TextPiece::Number(_) | TextPiece::Stop));
    let before = &pieces[start.map_or(0, |start| start + 1)..at];
    let (mut hint, mut labelled): (Option<Role>, bool) = (None, false);
    if before.last().is_some_and(|piece| piece.is('g')) {
        return Some(Role::Least);
    }
    for (back, piece) in before.iter().enumerate().rev() {
        let nearest =
            before[back + 1..].iter().all(|piece| matches!(piece, TextPiece::Sign(':' | '(' | '=')));
        let apart = nearest && !before[back + 1..].is_empty();
        match (sense(piece), piece.word()) {
            (_, "minimum") if nearest => return Some(Role::Least),
            (_, "least") if nearest && least(before, back) => return Some(Role::Least),
            (_, "hold" | "fit" | "handle" | "for" | "accommodate") if lacking(&pieces[..at]) => {
                return Some(hint.filter(|hint| *hint == Role::Input).unwrap_or(Role::Total));
            }
            (_, "by") if nearest => return Some(Role::Excess),
            (_, "by") if hint == Some(Role::Input) => return hint,
            (_, "large" | "long" | "big" | "many") if too(before, back) => {
                return Some(too_much(before, back, hint));
            }
            (WordSense::Answer, _) => hint = Some(hint.unwrap_or(Role::Output)),
            (WordSense::AnswerCap, _) if hint.is_none() => hint = Some(Role::Output),
            // «limit exceeded: 9000» names what there is, «exceeded 8192» what there may be
            (WordSense::Past, "exceeded") if apart => hint = Some(hint.unwrap_or(Role::Total)),
            (WordSense::Past, _) if hint == Some(Role::Output) && !caps(&before[back..]) => return hint,
            (WordSense::Past, "than") if hint == Some(Role::Input) && fewer(before, back) => return hint,
            (WordSense::Past, _) => return Some(Role::Limit),
            (WordSense::Tokens, _) if apart && hint.is_none() => labelled = true,
            (WordSense::Turn, "and") if hint == Some(Role::Output) && summed(&before[..=back]) => {
                return Some(Role::Total);
            }
            (WordSense::Cap, _) if hint == Some(Role::Output) && !summed(&before[..back]) => {
                return Some(Role::AnswerLimit);
            }
            (WordSense::Cap, _) if hint == Some(Role::Output) => return Some(Role::Total),
            (WordSense::Cap, _) => return Some(Role::Limit),
            (WordSense::Tells, _) if hint == Some(Role::Window) => return hint,
            (WordSense::Tells, "total") if capped(before, back) => return Some(Role::Limit),
            (WordSense::Tells, _) => return Some(told_as(hint)),
            (WordSense::Window, _) => hint = Some(hint.unwrap_or(Role::Window)),
            (WordSense::Input, _) => hint = Some(hint.unwrap_or(Role::Input)),
            (WordSense::Turn, "but" | "while" | "whereas" | "however" | "so") if hint.is_some() => break,
            (_, "first") => hint = Some(hint.unwrap_or(Role::Total)),
            _ if piece.is('+') && hint == Some(Role::Output) && summed(&before[..=back]) => {
                return Some(Role::Total);
            }
            _ if piece.is(',') && (hint.is_some() || labelled) => break,
            _ => {}
        }
    }
    hint.or_else(|| labelled.then_some(Role::Total))
}

/// True when the excess is over a parameter: «exceeds max_tokens 8192» names a limit.
fn caps(words: &[TextPiece]) -> bool {
    words.iter().any(|piece| sense(piece) == WordSense::AnswerCap)
}

/// True when what was sent stands before: «input and maximum output tokens (9100)» is both.
fn summed(before: &[TextPiece]) -> bool {
    let ends = before.last().is_some_and(|piece| matches!(piece.word(), "and" | "plus") || piece.is('+'));
    ends && before.iter().any(|piece| sense(piece) == WordSense::Input)
}

/// «smaller than the prompt (9000)».
fn fewer(before: &[TextPiece], at: usize) -> bool {
    at > 0 && matches!(before[at - 1].word(), "smaller" | "less" | "fewer" | "shorter" | "lower")
}

fn told_as(hint: Option<Role>) -> Role {
    match hint {
        Some(Role::Output) => Role::Output,
        Some(Role::Input) => Role::Input,
        _ => Role::Total,
    }
}

/// «maximum total».
fn capped(before: &[TextPiece], at: usize) -> bool {
    at > 0 && matches!(before[at - 1].word(), "max" | "maximum")
}

/// «must be at least 1».
fn least(before: &[TextPiece], at: usize) -> bool {
    at > 1 && before[at - 1].word() == "at" && before[at - 2].word() == "be"
}

/// «is not large enough to», «is too small for», «cannot»: what follows did not find room.
fn lacking(before: &[TextPiece]) -> bool {
    let words: Vec<&str> =
        before.iter().rev().take_while(|piece| **piece != TextPiece::Stop).map(TextPiece::word).collect();
    let any = |wanted: &[&str]| words.iter().any(|word| wanted.contains(word));
    let verb = words.iter().take(6).any(|word| matches!(*word, "cannot" | "unable" | "insufficient"));
    verb || (any(&["not", "isn"]) && any(&["enough"])) || (any(&["too"]) && any(&["small", "short"]))
}

fn too(before: &[TextPiece], at: usize) -> bool {
    at > 0 && before[at - 1].word() == "too"
}

/// «too long: N» names what there is; «too large for a model with N» what there may be; `max_tokens` may be what is
/// too large.
fn too_much(before: &[TextPiece], at: usize, hint: Option<Role>) -> Role {
    if before[at + 1..].iter().any(|piece| piece.word() == "for") {
        return Role::Limit;
    }
    let answer = |piece: &TextPiece| sense(piece) == WordSense::AnswerCap;
    if hint == Some(Role::Output) || before[..at].iter().any(answer) {
        return Role::Output;
    }
    Role::Total
}

/// What the words behind the number say of it.
fn right(pieces: &[TextPiece], at: usize) -> Option<Role> {
    let mut hint = None;
    let (mut past_unit, mut closed) = (false, false);
    for (i, piece) in pieces[at + 1..].iter().enumerate() {
        match (sense(piece), piece) {
            (_, TextPiece::Number(_) | TextPiece::Stop | TextPiece::Sign('(' | ',' | '-' | '/')) => break,
            (WordSense::Turn, _) => break,
            (_, TextPiece::Sign(')')) => closed = true,
            // «(9000) maximum context length (8192)»: what stands behind the bracket belongs to the next number
            (
                WordSense::Cap
                | WordSense::Window
                | WordSense::Answer
                | WordSense::AnswerCap
                | WordSense::Input,
                _,
            ) if closed => {
                break;
            }
            _ if hint != Some(Role::Input) && small(&pieces[at + 1 + i..]) => return Some(Role::Limit),
            (_, TextPiece::Word(word)) if matches!(word.as_str(), "not" | "cannot" | "doesn") => {
                return hint.or(Some(Role::Total));
            }
            (WordSense::Answer | WordSense::AnswerCap, _) if hint.is_none() => return Some(Role::Output),
            (_, TextPiece::Word(word)) if word == "beyondthat" => return Some(Role::Limit),
            (_, TextPiece::Word(word)) if word == "orless" => return Some(Role::Limit),
            (_, TextPiece::Word(word))
                if i <= 1 && past_unit && matches!(word.as_str(), "over" | "too" | "beyond") =>
            {
                return Some(excess_or_total(&pieces[at + 1 + i..]));
            }
            (WordSense::Past, _) => return hint.or(Some(Role::Total)),
            (WordSense::Cap, _) => return Some(Role::Limit),
            (WordSense::Window, _) if hint.is_none() => hint = Some(Role::Window),
            (WordSense::Input, _) => hint = hint.or(Some(Role::Input)),
            (WordSense::Tells, _) => return hint.or(Some(Role::Total)),
            (WordSense::Tokens, _) => past_unit = true,
            _ => {}
        }
    }
    hint
}

/// «is not large enough», «is too small», «is insufficient», «cannot hold»: said of the window.
fn small(rest: &[TextPiece]) -> bool {
    let words: Vec<&str> = rest.iter().take(3).map(TextPiece::word).collect();
    matches!(
        words[..],
        ["not" | "isn", "enough", ..]
            | ["not" | "isn", _, "enough"]
            | ["too", "small" | "short", ..]
            | ["insufficient", ..]
            | ["cannot", "hold" | "fit" | "accommodate", ..]
    )
}

/// «9001 of at most 8192»: a limit with a number of its own follows.
fn parted(rest: &[TextPiece]) -> bool {
    if rest.first().is_none_or(|piece| piece.word() != "of") {
        return false;
    }
    let near = &rest[..rest.len().min(4)];
    let number = near.iter().position(|piece| matches!(piece, TextPiece::Number(_)));
    number.is_some_and(|number| near[..number].iter().any(|piece| sense(piece) == WordSense::Cap))
}

/// «1500 tokens over the limit» is a difference; «9000 tokens too long» may be either and is left to be the whole.
fn excess_or_total(rest: &[TextPiece]) -> Role {
    match rest.first().map_or("", TextPiece::word) {
        "too" if rest.get(1).is_some_and(|piece| piece.word() == "many") => Role::Excess,
        "too" => Role::Total,
        _ => Role::Excess,
    }
}
