//! Traces: what a collector gets, and that one that is away costs nothing.

use crate::gateway::stage::{ASKS, Fake, Gateway, say};

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const TRACE: [u8; 16] =
    [0x0a, 0xf7, 0x65, 0x19, 0x16, 0xcd, 0x43, 0xdd, 0x84, 0x48, 0xeb, 0x21, 0x1c, 0x80, 0x31, 0x9c];

fn holds(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[test]
fn a_collector_hears_what_was_done_in_the_clients_trace_and_nothing_that_was_said() {
    let (fake, collector) = (Fake::saying("雨です"), Fake::start(|_, stream| say(stream, 200, "")));
    let endpoint = format!("telemetry.otlp_endpoint={}", collector.url);
    let gateway =
        Gateway::before(&fake, "openai", &["--set", &endpoint, "--set", "telemetry.service_name=bot"]);
    let (_, path, body) = ASKS[0];
    let headers = [("traceparent", PARENT), ("authorization", "Bearer sk-0123456789abcdef")];
    let heard = gateway.ask(&format!("POST {path}"), &headers, body.as_bytes());
    assert_eq!(heard.status(), 200);
    assert_eq!(fake.seen()[0].header("traceparent"), PARENT, "as the client sent it");
    assert_eq!(gateway.stop(), Some(0));
    let seen = collector.seen();
    assert!(seen.iter().all(|request| request.path() == "/v1/traces"), "{seen:?}");
    assert_eq!(seen[0].header("content-type"), "application/x-protobuf");
    let bytes: Vec<u8> = seen.iter().flat_map(|request| request.body.clone()).collect();
    for name in ["request", "place", "admit", "fit", "upstream", "journal", "store", "append", "bot"] {
        assert!(holds(&bytes, name.as_bytes()), "{name}");
    }
    assert!(holds(&bytes, &TRACE), "the client's trace goes on");
    for said in ["窓", "雨です", "sk-0123456789abcdef"] {
        assert!(!holds(&bytes, said.as_bytes()), "{said}");
    }
}

#[test]
fn a_collector_that_is_away_costs_nothing() {
    let fake = Fake::saying("はい");
    let gateway = Gateway::before(&fake, "openai", &["--set", "telemetry.otlp_endpoint=http://127.0.0.1:1"]);
    let (_, path, body) = ASKS[0];
    let heard = gateway.ask(&format!("POST {path}"), &[], body.as_bytes());
    assert_eq!((heard.status(), heard.header("x-komado-fault")), (200, ""));
    assert_eq!(gateway.stop(), Some(0));
}
