//! Answers as real servers send them, and what is heard of each.

use super::kit::{decoded, heard, shown};
use komado_provider::{Dialect, ResponseForm};

/// An answer that a server sent.
pub(crate) struct Fixture {
    pub(crate) dialect: Dialect,
    pub(crate) form: ResponseForm,
    pub(crate) name: &'static str,
    pub(crate) text: &'static str,
    wanted: &'static str,
}

macro_rules! fixture {
    ($dialect:ident, $form:ident, $file:literal, $wanted:literal) => {
        Fixture {
            dialect: Dialect::$dialect,
            form: ResponseForm::$form,
            name: $file,
            text: include_str!(concat!("../fixtures/", $file)),
            wanted: $wanted,
        }
    };
}

/// Every answer there is.
pub(crate) const ALL: [Fixture; 25] = [
    fixture!(
        Chat,
        Stream,
        "chat/openai.sse",
        r#"chatcmpl-CfX1 gpt-5.1-2025-11-13
text "小窓を開けます。\n\"ok\" 🪟"
usage [176, 31, 0, 1024]
finished stop"#
    ),
    fixture!(
        Chat,
        Stream,
        "chat/openai_calls.sse",
        r#"chatcmpl-CfX2 gpt-5.1-2025-11-13
call call_eF1 read_file {"path":"窓.rs"}
call call_gH2 grep {"re":"a|b","n":1.0}
finished tool_calls"#
    ),
    fixture!(
        Chat,
        Stream,
        "chat/openai_refusal.sse",
        r#"chatcmpl-CfX3 gpt-4o
text ""
extra {"refusal":"I can't help with that."}
finished refusal"#
    ),
    fixture!(
        Chat,
        Stream,
        "chat/azure.sse",
        r#"chatcmpl-Az1 gpt-4o-2024-11-20
text "Hi"
finished stop"#
    ),
    fixture!(
        Chat,
        Stream,
        "chat/llama_cpp.sse",
        r#"chatcmpl-Ll1 qwen3-8b
thought "まず読む。"
call wDt8 read_file {"path":"a"}
extra {"reasoning_content":null}
usage [300, 40, 0, 0]
finished tool_calls"#
    ),
    fixture!(
        Chat,
        Stream,
        "chat/vllm.sse",
        r#"chatcmpl-9f2 openai/gpt-oss-20b
thought "We need tea."
text "お茶"
extra {"reasoning_content":null}
usage [16, 7, 0, 64]
finished length"#
    ),
    fixture!(
        Chat,
        Stream,
        "chat/openrouter.sse",
        r#"gen-1763200007-A google/gemini-3-pro
thought "Look first."
text "見ます。"
call tool_0_ls ls {"d":"."}
extra {"reasoning_details":[{"type":"reasoning.text","text":"Look first.","format":"google-gemini-v1","index":0},{"type":"reasoning.encrypted","data":"CiQB+/=","id":"tool_0_ls","format":"google-gemini-v1","index":0}]}
usage [300, 60, 100, 500]
finished tool_calls"#
    ),
    fixture!(
        Chat,
        Stream,
        "chat/openrouter_error.sse",
        r#"gen-1763200008-B deepseek/deepseek-v3.2
text "途中"
failed 200 {"id":"gen-1763200008-B","provider":"Chutes","model":"deepseek/deepseek-v3.2","object":"chat.completion.chunk","created":1763200008,"error":{"code":502,"message":"Provider disconnected unexpectedly"},"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":"error","native_finish_reason":null,"logprobs":null}]}"#
    ),
    fixture!(
        Chat,
        Stream,
        "chat/deepseek.sse",
        r#"b1f0 deepseek-reasoner
thought "考える…"
text "42"
extra {"reasoning_content":null}
usage [18, 9, 0, 32]
finished stop"#
    ),
    fixture!(
        Chat,
        Stream,
        "chat/gemini.sse",
        r#"Gm1 gemini-3-pro-preview
call function-call-1 weather {"city":"東京"} {"extra_content":{"google":{"thought_signature":"EpwC+a=="}}}
call function-call-2 weather {"city":"京都"}
usage [70, 80, 0, 0]
finished tool_calls"#
    ),
    fixture!(
        Chat,
        Stream,
        "chat/groq.sse",
        r#"chatcmpl-Gq1 openai/gpt-oss-120b
thought "hm"
text "fast"
extra {"channel":"analysis"}
usage [21, 4, 0, 0]
finished stop"#
    ),
    fixture!(
        Chat,
        Stream,
        "chat/mistral.sse",
        r#"ms1 magistral-medium-2509
thought "Voyons"
text "D'accord"
part {"type":"reference","reference_ids":[1]}
usage [11, 9, 0, 0]
finished stop"#
    ),
    fixture!(
        Chat,
        Stream,
        "chat/lm_studio_error.sse",
        r#"chatcmpl-lm1 qwen3-4b
text "half"
failed 200 {"error":"The model has crashed without additional information."}"#
    ),
    fixture!(
        Chat,
        Stream,
        "chat/repeats.sse",
        r#"rp1 m
call a1 ls {"d":"."}
call - pwd {}
finished tool_calls"#
    ),
    fixture!(
        Chat,
        Stream,
        "chat/no_index.sse",
        r#"ni1 m
text "ok"
call - ls {"d":1}
call - ls {"d": 2.0}
call - rm {"f":"x"}
finished tool_calls"#
    ),
    fixture!(
        Chat,
        Stream,
        "chat/function_call.sse",
        r#"fc1 gpt-3.5-turbo-0613
call - weather {"city":"Oslo"}
finished tool_calls"#
    ),
    fixture!(
        Chat,
        Whole,
        "chat/openai.json",
        r#"chatcmpl-CfX9 gpt-5.1-2025-11-13
text "両方読みます。"
call call_1 read_file {"path":"a"}
call call_2 read_file {"path":"b"}
usage [19, 10, 0, 0]
finished tool_calls"#
    ),
    fixture!(
        Chat,
        Whole,
        "chat/deepseek.json",
        r#"c22e deepseek-chat
thought "窓を見る"
call call_00_x look {}
extra {"reasoning_content":null}
usage [40, 8, 0, 0]
finished tool_calls"#
    ),
    fixture!(
        Chat,
        Whole,
        "chat/context_window.json",
        r#"cw1 claude-sonnet-4-5
text "so far"
usage [5, 2, 0, 0]
finished model_context_window_exceeded"#
    ),
    fixture!(
        Chat,
        Whole,
        "chat/openrouter_error.json",
        r#"- -
failed 200 {"id":"gen-9","provider":"X","model":"x/y","object":"chat.completion","created":1763200023,"choices":[{"error":{"code":429,"message":"Rate limited upstream"},"index":0,"message":{"role":"assistant","content":""},"finish_reason":"error"}]}"#
    ),
    fixture!(
        Chat,
        Whole,
        "chat/gateway.json",
        r#"- -
failed 200 <html><body>502 Bad Gateway</body></html>"#
    ),
    fixture!(
        Ollama,
        Stream,
        "ollama/plain.ndjson",
        r#"- llama3.2
text "空は青い。"
usage [26, 282, 0, 0]
finished stop"#
    ),
    fixture!(
        Ollama,
        Stream,
        "ollama/thinking_calls.ndjson",
        r#"- qwen3:8b
thought "Need 天気."
text "調べます"
call call_ab12cd34 get_weather {"city":"東京","days":1.0}
call call_ef56ab78 get_weather {"city":"京都"}
usage [169, 31, 0, 0]
finished tool_calls"#
    ),
    fixture!(
        Ollama,
        Stream,
        "ollama/old_calls.ndjson",
        r#"- mistral
call - ls {}
call - cat half {
usage [0, 12, 0, 0]
finished tool_calls"#
    ),
    fixture!(
        Ollama,
        Stream,
        "ollama/error.ndjson",
        r#"- llama3.2
text "half"
failed 200 {"error":"an error was encountered while running the model: unexpected EOF"}"#
    ),
];

/// A whole answer of Ollama's, which is one line of its stream.
pub(crate) const OLLAMA_WHOLE: &str = include_str!("../fixtures/ollama/whole.json");

#[test]
fn every_server_is_heard_as_it_meant_it() {
    for fixture in &ALL {
        let events = decoded(fixture.dialect, fixture.form, &[fixture.text.as_bytes()]);
        assert_eq!(shown(&heard(&events)), fixture.wanted, "{}", fixture.name);
    }
}

#[test]
fn a_whole_answer_of_ollama_is_heard_in_both_forms() {
    let wanted = "- gpt-oss:20b\nthought \"yes\"\ntext \"はい\"\nusage [11, 3, 0, 0]\nfinished length";
    for form in [ResponseForm::Stream, ResponseForm::Whole] {
        let events = decoded(Dialect::Ollama, form, &[OLLAMA_WHOLE.as_bytes()]);
        assert_eq!(shown(&heard(&events)), wanted, "{form:?}");
    }
}

#[test]
fn an_object_in_place_of_the_stream_that_was_asked_for_is_understood() {
    for fixture in ALL.iter().filter(|fixture| fixture.name.ends_with("openai.json")) {
        let events = decoded(Dialect::Chat, ResponseForm::Stream, &[b"\n ", fixture.text.as_bytes()]);
        assert_eq!(shown(&heard(&events)), fixture.wanted);
    }
    let events = decoded(Dialect::Chat, ResponseForm::Stream, &[br#"{"error":"too long"}"#]);
    assert_eq!(shown(&heard(&events)), "- -\nfailed 200 {\"error\":\"too long\"}");
}

#[test]
fn an_answer_that_is_none_is_told_with_its_text() {
    for (dialect, text) in [
        (Dialect::Chat, r#"{"detail":"Not Found"}"#),
        (Dialect::Chat, "[1]"),
        (Dialect::Chat, ""),
        (Dialect::Ollama, "404 page not found"),
        (Dialect::Ollama, r#"{"detail":"Not Found"}"#),
    ] {
        let heard = heard(&decoded(dialect, ResponseForm::Whole, &[text.as_bytes()]));
        assert_eq!(heard.failed.map(|failed| failed.body).as_deref(), Some(text), "{dialect:?}");
        assert_eq!(heard.finish, None);
    }
    for (dialect, text) in
        [(Dialect::Chat, "data: oops\n\ndata: [DONE]\n\n"), (Dialect::Ollama, "oops\n{\"done\":true}\n")]
    {
        let heard = heard(&decoded(dialect, ResponseForm::Stream, &[text.as_bytes()]));
        assert_eq!(heard.failed.map(|failed| failed.body).as_deref(), Some("oops"), "{dialect:?}");
        assert_eq!(heard.finish, None);
    }
}
