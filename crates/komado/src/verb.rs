//! The verbs: for each its arguments, and a function that runs it and prints what came of it.

/// Verbs of one level: operations, whose results are printed, and verbs with a function of their own.
macro_rules! verbs {
    ($vis:vis enum $enum:ident { $($(#[$doc:meta])* $name:ident($args:ty) $(=> $run:path)?,)+ }) => {
        // There is one of them in a process.
        #[allow(clippy::large_enum_variant)]
        #[derive(clap::Subcommand, Debug)]
        $vis enum $enum {
            $($(#[$doc])* $name($args),)+
        }

        impl $enum {
            $vis fn run(app: &mut $crate::app::App, verb: Self) -> komado_ops::OpResult {
                match verb {
                    $(Self::$name(args) => verbs!(@run app, args $(, $run)?),)+
                }
            }
        }
    };
    (@run $app:ident, $args:ident) => { $app.show($args) };
    (@run $app:ident, $args:ident, $run:path) => { $run($app, $args) };
}

pub(crate) mod ask;
pub(crate) mod chat;
pub(crate) mod demo;
pub(crate) mod models;
pub(crate) mod playbook;
pub(crate) mod read;
pub(crate) mod report;
pub(crate) mod serve;
pub(crate) mod session;
pub(crate) mod shell;
pub(crate) mod task;
pub(crate) mod thread;
pub(crate) mod trust;
pub(crate) mod user;
pub(crate) mod work;
pub(crate) mod write;
