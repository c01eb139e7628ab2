//! A session in which anything happens to its threads, in any order.

use crate::shares::chance::Dice;
use crate::shares::kit::{fit, policy, ratio};
use crate::shares::room::{Room, call, calls, model, result, setup, thread_id, user};
use komado_core::SessionId;
use komado_core::journal::{Ending, Ratio};
use komado_core::thread::Header;
use komado_engine::share::{ShareBalance, SliceRecut};
use komado_engine::stelis::ResumeChild;
use komado_engine::{Child, ChronicleBy, Error, Finish, Result, Spawn, Thread};
use komado_store::OpenMode;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// A handle on a thread, and whether the thread ends with it.
pub(crate) enum Hand<'r> {
    Free(Thread<'r>),
    Guard(Child<'r>),
}

impl<'r> Hand<'r> {
    fn thread(&mut self) -> &mut Thread<'r> {
        match self {
            Self::Free(thread) => thread,
            Self::Guard(child) => child,
        }
    }
}

/// What may happen.
const DEEDS: [(&str, u32); 22] = [
    ("spawn", 14),
    ("spawn_free", 6),
    ("say", 22),
    ("call", 8),
    ("call_open", 3),
    ("fit", 12),
    ("end", 4),
    ("abort", 3),
    ("pause", 3),
    ("resume", 4),
    ("keep", 4),
    ("refresh", 4),
    ("below", 3),
    ("rewind", 5),
    ("fork", 4),
    ("drop", 3),
    ("panic", 3),
    ("let_go", 5),
    ("take", 5),
    ("set_up", 3),
    ("pin", 3),
    ("tell", 3),
];

pub(crate) struct World<'r> {
    pub(crate) room: &'r Room,
    pub(crate) id: SessionId,
    pub(crate) dice: Dice,
    pub(crate) window: u64,
    hands: BTreeMap<String, Hand<'r>>,
    seed: u64,
    log: Vec<String>,
    made: u32,
}

impl Drop for World<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("seed {}, window {}:\n{}", self.seed, self.window, self.log.join("\n"));
        }
    }
}

impl<'r> World<'r> {
    pub(crate) fn new(room: &'r Room, seed: u64) -> Self {
        let (id, mut dice) = (room.session("s"), Dice::new(seed));
        let window = *dice.pick(&[3_000, 8_000, 30_000, 120_000]).unwrap();
        let hands = BTreeMap::from([("root".to_owned(), Hand::Free(room.root(&id)))]);
        let mut world = Self { room, id, dice, window, hands, seed, log: Vec::new(), made: 0 };
        if seed.is_multiple_of(3) {
            world.grow();
        }
        world
    }

    /// Begins with a line of threads, each below the one before.
    fn grow(&mut self) {
        self.window = 120_000;
        let mut name = "root".to_owned();
        for depth in 0..=self.dice.below(6) {
            let ratio = ratio(f64::from(500 + self.dice.below(451)) / 1_000.0);
            self.with(&name, |world, thread| world.say(thread)).unwrap().unwrap();
            let child = self.spawn_at(&name, depth % 2 == 0, ratio).unwrap();
            self.log.push(format!("grow {child}"));
            name = child;
        }
    }

    /// One deed on one thread; gives its name, and whether it was done.
    pub(crate) fn step(&mut self) -> (&'static str, bool) {
        let all: u32 = DEEDS.iter().map(|(_, weight)| weight).sum();
        let mut roll = self.dice.below(all);
        let (deed, _) = DEEDS
            .iter()
            .find(|(_, weight)| {
                let found = roll < *weight;
                roll = roll.saturating_sub(*weight);
                found
            })
            .unwrap();
        let headers = self.headers();
        let name = self.dice.pick(&headers).unwrap().thread.to_string();
        self.log.push(format!("{deed} {name}"));
        let done = self.act(deed, &name);
        if let Err(error) = &done {
            self.log.push(format!("  {error}"));
            assert!(!matches!(error, Error::Endless { .. }), "{error}");
        }
        (deed, done.is_ok_and(|done| done))
    }

    pub(crate) fn headers(&self) -> Vec<Header> {
        self.room.engine.store().threads(&self.id).unwrap()
    }

    /// True when something was done.
    fn act(&mut self, deed: &str, name: &str) -> Result<bool> {
        match deed {
            "drop" => return Ok(self.hands.remove(name).is_some()),
            "panic" => return Ok(self.panic(name)),
            "let_go" => return self.let_go(name),
            "take" if self.hands.contains_key(name) => return Ok(false),
            _ => {}
        }
        self.surely(deed, name).map(|()| true)
    }

    /// The holder of a thread panics.
    fn panic(&mut self, name: &str) -> bool {
        let hand = self.hands.remove(name);
        let held = hand.is_some();
        let broken = catch_unwind(AssertUnwindSafe(move || {
            let _held = hand;
            resume_unwind(Box::new(()));
        }));
        assert!(broken.is_err());
        held
    }

    fn let_go(&mut self, name: &str) -> Result<bool> {
        match self.hands.remove(name) {
            Some(Hand::Guard(child)) => {
                let thread = child.detach()?;
                self.hands.insert(name.to_owned(), Hand::Free(thread));
                Ok(true)
            }
            Some(free) => {
                self.hands.insert(name.to_owned(), free);
                Ok(false)
            }
            None => Ok(false),
        }
    }

    fn surely(&mut self, deed: &str, name: &str) -> Result<()> {
        match deed {
            "spawn" | "spawn_free" => self.spawn(name, deed == "spawn"),
            "end" => self.finish(name, Ending::Completed),
            "abort" => self.finish(name, Ending::Aborted),
            "pause" => self.finish(name, Ending::Paused),
            "resume" => {
                self.put_down(name);
                let resume = ResumeChild::new(self.window);
                self.room.engine.resume_child(&self.id, &thread_id(name), &resume).map(|_| ())
            }
            "below" => {
                let balance = self.balance(SliceRecut::Keep);
                self.room.engine.balance_below(&self.id, &thread_id(name), balance).map(|_| ())
            }
            "take" => {
                let thread = self.room.engine.open(&self.id, &thread_id(name), OpenMode::Write)?;
                self.hands.insert(name.to_owned(), Hand::Free(thread));
                Ok(())
            }
            _ => self.with(name, |world, thread| world.act_in(deed, thread))?,
        }
    }

    /// Hands `act` the thread, opened for it when nobody has it.
    fn with<T>(&mut self, name: &str, act: impl FnOnce(&mut Self, &mut Thread<'r>) -> T) -> Result<T> {
        if let Some(mut hand) = self.hands.remove(name) {
            let done = act(self, hand.thread());
            self.hands.insert(name.to_owned(), hand);
            return Ok(done);
        }
        let mut thread = self.room.engine.open(&self.id, &thread_id(name), OpenMode::Write)?;
        Ok(act(self, &mut thread))
    }

    /// Lets go of a handle, not of the thread.
    fn put_down(&mut self, name: &str) {
        if matches!(self.hands.get(name), Some(Hand::Free(_))) {
            self.hands.remove(name);
        }
    }

    fn act_in(&mut self, deed: &str, thread: &mut Thread<'r>) -> Result<()> {
        let n = self.dice.below(1_000);
        match deed {
            "say" => self.say(thread),
            "call" | "call_open" => {
                thread.say(calls(vec![call("c1", "read", "{}"), call("c2", "ls", &format!("[{n}]"))]))?;
                thread.say(result("c1", &format!("out {n} ").repeat(n as usize)))?;
                if deed == "call" {
                    thread.say(result("c2", "done"))?;
                }
                Ok(())
            }
            "fit" => self.fit(thread),
            "keep" => thread.balance(self.balance(SliceRecut::Keep)).map(|_| ()),
            "refresh" => thread.balance(self.balance(SliceRecut::Refresh)).map(|_| ()),
            "rewind" => {
                let to = thread.last().saturating_sub(1 + self.dice.below(5));
                thread.rewind(to).map(|_| ())
            }
            "fork" => {
                let at = thread.last() - self.dice.below(thread.last().min(4));
                let name = thread_id(&format!("f{}", self.count()));
                thread.fork(at, name, None).map(|_| ())
            }
            "set_up" => {
                let mut setup = setup(&format!("rule {n}"));
                setup.tools = setup.tools.filter(|_| self.dice.chance(60));
                thread.set_up(setup).map(|_| ())
            }
            "pin" => thread.pin(1 + self.dice.below(thread.last())).map(|_| ()),
            _ => {
                let to = self.dice.pick(&self.headers()).unwrap().thread.clone();
                thread.tell(&to, &format!("word {n}"))?;
                thread.answer_open_calls()?;
                thread.hear().map(|_| ())
            }
        }
    }

    fn count(&mut self) -> u32 {
        self.made += 1;
        self.made
    }

    fn say(&mut self, thread: &mut Thread<'_>) -> Result<()> {
        for _ in 0..=self.dice.below(4) {
            let (n, long) = (self.count(), self.dice.below(250) as usize);
            let text = format!("{n} 番目 {}", "word ".repeat(long));
            let message = if self.dice.chance(50) { user(&text) } else { model(&text) };
            thread.say(message)?;
        }
        Ok(())
    }

    fn spawn(&mut self, name: &str, guarded: bool) -> Result<()> {
        let ratio = self.ratio();
        self.spawn_at(name, guarded, ratio).map(|_| ())
    }

    fn spawn_at(&mut self, name: &str, guarded: bool, ratio: Ratio) -> Result<String> {
        let spawn = Spawn {
            ratio,
            max_depth: 6,
            lends: self.dice.chance(70),
            setup: if self.dice.chance(20) { Some(setup("child")) } else { None },
            ..Spawn::new(self.window)
        };
        let hand = self.with(name, |_, thread| {
            thread.answer_open_calls()?;
            Ok::<_, Error>(if guarded {
                Hand::Guard(thread.spawn(&spawn)?)
            } else {
                Hand::Free(thread.spawn_free(&spawn)?)
            })
        })?;
        let mut hand = hand?;
        let child = hand.thread().header().thread.to_string();
        if guarded || self.dice.chance(60) {
            self.hands.insert(child.clone(), hand);
        }
        Ok(child)
    }

    fn ratio(&mut self) -> Ratio {
        ratio(f64::from(100 + self.dice.below(851)) / 1_000.0)
    }

    fn balance(&mut self, slices: SliceRecut) -> ShareBalance {
        let ratio = if self.dice.chance(60) { Some(self.ratio()) } else { None };
        ShareBalance { ratio, window: self.window, buffer: 0.1, slices }
    }

    fn finish(&mut self, name: &str, ending: Ending) -> Result<()> {
        let finish = |result| match ending {
            Ending::Completed => Finish { ending, result, telling: ChronicleBy::Digest },
            Ending::Paused => Finish::paused(result),
            _ => Finish::aborted(result),
        };
        match self.hands.remove(name) {
            Some(Hand::Guard(child)) => {
                let parent = child.header().parent.clone().unwrap().thread.to_string();
                self.with(&parent, |_, parent| match ending {
                    Ending::Paused => child.pause(parent, None).map(|_| ()),
                    Ending::Aborted => child.abort(parent, Some("enough".into())).map(|_| ()),
                    _ => child.end(parent, finish(None)).map(|_| ()),
                })?
            }
            hand => {
                drop(hand);
                self.room.engine.finish_child(&self.id, &thread_id(name), finish(None)).map(|_| ())
            }
        }
    }

    /// Makes the thread fit, and sees to it that it does.
    fn fit(&mut self, thread: &mut Thread<'_>) -> Result<()> {
        thread.answer_open_calls()?;
        let budget = thread.budget(policy(), self.window, &[])?;
        let (_, budget) = fit(thread, budget)?;
        let view = thread.view();
        let own = view.tokens() - view.weight().above;
        assert_eq!(budget.above, view.weight().above);
        assert!(own <= budget.room, "{own} tokens in a room of {}", budget.room);
        assert!(view.tokens() <= budget.most(), "{} tokens, at most {}", view.tokens(), budget.most());
        assert!(budget.most() <= self.window, "{budget:?}");
        let shares = thread.shares(self.window)?;
        assert!(shares.is_none_or(|shares| own <= shares.room()), "more than its share");
        Ok(())
    }

    /// Everybody lets go; some without a word.
    pub(crate) fn end(&mut self) {
        while let Some((name, hand)) = self.hands.pop_first() {
            self.log.push(format!("end {name}"));
            if self.dice.chance(30) {
                let _ = catch_unwind(AssertUnwindSafe(move || {
                    let _held = hand;
                    resume_unwind(Box::new(()));
                }));
            }
        }
    }
}
