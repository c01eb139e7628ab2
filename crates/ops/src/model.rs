//! What is known about models, what was learned by talking to them, and what their errors mean.

mod explain;
mod forget;
mod learned;
mod lesson;
mod list;
mod update;

pub use explain::ExplainError;
pub use forget::{ForgetLesson, Forgotten};
pub use learned::{Learned, ListLessons};
pub use lesson::{ModelLesson, ModelOfSession, SessionLesson};
pub use list::{ListModels, Model};
pub use update::{Difference, ModelChange, UpdateModels, Updated};
