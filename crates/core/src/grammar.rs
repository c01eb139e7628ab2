//! What a provider takes: the order of speakers, and calls with their answers.
//!
//! Entries are checked when they are admitted; this is the other end of the same promise, for callers that want to see
//! that a whole request is one that OpenAI and Anthropic would take. It knows shapes, not words.

use crate::message::{Message, Role};

/// What matters of a message to the order of messages.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MessageShape {
    /// Who speaks.
    pub role: Role,
    /// Ids of the calls made.
    pub calls: Vec<String>,
    /// Id of the call answered.
    pub answers: Option<String>,
}

impl MessageShape {
    /// The shape of a message.
    pub fn of(message: &Message) -> Self {
        Self {
            role: message.role,
            calls: message.calls().map(|call| call.id.clone()).collect(),
            answers: message.outcome().map(|outcome| outcome.call_id.clone()),
        }
    }
}

/// What is wrong with a request.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OrderFault {
    /// An answer without its call right before it.
    #[error("message {at}: a result for call {id:?}, which is not one of those just made")]
    Orphan {
        /// Which message, from 0.
        at: usize,
        /// The call it answers.
        id: String,
    },
    /// Someone speaks while a call has no answer, or the request ends so.
    #[error("message {at}: call {id:?} has no result before it")]
    Unanswered {
        /// Which message, from 0.
        at: usize,
        /// The call.
        id: String,
    },
    /// There is nothing to answer to.
    #[error("the request has no message of a user")]
    NoUser,
    /// Anthropic wants a user to begin.
    #[error("message {at}: {role} speaks before any user")]
    Begins {
        /// Which message, from 0.
        at: usize,
        /// Who.
        role: &'static str,
    },
}

/// Checks what OpenAI asks of a request: each result right after the message that made its call, with only other
/// results between, and every call answered before anyone else speaks.
pub fn openai<'a>(shapes: impl IntoIterator<Item = &'a MessageShape>) -> Result<(), OrderFault> {
    let mut open: Vec<&str> = Vec::new();
    let mut count = 0;
    for (at, shape) in shapes.into_iter().enumerate() {
        count = at + 1;
        if let Some(id) = &shape.answers {
            let Some(i) = open.iter().position(|call| call == id) else {
                return Err(OrderFault::Orphan { at, id: id.clone() });
            };
            open.remove(i);
            continue;
        }
        if let Some(id) = open.first() {
            return Err(OrderFault::Unanswered { at, id: (*id).to_owned() });
        }
        open = shape.calls.iter().map(String::as_str).collect();
    }
    match open.first() {
        Some(id) => Err(OrderFault::Unanswered { at: count, id: (*id).to_owned() }),
        None => Ok(()),
    }
}

/// Checks what Anthropic asks on top, once system messages are taken out and neighbours of one role joined: a user
/// begins. Results then stand in the user's message right after the calls, which is what [`openai`] checks.
pub fn anthropic<'a>(shapes: impl IntoIterator<Item = &'a MessageShape> + Clone) -> Result<(), OrderFault> {
    openai(shapes.clone())?;
    let spoken = |shape: &&MessageShape| !matches!(shape.role, Role::System | Role::Developer);
    match shapes.into_iter().enumerate().find(|(_, shape)| spoken(shape)) {
        None => Err(OrderFault::NoUser),
        Some((_, shape)) if shape.role == Role::User => Ok(()),
        Some((at, shape)) => Err(OrderFault::Begins { at, role: shape.role.name() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(role: Role, calls: &[&str], answers: Option<&str>) -> MessageShape {
        MessageShape {
            role,
            calls: calls.iter().map(|id| (*id).to_owned()).collect(),
            answers: answers.map(str::to_owned),
        }
    }

    #[test]
    fn calls_and_results_must_stand_together_and_whole() {
        let (ask, done) = (shape(Role::Assistant, &["a", "b"], None), |id| shape(Role::Tool, &[], Some(id)));
        let user = shape(Role::User, &[], None);
        assert_eq!(openai([&user, &ask, &done("b"), &done("a"), &user]), Ok(()));
        let id = |s: &str| s.to_owned();
        assert_eq!(openai([&user, &done("a")]), Err(OrderFault::Orphan { at: 1, id: id("a") }));
        assert_eq!(
            openai([&user, &ask, &done("a"), &user]),
            Err(OrderFault::Unanswered { at: 3, id: id("b") })
        );
        assert_eq!(openai([&ask, &done("a")]), Err(OrderFault::Unanswered { at: 2, id: id("b") }));
        assert_eq!(openai([&ask, &done("a"), &done("a")]), Err(OrderFault::Orphan { at: 2, id: id("a") }));
    }

    #[test]
    fn anthropic_wants_a_user_to_begin() {
        let of = |role| shape(role, &[], None);
        let (system, user, model) = (of(Role::System), of(Role::User), of(Role::Assistant));
        assert_eq!(anthropic([&system, &user, &model]), Ok(()));
        assert_eq!(anthropic([&system, &model, &user]), Err(OrderFault::Begins { at: 1, role: "assistant" }));
        assert_eq!(anthropic([&system]), Err(OrderFault::NoUser));
    }
}
