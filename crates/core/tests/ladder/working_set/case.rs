//! A random conversation as a list of things that happen. Each can be left out, so what breaks a law can be made small.

use crate::ladder::dice::Dice;
use crate::ladder::play::{Play, entry};
use crate::ladder::stage::{self, Fitted};
use komado_core::budget::{Budget, Preset};
use komado_core::head::EntrySource;
use komado_core::journal::{Anchor, Cause, Edit, EditKind, Ending, Entry, Replace, Setup, Show, ShowKind};
use komado_core::message::{Call, CallKind, Message, MessagePart, OutputRef, Role, ToolOutcome};
use komado_core::raw::RawJson;
use komado_core::{Meter, Seq, Span, ThreadId};
use komado_testkit::Book;
use std::sync::LazyLock;

/// The rule of an edit that a person made.
pub(crate) const BY_HAND: &str = "by_hand";

/// What a text looks like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Script {
    Lines,
    Japanese,
    OneLine,
    LongLines,
}

/// Bytes that a text can be cut out of.
const STOCK: usize = 96 * 1024;

/// What texts are cut out of, by script.
static TEXTS: LazyLock<[String; 4]> = LazyLock::new(|| {
    let fill = |line: &dyn Fn(usize) -> String| {
        let mut text = String::with_capacity(STOCK + 4_096);
        let mut n = 0;
        while text.len() < STOCK {
            text.push_str(&line(n));
            n += 1;
        }
        text
    };
    [
        fill(&|n| format!("line {n}: test_module_{} took {} ms, {} passed\n", n % 37, n * 7 % 911, n % 13)),
        fill(&|n| format!("第{n}行：設定ファイルの読み込みに失敗しました。\n")),
        fill(&|n| format!("{{\"id\":{n},\"name\":\"item{}\",\"size\":{}}},", n * 31 % 1_009, n * 17 % 4_096)),
        fill(&|n| format!("row {n} {}\n", format!("value_{} ", n * 13 % 977).repeat(8 + n * 29 % 113))),
    ]
});

/// A text: where it is cut out, and how much of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words {
    script: Script,
    from: u32,
    tokens: u32,
}

impl Words {
    fn text(self) -> String {
        let stock = TEXTS[self.script as usize].as_str();
        let from = boundary(stock, self.from as usize);
        let to = boundary(stock, from + 4 * self.tokens.max(1) as usize);
        stock[from..to].to_owned()
    }
}

/// Where a text may be cut, at this byte or the next that is one.
pub(crate) fn boundary(text: &str, at: usize) -> usize {
    (at..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())
}

/// One thing that happens.
#[derive(Clone, Debug)]
enum Act {
    Setup {
        words: Words,
        tools: bool,
    },
    System(Words),
    Harness(Words),
    User(Words),
    Reminded(Words),
    Reply(Words),
    /// Calls with arguments of so many tokens, and their results.
    Calls {
        said: Option<Words>,
        arguments: u32,
        results: Vec<Words>,
    },
    Pin(u32),
    Unpin,
    /// A person condenses from one place to another.
    Condensed(u32, u32),
    /// A person takes one result out.
    Trimmed(u32),
    Revert(u32),
    Rewind(u32),
    /// A child thread begins; it may end at once.
    Child {
        ended: bool,
        words: Words,
    },
    /// A request, in so many percent of the window.
    Request(u32),
}

/// A conversation in a window.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) seed: u64,
    pub(crate) preset: Preset,
    pub(crate) meter: Meter,
    window: u32,
    condense: bool,
    trim: bool,
    acts: Vec<Act>,
}

/// A size between two, small ones as likely as large ones.
fn size(dice: &mut Dice, from: u32, to: u32) -> u32 {
    let (from, to) = (from.max(1), to.max(2));
    let doublings = (to / from).max(1).ilog2() + 1;
    let base = from.saturating_mul(1 << dice.below(doublings));
    dice.between(base, base * 2).min(to)
}

fn words(dice: &mut Dice, tokens: u32) -> Words {
    const SCRIPTS: [Script; 6] =
        [Script::Lines, Script::Lines, Script::Lines, Script::Japanese, Script::OneLine, Script::LongLines];
    let script = *dice.pick(&SCRIPTS).unwrap();
    Words { script, from: dice.below(u32::try_from(STOCK / 3).unwrap()), tokens: tokens.min(14_000) }
}

/// What is said in a conversation of that room: mostly small beside it, now and then larger than it.
fn said(dice: &mut Dice, room: u32) -> Words {
    let tokens = match dice.below(12) {
        0 => size(dice, room / 3, room * 3 / 2),
        1..6 => size(dice, room / 20, room / 3),
        _ => size(dice, room / 100, room / 20),
    };
    words(dice, tokens)
}

impl Case {
    /// The conversation of a seed.
    pub(crate) fn of(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let dice = &mut dice;
        let others = [Preset::Seed000, Preset::Seed001, Preset::Seed002];
        let preset = if dice.chance(60) { Preset::Komado } else { *dice.pick(&others).unwrap() };
        let meter = match dice.below(100) {
            0..2 => Meter::O200k,
            2..25 => Meter::Chars4,
            _ => Meter::Bytes4,
        };
        let window = if dice.chance(10) { dice.between(250, 700) } else { size(dice, 700, 4_000) };
        let mut case = Self {
            seed,
            preset,
            meter,
            window,
            condense: dice.chance(85),
            trim: dice.chance(85),
            acts: Vec::new(),
        };
        let is_chat = dice.chance(20);
        case.open(dice, is_chat);
        case.go_on(dice, is_chat);
        case
    }

    fn usable(&self) -> u32 {
        u32::try_from(self.budget(100).usable).unwrap()
    }

    fn open(&mut self, dice: &mut Dice, is_chat: bool) {
        let room = self.usable();
        let part = match dice.below(10) {
            0 => 0,
            1..5 => dice.between(1, 30),
            5..9 => dice.between(30, 90),
            _ => dice.between(85, 125),
        };
        if part > 0 {
            self.acts.push(Act::Setup { words: words(dice, room * part / 100), tools: !is_chat });
        }
        if dice.chance(20) {
            let tokens = size(dice, room / 200, room / 20);
            self.acts.push(Act::System(words(dice, tokens)));
        }
        if dice.chance(30) {
            for _ in 0..dice.between(1, 3) {
                let tokens = size(dice, room / 100, room / 4);
                self.acts.push(Act::Harness(words(dice, tokens)));
            }
        }
        let tokens = if dice.chance(8) {
            dice.between(room / 3, room * 3 / 2)
        } else {
            size(dice, room / 200, room / 8)
        };
        let task = words(dice, tokens);
        self.acts.push(if dice.chance(20) { Act::Reminded(task) } else { Act::User(task) });
    }

    fn go_on(&mut self, dice: &mut Dice, is_chat: bool) {
        let room = self.usable();
        for _ in 0..dice.between(2, 14) {
            if dice.chance(18) {
                let percent = if dice.chance(80) { 100 } else { dice.between(50, 150) };
                self.acts.push(Act::Request(percent));
            }
            if dice.chance(18) {
                let act = aside(dice, room);
                self.acts.push(act);
            } else if is_chat {
                let (question, answer) = (said(dice, room), said(dice, room));
                self.acts.extend([Act::User(question), Act::Reply(answer)]);
            } else {
                let act = step(dice, room);
                self.acts.push(act);
            }
        }
        if is_chat || dice.chance(15) {
            let words = said(dice, room);
            self.acts.push(Act::User(words));
        } else if dice.chance(90) {
            let act = calls(dice, room);
            self.acts.push(act);
        }
        self.acts.push(Act::Request(100));
    }

    /// The budget of a request in so many percent of the window.
    fn budget(&self, percent: u32) -> Budget {
        let mut policy = self.preset.policy();
        policy.rungs.condense &= self.condense;
        policy.rungs.trim &= self.trim;
        Budget::new(policy, u64::from(self.window * percent / 100), &[])
    }

    /// Goes through the conversation; `look` is told of each request: the budget, what was the last entry before, and what
    /// came of it. Where it says so, that was the last.
    pub(crate) fn play(&self, mut look: impl FnMut(&Play, &Budget, &Book, &Fitted) -> bool) -> Play {
        let mut play = Play { seed: self.seed, dice: Dice::new(self.seed), book: Book::default() };
        for act in &self.acts {
            let Act::Request(percent) = act else {
                self.act(&mut play, act);
                continue;
            };
            stage::ready(&mut play, self.meter);
            let (budget, before) = (self.budget(*percent), play.book.clone());
            let fitted = stage::fit(&mut play, self.meter, &budget);
            give_back(&mut play, &budget, before.view().last());
            let ends = matches!(fitted, Fitted::Floor(_));
            if look(&play, &budget, &before, &fitted) || ends {
                break;
            }
        }
        play
    }

    fn act(&self, play: &mut Play, act: &Act) {
        match act {
            Act::Setup { words, tools } => self.set_up(play, *words, *tools),
            Act::System(words) => self.say(play, Message::text(Role::System, words.text())),
            Act::Harness(words) => {
                let text = format!("<environment_context>\n{}\n</environment_context>", words.text());
                self.say(play, Message::text(Role::User, text));
            }
            Act::User(words) => self.say(play, Message::text(Role::User, words.text())),
            Act::Reminded(words) => {
                let text = format!("<system-reminder>Be brief.</system-reminder>\n{}", words.text());
                self.say(play, Message::text(Role::User, text));
            }
            Act::Reply(words) => self.say(play, Message::text(Role::Assistant, words.text())),
            Act::Calls { said, arguments, results } => self.call(play, *said, *arguments, results),
            Act::Pin(at) => {
                if let Some(span) = unit(play, *at) {
                    play.push(Entry::Pin { span }, 0);
                }
            }
            Act::Unpin => {
                if let Some(span) = play.book.view().pins().last().copied() {
                    play.push(Entry::Unpin { span }, 0);
                }
            }
            Act::Condensed(from, to) => {
                if let (Some(from), Some(to)) = (unit(play, *from), unit(play, *to)) {
                    let hide = vec![Span::new(from.from.min(to.from), from.to.max(to.to))];
                    let show = Show { kind: ShowKind::Summary, text: "Nothing of note.".into(), tokens: 0 };
                    self.edit(play, EditKind::Condense, hide, vec![show], vec![]);
                }
            }
            Act::Trimmed(at) => {
                let outputs = outputs(play);
                if let Some(seq) = outputs.get(*at as usize % outputs.len().max(1)) {
                    let swap = Replace { seq: *seq, text: "left out by hand".into(), tokens: 0 };
                    self.edit(play, EditKind::Trim, vec![], vec![], vec![swap]);
                }
            }
            Act::Revert(at) => {
                let edits: Vec<Seq> = play.book.view().edits().collect();
                if let Some(&target) = edits.get(*at as usize % edits.len().max(1)) {
                    play.push(Entry::Revert { target }, 0);
                }
            }
            Act::Rewind(by) => {
                let to = play.last().saturating_sub(Seq::from(*by)).max(3);
                if to < play.last() {
                    play.push(Entry::Rewind { to }, 0);
                    stage::ready(play, self.meter);
                }
            }
            Act::Child { ended, words } => self.spawn(play, *ended, *words),
            Act::Request(_) => {}
        }
    }

    fn push(&self, play: &mut Play, entry: Entry) -> Option<Seq> {
        let (entry, tokens) = stage::trued(self.meter, play, entry);
        play.push(entry, tokens)
    }

    fn say(&self, play: &mut Play, message: Message) {
        self.push(play, Entry::Message(message, None));
    }

    fn set_up(&self, play: &mut Play, words: Words, has_tools: bool) {
        let tools = r#"[{"name":"read"},{"name":"tool_output_cache"},{"name":"recall"}]"#;
        let setup = Setup {
            system: Some(words.text()),
            tools: has_tools.then(|| RawJson::parse(tools).unwrap()),
            params: None,
            dialect: Some("openai".into()),
        };
        self.push(play, Entry::Setup(setup));
    }

    fn call(&self, play: &mut Play, said: Option<Words>, arguments: u32, results: &[Words]) {
        let at = play.last() + 1;
        let mut parts: Vec<MessagePart> = said.iter().map(|words| MessagePart::text(words.text())).collect();
        let path = "x".repeat(4 * arguments as usize);
        parts.extend((0..results.len()).map(|i| {
            MessagePart::Call(Call {
                id: format!("c{at}_{i}"),
                name: "read".into(),
                arguments: format!(r#"{{"path":"src/{}{path}.rs"}}"#, (at + i as Seq) % 7),
                kind: CallKind::Function,
                extra: None,
            })
        }));
        self.say(play, Message::of(Role::Assistant, parts));
        for (i, words) in results.iter().enumerate() {
            let mut outcome = ToolOutcome::text(format!("c{at}_{i}"), Some("read".into()), words.text());
            if words.from % 10 == 0 {
                outcome.output_ref =
                    Some(OutputRef { id: "out/17".into(), byte_size: None, line_count: None });
            }
            self.say(play, Message::of(Role::Tool, vec![MessagePart::Result(outcome)]));
        }
    }

    fn edit(&self, play: &mut Play, kind: EditKind, hide: Vec<Span>, show: Vec<Show>, replace: Vec<Replace>) {
        let cause = Cause { rule: BY_HAND.into(), ..Cause::default() };
        self.push(play, Entry::Edit(Edit { kind, hide, show, replace, cause }));
    }

    fn spawn(&self, play: &mut Play, ended: bool, words: Words) {
        let thread = ThreadId::new(format!("t{}", play.last() + 1)).unwrap();
        let anchor =
            Anchor { thread, label: None, ending: None, text: words.text(), brief: None, first: None };
        let first = self.push(play, Entry::Anchor(anchor.clone()));
        if let (Some(first), true) = (first, ended) {
            let ending = Some(Ending::Completed);
            self.push(play, Entry::Anchor(Anchor { ending, first: Some(first), ..anchor }));
        }
    }
}

/// What an agent does next.
fn step(dice: &mut Dice, room: u32) -> Act {
    match dice.below(100) {
        0..10 => Act::User(said(dice, room)),
        10..14 => Act::Reminded(said(dice, room)),
        14..17 => Act::Harness(said(dice, room)),
        17..25 => Act::Reply(said(dice, room)),
        _ => calls(dice, room),
    }
}

fn calls(dice: &mut Dice, room: u32) -> Act {
    let count = if dice.chance(65) { 1 } else { dice.between(2, 5) };
    let results = (0..count).map(|_| said(dice, room)).collect();
    let arguments = match dice.below(30) {
        0 => size(dice, room / 10, room),
        1..6 => size(dice, room / 100, room / 10),
        _ => 2,
    };
    let tokens = size(dice, 2, (room / 20).max(4));
    let said = dice.chance(40).then(|| words(dice, tokens));
    Act::Calls { said, arguments: arguments / count, results }
}

/// What happens beside the conversation.
fn aside(dice: &mut Dice, room: u32) -> Act {
    match dice.below(100) {
        0..30 => Act::Pin(dice.below(40)),
        30..35 => Act::Unpin,
        35..48 => Act::Condensed(dice.below(40), dice.below(40)),
        48..58 => Act::Trimmed(dice.below(40)),
        58..70 => Act::Revert(dice.below(8)),
        70..82 => Act::Rewind(dice.between(1, 9)),
        82..86 => {
            let tokens = size(dice, 2, (room / 40).max(3));
            Act::System(words(dice, tokens))
        }
        _ => {
            let tokens = size(dice, 2, (room / 20).max(3));
            Act::Child { ended: dice.chance(50), words: words(dice, tokens) }
        }
    }
}

/// What the engine does after a round that left the view below the low mark: earlier edits are taken back, the newest
/// first, as long as the view stays under the high mark. Those of a person stay.
fn give_back(play: &mut Play, budget: &Budget, since: Seq) {
    let view = play.book.view();
    if budget.policy.preset != Preset::Komado || view.edits().all(|edit| edit <= since) {
        return;
    }
    let earlier: Vec<Seq> = view.edits().rev().filter(|edit| *edit <= since).take(4).collect();
    for target in earlier {
        let Ok(verdict) = budget.will_manage(play.book.view(), play.book.rows());
        let marks = budget.marks(verdict.fixed);
        let by_hand =
            matches!(entry(&play.book, target), Some(Entry::Edit(edit)) if edit.cause.rule == BY_HAND);
        let tokens = play.book.view().tokens();
        if by_hand || tokens >= marks.low {
            break;
        }
        let mut book = play.book.clone();
        let reverted = book.push(Entry::Revert { target }, 0, "t").is_ok();
        if reverted && (tokens + 1..=marks.high).contains(&book.view().tokens()) {
            play.book = book;
        }
    }
}

/// The whole unit around some entry.
fn unit(play: &Play, at: u32) -> Option<Span> {
    let seq = 1 + Seq::from(at) % play.last().max(1);
    let Ok(unit) = play.book.view().unit(play.book.rows(), seq);
    unit
}

/// The outputs that are shown.
fn outputs(play: &Play) -> Vec<Seq> {
    let is_output = |seq: &Seq| {
        let Ok(head) = play.book.rows().head(*seq);
        head.kind == komado_core::Kind::Tool
    };
    play.items().iter().map(|item| item.seq).filter(is_output).collect()
}

// Making a conversation small that breaks a law.

impl Case {
    /// The smallest conversation found for which `breaks` still says yes: things that happen are left out, and texts made
    /// shorter, one by one.
    pub(crate) fn shrunk(mut self, breaks: impl Fn(&Self) -> bool) -> Self {
        for _ in 0..6 {
            let before = self.weight();
            for i in (0..self.acts.len()).rev() {
                let mut less = self.clone();
                less.acts.remove(i);
                if breaks(&less) {
                    self = less;
                }
            }
            for i in 0..self.acts.len() {
                while let Some(less) = self.with_less(i).filter(&breaks) {
                    self = less;
                }
            }
            if self.weight() == before {
                break;
            }
        }
        self
    }

    /// How much happens in it.
    pub(crate) fn weight(&self) -> u64 {
        let words: u64 = self.acts.iter().flat_map(Act::words).map(|words| u64::from(words.tokens)).sum();
        words + self.acts.len() as u64
    }

    /// The same, with half of the words in one place, or one result less.
    fn with_less(&self, at: usize) -> Option<Self> {
        let mut less = self.clone();
        if let Act::Calls { results, .. } = &mut less.acts[at]
            && results.len() > 1
        {
            results.pop();
            return Some(less);
        }
        let mut halved = false;
        for words in less.acts[at].words_mut() {
            halved |= words.tokens > 2;
            words.tokens = (words.tokens / 2).max(2);
        }
        halved.then_some(less)
    }
}

impl Act {
    fn words_mut(&mut self) -> Vec<&mut Words> {
        match self {
            Self::Setup { words, .. }
            | Self::System(words)
            | Self::Harness(words)
            | Self::User(words)
            | Self::Reminded(words)
            | Self::Reply(words)
            | Self::Child { words, .. } => vec![words],
            Self::Calls { said, results, .. } => said.iter_mut().chain(results).collect(),
            _ => Vec::new(),
        }
    }

    fn words(&self) -> Vec<Words> {
        self.clone().words_mut().into_iter().map(|words| *words).collect()
    }
}
