//! Findings of one kind, each once, in bounded memory.
//!
//! When the shelf is over-full the least important findings go. It refuses to depend on anything but what was put
//! on it and in which order, so the same span always leaves the same shelf.

use super::fact::Fact;
use crate::Seq;
use std::collections::BTreeMap;

/// A shelf for `ROOM` findings; it may hold twice as many between two clearings.
#[derive(Clone, Debug, Default)]
pub(super) struct Shelf<const ROOM: usize> {
    facts: BTreeMap<String, Fact>,
    last: Seq,
}

impl<const ROOM: usize> Shelf<ROOM> {
    /// Puts a finding on; one that is there under the same key is joined with it.
    pub(super) fn put(&mut self, key: String, fact: Fact) {
        self.last = self.last.max(fact.at);
        match self.facts.get_mut(&key) {
            Some(known) => known.join(fact),
            None => {
                self.facts.insert(key, fact);
                if self.facts.len() > 2 * ROOM {
                    self.clear_out();
                }
            }
        }
    }

    pub(super) fn get_mut(&mut self, key: &str) -> Option<&mut Fact> {
        self.facts.get_mut(key)
    }

    pub(super) fn remove(&mut self, key: &str) {
        self.facts.remove(key);
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut Fact> {
        self.facts.values_mut()
    }

    /// The findings, most important first.
    pub(super) fn ranked(&self, last: Seq) -> Vec<Fact> {
        let mut facts: Vec<(&String, &Fact)> = self.facts.iter().collect();
        facts.sort_by(|(a_key, a), (b_key, b)| {
            (b.score(last), b.at, *a_key).cmp(&(a.score(last), a.at, *b_key))
        });
        facts.into_iter().map(|(_, fact)| fact.clone()).take(ROOM).collect()
    }

    fn clear_out(&mut self) {
        let mut keys: Vec<(u64, Seq, &String)> =
            self.facts.iter().map(|(key, fact)| (fact.score(self.last), fact.at, key)).collect();
        keys.sort_unstable();
        let out: Vec<String> =
            keys.iter().take(self.facts.len() - ROOM).map(|(_, _, key)| (*key).clone()).collect();
        for key in out {
            self.facts.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::fact::FactKind;

    #[test]
    fn a_full_shelf_lets_the_oldest_and_rarest_go() {
        let mut shelf = Shelf::<10>::default();
        for seq in 1..=1000 {
            shelf.put("often".into(), Fact::new(FactKind::Id, "often", seq));
            shelf.put(format!("once {seq}"), Fact::new(FactKind::Id, format!("once {seq}"), seq));
            assert!(shelf.facts.len() <= 20);
        }
        let ranked = shelf.ranked(1000);
        assert_eq!((ranked[0].text.as_str(), ranked[0].count), ("often", 1000));
        assert_eq!(ranked[1].text, "once 1000");
        assert_eq!(ranked.len(), 10);
    }
}
