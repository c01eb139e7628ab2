//! How well recall finds what was meant: against plain BM25, on conversations and questions that were made up.
//!
//! The questions are told in two halves, so that a weight that only fits one of them shows. They are few: this guards
//! against a step back, and proves no more.

mod talk;

use crate::engine::room::{Room, model, user};
use komado_core::{Seq, SessionId};
use komado_engine::recall::{RecallQuery, RecallScope};
use std::collections::HashMap;
use talk::{ENGLISH, ENGLISH_QUESTIONS, JAPANESE, JAPANESE_QUESTIONS, Question, Turn};

/// What plain BM25 sees: words as they are written, and pairs of characters where there are no spaces.
fn plain_terms(text: &str) -> Vec<String> {
    let mut terms = Vec::new();
    for run in text.split(|c: char| !c.is_alphanumeric() && c != 'ー') {
        if run.is_ascii() {
            terms.push(run.to_lowercase());
        } else {
            let chars: Vec<char> = run.chars().collect();
            terms.extend(chars.windows(2).map(|pair| pair.iter().collect::<String>()));
        }
    }
    terms.retain(|term| !term.is_empty());
    terms
}

/// Turns by plain BM25, best first.
fn plain(turns: &[Turn], query: &str) -> Vec<Seq> {
    let docs: Vec<Vec<String>> = turns.iter().map(|(_, _, text)| plain_terms(text)).collect();
    let average = docs.iter().map(Vec::len).sum::<usize>() as f64 / docs.len() as f64;
    let mut holding: HashMap<&str, f64> = HashMap::new();
    for doc in &docs {
        let mut seen: Vec<&str> = doc.iter().map(String::as_str).collect();
        seen.sort_unstable();
        seen.dedup();
        seen.into_iter().for_each(|term| *holding.entry(term).or_default() += 1.0);
    }
    let n = docs.len() as f64;
    let score = |doc: &Vec<String>| -> f64 {
        plain_terms(query)
            .iter()
            .map(|term| {
                let times = doc.iter().filter(|own| *own == term).count() as f64;
                let df = holding.get(term.as_str()).copied().unwrap_or_default();
                let idf = (1.0 + (n - df + 0.5) / (df + 0.5)).ln();
                idf * times * 2.2 / (times + 1.2 * (0.25 + 0.75 * doc.len() as f64 / average))
            })
            .sum()
    };
    let mut ranked: Vec<(f64, Seq)> = docs.iter().map(score).zip(1..).filter(|(s, _)| *s > 0.0).collect();
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    ranked.into_iter().map(|(_, seq)| seq).collect()
}

fn tell(room: &Room, name: &str, turns: &[Turn]) -> SessionId {
    let id = room.session(name);
    let mut root = room.root(&id);
    for (_, who, text) in turns {
        root.say(if *who == 'u' { user(text) } else { model(text) }).unwrap();
    }
    id
}

fn answers(turns: &[Turn], tags: &[&str]) -> Vec<Seq> {
    let place = |tag: &&str| turns.iter().position(|turn| turn.0 == *tag).unwrap() as Seq + 1;
    tags.iter().map(place).collect()
}

/// How many of the answers are among the first five and the first ten; as shares.
#[derive(Clone, Copy, Default)]
struct Recall {
    five: f64,
    ten: f64,
    count: f64,
}

impl Recall {
    fn add(&mut self, found: &[Seq], right: &[Seq]) {
        let share = |k: usize| {
            let among = right.iter().filter(|seq| found.iter().take(k).any(|found| found == *seq)).count();
            among as f64 / right.len() as f64
        };
        *self = Self { five: self.five + share(5), ten: self.ten + share(10), count: self.count + 1.0 };
    }

    fn told(&self) -> String {
        format!("R@5 {:.0}, R@10 {:.0}", 100.0 * self.five / self.count, 100.0 * self.ten / self.count)
    }
}

/// Plain BM25 and recall, for the one half of the questions and for the other.
fn measure(name: &str, turns: &[Turn], questions: &[Question]) -> [Recall; 4] {
    let room = Room::memory();
    let id = tell(&room, "s", turns);
    let mut sums = [Recall::default(); 4];
    for (i, (question, tags)) in questions.iter().enumerate() {
        let right = answers(turns, tags);
        let found =
            room.engine.recall(&RecallScope::Session(id.clone()), &RecallQuery::new(*question)).unwrap();
        let found: Vec<Seq> = found.iter().map(|one| one.seq).collect();
        let by_plain = plain(turns, question);
        let half = i % 2;
        sums[2 * half].add(&by_plain, &right);
        sums[2 * half + 1].add(&found, &right);
    }
    let [a, b, c, d] = sums.map(|sum| sum.told());
    println!("{name}, {} questions, first half: plain {a}; recall {b}", sums[0].count);
    println!("{name}, {} questions, second half: plain {c}; recall {d}", sums[2].count);
    sums
}

fn beats_plain(name: &str, turns: &[Turn], questions: &[Question]) {
    let [plain_a, recall_a, plain_b, recall_b] = measure(name, turns, questions);
    for (plain, recall) in [(plain_a, recall_a), (plain_b, recall_b)] {
        assert!(
            recall.five >= plain.five && recall.ten >= plain.ten,
            "{} against {}",
            recall.told(),
            plain.told()
        );
    }
    assert!(recall_a.five + recall_b.five > plain_a.five + plain_b.five);
    assert!(recall_a.ten + recall_b.ten > plain_a.ten + plain_b.ten);
}

#[test]
fn ranked_recall_finds_more_than_plain_bm25_in_english() {
    assert!(ENGLISH.len() >= 60 && ENGLISH_QUESTIONS.len() >= 20);
    beats_plain("English", ENGLISH, ENGLISH_QUESTIONS);
}

#[test]
fn ranked_recall_finds_more_than_plain_bm25_in_japanese() {
    assert!(JAPANESE.len() >= 40 && JAPANESE_QUESTIONS.len() >= 15);
    beats_plain("Japanese", JAPANESE, JAPANESE_QUESTIONS);
}
