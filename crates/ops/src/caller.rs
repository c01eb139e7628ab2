//! Who calls, and which sessions they may see.

use crate::{OpFault, OpResult};
use komado_core::SessionId;
use komado_core::session::Session;
use komado_engine::place::VisibleSessions;
use komado_engine::user::{is_standing, standing};
use komado_store::Job;

/// Who calls.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ApiCaller {
    /// The name of the key; `None` where none is asked for.
    pub key: Option<String>,
    /// Whose sessions are made.
    pub user: Option<String>,
    /// True when all sessions may be seen, not only the user's own.
    pub sees_all: bool,
    /// Sessions that may be seen beside the user's own.
    pub sessions: Vec<String>,
    /// Requests a second, at most.
    pub rate: Option<u32>,
    /// Requests at a time, at most.
    pub concurrency: Option<u32>,
}

impl ApiCaller {
    /// The owner of the machine, who may do everything.
    pub fn owner() -> Self {
        Self { sees_all: true, ..Self::default() }
    }

    /// True when this session may be seen and changed.
    pub fn may_see(&self, session: &Session) -> bool {
        self.sight().is_none_or(|sight| sight.sees(session))
    }

    /// True when the session of this job may be seen, which may not be made yet.
    pub fn may_see_job(&self, job: &Job) -> bool {
        self.sight().is_none_or(|sight| sight.sees_named(job.session.as_str(), job.user.as_deref()))
    }

    /// The user whose sessions are all that may be seen: others need not be looked at.
    pub fn only_user(&self) -> Option<String> {
        self.user.clone().filter(|_| !self.sees_all && self.sessions.is_empty())
    }

    /// True when a session of this name may be made: the names of standing sessions are kept for those whose they are.
    pub fn may_name(&self, id: &SessionId) -> bool {
        let own = || self.user.as_deref().is_some_and(|user| standing(user).is_ok_and(|own| own == *id));
        self.sees_all || !is_standing(id) || own()
    }

    /// Whose sessions are read where `asked` is asked for; `None` for those of all. A caller who sees only their own is not
    /// made to wait for all others.
    pub fn whose(&self, asked: Option<String>) -> OpResult<Option<String>> {
        match asked {
            Some(user) if !self.sees_all && self.user.as_ref() != Some(&user) => {
                let why = format!("this key does not see the sessions of user {user:?}; leave user out");
                Err(OpFault::forbidden(why))
            }
            asked => Ok(asked.or_else(|| self.only_user())),
        }
    }

    /// Which sessions may be seen and changed; `None` for all.
    pub fn sight(&self) -> Option<VisibleSessions> {
        let own = || VisibleSessions { user: self.user.clone(), sessions: self.sessions.clone() };
        (!self.sees_all).then(own)
    }
}
