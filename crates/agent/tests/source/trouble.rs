//! Trackers that are busy, broken, strict or hostile.

use crate::source::kit::{BOTH, LABEL, REPO, Room, TOKEN, client, tracker};
use komado_agent::source::{self, Error, SourceEnd, TrackerKind};
use komado_provider::Cancel;
use komado_testkit::tracker::{FakeIssue, Limit, TrackerFault, TrackerServer};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

fn refused(room: &mut Room) -> String {
    match room.source.waiting(&mut |_| true) {
        Err(error @ Error::Refused { .. }) => error.to_string(),
        other => panic!("not refused: {other:?}"),
    }
}

fn away(room: &mut Room) -> String {
    match room.source.waiting(&mut |_| true) {
        Err(error @ Error::Away { .. }) => error.to_string(),
        other => panic!("not away: {other:?}"),
    }
}

#[test]
fn a_tracker_that_was_asked_too_often_is_asked_again_when_it_says_so() {
    for kind in BOTH {
        for limit in [Limit::Quota(1), Limit::Burst(1), Limit::Burst(0)] {
            let mut room = Room::with(kind, |tracker| tracker.patience = Duration::from_secs(5));
            (0..120).for_each(|number| drop(room.issue(&number.to_string())));
            room.server.limit_after(1, 1, limit);
            assert_eq!(room.waiting().len(), 120);
        }
    }
}

#[test]
fn a_wait_that_is_longer_than_the_patience_says_until_when() {
    for kind in BOTH {
        for limit in [Limit::Quota(600), Limit::Burst(600)] {
            let mut room = Room::new(kind);
            room.server.limit_after(0, 1, limit);
            let why = away(&mut room);
            assert!(why.contains("at 2026-01-01T00:10:01Z, in 600 s"), "{why}");
            assert!(why.contains("the issues of ann/tool"), "{why}");
            assert_eq!(room.server.requests().len(), 1);
        }
    }
}

/// The requests that were refused with a limit.
fn limits(server: &TrackerServer) -> usize {
    server.requests().iter().filter(|request| matches!(request.status, 403 | 429)).count()
}

#[test]
fn a_wait_is_broken_off_and_what_is_to_be_said_at_the_end_is_said_all_the_same() {
    for kind in BOTH {
        let mut room = Room::with(kind, |tracker| tracker.patience = Duration::from_secs(600));
        let (task, place) = room.begun(FakeIssue::new("stopped while its tracker is busy"));
        room.server.limit_after(0, 1, Limit::Burst(60));
        let (server, cancel) = (&room.server, &room.cancel);
        let look = std::thread::scope(|scope| {
            let waits = scope.spawn(|| room.source.look(&task, None));
            while limits(server) == 0 && !waits.is_finished() {
                std::thread::sleep(Duration::from_millis(5));
            }
            cancel.cancel();
            waits.join().unwrap()
        });
        let Err(why @ Error::Away { .. }) = look else { panic!("nobody broke it off: {look:?}") };
        assert!(why.to_string().contains("broken off"), "{why}");
        for asked in [room.source.look(&task, None).err(), room.source.waiting(&mut |_| true).err()] {
            assert!(matches!(asked, Some(Error::Away { .. })), "{asked:?}");
        }
        room.server.limit_after(0, 1, Limit::Burst(1));
        room.source.say(&task, "s1/result", "It was stopped.").unwrap();
        room.source.end(&task, SourceEnd::Stopped).unwrap();
        assert_eq!(room.said(&place).len(), 1);
        assert_eq!(room.labels(&place), [""; 0]);
    }
}

#[test]
fn what_breaks_for_a_moment_is_tried_again() {
    for kind in BOTH {
        for fault in [
            TrackerFault::Status(500),
            TrackerFault::Page(502),
            TrackerFault::Status(503),
            TrackerFault::Cut,
            TrackerFault::CutAfter,
        ] {
            let mut room = Room::new(kind);
            room.issue("patience");
            room.server.fail_next(3, fault.clone());
            assert_eq!(room.waiting().len(), 1, "{fault:?}");
            let task = room.waiting().pop().unwrap();
            room.server.fail_next(2, fault);
            room.source.begin(&task).unwrap();
        }
    }
}

#[test]
fn a_page_that_breaks_off_in_the_middle_goes_on_where_it_was() {
    for kind in BOTH {
        let mut room = Room::new(kind);
        (0..100).for_each(|number| drop(room.issue(&number.to_string())));
        room.server.fail_next(2, TrackerFault::Half);
        let titles: Vec<String> = room.waiting().into_iter().map(|task| task.title).collect();
        assert_eq!(titles, (0..100).map(|number| number.to_string()).collect::<Vec<_>>());
    }
}

#[test]
fn what_stays_broken_is_said_to_be_away_and_in_which_words() {
    for kind in BOTH {
        let mut room = Room::new(kind);
        room.server.fail_next(99, TrackerFault::Page(502));
        let why = away(&mut room);
        assert!(why.contains("502 Bad Gateway") && why.contains("tried 5 times"), "{why}");
        assert!(!why.contains("<html>"), "{why}");
    }
}

#[test]
fn nobody_at_the_address_is_away_too() {
    let server = TrackerServer::start(TrackerKind::GitHub, "t").unwrap();
    let tracker = tracker(&server, TrackerKind::GitHub);
    drop(server);
    let mut source = source::open(tracker, client(), Cancel::default()).unwrap();
    assert!(matches!(source.waiting(&mut |_| true), Err(Error::Away { .. })));
}

#[test]
fn a_wrong_token_names_the_setting_and_never_itself() {
    for (kind, setting, variable) in [
        (TrackerKind::GitHub, "github.token", "GITHUB_TOKEN"),
        (TrackerKind::GitLab, "gitlab.token", "GITLAB_TOKEN"),
    ] {
        for token in [Some("wr0ng-key"), None] {
            let mut room = Room::with(kind, |tracker| tracker.token = token.map(str::to_owned));
            let why = refused(&mut room);
            assert!(why.contains(setting) && why.contains(variable), "{why}");
            assert!(!why.contains("wr0ng-key") && !why.contains(TOKEN), "{why}");
            let missing = token.is_none();
            assert_eq!(why.contains("there is no token"), missing, "{why}");
        }
    }
}

#[test]
fn a_token_that_no_header_can_carry_is_refused_without_being_shown() {
    let mut room = Room::with(TrackerKind::GitHub, |tracker| tracker.token = Some("wr0ng\nkey".to_owned()));
    let why = refused(&mut room);
    assert!(why.contains("authorization") && !why.contains("wr0ng"), "{why}");
}

#[test]
fn the_settings_of_a_tracker_do_not_show_its_token() {
    let server = TrackerServer::start(TrackerKind::GitHub, "t").unwrap();
    let shown = format!("{:?} {server:?}", tracker(&server, TrackerKind::GitHub));
    assert!(!shown.contains(TOKEN) && shown.contains("ann/tool"), "{shown}");
}

#[test]
fn a_repository_that_is_not_there_is_named() {
    for kind in BOTH {
        let mut room = Room::with(kind, |tracker| tracker.repos = vec!["ann/nope".to_owned()]);
        let why = refused(&mut room);
        assert!(why.contains("ann/nope") && why.contains("there is no such"), "{why}");
    }
}

#[test]
fn a_right_that_is_missing_is_no_limit_and_is_not_waited_for() {
    for kind in BOTH {
        let mut room = Room::new(kind);
        room.server.fail_next(1, TrackerFault::Status(403));
        let why = refused(&mut room);
        assert!(why.contains("needs more rights"), "{why}");
        assert_eq!(room.server.requests().len(), 1);
    }
}

#[test]
fn a_link_to_another_host_takes_nobody_there() {
    let trap = TcpListener::bind("127.0.0.1:0").unwrap();
    trap.set_nonblocking(true).unwrap();
    let evil = format!("http://{}", trap.local_addr().unwrap());
    for kind in BOTH {
        let mut room = Room::new(kind);
        (0..150).for_each(|number| drop(room.issue(&number.to_string())));
        room.server.link_to(&evil);
        assert_eq!(room.waiting().len(), 150, "the next page is asked for where the first one was");
        assert!(trap.accept().is_err(), "nobody came");
    }
}

/// Answers every connection with these bytes, and says nothing else. Only for answers that no stand-in would give.
fn parrot(answer: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    url
}

fn asked_at(url: &str) -> String {
    let url = url.to_owned();
    refused(&mut Room::with(TrackerKind::GitHub, |tracker| tracker.base_url = url))
}

#[test]
fn a_redirect_to_another_host_is_not_followed() {
    let trap = TcpListener::bind("127.0.0.1:0").unwrap();
    trap.set_nonblocking(true).unwrap();
    let evil = trap.local_addr().unwrap();
    let url = parrot(format!(
        "HTTP/1.1 302 Found\r\nlocation: http://{evil}/?x={TOKEN}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    ));
    let why = asked_at(&url);
    assert!(why.contains(&format!("points to http://{evil}")) && why.contains("github.base_url"), "{why}");
    assert!(!why.contains(TOKEN), "{why}");
    assert!(trap.accept().is_err(), "nobody came");
}

#[test]
fn a_page_where_the_api_should_be_is_refused_with_the_setting() {
    let page = "<!DOCTYPE html><title>Sign in</title>";
    let length = page.len();
    let url =
        parrot(format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{page}"));
    assert!(asked_at(&url).contains("github.base_url"));
}

#[test]
fn a_refusal_that_repeats_the_token_is_repeated_without_it() {
    let body = format!(r#"{{"message":"bad key {TOKEN}"}}"#);
    let length = body.len();
    let url =
        parrot(format!("HTTP/1.1 422 No\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"));
    let why = asked_at(&url);
    assert!(why.contains("bad key …") && !why.contains(TOKEN), "{why}");
}

#[test]
fn pages_that_lead_to_themselves_end() {
    let first = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n";
    let url = parrot(format!("{first}link: <http://x/?page=2>; rel=\"next\"\r\n\r\n[]"));
    assert!(asked_at(&url).contains("without an end"));
}

#[test]
fn one_thing_that_is_longer_than_any_tracker_keeps_is_refused() {
    let mut room = Room::new(TrackerKind::GitHub);
    room.server.add_issue(REPO, FakeIssue::new("endless").text("x".repeat(17 << 20)).label(LABEL));
    let why = refused(&mut room);
    assert!(why.contains("longer than"), "{why}");
}
