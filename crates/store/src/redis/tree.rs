//! The table of spawned threads, and who has words waiting.

use super::RedisStore;
use super::rows::{branch_text, read_branch};
use super::scripts;
use super::told::read;
use crate::tree::{Grove, Mail, Tree, Which};
use crate::{Error, Result};
use komado_core::thread::Branch;
use komado_core::{Seq, SessionId, ThreadId};
use std::collections::HashMap;

const TREE: scripts::Which = scripts::Which::Tree;

impl Tree for RedisStore {
    fn put_branch(&self, branch: &Branch) -> Result<()> {
        let (id, name, store) = (&branch.session, &branch.thread, &self.0);
        let parent = branch.parent.as_ref().map(ThreadId::as_str).unwrap_or_default();
        let ask = store.about(id, &scripts::PUT).arg(TREE.number()).arg(store.ttl());
        let ask = ask.arg(format!("branch:{name}")).arg(branch_text(branch));
        let ask = ask.arg(format!("parent:{name}")).arg(parent);
        store.fine(id, ask.arg(format!("told:{name}")).arg(u8::from(branch.told)).spread()).map(drop)
    }

    fn branches(&self, id: &SessionId, which: Which) -> Result<Vec<Branch>> {
        let said = self.0.fine(id, self.0.about(id, &scripts::NAMES).arg(TREE.number()).arg("all"))?;
        let texts = said.rest.into_iter().map(read).collect::<Result<Vec<String>>>()?;
        let (pairs, _) = texts.as_chunks::<2>();
        let fields: HashMap<&str, &str> =
            pairs.iter().map(|[field, value]| (field.as_str(), value.as_str())).collect();
        let mut grove = Grove::default();
        for (field, text) in &fields {
            if let Some(name) = field.strip_prefix("branch:") {
                let told = fields.get(format!("told:{name}").as_str()) == Some(&"1");
                grove.put(&read_branch(id, text, told)?);
            }
        }
        Ok(grove.list(&which))
    }

    fn unsettle(&self, id: &SessionId, parent: &ThreadId) -> Result<()> {
        let ask = self.0.about(id, &scripts::UNSETTLE).arg(parent.as_str());
        self.0.fine(id, ask.spread()).map(drop)
    }

    fn drop_branch(&self, id: &SessionId, thread: &ThreadId) -> Result<()> {
        let fields = ["branch", "parent", "told"].map(|field| format!("{field}:{thread}"));
        let ask = self.0.about(id, &scripts::DROP).arg(TREE.number()).arg(&fields[..]);
        self.0.fine(id, ask).map(drop)
    }

    fn post(&self, id: &SessionId, to: &ThreadId, mail: &Mail) -> Result<()> {
        let ask = self.0.about(id, &scripts::MAIL).arg("post").arg(to.as_str()).arg(mail.from.as_str());
        self.0.fine(id, ask.arg(mail.seq).arg(self.0.ttl()).spread()).map(drop)
    }

    fn mail(&self, id: &SessionId, to: &ThreadId) -> Result<Vec<Mail>> {
        let ask = self.0.about(id, &scripts::LOOK).arg(TREE.number()).arg("").arg(format!("mail:{to}"));
        let lines = self.0.fine(id, ask)?.text(0);
        let mail = |line: &str| {
            let (from, seq) = line.split_once(' ')?;
            Some(Mail { from: ThreadId::new(from).ok()?, seq: seq.parse().ok()? })
        };
        let read = |line: &str| {
            mail(line).ok_or_else(|| Error::damaged(id.as_str(), format!("{line:?} is no mail")))
        };
        lines.lines().map(read).collect()
    }

    fn taken(&self, id: &SessionId, to: &ThreadId, from: &ThreadId, upto: Seq) -> Result<()> {
        let ask = self.0.about(id, &scripts::MAIL).arg("take").arg(to.as_str()).arg(from.as_str());
        self.0.fine(id, ask.arg(upto).arg(self.0.ttl())).map(drop)
    }
}
