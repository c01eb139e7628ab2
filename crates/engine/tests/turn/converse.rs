//! Turns that follow one another: our own tools are answered on the way, and hints are given where a loop may want them.

use super::kit::{Talk, journaled};
use komado_core::journal::Setup;
use komado_core::message::{Message, Role};
use komado_engine::condense::{ByDigest, CondenseSettings};
use komado_engine::exchange::RecallTools;
use komado_engine::exchange::{ExchangeEvent, HintTime};
use komado_engine::fit::Ladder;
use komado_provider::Dialect;
use komado_provider::scripted::{ScriptStep, ScriptedOptions};

#[test]
fn hints_come_after_a_reply_after_tools_and_before_the_end() {
    let talk = Talk::new(Dialect::Chat, 16_384, ScriptedOptions::default());
    let mut thread = talk.thread();
    thread.set_up(RecallTools::offered(Setup::default())).unwrap();
    talk.server.add(ScriptStep::call("recall", "{\"query\":\"lantern\"}"));
    talk.server.add(ScriptStep::say("It stood on the shelf."));
    thread.say(Message::text(Role::User, "The lantern stands on the shelf. Where does it stand?")).unwrap();
    let mut by = ByDigest::new(thread.meter());
    let budget = talk.budget();
    let (soft, before) = (thread.will_manage(&budget).unwrap().act_at, thread.view().tokens());
    let mut ladder = Ladder { budget, settings: CondenseSettings::default(), by: &mut by };
    let mut hints = Vec::new();
    let conversed = thread.converse(&talk.asking, &mut ladder, &mut RecallTools, &mut |news| {
        if let ExchangeEvent::Hint(hint) = news {
            hints.push(hint);
        }
    });
    let conversed = conversed.unwrap();
    assert_eq!((conversed.turns, conversed.open.len()), (2, 0));
    let when: Vec<HintTime> = hints.iter().map(|hint| hint.when).collect();
    assert_eq!(when, [HintTime::AfterReply, HintTime::AfterTools, HintTime::AfterReply, HintTime::BeforeEnd]);
    // A hint counts what has come since: the result of a tool before anybody asks again.
    assert!(hints.windows(2).all(|pair| pair[0].verdict.tokens <= pair[1].verdict.tokens));
    assert!(hints[1].verdict.tokens > before && hints[1].verdict.act_at == soft);
    assert!(!hints[1].verdict.will_manage);
    let said = journaled(&thread);
    assert!(said[2].words().contains("lantern"), "recall found it: {:?}", said[2]);
    assert_eq!(said.len(), 4);
}

#[test]
fn a_search_finds_neither_itself_nor_another_search() {
    let talk = Talk::new(Dialect::Chat, 16_384, ScriptedOptions::default());
    let mut thread = talk.thread();
    thread.set_up(RecallTools::offered(Setup::default())).unwrap();
    thread.say(Message::text(Role::User, "The lantern stands on the shelf behind the door.")).unwrap();
    for n in 1..=2 {
        talk.server.add(ScriptStep::call("recall", "{\"query\":\"lantern shelf\"}"));
        talk.server.add(ScriptStep::say("There."));
        thread.say(Message::text(Role::User, "Where is it?")).unwrap();
        let mut by = ByDigest::new(thread.meter());
        let mut ladder = Ladder { budget: talk.budget(), settings: CondenseSettings::default(), by: &mut by };
        thread.converse(&talk.asking, &mut ladder, &mut RecallTools, &mut |_| {}).unwrap();
        let said = journaled(&thread);
        let found = said.iter().rev().find(|message| message.role == Role::Tool).unwrap();
        let found = found.words();
        assert!(found.starts_with("@2 user: The lantern"), "{n}: {found}");
        assert!(!found.contains("(recall)"), "{n}: {found}");
    }
}
