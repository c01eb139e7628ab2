//! The scripts that run in the server. Each file says first what it is given.

use super::ask::Lua;

macro_rules! scripts {
    ($($name:ident = $file:literal),+ $(,)?) => {
        $(pub(super) static $name: Lua = Lua::new(concat!(include_str!("lua/lib.lua"), include_str!($file)));)+
    };
}

macro_rules! alone {
    ($($name:ident = $file:literal),+ $(,)?) => {
        $(pub(super) static $name: Lua = Lua::new(include_str!($file));)+
    };
}

macro_rules! queue {
    ($($name:ident = $file:literal),+ $(,)?) => {
        $(pub(super) static $name: Lua = Lua::new(concat!(include_str!("lua/queue.lua"), include_str!($file)));)+
    };
}

scripts! {
    CREATE = "lua/create.lua",
    OPEN = "lua/open.lua",
    KEEP = "lua/keep.lua",
    RELEASE = "lua/release.lua",
    WRITER = "lua/writer.lua",
    APPEND = "lua/append.lua",
    PAGE = "lua/page.lua",
    REWRITE = "lua/rewrite.lua",
    CHANGE = "lua/change.lua",
    REMOVE = "lua/remove.lua",
    SPAWN = "lua/spawn.lua",
    THREADS = "lua/threads.lua",
    LOOK = "lua/look.lua",
    PUT = "lua/put.lua",
    DROP = "lua/drop.lua",
    UNNAMED = "lua/unnamed.lua",
    NAMES = "lua/names.lua",
    FINISH = "lua/finish.lua",
    UNSETTLE = "lua/unsettle.lua",
    MAIL = "lua/mail.lua",
    FILL = "lua/fill.lua",
    CLEAR = "lua/clear.lua",
    BESIDE = "lua/beside.lua",
}

alone! {
    NOTE = "lua/note.lua",
    LEARN = "lua/learn.lua",
}

queue! {
    ENQUEUE = "lua/enqueue.lua",
    TAKE = "lua/take.lua",
    HIDE = "lua/hide.lua",
    END = "lua/end.lua",
    JOBS = "lua/jobs.lua",
    REQUEUE = "lua/requeue.lua",
    WITHDRAW = "lua/withdraw.lua",
}

/// Which of a session's keys a script is about, as Lua counts them.
#[derive(Clone, Copy)]
pub(super) enum Which {
    Heart = 1,
    Tree = 2,
    Outputs = 3,
    Shelf = 4,
}

impl Which {
    /// Its number.
    pub(super) fn number(self) -> u8 {
        self as u8
    }
}
