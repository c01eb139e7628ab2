//! `komado user`: a user's standing session, messages and habits; and forgetting a user.

mod forget;

use komado_ops::user::{ListUsers, RecentMessages, ShowUser, UserSession};

subverbs! {
    operations {
        /// Open a user's standing session; it is made where it is not there
        Session => UserSession,
        /// List the users there are, by name
        List => ListUsers,
        /// Show what was said lately over all of a user's sessions, the newest first
        Recent => RecentMessages,
        /// Show how a user talks: sessions, models, tools, hours, common words
        Show => ShowUser,
    }
    modules {
        /// Export everything of a user, then erase it
        Forget => forget,
    }
}
