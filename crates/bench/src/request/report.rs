//! The figures of `komado-bench request`, for people and for programs.

use super::super::machine::Machine;
use super::super::{command, megabytes, round};
use super::peer::RequestPeer;
use super::{Args, Report, SMALL, Sent};
use crate::error::Result;
use crate::output::{BenchOutput, number};
use serde_json::{Value, json};

/// The journal is read, the request written to disk, read from there, and sent: each byte is moved so many times.
const MOVES: u64 = 4;

impl Sent {
    /// The most memory the process ever had.
    fn peak(&self) -> f64 {
        self.took.idle_peak.max(self.took.peak) as f64
    }

    /// What the request took beyond a process that counts tokens and does nothing.
    fn above_idle(&self) -> f64 {
        self.took.peak as f64 - self.took.idle as f64
    }

    fn read(&self) -> u64 {
        self.took.render.read + self.took.send.read
    }

    fn written(&self) -> u64 {
        self.took.render.written + self.took.send.written
    }

    /// Bytes moved, where moving each byte of the request once from journal to disk to socket is 1.
    fn passes(&self) -> f64 {
        (self.read() + self.written()) as f64 / (MOVES * self.took.request_bytes.max(1)) as f64
    }
}

impl RequestPeer {
    fn above_idle(&self) -> f64 {
        self.told.peak as f64 - self.told.idle as f64
    }
}

impl Report {
    /// How much more memory the large request takes than the small one.
    fn growth(&self) -> f64 {
        self.large.took.peak as f64 - self.small.took.peak as f64
    }

    /// How much of the peer's memory above its idle is not needed, in percent.
    fn saving(&self, peer: &RequestPeer) -> f64 {
        round(100.0 * (1.0 - self.large.above_idle() / peer.above_idle().max(1.0)))
    }
}

pub(super) fn as_json(args: &Args, machine: &Machine, report: &Report) -> Value {
    let mut all = sent_json(&report.large);
    let more = json!({
        "command": command(),
        "machine": machine,
        "mb": args.mb,
        "small": sent_json(&report.small),
        "growth_mb": megabytes(report.growth()),
        "peer": report.peer.as_ref().map(peer_json),
        "saving_percent": report.peer.as_ref().map(|peer| report.saving(peer)),
        "fill_seconds": round(report.fill_seconds),
    });
    if let (Some(all), Value::Object(more)) = (all.as_object_mut(), more) {
        all.extend(more);
    }
    all
}

fn sent_json(sent: &Sent) -> Value {
    let Sent { built, took, got, seconds } = sent;
    json!({
        "entries": built.entries,
        "journal_bytes": built.bytes,
        "tokens": built.tokens,
        "request_bytes": took.request_bytes,
        "peak_rss_mb": megabytes(sent.peak()),
        "idle_rss_mb": megabytes(took.idle as f64),
        "above_idle_mb": megabytes(sent.above_idle()),
        "bytes_read": sent.read(),
        "bytes_written": sent.written(),
        "bytes_copied_per_pass": round(sent.passes()),
        "render": took.render,
        "send": took.send,
        "allocations": took.heap.times,
        "allocated_bytes": took.heap.bytes,
        "heap_peak_bytes": took.heap.peak,
        "digest": got.digest,
        "digest_matches": got.digest == took.digest,
        "seconds": round(*seconds),
    })
}

fn peer_json(peer: &RequestPeer) -> Value {
    let RequestPeer { told, got } = peer;
    json!({
        "name": told.name,
        "messages": told.messages,
        "request_bytes": got.bytes,
        "peak_rss_mb": megabytes(told.peak.max(told.max) as f64),
        "idle_rss_mb": megabytes(told.idle as f64),
        "above_idle_mb": megabytes(peer.above_idle()),
    })
}

pub(super) fn as_text(out: &mut BenchOutput, report: &Report) -> Result {
    let Report { small, large, peer, .. } = report;
    let (entries, tokens) = (number(large.built.entries), number(large.built.tokens));
    out.line(format!("{entries} messages, {tokens} tokens, all of them in the request"))?;
    out.line("")?;
    out.table(&rows(report), &[1, 2, 3])?;
    out.line("")?;
    let growth = out.bold(&format!("{:+.1} MB", report.growth() / 1e6));
    let times = large.took.request_bytes / small.took.request_bytes.max(1);
    out.line(format!("growth     {growth} of memory for a request {} times as large", number(times)))?;
    let against = match peer {
        Some(peer) => {
            let saving = out.bold(&format!("{:.1} %", report.saving(peer)));
            format!("{saving} less memory above idle than the peer: {}", peer.told.name)
        }
        None => "no peer was measured, as you asked".into(),
    };
    out.line(format!("against    {against}"))?;
    let passes = out.bold(&format!("×{:.3}", large.passes()));
    out.line(format!(
        "copied     {passes} of one pass: journal read, request written, read and sent once each"
    ))?;
    out.line(format!("digest     {}… arrived as journaled", &large.got.digest[..16]))?;
    out.line(format!("filling    {:.1} s, sending {:.1} s", report.fill_seconds, large.seconds))
}

fn rows(report: &Report) -> Vec<Vec<String>> {
    let Report { small, large, peer, .. } = report;
    let mb = |bytes: f64| format!("{:.1}", bytes / 1e6);
    let mut head = vec!["MB".to_owned(), format!("{SMALL} MB request"), "large request".into()];
    let mut rows = vec![
        vec![
            "  request".to_owned(),
            mb(small.took.request_bytes as f64),
            mb(large.took.request_bytes as f64),
        ],
        vec!["  memory, idle".to_owned(), mb(small.took.idle as f64), mb(large.took.idle as f64)],
        vec!["  memory, at the most".to_owned(), mb(small.peak()), mb(large.peak())],
        vec!["  above idle".to_owned(), mb(small.above_idle()), mb(large.above_idle())],
        vec!["  bytes read".to_owned(), mb(small.read() as f64), mb(large.read() as f64)],
        vec!["  bytes written".to_owned(), mb(small.written() as f64), mb(large.written() as f64)],
    ];
    if let Some(peer) = peer {
        head.push("the peer".into());
        let (told, got) = (&peer.told, &peer.got);
        let figures = [got.bytes as f64, told.idle as f64, told.peak.max(told.max) as f64, peer.above_idle()];
        rows.iter_mut().zip(figures).for_each(|(row, figure)| row.push(mb(figure)));
    }
    rows.insert(0, head);
    rows
}
