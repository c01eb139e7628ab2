//! Reports of sessions that are made up here, entry by entry.

use super::*;
use komado_core::journal::{Edit, EditKind, Entry, Record, Reply, Sent, Usage as Took};
use komado_core::message::{Call, CallKind, Message, MessagePart as Piece, Role, ToolOutcome};
use komado_core::session::{Meta, MetaConfig, State, TaskKey};
use komado_core::thread::{Header, Moment};
use komado_core::{Seq, SessionId, ThreadId};
use komado_store::SessionQuery;

const NOW: &str = "2026-11-15T12:00:00.000000Z";

/// Sessions and their threads' entries, each with the minute of the day it was written in.
#[derive(Default)]
struct Made(Vec<(Session, Vec<Told>)>);

/// A thread and what stands in it.
type Told = (Header, Vec<Record>);

impl Archive for Made {
    fn page(&self, query: &SessionQuery) -> Result<Vec<Session>> {
        let wanted = |session: &&Session| query.user.is_none() || session.meta.user == query.user;
        Ok(self.0.iter().map(|(session, _)| session).filter(wanted).cloned().collect())
    }

    fn read(
        &self,
        id: &SessionId,
        each: &mut dyn FnMut(&Header, &Record, u64) -> ScanFlow,
    ) -> Result<ScanFlow> {
        let (_, threads) = self.0.iter().find(|(session, _)| session.meta.uuid == id.as_str()).unwrap();
        if threads.is_empty() {
            let why = "made so".to_owned();
            return Err(komado_store::Error::Damaged { place: id.to_string(), why }.into());
        }
        for (header, records) in threads {
            for record in records {
                if each(header, record, 100).is_break() {
                    return Ok(ScanFlow::Break(()));
                }
            }
        }
        Ok(ScanFlow::Continue(()))
    }
}

fn session(id: &str, user: &str, model: &str, day: u32) -> Session {
    let id = SessionId::new(id).unwrap();
    Session::new(&Meta {
        uuid: id.to_string(),
        task_key: TaskKey::local(&id),
        created_at: at(day, 0),
        process_id: 1,
        hostname: "h".into(),
        config: MetaConfig { model: Some(model.into()), ..MetaConfig::default() },
        user: Some(user.into()),
        queued: false,
    })
}

fn at(day: u32, second: u32) -> String {
    format!("2026-11-{day:02}T01:{:02}:{:02}.000000Z", second / 60, second % 60)
}

fn root(id: &str) -> Header {
    Header::root(SessionId::new(id).unwrap(), at(1, 0))
}

/// Entries at the seconds they were written.
fn written(day: u32, entries: Vec<(u32, Entry)>) -> Vec<Record> {
    let record = |(seq, (second, entry)): (usize, (u32, Entry))| Record {
        seq: seq as Seq + 1,
        timestamp: at(day, second),
        tokens: 10,
        entry,
    };
    entries.into_iter().enumerate().map(record).collect()
}

fn says(role: Role, text: &str) -> Entry {
    Entry::Message(Message::text(role, text), None)
}

fn sent(model: &str) -> Entry {
    Entry::Sent(Sent {
        digest: "d".into(),
        model: model.into(),
        context_tokens: 70,
        purpose: None,
        mark: None,
    })
}

fn lost(finish: &str) -> Entry {
    Entry::Lost(Reply { finish: finish.into(), ..Reply::default() })
}

fn answers(to: Seq, usage: Option<Took>, parts: Vec<Piece>) -> Entry {
    Entry::Message(
        Message::of(Role::Assistant, parts),
        Some(Reply { to: Some(to), usage, finish: "stop".into(), ..Reply::default() }),
    )
}

fn calls(name: &str) -> Piece {
    let (id, arguments) = ("c1".into(), "{}".into());
    Piece::Call(Call { id, name: name.into(), arguments, kind: CallKind::Function, extra: None })
}

fn fails() -> Entry {
    let outcome = ToolOutcome {
        is_error: true,
        duration_ms: Some(40),
        ..ToolOutcome::text("c1", None, "no such file")
    };
    Entry::Message(Message::of(Role::Tool, vec![Piece::Result(outcome)]), None)
}

fn edited(before: u64, after: u64) -> Entry {
    let mut edit = Edit {
        kind: EditKind::Truncate,
        hide: vec![],
        show: vec![],
        replace: vec![],
        cause: Default::default(),
    };
    (edit.cause.before, edit.cause.after) = (before, after);
    Entry::Edit(edit)
}

/// Two days of two users: one asks, overflows, asks again, and a tool fails; the other only says something.
fn two_days() -> Made {
    let usage = Took { input_tokens: 80, output_tokens: 20, ..Took::default() };
    let mut done = session("a", "ann", "m1", 10);
    done.enter(State::Completed, &at(11, 500), None);
    let first = written(
        10,
        vec![
            (0, says(Role::User, "返品したい")),
            (1, sent("m1")),
            (2, lost("overflow")),
            (3, edited(1_000, 400)),
            (4, sent("m1")),
            (6, answers(5, Some(usage), vec![calls("read")])),
            (7, fails()),
            (8, sent("m1")),
            (9, answers(8, None, vec![Piece::text("済みました")])),
        ],
    );
    let mut entries = first;
    let later =
        written(11, vec![(0, says(Role::User, "返品の方法を教えて")), (5, says(Role::Assistant, "はい"))]);
    entries.extend(later.into_iter().map(|record| Record { seq: record.seq + 9, ..record }));
    let other = written(11, vec![(0, says(Role::User, "opening hours?")), (1, says(Role::User, "please"))]);
    Made(vec![
        (done, vec![(root("a"), entries)]),
        (session("b", "bob", "m2", 11), vec![(root("b"), other)]),
        (session("c", "bob", "m2", 11), vec![]),
    ])
}

fn ask(from: &str, to: &str) -> ReportQuery {
    ReportQuery {
        range: Range::read(Some(from), Some(to), None, NOW).unwrap(),
        user: None,
        model: None,
        top: 10,
        parts: ReportPart::ALL.to_vec(),
        depth: ReportDepth::Journals,
    }
}

fn told(made: &Made, ask: &ReportQuery) -> Report {
    report(made, ask, &|_| true, &mut |_| ScanFlow::Continue(())).unwrap().unwrap()
}

#[test]
fn usage_is_told_by_day_week_user_and_model_and_empty_days_are_there() {
    let report = told(&two_days(), &ask("2026-11-09", "2026-11-17"));
    let usage = report.usage.unwrap();
    let rows = |rows: &[UsageRow]| -> Vec<(String, u64, u64, Option<u64>)> {
        rows.iter().map(|r| (r.key.clone(), r.sessions_made, r.sessions_active, r.turns)).collect()
    };
    let days = rows(&usage.by_day);
    assert_eq!(days.len(), 8);
    assert_eq!(days[0], ("2026-11-09".into(), 0, 0, Some(0)));
    assert_eq!(days[1], ("2026-11-10".into(), 1, 1, Some(1)));
    assert_eq!(days[2], ("2026-11-11".into(), 2, 2, Some(2)));
    assert_eq!(
        rows(&usage.by_week),
        [("2026-W46".into(), 3, 2, Some(3)), ("2026-W47".into(), 0, 0, Some(0))]
    );
    assert_eq!(rows(&usage.by_user), [("bob".into(), 2, 1, Some(1)), ("ann".into(), 1, 1, Some(2))]);
    assert_eq!(rows(&usage.by_model), [("m2".into(), 2, 1, Some(1)), ("m1".into(), 1, 1, Some(2))]);
    // 80 and 20 were reported; 70 of the request and 10 of the answer, and 10 of another answer, were counted.
    let total = &usage.total;
    assert_eq!((total.tokens_in, total.tokens_out, total.tokens_counted), (Some(150), Some(40), Some(90)));
    assert_eq!((total.messages, total.tool_calls, total.compactions), (Some(8), 1, 1));
    assert_eq!((report.unreadable, report.unreadable_sessions), (1, vec!["c".to_owned()]));
}

#[test]
fn only_what_lies_in_the_time_counts() {
    let report = told(&two_days(), &ask("2026-11-11", "2026-11-12"));
    let total = report.usage.unwrap().total;
    assert_eq!((total.sessions_made, total.sessions_active, total.turns), (2, 2, Some(2)));
    assert_eq!((total.tool_calls, total.compactions, total.tokens), (0, 0, 10));
    // One who only says please asks nothing.
    assert_eq!(report.questions.unwrap().asked, 2);
}

#[test]
fn questions_are_grouped_and_lead_to_where_they_were_asked() {
    let questions = told(&two_days(), &ask("2026-11-09", "2026-11-17")).questions.unwrap();
    let first = &questions.groups[0];
    assert_eq!((first.question.as_str(), first.count, first.at_most, first.users), ("返品したい", 2, 2, 1));
    assert_eq!(first.examples, ["a@1", "a@10"]);
    assert_eq!((first.share, first.last_seen.as_str()), (0.667, at(11, 0).as_str()));
    assert_eq!(questions.missed_at_most, 0);
}

#[test]
fn what_a_thread_above_tells_is_no_question_and_no_turn() {
    let mut made = two_days();
    let (_, threads) = &mut made.0[1];
    threads[0].0.thread = ThreadId::new("stelis_1").unwrap();
    threads[0].0.parent = Some(Moment { thread: ThreadId::root(), seq: 1 });
    let report = told(&made, &ask("2026-11-09", "2026-11-17"));
    assert_eq!(report.questions.unwrap().asked, 2);
    assert_eq!(report.usage.unwrap().total.turns, Some(2));
}

#[test]
fn performance_tells_what_was_journaled_and_leaves_out_what_was_not() {
    let performance = told(&two_days(), &ask("2026-11-09", "2026-11-17")).performance.unwrap();
    let all = &performance.overall;
    assert_eq!((all.completed, all.failed, all.stopped), (1, 0, 0));
    assert_eq!((all.requests, all.retries, all.overflows, all.failures), (3, 1, 1, 0));
    assert_eq!((all.retry_rate, all.overflow_rate), (Some(0.333), Some(0.333)));
    assert_eq!((all.tool_error_rate, all.compression_ratio, all.truncated), (Some(1.0), Some(0.4), 1));
    let turns = all.turns_to_finish.unwrap();
    assert_eq!((turns.count, turns.p50, turns.max), (1, 2.0, 2.0));
    // The second turn was brought in from elsewhere: how long it took is not known.
    let seconds = all.seconds_per_turn.unwrap();
    assert_eq!((seconds.count, seconds.mean), (1, 9.0));
    assert_eq!(all.seconds_to_first_answer.unwrap().mean, 6.0);
    let tool = &performance.tools[0];
    assert_eq!((tool.tool.as_str(), tool.errors, tool.mean_ms), ("read", 1, Some(40.0)));
    let idle = told(&Made::default(), &ask("2026-11-09", "2026-11-17")).performance.unwrap().overall;
    assert_eq!((idle.seconds_per_turn, idle.retry_rate, idle.compression_ratio), (None, None, None));
}

#[test]
fn rows_alone_answer_without_a_journal_and_say_what_they_do_not_know() {
    let mut made = two_days();
    (made.0[0].0.counters.total_tokens, made.0[0].0.counters.tool_call_count) = (190, 1);
    made.0.iter_mut().for_each(|(_, threads)| threads.clear());
    let mut ask = ask("2026-11-09", "2026-11-17");
    ask.depth = ReportDepth::Rows;
    let report = told(&made, &ask);
    let total = report.usage.unwrap().total;
    assert_eq!((total.sessions_made, total.sessions_active, total.tokens, total.tool_calls), (3, 3, 190, 1));
    assert_eq!((total.turns, total.bytes, report.unreadable, report.entries_read), (None, None, 0, 0));
    assert!(report.questions.is_none() && report.performance.is_none());
}

#[test]
fn a_user_a_model_and_a_guest_see_their_part() {
    let mut of_bob = ask("2026-11-09", "2026-11-17");
    of_bob.user = Some("bob".into());
    assert_eq!(told(&two_days(), &of_bob).usage.unwrap().total.sessions_made, 2);
    let mut of_model = ask("2026-11-09", "2026-11-17");
    of_model.model = Some("m1".into());
    let usage = told(&two_days(), &of_model).usage.unwrap();
    assert_eq!((usage.total.sessions_made, usage.total.turns, usage.by_model.len()), (1, Some(2), 1));
    let guest = |session: &Session| session.meta.user.as_deref() == Some("ann");
    let ask = ask("2026-11-09", "2026-11-17");
    let seen = report(&two_days(), &ask, &guest, &mut |_| ScanFlow::Continue(())).unwrap().unwrap();
    assert_eq!((seen.sessions_read, seen.questions.unwrap().asked), (1, 2));
}

#[test]
fn who_is_told_to_stop_stops() {
    let ask = ask("2026-11-09", "2026-11-17");
    let mut seen = 0;
    let stopped = report(&two_days(), &ask, &|_| true, &mut |progress| {
        seen = progress.sessions;
        if progress.sessions == 2 { ScanFlow::Break(()) } else { ScanFlow::Continue(()) }
    });
    assert!(stopped.unwrap().is_none());
    assert_eq!(seen, 2);
}

#[test]
fn what_is_beyond_the_top_is_in_the_others_and_nothing_is_lost() {
    let mut made = Made::default();
    for n in 0..30 {
        let id = format!("s{n}");
        let entries = written(10, vec![(0, says(Role::User, "窓"))]);
        made.0.push((session(&id, &format!("u{n}"), "m", 10), vec![(root(&id), entries)]));
    }
    let usage = told(&made, &ask("2026-11-09", "2026-11-17")).usage.unwrap();
    let shown: u64 = usage.by_user.iter().map(|row| row.sessions_made).sum();
    assert_eq!((usage.by_user.len(), shown), (10, 10));
    assert_eq!(usage.other_users.unwrap().sessions_made, 20);
    assert_eq!((usage.short_by, usage.other_models), (0, None));
}
