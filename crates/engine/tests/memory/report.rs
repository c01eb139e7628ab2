//! A report of a million sessions holds no more than one of ten thousand.
//!
//! The sessions are made as they are asked for, with new users, models, tools and questions without end. `KOMADO_REPORT_SESSIONS`
//! says how many; without it a tenth of a million, so that the suite stays quick.

use crate::heap::most;
use komado_core::journal::{Entry, Record, Reply, Sent};
use komado_core::session::{Meta, MetaConfig, Session, State, TaskKey};
use komado_core::thread::Header;
use komado_core::{Message, Role, SessionId};
use komado_engine::error::Result;
use komado_engine::report::{Archive, Range, Report, ReportDepth, ReportPart, ReportQuery, ScanFlow, report};
use komado_store::SessionQuery;

/// So many sessions, none of which is anywhere.
struct Endless(u64);

fn time(n: u64, second: u64) -> String {
    format!("2026-11-{:02}T{:02}:{:02}:{:02}.000000Z", 1 + n % 15, n % 24, second / 60 % 60, second % 60)
}

/// A word that nobody knows.
fn word(n: u64) -> String {
    n.to_string().bytes().map(|digit| char::from(digit - b'0' + b'k')).collect()
}

fn session(n: u64) -> Session {
    let id = SessionId::new(format!("s{n:09}")).unwrap();
    let mut session = Session::new(&Meta {
        uuid: id.to_string(),
        task_key: TaskKey::local(&id),
        created_at: time(n, 0),
        process_id: 1,
        hostname: "h".into(),
        config: MetaConfig { model: Some(format!("model-{}", n % 9_000)), ..MetaConfig::default() },
        user: Some(format!("利用者{}", n % 50_000)),
        queued: false,
    });
    if n.is_multiple_of(2) {
        session.enter(State::Completed, &time(n, 90), None);
    }
    session
}

impl Archive for Endless {
    fn page(&self, query: &SessionQuery) -> Result<Vec<Session>> {
        let after = query.after.as_ref().map(|(_, id)| id.as_str()[1..].parse::<u64>().unwrap() + 1);
        let from = after.unwrap_or(0);
        Ok((from..self.0.min(from + query.limit as u64)).map(session).collect())
    }

    fn read(
        &self,
        id: &SessionId,
        each: &mut dyn FnMut(&Header, &Record, u64) -> ScanFlow,
    ) -> Result<ScanFlow> {
        let n: u64 = id.as_str()[1..].parse().unwrap();
        let header = Header::root(id.clone(), time(n, 0));
        let text = match n.is_multiple_of(10) {
            true => "返品したい".to_owned(),
            false => format!("{} {} 窓の{}", word(n), word(n * 7_919), word(n % 977)),
        };
        let (digest, model) = ("d".to_owned(), format!("model-{}", n % 9_000));
        let reply = Reply { to: Some(2), finish: "stop".into(), ..Reply::default() };
        let entries = [
            Entry::Message(Message::text(Role::User, text), None),
            Entry::Sent(Sent { digest, model, context_tokens: 9, purpose: None, mark: None }),
            Entry::Message(Message::text(Role::Assistant, "はい"), Some(reply)),
        ];
        for (seq, entry) in (1..).zip(entries) {
            let record = Record { seq, timestamp: time(n, u64::from(seq) * (1 + n % 20)), tokens: 5, entry };
            if each(&header, &record, 80).is_break() {
                return Ok(ScanFlow::Break(()));
            }
        }
        Ok(ScanFlow::Continue(()))
    }
}

fn ask(depth: ReportDepth) -> ReportQuery {
    let range = Range::read(Some("2026-11-01"), Some("2026-11-16"), None, "2026-11-16T00:00:00Z").unwrap();
    ReportQuery { range, user: None, model: None, top: 20, parts: ReportPart::ALL.to_vec(), depth }
}

fn reported(sessions: u64, depth: ReportDepth) -> (Report, usize) {
    let mut told = None;
    let held = most(|| {
        told = report(&Endless(sessions), &ask(depth), &|_| true, &mut |_| ScanFlow::Continue(())).unwrap();
    });
    (told.unwrap(), held)
}

/// What full tables hold, and a little.
const MOST: usize = 6 << 20;

#[test]
fn a_report_holds_a_few_megabytes_however_many_sessions_there_are() {
    let _alone = crate::heap::alone();
    let many = std::env::var("KOMADO_REPORT_SESSIONS").map_or(100_000, |text| text.parse().unwrap());
    for depth in [ReportDepth::Rows, ReportDepth::Journals] {
        let (few, small) = reported(10_000, depth);
        let (told, large) = reported(many, depth);
        eprintln!("{depth:?}: 10,000 sessions hold {} KiB, {many} hold {} KiB", small >> 10, large >> 10);
        assert!(small.max(large) < MOST, "{depth:?}: {small} bytes became {large}");
        for (report, sessions) in [(&few, 10_000), (&told, many)] {
            let usage = report.usage.as_ref().unwrap();
            let others = usage.other_users.as_ref().unwrap().sessions_made;
            let shown: u64 = usage.by_user.iter().map(|row| row.sessions_made).sum();
            assert_eq!((usage.total.sessions_made, shown + others), (sessions, sessions));
        }
    }
    let (told, _) = reported(20_000, ReportDepth::Journals);
    let questions = told.questions.unwrap();
    assert_eq!(questions.groups[0].question, "返品したい");
    assert_eq!(questions.asked, 20_000);
}
