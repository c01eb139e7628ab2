//! The reply when nothing helped: short, honest, and ours.

use super::listen::TooLarge;
use super::{Asking, Turned, When};
use crate::error::Result;
use crate::thread::Thread;
use komado_core::budget::Budget;
use komado_core::journal::{Entry, Reply};
use komado_core::message::Message;
use komado_core::{Role, Seq};

impl Thread<'_> {
    /// Says in the conversation that the model could not be asked, and why.
    pub(super) fn answer_honestly(
        &mut self,
        asking: &Asking,
        refused: Option<TooLarge>,
        attempts: u32,
        budget: &Budget,
    ) -> Result<Turned> {
        let limit = refused.as_ref().and_then(|why| why.limit);
        let text = words(&self.last_words()?, &asking.model, self.view().tokens(), limit);
        let reply = Reply {
            model: None,
            finish: "overflow".into(),
            error: refused.map(|why| why.why),
            ..Reply::default()
        };
        let message = Message::text(Role::Assistant, text);
        let seq = self.reply(message.clone(), reply.clone())?;
        let hint = self.hint(When::AfterReply, budget);
        Ok(Turned { seq, message, reply, attempts, is_ours: true, hint })
    }

    /// What the user said last, to answer in the same language.
    fn last_words(&self) -> Result<String> {
        let near = self.last().saturating_sub(64)..=self.last();
        for seq in near.rev().filter(|seq| *seq > 0 && self.view().on_path(*seq)).collect::<Vec<Seq>>() {
            if let Entry::Message(message, _) = self.record(seq)?.entry
                && message.role == Role::User
            {
                return Ok(message.words());
            }
        }
        Ok(String::new())
    }
}

fn words(asked: &str, model: &str, tokens: u64, limit: Option<u64>) -> String {
    let kana = |c: char| ('\u{3041}'..='\u{30ff}').contains(&c);
    if asked.chars().any(kana) {
        let limit = limit.map(|limit| format!("（上限 {limit} トークン）")).unwrap_or_default();
        return format!(
            "申し訳ありません。会話を {tokens} トークンまで短くしましたが、{model} には長すぎて{limit}お答えできませんでした。\
             会話の記録はすべて残っています。質問を短くするか、より大きなコンテキストのモデルをお使いください。"
        );
    }
    let limit = limit.map(|limit| format!(" (it takes {limit})")).unwrap_or_default();
    format!(
        "I could not answer: even cut down to {tokens} tokens, this conversation is more than {model} takes{limit}. \
         Nothing is lost. Please ask for less at once, or use a model with a larger window."
    )
}
