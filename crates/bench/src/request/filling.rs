//! A conversation of many megabytes, all of it in view: questions, calls, outputs, answers, some of it Japanese.

use super::super::dice::Dice;
use super::super::place::BenchFolder;
use super::super::words::BenchWords;
use crate::error::Result;
use crate::output::progress;
use komado_core::message::{Message, Role};
use komado_core::{Meter, SessionId, ThreadId};
use komado_store::OpenMode;

/// Bytes of a message, on the whole; an output has twice as many.
const BODY: usize = 4000;
/// Turns that are made durable at once.
const LOT: u64 = 64;
/// Every so many turns are Japanese.
const JAPANESE: u64 = 3;

const SENTENCES: [&str; 8] = [
    "セッションを開いて、索引だけを読みます。",
    "ジャーナルには一行ずつ追記されます。",
    "窓に入りきらない出力は、先頭と末尾だけを見せます。",
    "設定ファイルの三行目に誤りがありました。",
    "テストはすべて通りましたが、警告が二つ残っています。",
    "要約しても、元の言葉は失われません。",
    "次に src/main.rs を確認してください。",
    "了解しました。小さな窓でも会話は続きます。\n",
];

/// A session that was made.
pub(super) struct RequestSession {
    pub(super) name: &'static str,
    pub(super) id: SessionId,
    pub(super) entries: u64,
    /// Bytes of its journal.
    pub(super) bytes: u64,
    pub(super) tokens: u64,
}

/// Makes a session with `mb` megabytes of messages. Outputs are shown whole, or the request would be a small one.
pub(super) fn fill(place: &BenchFolder, name: &'static str, mb: u64) -> Result<RequestSession> {
    let id = place.session(name, Meter::O200k)?;
    let mut thread = place.engine.open(&id, &ThreadId::root(), OpenMode::Write)?.clipping(None);
    let journal = place.store.folder(&id)?.join("messages.jsonl");
    let words = BenchWords::new();
    let bar = progress("filling the session", mb * 1_000_000);
    let (mut n, mut bytes) = (0, 0);
    while bytes < mb * 1_000_000 {
        let mut batch = thread.batch();
        for _ in 0..LOT.min((mb * 1_000_000 - bytes) / (4 * BODY as u64) + 1) {
            for message in turn(&words, n) {
                batch.say(message, None)?;
            }
            n += 1;
        }
        let (_, work) = batch.finish();
        thread.commit(work)?;
        bytes = std::fs::metadata(&journal)?.len();
        bar.set_position(bytes);
    }
    thread.say(Message::text(Role::User, "これまでの内容をまとめてください。"))?;
    // What people read of it is up to date, as after any command; the peer reads its messages there.
    thread.settle()?;
    bar.finish_and_clear();
    let (entries, tokens) = (u64::from(thread.last()), thread.view().tokens());
    Ok(RequestSession { name, id, entries, bytes, tokens })
}

fn turn(words: &BenchWords, n: u64) -> [Message; 4] {
    let [asked, call, result, told] = words.turn(n, BODY);
    if !n.is_multiple_of(JAPANESE) {
        return [asked, call, result, told];
    }
    let mut dice = Dice::new(n);
    let mut said = |role, bytes| Message::text(role, japanese(&mut dice, bytes));
    [said(Role::User, BODY / 2), call, result, said(Role::Assistant, BODY)]
}

fn japanese(dice: &mut Dice, bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 128);
    while text.len() < bytes {
        text.push_str(dice.pick(&SENTENCES).unwrap_or_default());
    }
    text
}
