//! The invariant: whatever clients do to their transcripts, the model sees what its client tells, and nothing else.

use crate::place::kit::{Client, Done, Room, client, named};
use komado_core::{SessionId, ThreadId};
use komado_engine::place::Placement;
use komado_provider::Dialect;

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((z ^ (z >> 31)) % n.max(1) as u64).unwrap()
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// Few words, so that many transcripts are alike.
    fn word(&mut self) -> &'static str {
        ["窓", "a", "b"][self.below(3)]
    }
}

/// A client and what it believes was said.
struct Speaker {
    client: Client,
    lines: Vec<String>,
    /// A request of its own that is under way.
    open: Option<Done>,
}

impl Speaker {
    fn new(n: usize) -> Self {
        let client = if n == 2 { named("key", "third") } else { client("key") };
        Self { client, lines: Vec::new(), open: None }
    }

    /// What it sends next: its transcript, changed in some way, ending with words of its own.
    fn next(&mut self, dice: &mut Dice) -> Vec<String> {
        let mut lines = self.lines.clone();
        match dice.below(10) {
            0 if !lines.is_empty() => lines.truncate(dice.below(lines.len()) + 1),
            1 if !lines.is_empty() => {
                let at = dice.below(lines.len());
                let kind = lines[at][..1].to_owned();
                lines[at] = format!("{kind} {}", dice.word());
            }
            2 if !lines.is_empty() => {
                lines.remove(dice.below(lines.len()));
            }
            3 => lines.clear(),
            // The very same again, while it ends with words of its own.
            4 if lines.last().is_some_and(|line| line.starts_with('u')) => return lines,
            5 => lines.push(format!("u {}", dice.word())),
            _ => {}
        }
        if lines.last().is_none_or(|line| line.starts_with('a')) || dice.chance(20) {
            lines.push(format!("u {}", dice.word()));
        }
        lines
    }
}

/// What a view says, line for line: some dialects make one message of neighbours.
fn seen(room: &Room, session: &SessionId, thread: &ThreadId) -> Vec<String> {
    let split = |said: String| -> Vec<String> {
        let (role, words) = said.split_at(2);
        words.split('\n').map(|line| format!("{role}{line}")).collect()
    };
    room.seen(session, thread).into_iter().flat_map(split).collect()
}

/// Sends what the speaker says next, and checks that it is what the model sees.
fn step(room: &Room, speaker: &mut Speaker, dice: &mut Dice, trail: &mut Vec<String>) {
    let lines = speaker.next(dice);
    let aside = dice.chance(10);
    let client = Client { tools: !aside, ..speaker.client.clone() };
    let before = room.everything();
    let views: Vec<Vec<String>> = before.iter().map(|(s, t, _)| seen(room, s, t)).collect();
    let done = room.send(&client, &lines.join("|"));
    trail.push(format!("{} <- {}", done.told, lines.join("|")));
    assert_eq!(seen(room, &done.placed.session, &done.thread), lines, "{trail:#?}");
    for ((session, thread, _), view) in before.iter().zip(&views) {
        let is_own = *session == done.placed.session && *thread == done.thread;
        if !is_own || matches!(done.placed.how, Placement::Forks | Placement::Beside) {
            assert_eq!(&seen(room, session, thread), view, "{trail:#?}");
        }
    }
    if !aside {
        speaker.lines = lines;
        room.mark_busy(&done);
        speaker.open = Some(done);
    }
}

/// The request under way is answered, or lost.
fn finish(room: &Room, speaker: &mut Speaker, dice: &mut Dice) {
    let Some(done) = speaker.open.take() else { return };
    let own = (done.placed.session.clone(), done.thread.clone());
    room.busy.borrow_mut().retain(|busy| *busy != own);
    if dice.chance(85) {
        let answer = format!("a {}", dice.word());
        room.answer(&done, &answer);
        if dice.chance(90) {
            speaker.lines.push(answer);
        }
    }
}

fn play(room: &Room, seed: u64, steps: usize) {
    let mut dice = Dice(seed);
    let mut speakers: Vec<Speaker> = (0..3).map(Speaker::new).collect();
    let mut trail = vec![format!("seed {seed}")];
    for _ in 0..steps {
        let n = dice.below(speakers.len());
        let speaker = &mut speakers[n];
        if speaker.open.is_some() {
            finish(room, speaker, &mut dice);
        } else {
            step(room, speaker, &mut dice, &mut trail);
        }
    }
}

#[test]
fn no_thread_ever_shows_words_that_its_client_does_not_tell() {
    for seed in 0..150 {
        let dialect = Dialect::ALL[(seed % 4) as usize];
        play(&Room::in_memory(dialect), seed, 40);
    }
}

#[test]
fn neither_does_one_on_disk() {
    for seed in 1000..1008 {
        let dialect = Dialect::ALL[(seed % 4) as usize];
        play(&Room::in_files(dialect), seed, 30);
    }
}
