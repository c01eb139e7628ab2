//! What answers and refusals teach, and what they do not.

use super::*;
use komado_store::MemoryStore;

fn usage(input: u64) -> Usage {
    Usage { input_tokens: input, ..Usage::default() }
}

fn from(session: &str, declared: Option<u64>) -> LessonRequest {
    LessonRequest { session: session.to_owned(), at: format!("{session}@7"), probed: None, declared }
}

fn probed(probed: u64) -> LessonRequest {
    LessonRequest { probed: Some(probed), ..from("s", None) }
}

/// A request of which a hundred tokens are new.
fn grown(tokens: u64) -> RequestSize {
    RequestSize { fresh: Some(100), ..RequestSize::certain(tokens) }
}

fn hear(lesson: &mut LearnedModel, tokens: u64, reported: u64) -> UsageVerdict {
    lesson.hear(&from("s", None), grown(tokens), &usage(reported))
}

fn applied(lesson: &LearnedModel, session: &str) -> AppliedLesson {
    AppliedLesson { learned: lesson.clone(), session: session.to_owned() }
}

fn factor(lesson: &LearnedModel) -> f64 {
    applied(lesson, "s").factor()
}

fn window(lesson: &LearnedModel) -> Option<u64> {
    applied(lesson, "s").window()
}

#[test]
fn the_factor_follows_what_is_reported_up_at_once_and_down_slowly() {
    let mut lesson = LearnedModel::default();
    assert_eq!(hear(&mut lesson, 1_000, 1_100), UsageVerdict::Whole);
    assert!((factor(&lesson) - 1.1).abs() < 1e-9);
    hear(&mut lesson, 1_000, 1_500);
    assert!((factor(&lesson) - 1.5).abs() < 1e-9, "the larger, at once");
    hear(&mut lesson, 1_000, 1_000);
    assert!((factor(&lesson) - 1.35).abs() < 1e-9, "the smaller, slowly");
    assert_eq!(
        (applied(&lesson, "s").ours(1_350), applied(&lesson, "s").theirs(1_000), lesson.samples),
        (1_000, 1_350, 3)
    );
    (0..20).for_each(|_| assert_eq!(hear(&mut lesson, 1_000, 1_000), UsageVerdict::Whole));
    assert!(factor(&lesson) < 1.01, "one odd request is forgotten");
    hear(&mut lesson, 300, 900);
    assert_eq!(lesson.samples, 23, "a short request says little");
}

#[test]
fn what_was_read_from_a_cache_was_read() {
    let mut lesson = LearnedModel::default();
    let cached =
        Usage { input_tokens: 10, cache_creation_tokens: 90, cache_read_tokens: 900, output_tokens: 5 };
    assert_eq!(lesson.hear(&from("s", None), RequestSize::certain(1_000), &cached), UsageVerdict::Whole);
    assert!((factor(&lesson) - 1.0).abs() < 1e-9);
}

#[test]
fn thoughts_that_are_not_sent_back_are_no_truncation() {
    let mut lesson = LearnedModel::default();
    for _ in 0..5 {
        let size = RequestSize { tokens: 9_000, uncertain: 8_000, fresh: None };
        assert_eq!(lesson.hear(&from("s", None), size, &usage(1_020)), UsageVerdict::Whole);
    }
    assert_eq!((window(&lesson), lesson.sessions.len(), lesson.most), (None, 0, 1_020));
}

#[test]
fn a_silent_truncation_is_seen_and_teaches_the_window_when_it_happens_again() {
    let mut lesson = LearnedModel::default();
    hear(&mut lesson, 1_900, 2_000);
    assert_eq!(hear(&mut lesson, 9_000, 2_040), UsageVerdict::Truncated { reported: 2_040, expected: 9_000 });
    assert_eq!((window(&lesson), lesson.samples), (None, 1));
    hear(&mut lesson, 9_100, 2_038);
    assert_eq!(window(&lesson), Some(2_038));
    // A server that counts only what it had not cached left nothing out.
    let mut lesson = LearnedModel { most: 8_000, ..LearnedModel::default() };
    hear(&mut lesson, 9_000, 40);
    hear(&mut lesson, 9_000, 41);
    assert_eq!(window(&lesson), None);
    // One that was never asked before has no usual.
    let mut lesson = LearnedModel::default();
    hear(&mut lesson, 9_000, 420);
    hear(&mut lesson, 9_000, 430);
    assert_eq!(window(&lesson), None);
}

#[test]
fn a_truncation_that_sets_in_slowly_is_seen_all_the_same() {
    let (mut lesson, mut seen) = (LearnedModel::default(), None);
    for estimated in (300..9_000).step_by(180) {
        if let UsageVerdict::Truncated { expected, .. } = hear(&mut lesson, estimated, estimated.min(2_040)) {
            seen = seen.or(Some(expected));
        }
    }
    assert!(seen.is_some_and(|expected| expected < 4_500), "{seen:?}");
    assert_eq!(window(&lesson), Some(2_040));
}

#[test]
fn a_refusal_teaches_and_a_larger_answer_corrects_it() {
    let mut lesson = LearnedModel::default();
    let size = RequestSize::certain(5_000);
    let named = SizeRefusal { limit: Some(4_096), actual: Some(6_000), is_vague: false };
    lesson.refused(&probed(4_096), size, named);
    assert_eq!((window(&lesson), lesson.probed), (Some(4_096), Some(4_096)));
    assert!((factor(&lesson) - 1.2).abs() < 1e-9);
    lesson.refused(&from("s", None), size, SizeRefusal::default());
    assert_eq!(window(&lesson), Some(4_096), "a limit that was named is better than none");
    hear(&mut lesson, 5_000, 6_100);
    assert_eq!(window(&lesson), Some(6_100));
    let mut unnamed = LearnedModel::default();
    unnamed.refused(&from("s", None), size, SizeRefusal { is_vague: true, ..SizeRefusal::default() });
    assert_eq!(window(&unnamed), None, "bytes are not tokens");
    unnamed.refused(&from("s", None), size, SizeRefusal::default());
    assert_eq!(window(&unnamed), Some(5_000));
    let mut proven = LearnedModel { most: 7_000, ..LearnedModel::default() };
    proven.refused(&from("s", None), size, SizeRefusal::default());
    assert_eq!(window(&proven), Some(7_000), "it has answered more than that");
}

/// Counts what is written.
#[derive(Default)]
struct Counted(MemoryStore, std::sync::atomic::AtomicU32);

impl Lessons for Counted {
    fn lesson(&self, about: &str) -> komado_store::Result<Option<String>> {
        self.0.lesson(about)
    }

    fn put_lesson(&self, about: &str, old: Option<&str>, new: &str) -> komado_store::Result<bool> {
        self.1.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.0.put_lesson(about, old, new)
    }

    fn lessons(&self) -> komado_store::Result<Vec<(String, String)>> {
        self.0.lessons()
    }

    fn forget(&self, about: &str) -> komado_store::Result<bool> {
        self.0.forget(about)
    }
}

#[test]
fn what_teaches_nothing_new_is_not_written() {
    let store = Counted::default();
    let say = |tokens, reported| {
        learn(&store, "m", "s", |lesson| {
            lesson.hear(&from("s", None), RequestSize::certain(tokens), &usage(reported))
        })
        .unwrap();
        store.1.load(std::sync::atomic::Ordering::Relaxed)
    };
    let first = (0..50).fold(0, |_, n| say(10_000 + n, 11_000 + n));
    assert_eq!(u64::from(first), YOUNG, "the first few, and then none");
    assert_eq!(say(10_000, 11_050), first, "a hair more");
    assert_eq!(say(10_000, 12_500), first + 1, "another factor");
    assert_eq!(say(50_000, 62_500), first + 2, "far more was answered");
    assert_eq!(say(50_000, 9_000), first + 3, "something was left out");
}

#[test]
fn a_limit_below_what_was_answered_is_no_lesson_until_the_server_is_another() {
    let named = SizeRefusal { limit: Some(2_000), ..SizeRefusal::default() };
    let size = RequestSize::certain(9_000);
    let mut lesson = LearnedModel::default();
    lesson.hear(&probed(16_384), size, &usage(9_063));
    for session in ["s", "s", "t"] {
        lesson.refused(&LessonRequest { probed: Some(16_384), ..from(session, None) }, size, named);
        assert_eq!((window(&lesson), lesson.most), (None, 9_063), "{session}");
    }
    // It was started anew, as it says itself: what it took before says nothing.
    lesson.refused(&probed(2_048), size, named);
    assert_eq!((window(&lesson), lesson.most, lesson.probed), (Some(2_000), 0, Some(2_048)));
}

#[test]
fn no_window_is_learned_below_a_tenth_of_the_declared_one() {
    let size = RequestSize::certain(9_000);
    for (declared, learned) in [(25_000, Some(2_500)), (25_010, None), (128_000, None)] {
        let mut lesson = LearnedModel::default();
        let named = SizeRefusal { limit: Some(2_500), actual: Some(9_100), is_vague: false };
        lesson.refused(&from("s", Some(declared)), size, named);
        assert_eq!(window(&lesson), learned, "named, of {declared}");
        let mut lesson = LearnedModel::default();
        lesson.refused(&from("s", Some(declared)), RequestSize::certain(2_500), SizeRefusal::default());
        assert_eq!(window(&lesson), learned, "refused, of {declared}");
    }
}

#[test]
fn a_window_without_a_number_is_the_sessions_own_until_another_meets_it_too() {
    let mut lesson = LearnedModel::default();
    let mut refuse = |session: &str, tokens| {
        let size = RequestSize::certain(tokens);
        lesson.refused(&from(session, Some(20_000)), size, SizeRefusal::default());
        let lesson = &lesson;
        ["s", "t", "u"].map(|session| applied(lesson, session).window())
    };
    assert_eq!(refuse("s", 6_000), [Some(6_000), None, None]);
    assert_eq!(refuse("s", 5_000), [Some(5_000), None, None], "the same session is no second witness");
    assert_eq!(refuse("t", 7_000), [Some(5_000), Some(7_000), Some(7_000)], "both met 7,000");
    let told = |session| applied(&lesson, session).learned_window().unwrap();
    assert_eq!(
        told("s"),
        LearnedWindow {
            tokens: 5_000,
            evidence: Some(WindowEvidence::Refused),
            request: Some("s@7".to_owned()),
            is_shared: false
        }
    );
    assert_eq!((told("u").is_shared, told("u").request.as_deref()), (true, Some("t@7")));
    // What is answered is no longer too much, for any of them.
    lesson.hear(&from("u", None), RequestSize::certain(8_000), &usage(8_000));
    assert_eq!(["s", "t", "u"].map(|session| applied(&lesson, session).window()), [Some(8_000); 3]);
}

#[test]
fn a_limit_that_is_named_in_tokens_is_that_of_every_session() {
    let mut lesson = LearnedModel::default();
    lesson.refused(&from("s", None), RequestSize::certain(5_000), SizeRefusal::default());
    let named = SizeRefusal { limit: Some(6_000), actual: None, is_vague: false };
    lesson.refused(&from("t", None), RequestSize::certain(9_000), named);
    for session in ["s", "t", "u"] {
        let window = applied(&lesson, session).learned_window().unwrap();
        assert_eq!((window.tokens, window.is_shared, window.why()), (6_000, true, "named by the server"));
        assert_eq!(window.request.as_deref(), Some("t@7"));
    }
}

#[test]
fn a_factor_is_the_sessions_own_until_others_show_one() {
    let mut lesson = LearnedModel::default();
    let mut hear = |session: &str, reported| {
        lesson.hear(&from(session, None), RequestSize::certain(1_000), &usage(reported));
        let lesson = &lesson;
        ["s", "t", "u"].map(|session| (applied(lesson, session).factor() * 100.0).round() / 100.0)
    };
    for _ in 0..6 {
        assert_eq!(hear("s", 3_000), [3.0, 1.0, 1.0], "however often one session shows it");
    }
    let [own, other, third] = hear("t", 1_200);
    assert_eq!((own, other), (3.0, 1.2), "each keeps to what it met itself");
    assert!((1.2..=3.0).contains(&third), "of both: {third}");
}

#[test]
fn pictures_teach_no_factor_and_no_window_without_a_number() {
    let mut lesson = LearnedModel::default();
    let size = RequestSize { tokens: 8_000, uncertain: u64::from(u32::MAX), fresh: None };
    let refusal = SizeRefusal { limit: Some(32_000), actual: Some(48_000), is_vague: false };
    lesson.refused(&from("s", None), size, refusal);
    assert_eq!((factor(&lesson), window(&lesson)), (1.0, Some(32_000)), "what it named is a fact");
    lesson.hear(&from("s", None), size, &usage(31_000));
    assert_eq!((factor(&lesson), lesson.most), (1.0, 31_000));
    let mut lesson = LearnedModel::default();
    lesson.refused(&from("s", None), size, SizeRefusal::default());
    assert_eq!((factor(&lesson), window(&lesson)), (1.0, None));
}

#[test]
fn a_server_that_reports_only_what_is_new_teaches_nothing() {
    let (mut lesson, mut tokens) = (LearnedModel::default(), 450);
    hear(&mut lesson, tokens, tokens);
    for fresh in [500, 500, 480, 700, 500, 510, 2_500, 500].repeat(4) {
        tokens += fresh;
        let size = RequestSize { fresh: Some(fresh), ..RequestSize::certain(tokens) };
        let told = lesson.hear(&from("s", Some(128_000)), size, &usage(fresh + 8));
        assert_eq!(told, UsageVerdict::Whole, "{fresh} of {tokens}");
        assert_eq!(window(&lesson), None, "{fresh} of {tokens}");
        assert!(factor(&lesson) > 0.9, "{fresh} of {tokens}: {}", factor(&lesson));
    }
    // Neither does the first request of a session whose beginning the server has cached from another.
    let mut lesson = LearnedModel::default();
    for (session, reported) in [("a", 500), ("b", 505), ("c", 495), ("d", 500)] {
        lesson.hear(&from(session, None), RequestSize::certain(520), &usage(520));
        lesson.hear(&from(session, None), RequestSize::certain(20_000), &usage(reported));
        assert_eq!(applied(&lesson, session).window(), None);
    }
}

#[test]
fn a_lesson_of_an_older_version_is_read_and_holds_for_all() {
    let old =
        r#"{"window":36041,"probed":40000,"factor":1.25,"samples":9,"most":30000,"usual":1.2,"doubt":2000}"#;
    let lesson = parsed(Some(old));
    assert_eq!((lesson.window, lesson.factor, lesson.most), (Some(36_041), Some(1.25), 30_000));
    let window = applied(&lesson, "s").learned_window().unwrap();
    assert_eq!((window.tokens, window.is_shared, window.evidence), (36_041, true, None));
    assert!((factor(&lesson) - 1.25).abs() < 1e-9);
}

#[test]
fn lessons_are_kept_by_place_and_model() {
    let store = MemoryStore::default();
    let here = about("http://h:1/v1", "m");
    assert_eq!(known(&store, &here).unwrap(), LearnedModel::default());
    let named = SizeRefusal { limit: Some(9), ..SizeRefusal::default() };
    learn(&store, &here, "s", |lesson| lesson.refused(&from("s", None), RequestSize::certain(0), named))
        .unwrap();
    assert_eq!(known(&store, &here).unwrap().window, Some(9));
    assert_eq!(known(&store, &about("http://h:2/v1", "m")).unwrap().window, None);
}
