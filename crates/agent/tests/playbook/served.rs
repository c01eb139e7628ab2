//! The same over real HTTP, with the turn of the engine.

use crate::playbook::kit::{Heard, begin, engine, given, id};
use komado_agent::Result;
use komado_agent::limits::TaskLimits;
use komado_agent::model_session::ModelSession;
use komado_agent::playbook::{LocalRunner, Playbook, run};
use komado_agent::tools::ToolSet;
use komado_core::budget::Preset;
use komado_core::session::MetaConfig;
use komado_core::{SessionId, ThreadId};
use komado_engine::condense::{ByDigest, CondenseSettings};
use komado_engine::exchange::{ExchangeEvent, ModelTarget, TurnResult};
use komado_engine::fit::Ladder;
use komado_engine::stelis::{ChronicleBy, Spawn};
use komado_engine::{Engine, Thread};
use komado_provider::scripted::{ScriptStep, ScriptedOptions, ScriptedServer};
use komado_provider::{Cancel, Client, ClientTimeouts, Dialect, Provider};
use komado_store::{MemoryStore, OpenMode};
use std::sync::Arc;

struct Wired<'e> {
    engine: &'e Engine,
    asking: ModelTarget,
}

impl<'e> ModelSession<'e> for Wired<'e> {
    fn engine(&self) -> &'e Engine {
        self.engine
    }

    fn open(&self, session: &SessionId, thread: &ThreadId) -> Result<Thread<'e>> {
        Ok(self.engine.open(session, thread, OpenMode::Write)?)
    }

    fn config(&self) -> MetaConfig {
        MetaConfig::default()
    }

    fn turn(
        &mut self,
        thread: &mut Thread<'_>,
        cancel: &Cancel,
        news: &mut dyn FnMut(ExchangeEvent<'_>),
    ) -> Result<TurnResult> {
        let mut by = ByDigest::new(thread.meter());
        let budget = thread.budget(Preset::Komado.policy(), self.asking.window, &[])?;
        let mut ladder = Ladder { budget, settings: CondenseSettings::default(), by: &mut by };
        let asking = ModelTarget { cancel: cancel.clone(), ..self.asking.clone() };
        Ok(thread.turn(&asking, &mut ladder, news)?)
    }

    fn spawn(&self, _thread: &Thread<'_>) -> Result<Spawn> {
        Ok(Spawn::new(self.asking.window))
    }

    fn telling(
        &mut self,
        _thread: &Thread<'_>,
        _cancel: &Cancel,
        tell: &mut dyn FnMut(ChronicleBy<'_>) -> Result<()>,
    ) -> Result<()> {
        tell(ChronicleBy::Digest)
    }
}

#[test]
fn a_playbook_with_a_child_thread_runs_against_a_model_server() {
    let server =
        ScriptedServer::start(ScriptedOptions { window: Some(16_000), ..ScriptedOptions::default() })
            .unwrap();
    server.add(ScriptStep::call("recall", "{\"query\":\"task\"}"));
    server.add(ScriptStep::say("窓を直しました"));
    server.add(ScriptStep::say("報告します"));
    let client = Client::new(ClientTimeouts::default()).unwrap();
    let provider = Provider::at("scripted", Dialect::Chat, server.url()).unwrap();
    let engine = engine(Arc::new(MemoryStore::default()));
    begin(&engine).unwrap();
    let mut mind =
        Wired { engine: &engine, asking: ModelTarget::new(client, provider, "scripted-1", 16_000) };
    let (mut tools, mut heard) = (ToolSet::default(), Heard::default());
    let mut hands =
        LocalRunner::new(&mut mind, &mut tools, TaskLimits::default(), Cancel::default(), &mut heard);
    let playbook = Playbook::parse("coding.json", crate::playbook::seed::CODING).unwrap();
    let ended = run(&playbook, &id(), &given(), &mut hands).unwrap();
    assert_eq!((ended.result.as_str(), hands.turns()), ("報告します", 3));
    assert_eq!(server.left(), 0);
    let last = server.seen().pop().unwrap();
    let body = String::from_utf8_lossy(&last.body).into_owned();
    assert!(body.contains("作業の結果をユーザーに報告してください"), "{body}");
}
