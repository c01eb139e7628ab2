//! Results that came after somebody else had spoken: where they are shown, and how that is undone.

use komado_core::view::ItemSource;
use komado_core::{Kind, Message, Seq, View};
use komado_testkit::{Book, notation};

/// Two calls, of which one was given up when the user spoke; then its result came.
const LATE: &str = r#"
    1 user "look" ~5
    2 assistant call c1 read {"path":"a"} call c2 ls {} ~9
    3 tool c2 ls "a b" ~40
    4 tool c1 read error interrupted "[no result]" ~6
    5 user "and hurry" ~3
    6 tool c1 read replaces=4 "fn main" ~90
"#;

fn book(lines: &str) -> Book {
    let mut book = Book::default();
    for (entry, tokens) in notation::parse(lines).unwrap() {
        book.push(entry, tokens, "").unwrap();
    }
    book
}

fn and(lines: &str) -> Book {
    book(&format!("{LATE}\n{lines}"))
}

fn sees(book: &Book) -> String {
    let Ok(seen) = notation::items(book.view(), book.rows());
    assert_eq!(*book.view(), book.view_at(book.view().last()), "the fold sees the same");
    seen
}

fn last_words(book: &Book, seq: Seq) -> String {
    shown(book, seq).words()
}

fn shown(book: &Book, seq: Seq) -> Message {
    let mut found = None;
    let Ok(()) = book.view().pour(book.rows(), &mut |at, message| -> Result<(), std::convert::Infallible> {
        if at == seq {
            found = Some(message.clone());
        }
        Ok(())
    });
    found.unwrap()
}

#[test]
fn a_late_result_is_shown_where_the_interrupted_one_stood_and_counts_there() {
    let book = and("");
    let view = book.view();
    assert_eq!(last_words(&book, 4), "fn main");
    assert!(sees(&book).contains("4 tool c1 read late@6 \"fn main\" ~90"), "{}", sees(&book));
    let Ok(items) = view.items(book.rows());
    let order: Vec<(Seq, ItemSource)> = items.iter().map(|item| (item.seq, item.what)).collect();
    let said = ItemSource::Said;
    let expected = [
        (1, said(Kind::User)),
        (2, said(Kind::Assistant)),
        (3, said(Kind::Tool)),
        (4, ItemSource::Replaced(6)),
        (5, said(Kind::User)),
    ];
    assert_eq!(order, expected);
    assert_eq!((view.tokens(), view.unedited(book.rows())), (147, Ok(147)));
}

#[test]
fn the_newest_of_several_results_of_one_call_is_shown_and_the_others_stay_in_the_journal() {
    let book = and(r#"7 tool c1 read replaces=4 "fn main() {}" ~95"#);
    assert_eq!(last_words(&book, 4), "fn main() {}");
    let texts: Vec<String> =
        [4, 6, 7].map(|seq| notation::entry(book.records().nth(seq - 1).unwrap())).into();
    assert!(texts[0].contains("[no result]") && texts[1].contains("fn main\"") && texts[2].contains("{}"));
}

#[test]
fn a_late_result_is_undone_like_an_edit_and_done_again() {
    let undone = and("7 revert 6");
    assert_eq!(last_words(&undone, 4), "[no result]");
    assert_eq!(undone.view().tokens(), 63);
    sees(&undone);
    let done = and("7 revert 6\n8 revert 7");
    assert_eq!(last_words(&done, 4), "fn main");
    let older = and("7 tool c1 read replaces=4 \"newer\" ~95\n8 revert 7");
    assert_eq!(last_words(&older, 4), "fn main", "the one before it is shown again");
}

#[test]
fn what_comes_last_is_shown_an_edit_or_a_result() {
    let trimmed = and(r#"7 trim 4 "[trimmed]" ~8 because soft_mark 147>65"#);
    assert_eq!(last_words(&trimmed, 4), "[trimmed]");
    sees(&trimmed);
    let is_error =
        shown(&trimmed, 4).outcome().is_some_and(|outcome| outcome.is_error || outcome.interrupted);
    assert!(!is_error, "the placeholder stands for the true result");
    let newer =
        and("7 trim 4 \"[trimmed]\" ~8 because soft_mark 147>65\n8 tool c1 read replaces=4 \"newer\" ~95");
    assert_eq!(last_words(&newer, 4), "newer");
    sees(&newer);
}

#[test]
fn a_late_result_stays_hidden_with_its_call_and_comes_back_with_it() {
    let hidden = book(
        r#"
        1 user "look" ~5
        2 assistant call c1 read {} ~9
        3 tool c1 read error interrupted "[no result]" ~6
        4 user "and hurry" ~3
        5 condense 1..3 summary "looked" ~2
        6 tool c1 read replaces=3 "fn main" ~90
        "#,
    );
    assert_eq!(hidden.view().tokens(), 5);
    let mut shown = hidden.fork(6);
    shown.push(notation::parse("revert 5").unwrap()[0].0.clone(), 0, "").unwrap();
    assert_eq!(last_words(&shown, 3), "fn main");
    assert_eq!(*shown.view(), shown.view_at(7));
}

#[test]
fn a_late_result_may_come_while_other_calls_wait() {
    let book =
        and("7 assistant call c3 ls {} ~3\n8 tool c1 read replaces=4 \"again\" ~9\n9 tool c3 ls \"c\" ~2");
    assert!(book.view().open().calls.is_empty());
    assert_eq!((last_words(&book, 4).as_str(), last_words(&book, 9).as_str()), ("again", "c"));
    assert_eq!(*book.view(), book.view_at(9));
    let Ok(unit) = book.view().unit(book.rows(), 4);
    assert_eq!(unit.map(|unit| (unit.from, unit.to)), Some((2, 4)));
    assert!(
        View::unit(book.view(), book.rows(), 8).is_ok_and(|unit| unit.is_none()),
        "it is no item by itself"
    );
}
