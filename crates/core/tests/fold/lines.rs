//! Entries as lines, in both spellings.

use crate::fold::elders::each_journal;
use crate::fold::play::poured;
use komado_core::Message;
use komado_core::journal::{decode, encode};
use komado_core::openai::{self, BlobReader};
use komado_core::thread::Header;
use komado_testkit::{Book, notation};
use serde_json::Value;
use std::io::{self, Write};

#[test]
fn every_record_reads_back_from_its_line_and_gives_the_same_bytes() {
    each_journal(2_000_000, 6_000, |play| {
        for record in play.book.records() {
            let line = encode(record);
            let text = std::str::from_utf8(&line).unwrap();
            assert_eq!(text.matches('\n').count(), 1);
            let read = decode(text).unwrap();
            assert_eq!(read, *record);
            assert_eq!(encode(&read), line);
        }
    });
}

#[test]
fn every_line_of_the_page_about_the_journal_is_written_as_it_stands_there() {
    let page = include_str!("../../../../docs/journal.md");
    let lines: Vec<&str> = page.lines().filter(|line| line.starts_with("{\"seq\"")).collect();
    assert!(lines.len() > 14, "{}", lines.len());
    for line in lines {
        let written = match Header::decode(line) {
            Ok(header) => header.encode(),
            Err(_) => encode(&decode(line).unwrap_or_else(|e| panic!("{e}: {line}"))),
        };
        assert_eq!(String::from_utf8(written).unwrap(), format!("{line}\n"));
    }
}

#[test]
fn every_journal_reads_back_from_the_notation() {
    each_journal(2_100_000, 6_000, |play| {
        let text = notation::journal(play.book.records());
        let read = notation::parse(&text).unwrap();
        let written: Vec<_> = play.book.records().map(|r| (r.entry.clone(), r.tokens)).collect();
        assert_eq!(read, written);
        let mut again = Book::default();
        for (entry, tokens) in read {
            again.push(entry, tokens, "").unwrap();
        }
        assert_eq!(again.view(), play.book.view());
    });
}

struct NoBytes;

impl BlobReader for NoBytes {
    fn base64(&mut self, _: &str, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(b"AA==")
    }
}

fn chat(message: &Message) -> Value {
    let mut out = Vec::new();
    openai::write(message, &mut NoBytes, &mut out).unwrap();
    serde_json::from_slice(&out).unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&out)))
}

#[test]
fn every_message_of_a_view_is_written_as_the_chat_api_takes_it() {
    each_journal(2_200_000, 4_000, |play| {
        for (_, message) in poured(&play.book, play.book.view()) {
            let json = chat(&message);
            assert_eq!(json["role"], message.role.name());
            let calls: Vec<&str> = message.calls().map(|call| call.id.as_str()).collect();
            let written: Vec<&str> = json["tool_calls"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|call| call["id"].as_str())
                .collect();
            assert_eq!(written, calls);
            assert_eq!(
                json["tool_call_id"].as_str(),
                message.outcome().map(|outcome| outcome.call_id.as_str())
            );
            assert!(json["content"].is_string() || json["content"].is_array() || !calls.is_empty());
        }
    });
}
