//! The verbs, each in a file of the same shape: `Args`, `run`.

/// A verb with verbs of its own: operations, whose results are printed, and modules with `Args` and `run`.
macro_rules! subverbs {
    (
        operations { $($(#[$op_doc:meta])* $op:ident => $request:ty,)+ }
        $(modules { $($(#[$doc:meta])* $name:ident => $module:ident,)+ })?
    ) => {
        #[derive(clap::Args, Debug)]
        pub(crate) struct Args {
            #[command(subcommand)]
            verb: Verb,
        }

        #[derive(clap::Subcommand, Debug)]
        enum Verb {
            $($(#[$op_doc])* $op($request),)+
            $($($(#[$doc])* $name($module::Args),)+)?
        }

        pub(crate) fn run(app: &mut crate::app::App, args: Args) -> crate::fault::Outcome {
            match args.verb {
                $(Verb::$op(request) => app.show(request),)+
                $($(Verb::$name(args) => $module::run(app, args),)+)?
            }
        }
    };
}

pub(crate) mod append;
pub(crate) mod ask;
pub(crate) mod chat;
pub(crate) mod completions;
pub(crate) mod condense;
pub(crate) mod confine;
pub(crate) mod demo;
pub(crate) mod diff;
pub(crate) mod explain_error;
pub(crate) mod export;
pub(crate) mod import;
pub(crate) mod key;
pub(crate) mod log;
pub(crate) mod mcp;
pub(crate) mod migrate;
pub(crate) mod model_server;
pub(crate) mod models;
pub(crate) mod output;
pub(crate) mod playbook;
pub(crate) mod recall;
pub(crate) mod redact;
pub(crate) mod report;
pub(crate) mod serve;
pub(crate) mod sessions;
pub(crate) mod setup;
pub(crate) mod show;
pub(crate) mod task;
pub(crate) mod thread;
pub(crate) mod trust;
pub(crate) mod user;
pub(crate) mod work;
