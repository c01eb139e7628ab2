//! `komado thread`: child threads, windows inside the window.
//!
//! A child has a share of its parent's window and works there as long as it likes; the parent keeps one anchor of it.

mod chronicle;
mod run;
mod start;
mod tell;

use komado_ops::thread::{AbortThread, BalanceThread, DrawThreads, EndThread, PauseThread, ResumeThread};

subverbs! {
    operations {
        /// End a child thread well, and tell its parent what was done
        End => EndThread,
        /// Break a child thread off, with as much of a chronicle as there is
        Abort => AbortThread,
        /// Let a child thread wait
        Pause => PauseThread,
        /// Let a child thread go on, also days after its end
        Resume => ResumeThread,
        /// Draw a session's threads: who has how much of the window, and what became of it
        Tree => DrawThreads,
        /// Share the window out otherwise
        Balance => BalanceThread,
    }
    modules {
        /// Start a child thread that outlives this command
        Start => start,
        /// Give a task to a child thread and wait for the answer: start, ask, end
        Run => run,
        /// Send words from one thread to another
        Tell => tell,
        /// Show what was done in a child thread, or write it anew
        Chronicle => chronicle,
    }
}
