//! The little English that a search needs: words that carry nothing, and roots that no rule of endings finds.
//!
//! Lists, and nothing that guesses. Scripts without spaces need none of it: there the pairs that carry nothing are
//! simply common.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

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

    #[test]
    fn both_lists_are_in_order() {
        assert!(STOP_WORDS.split_whitespace().is_sorted() && ROOTS.split_whitespace().is_sorted());
        assert!(
            is_stop_word("the") && is_stop_word("a") && is_stop_word("yourself") && !is_stop_word("window")
        );
        assert_eq!((root_of("ate"), root_of("wrote"), root_of("window")), (Some("eat"), Some("write"), None));
    }
}
