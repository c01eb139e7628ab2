//! What was learned about models, kept for next time.

use super::ask::Ask;
use super::told::read;
use super::{RedisStore, scripts};
use crate::Result;
use crate::lesson::{Learning, Lessons};
use std::collections::BTreeMap;

impl RedisStore {
    fn lesson_ask(&self, command: &str) -> Ask {
        Ask::cmd(command).arg(self.0.keys.lessons())
    }
}

impl Lessons for RedisStore {
    fn lesson(&self, about: &str) -> Result<Option<String>> {
        read(self.0.link.ask(self.lesson_ask("HGET").arg(about))?.value)
    }

    /// What somebody else learned in between is read, and learned on top of.
    fn learn(&self, about: &str, learning: &mut Learning<'_>) -> Result<()> {
        loop {
            let old = self.lesson(about)?;
            let Some(new) = learning(old.as_deref()) else { return Ok(()) };
            let ask = Ask::script(&scripts::LEARN, &[self.0.keys.lessons()]).arg(about).arg(new).arg(old);
            if read::<bool>(self.0.link.ask(ask.spread())?.value)? {
                return Ok(());
            }
        }
    }

    fn lessons(&self) -> Result<Vec<(String, String)>> {
        let all: BTreeMap<String, String> = read(self.0.link.ask(self.lesson_ask("HGETALL"))?.value)?;
        Ok(all.into_iter().collect())
    }

    fn forget(&self, about: &str) -> Result<bool> {
        read(self.0.link.ask(self.lesson_ask("HDEL").arg(about))?.value)
    }
}
