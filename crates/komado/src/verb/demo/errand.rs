//! A chapter of the demo: work that would crowd the window is done in a child thread, and one entry of it stays.

use super::hand::{Done, Hand};
use super::screen::Screen;
use super::script::Script;
use crate::fault::Outcome;
use crate::paper::{Ink, number};
use komado_core::journal::Ending;
use komado_core::message::{Message, Role};
use komado_engine::stelis::{Finish, Spawn, Telling};

/// What the child is for.
const LABEL: &str = "go over every error text";
const TASK: &str = "Go over every error text of this project, one file after the other, and note what each one lacks. \
                    終わったら、見つけたことを短くまとめてください。";

/// What came of it.
pub(super) struct Errand {
    pub(super) done: Done,
    /// Tokens that were said in the child.
    pub(super) said: u64,
    /// Tokens that its anchor takes in the parent.
    pub(super) anchor: u64,
}

impl Hand<'_> {
    /// Has `turns` turns of work done in a child of this thread. A window that is too small for one is told, and no failure.
    pub(super) fn delegate(&mut self, turns: u32, screen: &mut Screen<'_>) -> Outcome<Option<Errand>> {
        let (window, before) = (self.budget.window, self.view().tokens());
        let spawn = Spawn { label: Some(LABEL.into()), ..Spawn::new(window) };
        let child = match self.thread.spawn_free(&spawn) {
            Ok(child) => child,
            Err(why) => {
                screen.tell(Ink::Dim, "thread", &why.to_string())?;
                return Ok(None);
            }
        };
        let budget = child.budget(self.budget.policy.clone(), window, &[])?;
        let own = child.shares(window)?.map_or(window, |shares| shares.own);
        let name = child.header().thread.clone();
        let (own, protected) = (number(own), number(window - own));
        let detail =
            format!("{name} has {own} of the window for itself; {protected} protect what was said here");
        screen.tell(Ink::Cyan, "thread", &detail)?;
        let mut hand = self.beside(child, budget);
        hand.say(Message::text(Role::User, TASK))?;
        let mut script = Script::new();
        for _ in 1..turns {
            hand.play(&script.next(), screen)?;
        }
        hand.play(&script.farewell(), screen)?;
        let said = hand.said()?;
        let finish = Finish { ending: Ending::Completed, result: None, telling: Telling::Digest };
        hand.thread.finish(finish)?;
        let done = hand.finish()?;
        self.thread.tend()?;
        let anchor = self.view().tokens() - before;
        let detail = format!(
            "{name} ended: {} tokens were said there, and {} tell of it here, with its chronicle",
            number(said),
            number(anchor)
        );
        screen.tell(Ink::Green, "thread", &detail)?;
        self.make_room(screen)?;
        Ok(Some(Errand { done, said, anchor }))
    }

    /// Tokens of everything said on this thread.
    fn said(&self) -> Outcome<u64> {
        let mut sum = 0;
        for (seq, _) in &self.done.said {
            sum += u64::from(self.thread.record(*seq)?.tokens);
        }
        Ok(sum)
    }
}
