//! From a text to the terms it can be found by.
//!
//! Words of scripts that set spaces are folded (width, case, accents) and stemmed; words that carry nothing are left
//! out. Names from code and paths count whole and in their parts, so that `parse_config_file`, `parseConfigFile` and
//! "parse the config file" find each other. Scripts without spaces give every character and every pair of neighbours,
//! so that one, two or more characters are found wherever they stand, without a dictionary that would not know the
//! name that was made up yesterday.
//!
//! The same text always gives the same terms: they are kept in indexes. Change anything here, and raise the version
//! of the index.

use rust_stemmers::{Algorithm, Stemmer};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::LazyLock;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// What sort of term it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TermKind {
    /// A word.
    Word,
    /// A part of a name such as `parseConfigFile`.
    Part,
    /// A name or path as it was written.
    Whole,
    /// Two neighbours of a script without spaces.
    Pair,
    /// One character of such a script, with others beside it.
    Single,
    /// One character of such a script that stands alone.
    Alone,
}

/// A term and where it stands in the text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Term<'t> {
    pub(crate) text: Cow<'t, str>,
    pub(crate) kind: TermKind,
    pub(crate) span: Range<usize>,
}

impl TermKind {
    /// True for terms that count towards the length of a text, each word once.
    pub(crate) const fn is_counted(self) -> bool {
        matches!(self, Self::Word | Self::Pair | Self::Alone)
    }
}

/// The longest word that is kept whole; the rest of a longer one is of no use to anyone.
const LONGEST_WORD: usize = 64;
/// The longest name or path that is kept as it was written.
const LONGEST_WHOLE: usize = 96;

/// What a character is to us.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Letter,
    /// Of a script without spaces.
    Script,
    /// Holds the parts of a name together.
    Joiner,
    Other,
}

fn class(c: char) -> Class {
    match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' => Class::Letter,
        '_' | '-' | '.' | '/' | '\\' | '@' | '\'' | '’' | '＿' | '－' | '．' | '／' | '＠' => {
            Class::Joiner
        }
        '\0'..='\x7f' => Class::Other,
        '・' | '゠' | '･' => Class::Other,
        '\u{0e01}'..='\u{0eff}'
        | '\u{1000}'..='\u{109f}'
        | '\u{1100}'..='\u{11ff}'
        | '\u{1780}'..='\u{17ff}'
        | '々'..='〇'
        | '\u{3041}'..='\u{318f}'
        | '\u{31f0}'..='\u{31ff}'
        | '\u{3300}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7ff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{ff66}'..='\u{ffdc}'
        | '\u{20000}'..='\u{3ffff}' => Class::Script,
        c if c.is_alphanumeric() || is_combining_mark(c) => Class::Letter,
        _ => Class::Other,
    }
}

/// True for a character of a script without spaces.
pub(crate) fn is_script(c: char) -> bool {
    class(c) == Class::Script
}

/// Gives every term of `text` to `put`, in order.
pub(crate) fn each<'t>(text: &'t str, put: &mut dyn FnMut(Term<'t>)) {
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let end = match class(c) {
            Class::Script => {
                let end = at + run(&text[at..], is_script);
                script(&text[at..end], at, put);
                end
            }
            Class::Letter => {
                let end = at + lump(&text[at..]);
                name(&text[at..end], at, put);
                end
            }
            Class::Joiner | Class::Other => at + c.len_utf8(),
        };
        at = end;
    }
}

/// Bytes of the characters at the beginning that belong.
fn run(text: &str, belongs: impl Fn(char) -> bool) -> usize {
    text.find(|c| !belongs(c)).unwrap_or(text.len())
}

/// Bytes of words at the beginning that joiners hold together.
fn lump(text: &str) -> usize {
    let is_letter = |c| class(c) == Class::Letter;
    let mut end = run(text, is_letter);
    loop {
        let mut rest = text[end..].chars();
        let Some(joiner) = rest.next().filter(|c| class(*c) == Class::Joiner) else { return end };
        let mut next = end + joiner.len_utf8();
        if joiner == '_' && rest.as_str().starts_with('_') {
            next += 1;
        }
        match run(&text[next..], is_letter) {
            0 => return end,
            letters => end = next + letters,
        }
    }
}

/// Words, and the name or path they make up.
fn name<'t>(lump: &'t str, at: usize, put: &mut dyn FnMut(Term<'t>)) {
    let is_joiner = |c| class(c) == Class::Joiner;
    let mut words = 0;
    let mut from = 0;
    let mut owned = false;
    for piece in lump.split(is_joiner) {
        let span = at + from..at + from + piece.len();
        // The end of "it's" and "don't" says nothing.
        let ending = owned && matches!(piece, "s" | "t" | "re" | "ve" | "ll" | "d" | "m");
        from += piece.len();
        let joiner = lump[from..].chars().next();
        owned = matches!(joiner, Some('\'' | '’'));
        from += joiner.map_or(0, char::len_utf8);
        if !piece.is_empty() && !ending {
            words += 1;
            word(piece, span, put);
        }
    }
    if words > 1 {
        wholes(lump, at, put);
    }
}

/// The lump as it was written, and each name of a path.
fn wholes<'t>(lump: &'t str, at: usize, put: &mut dyn FnMut(Term<'t>)) {
    let mut keep = |text: &'t str, at: usize| {
        let digits = text.chars().all(|c| !c.is_alphabetic());
        let longest = if digits { 16 } else { LONGEST_WHOLE };
        if text.len() <= longest && !text.contains(['\'', '’']) {
            put(Term { text: lower(text), kind: TermKind::Whole, span: at..at + text.len() });
        }
    };
    keep(lump, at);
    let mut from = 0;
    for segment in lump.split(['/', '\\', '／']) {
        let is_lump = segment.len() < lump.len() && segment.chars().any(|c| class(c) == Class::Joiner);
        if is_lump {
            keep(segment, at + from);
        }
        from += segment.len() + lump[from + segment.len()..].chars().next().map_or(0, char::len_utf8);
    }
}

fn word<'t>(piece: &'t str, span: Range<usize>, put: &mut dyn FnMut(Term<'t>)) {
    let humps = humps(piece);
    let folded = fold(piece);
    if humps.len() < 2 {
        if !is_stop_word(&folded) {
            put(Term { text: stem(folded), kind: TermKind::Word, span });
        }
        return;
    }
    put(Term { text: folded, kind: TermKind::Word, span: span.clone() });
    for hump in humps {
        let text = fold(&piece[hump.clone()]);
        if !is_stop_word(&text) {
            let span = span.start + hump.start..span.start + hump.end;
            put(Term { text: stem(text), kind: TermKind::Part, span });
        }
    }
}

/// The parts of `parseConfigFile` and `HTTPServer`; none for a word without humps.
fn humps(piece: &str) -> Vec<Range<usize>> {
    let bytes = piece.as_bytes();
    if !piece.is_ascii() || piece.len() > LONGEST_WORD || !bytes.iter().any(u8::is_ascii_lowercase) {
        return Vec::new();
    }
    let mut cuts = vec![0];
    for i in 1..bytes.len() {
        let (last, here) = (bytes[i - 1], bytes[i]);
        let next = bytes.get(i + 1);
        let rises = !last.is_ascii_uppercase() && here.is_ascii_uppercase();
        let falls = last.is_ascii_uppercase()
            && here.is_ascii_uppercase()
            && next.is_some_and(u8::is_ascii_lowercase);
        if rises || falls {
            cuts.push(i);
        }
    }
    cuts.push(bytes.len());
    if cuts.len() < 3 { Vec::new() } else { cuts.windows(2).map(|cut| cut[0]..cut[1]).collect() }
}

/// Width and case folded.
fn lower(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|b| b.is_ascii() && !b.is_ascii_uppercase()) {
        return Cow::Borrowed(text);
    }
    if text.is_ascii() {
        return Cow::Owned(text.to_ascii_lowercase());
    }
    Cow::Owned(text.nfkc().collect::<String>().to_lowercase())
}

/// Width, case and accents folded; cut where no reader reads on.
fn fold(word: &str) -> Cow<'_, str> {
    let mut folded = lower(word);
    if !folded.is_ascii() {
        let mut plain = String::with_capacity(folded.len());
        for c in folded.nfd() {
            // Only Latin letters lose their marks: in other scripts they make another letter.
            if !(is_combining_mark(c) && plain.ends_with(|c: char| c.is_ascii_alphabetic())) {
                plain.push(c);
            }
        }
        folded = Cow::Owned(plain.nfc().collect());
    }
    if folded.len() > LONGEST_WORD {
        let end = (0..=LONGEST_WORD).rev().find(|i| folded.is_char_boundary(*i)).unwrap_or(0);
        folded = Cow::Owned(folded[..end].to_owned());
    }
    folded
}

fn stem(word: Cow<'_, str>) -> Cow<'_, str> {
    if word.len() < 3 || !word.bytes().all(|b| b.is_ascii_lowercase()) {
        return word;
    }
    let root = root_of(&word).map_or(word, Cow::Borrowed);
    let stemmer = Stemmer::create(Algorithm::English);
    match stemmer.stem(&root) {
        Cow::Borrowed(same) if same.len() == root.len() => root,
        stem => Cow::Owned(stem.into_owned()),
    }
}

/// Characters and pairs of them.
fn script<'t>(run: &'t str, at: usize, put: &mut dyn FnMut(Term<'t>)) {
    let mut last: Option<(String, Range<usize>)> = None;
    let mut count = 0;
    clusters(run, &mut |folded: String, span: Range<usize>| {
        let span = at + span.start..at + span.end;
        if let Some((before, from)) = last.take() {
            let pair = format!("{before}{folded}");
            put(Term { text: Cow::Owned(pair), kind: TermKind::Pair, span: from.start..span.end });
            put(Term { text: Cow::Owned(before), kind: TermKind::Single, span: from });
        }
        last = Some((folded, span));
        count += 1;
    });
    if let Some((text, span)) = last {
        let kind = if count == 1 { TermKind::Alone } else { TermKind::Single };
        put(Term { text: Cow::Owned(text), kind, span });
    }
}

/// Characters with the marks that belong to them, folded to their usual width.
fn clusters(run: &str, put: &mut dyn FnMut(String, Range<usize>)) {
    let is_tail =
        |c: char| matches!(c, '\u{3099}' | '\u{309a}' | '\u{ff9e}' | '\u{ff9f}' | '\u{1160}'..='\u{11ff}');
    let mut chars = run.char_indices().peekable();
    while let Some((from, c)) = chars.next() {
        let mut end = from + c.len_utf8();
        while let Some((_, tail)) = chars.next_if(|(_, c)| is_tail(*c)) {
            end += tail.len_utf8();
        }
        let cluster = &run[from..end];
        let plain = end - from == c.len_utf8()
            && matches!(c, '\u{3041}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}');
        if plain {
            put(cluster.to_owned(), from..end);
        } else {
            cluster.nfkc().for_each(|c| put(c.to_string(), from..end));
        }
    }
}

// The little English that a search needs: words that carry nothing, and roots that no rule of endings finds.
//
// Lists, and nothing that guesses. Scripts without spaces need none of it: there the pairs that carry nothing are
// simply common.

/// Words that stand in every text.
const STOP_WORDS: &str = "\
    a about after again all also am an and any are aren as at be because been before being both but by can \
    could couldn did didn do does doesn doing don done during each either few for from further had hadn has \
    hasn have haven having he her here hers herself him himself his how i if in into is isn it its itself \
    just let may me might more most must my myself no nor not of off on once only or other our ours \
    ourselves out over own please same shall she should shouldn so some such than that the their theirs them \
    themselves then there these they this those through to too under until up us very was wasn we were weren \
    what when where which while who whom whose why will with would wouldn you your yours yourself";

/// Forms and their roots.
const ROOTS: &str = "\
    ate:eat began:begin begun:begin bit:bite blew:blow bought:buy broke:break broken:break brought:bring \
    built:build came:come caught:catch children:child chose:choose chosen:choose crises:crisis dealt:deal \
    drank:drink drawn:draw dreamt:dream drew:draw driven:drive drove:drive dug:dig eaten:eat fallen:fall \
    fed:feed feet:foot fell:fall felt:feel flew:fly flown:fly forgot:forget forgotten:forget fought:fight \
    found:find froze:freeze frozen:freeze gave:give geese:goose given:give goes:go gone:go got:get \
    gotten:get grew:grow grown:grow heard:hear held:hold hid:hide hidden:hide indices:index kept:keep \
    knew:know knives:knife known:know led:lead left:leave lent:lend lives:life lost:lose made:make \
    meant:mean men:man met:meet mice:mouse paid:pay people:person ran:run ridden:ride risen:rise rode:ride \
    rose:rise said:say sang:sing sat:sit saw:see seen:see sent:send shook:shake shot:shoot showed:show \
    shown:show slept:sleep sold:sell spent:spend spoke:speak spoken:speak stole:steal stolen:steal \
    stood:stand stuck:stick swam:swim taken:take taught:teach teeth:tooth thought:think threw:throw \
    thrown:throw told:tell took:take understood:understand vertices:vertex went:go wives:wife woken:wake \
    women:woman won:win wore:wear written:write wrote:write";

/// True for a word that carries nothing.
pub(crate) fn is_stop_word(word: &str) -> bool {
    static WORDS: LazyLock<HashSet<&str>> = LazyLock::new(|| STOP_WORDS.split_whitespace().collect());
    WORDS.contains(word)
}

/// The root of a form that endings do not tell.
pub(crate) fn root_of(word: &str) -> Option<&'static str> {
    static FORMS: LazyLock<HashMap<&str, &str>> =
        LazyLock::new(|| ROOTS.split_whitespace().filter_map(|pair| pair.split_once(':')).collect());
    FORMS.get(word).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        each(text, &mut |term| found.push(term.text.into_owned()));
        found
    }

    #[test]
    fn words_are_folded_stemmed_and_the_empty_ones_left_out() {
        assert_eq!(terms("The runners were RUNNING"), ["runner", "run"]);
        assert_eq!(terms("it's Caroline's, don't"), ["carolin"]);
        assert_eq!(terms("bought"), terms("buys"));
        assert_eq!(terms("Café ＡＢＣ１２"), ["cafe", "abc12"]);
        assert_eq!(terms("Ёлка ёлка"), ["ёлка", "ёлка"]);
        assert!(terms("what did they do to it?").is_empty());
    }

    #[test]
    fn names_count_whole_and_in_parts() {
        assert_eq!(terms("parse_config_file"), ["pars", "config", "file", "parse_config_file"]);
        assert_eq!(terms("parseConfigFile"), ["parseconfigfile", "pars", "config", "file"]);
        assert_eq!(terms("HTTPServer"), ["httpserver", "http", "server"]);
        assert_eq!(terms("NASA"), ["nasa"]);
        let path = terms("(crates/engine/redact.rs)");
        assert_eq!(path, ["crate", "engin", "redact", "rs", "crates/engine/redact.rs", "redact.rs"]);
        assert_eq!(terms("well-known. Next"), ["well", "know", "well-known", "next"]);
        assert_eq!(terms("v1.2.3"), ["v1", "2", "3", "v1.2.3"]);
    }

    #[test]
    fn scripts_without_spaces_give_characters_and_pairs() {
        assert_eq!(terms("窓"), ["窓"]);
        assert_eq!(terms("小窓を"), ["小窓", "小", "窓を", "窓", "を"]);
        assert_eq!(terms("ｶﾞﾗｽ"), terms("ガラス"));
        assert_eq!(terms("か\u{3099}"), ["が"]);
        assert_eq!(terms("Docker環境"), ["docker", "環境", "環", "境"]);
        assert_eq!(terms("㎏"), ["kg", "k", "g"]);
        assert_eq!(terms("한국"), terms("\u{1112}\u{1161}\u{11ab}\u{1100}\u{116e}\u{11a8}"));
    }

    #[test]
    fn every_span_is_a_place_in_the_text() {
        let text = "ｶﾞﾗｽ窓 parse_configFile、crates/é/x.rs ＡＢＣ don't a__b ../up 🪟 \u{301}x";
        each(text, &mut |term| {
            assert!(text.get(term.span.clone()).is_some_and(|piece| !piece.is_empty()), "{term:?}");
        });
        let long = "x".repeat(100_000);
        assert_eq!(terms(&long)[0].len(), LONGEST_WORD);
        assert_eq!(terms(&"é".repeat(1000))[0], "e".repeat(LONGEST_WORD));
    }
}

#[cfg(test)]
mod language_tests {
    use super::*;

    #[test]
    fn both_lists_are_in_order() {
        assert!(STOP_WORDS.split_whitespace().is_sorted() && ROOTS.split_whitespace().is_sorted());
        assert!(
            is_stop_word("the") && is_stop_word("a") && is_stop_word("yourself") && !is_stop_word("window")
        );
        assert_eq!((root_of("ate"), root_of("wrote"), root_of("window")), (Some("eat"), Some("write"), None));
    }
}
