//! The same over real HTTP, with the turn of the engine.

use crate::playbook::kit::{Heard, begin, engine, given, id};
use komado_agent::Result;
use komado_agent::limits::Limits;
use komado_agent::mind::Mind;
use komado_agent::playbook::{Playbook, Solo, run};
use komado_agent::tools::Toolbox;
use komado_core::budget::Preset;
use komado_core::session::MetaConfig;
use komado_core::{SessionId, ThreadId};
use komado_engine::condense::{ByDigest, Settings};
use komado_engine::exchange::{Asking, News, Turned};
use komado_engine::fit::Ladder;
use komado_engine::stelis::{Spawn, Telling};
use komado_engine::{Engine, Thread};
use komado_provider::scripted::{Options, Server, Step};
use komado_provider::{Cancel, Client, Dialect, Patience, Provider};
use komado_store::{MemoryStore, Mode};
use std::sync::Arc;

struct Wired<'e> {
    engine: &'e Engine,
    asking: Asking,
}

impl<'e> Mind<'e> for Wired<'e> {
    fn engine(&self) -> &'e Engine {
        self.engine
    }

    fn open(&self, session: &SessionId, thread: &ThreadId) -> Result<Thread<'e>> {
        Ok(self.engine.open(session, thread, Mode::Write)?)
    }

    fn config(&self) -> MetaConfig {
        MetaConfig::default()
    }

    fn turn(
        &mut self,
        thread: &mut Thread<'_>,
        cancel: &Cancel,
        news: &mut dyn FnMut(News<'_>),
    ) -> Result<Turned> {
        let mut by = ByDigest::new(thread.meter());
        let budget = thread.budget(Preset::Komado.policy(), self.asking.window, &[])?;
        let mut ladder = Ladder { budget, settings: Settings::default(), by: &mut by };
        let asking = Asking { cancel: cancel.clone(), ..self.asking.clone() };
        Ok(thread.turn(&asking, &mut ladder, news)?)
    }

    fn spawn(&self, _thread: &Thread<'_>) -> Result<Spawn> {
        Ok(Spawn::new(self.asking.window))
    }

    fn telling(
        &mut self,
        _thread: &Thread<'_>,
        _cancel: &Cancel,
        tell: &mut dyn FnMut(Telling<'_>) -> Result<()>,
    ) -> Result<()> {
        tell(Telling::Digest)
    }
}

#[test]
fn a_playbook_with_a_child_thread_runs_against_a_model_server() {
    let server = Server::start(Options { window: Some(16_000), ..Options::default() }).unwrap();
    server.add(Step::call("recall", "{\"query\":\"task\"}"));
    server.add(Step::say("窓を直しました"));
    server.add(Step::say("報告します"));
    let client = Client::new(Patience::default()).unwrap();
    let provider = Provider::at("scripted", Dialect::Chat, server.url()).unwrap();
    let engine = engine(Arc::new(MemoryStore::default()));
    begin(&engine).unwrap();
    let mut mind = Wired { engine: &engine, asking: Asking::new(client, provider, "scripted-1", 16_000) };
    let (mut tools, mut heard) = (Toolbox::default(), Heard::default());
    let mut hands = Solo::new(&mut mind, &mut tools, Limits::default(), Cancel::default(), &mut heard);
    let playbook = Playbook::parse("coding.json", crate::playbook::seed::CODING).unwrap();
    let ended = run(&playbook, &id(), &given(), &mut hands).unwrap();
    assert_eq!((ended.result.as_str(), hands.turns()), ("報告します", 3));
    assert_eq!(server.left(), 0);
    let last = server.seen().pop().unwrap();
    let body = String::from_utf8_lossy(&last.body).into_owned();
    assert!(body.contains("作業の結果をユーザーに報告してください"), "{body}");
}
