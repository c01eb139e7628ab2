//! What servers say about their windows, as they say it, and what is read from it.
use komado_provider::probe::Probe;

const PROPS: &str = r#"{"default_generation_settings":{"id":0,"id_task":-1,"n_ctx":4096,"speculative":false,"is_processing":false,"params":{"n_predict":-1,"seed":4294967295,"temperature":0.800000011920929,"dynatemp_range":0.0,"top_k":40,"stop":[]},"prompt":"","next_token":{"has_next_token":true,"has_new_line":false,"n_remain":-1,"n_decoded":0}},"total_slots":4,"model_path":"/models/smollm2-135m-instruct-q4_1.gguf","modalities":{"vision":false,"audio":false},"chat_template":"{% for message in messages %}…","bos_token":"<|im_start|>","eos_token":"<|im_end|>","build_info":"b5932-36c15324"}"#;

const LLAMA_MODELS: &str = r#"{"models":[{"name":"smollm2.gguf","model":"smollm2.gguf","modified_at":"","size":"","digest":"","type":"model","description":"","tags":[""],"capabilities":["completion"],"parameters":"","details":{"parent_model":"","format":"gguf","family":"","families":[""],"parameter_size":"","quantization_level":""}}],"object":"list","data":[{"id":"smollm2.gguf","object":"model","created":1753100000,"owned_by":"llamacpp","meta":{"vocab_type":2,"n_vocab":49152,"n_ctx":2048,"n_ctx_train":8192,"n_embd":576,"n_params":134515008,"size":91727616}}]}"#;

const VLLM: &str = r#"{"object":"list","data":[{"id":"Qwen/Qwen2.5-7B-Instruct","object":"model","created":1753100000,"owned_by":"vllm","root":"Qwen/Qwen2.5-7B-Instruct","parent":null,"max_model_len":32768,"permission":[{"id":"modelperm-1","object":"model_permission","allow_sampling":true,"is_blocking":false}]},{"id":"sql-lora","object":"model","owned_by":"vllm","root":"/loras/sql","parent":"Qwen/Qwen2.5-7B-Instruct","max_model_len":16384,"permission":[]}]}"#;

const OPENROUTER: &str = r#"{"data":[{"id":"acme/long-1","canonical_slug":"acme/long-1","name":"Acme: Long 1","created":1753100000,"context_length":1000000,"architecture":{"modality":"text->text","tokenizer":"Other"},"pricing":{"prompt":"0.000001","completion":"0.000002"},"top_provider":{"context_length":262144,"max_completion_tokens":32768,"is_moderated":false}},{"id":"acme/small","context_length":8192,"top_provider":{"context_length":null,"max_completion_tokens":null,"is_moderated":false}}]}"#;

const LM_STUDIO: &str = r#"{"data":[{"id":"qwen2.5-7b-instruct","object":"model","type":"llm","publisher":"lmstudio-community","arch":"qwen2","compatibility_type":"gguf","quantization":"Q4_K_M","state":"loaded","max_context_length":131072,"loaded_context_length":8192,"capabilities":["tool_use"]},{"id":"gemma-3-4b","object":"model","type":"vlm","state":"not-loaded","max_context_length":131072},{"id":"older","object":"model","type":"llm","state":"loaded","max_context_length":32768}],"object":"list"}"#;

const OLLAMA_PS: &str = r#"{"models":[{"name":"llama3.1:8b","model":"llama3.1:8b","size":6654289920,"digest":"46e0","details":{"parent_model":"","format":"gguf","family":"llama","families":["llama"],"parameter_size":"8.0B","quantization_level":"Q4_K_M"},"expires_at":"2025-07-21T14:38:31.83753-07:00","size_vram":6654289920,"context_length":16384},{"name":"qwen3:latest","model":"qwen3:latest","size":1,"digest":"x","details":{},"expires_at":"2025-07-21T14:38:31Z","size_vram":1,"context_length":4096}]}"#;

const OLLAMA_SHOW: &str = r#"{"license":"…","modelfile":"FROM llama3.1\nPARAMETER num_ctx 24576","parameters":"num_ctx                        24576\nstop                           \"<|start_header_id|>\"\nstop                           \"<|eot_id|>\"","template":"{{ .Prompt }}","details":{"parent_model":"","format":"gguf","family":"llama","families":["llama"],"parameter_size":"8.0B","quantization_level":"Q4_K_M"},"model_info":{"general.architecture":"llama","general.file_type":15,"general.parameter_count":8030261248,"llama.attention.head_count":32,"llama.context_length":131072,"llama.embedding_length":4096},"capabilities":["completion","tools"]}"#;

#[test]
fn llama_cpp_tells_the_window_of_one_slot() {
    let read = |body: &str| Probe::LlamaCpp.read("/props", body, "any");
    assert_eq!(read(PROPS), Some(4096));
    assert_eq!(
        read(r#"{"n_ctx":8192,"total_slots":2,"default_generation_settings":{"params":{}}}"#),
        Some(8192)
    );
    assert_eq!(
        Probe::LlamaCpp.read("/v1/models", LLAMA_MODELS, "any"),
        Some(2048),
        "not what it was trained for"
    );
}

#[test]
fn lists_of_models_are_read_by_name() {
    let read = |body: &str, model: &str| Probe::Models.read("/v1/models", body, model);
    assert_eq!(read(VLLM, "Qwen/Qwen2.5-7B-Instruct"), Some(32768));
    assert_eq!(read(VLLM, "sql-lora"), Some(16384));
    assert_eq!(read(VLLM, "qwen2.5-7b-instruct"), Some(32768), "the path may be left out");
    assert_eq!(read(VLLM, "another"), None, "two models, and neither is meant");
    assert_eq!(read(OPENROUTER, "acme/long-1"), Some(262_144), "the smaller of model and provider");
    assert_eq!(read(OPENROUTER, "acme/small"), Some(8192));
}

#[test]
fn lm_studio_is_believed_about_what_is_loaded() {
    let read = |model: &str| Probe::Models.read("/api/v0/models", LM_STUDIO, model);
    assert_eq!(read("qwen2.5-7b-instruct"), Some(8192));
    assert_eq!(read("older"), Some(32768));
    assert_eq!(read("gemma-3-4b"), None, "it is not loaded, so it has no window yet");
}

#[test]
fn ollama_is_believed_about_what_is_loaded_and_never_about_what_was_trained() {
    let ps = |model: &str| Probe::Ollama.read("/api/ps", OLLAMA_PS, model);
    assert_eq!(ps("llama3.1:8b"), Some(16384));
    assert_eq!(ps("qwen3"), Some(4096), "no tag is :latest");
    assert_eq!(ps("llama3.1"), None);
    let show = |body: &str| Probe::Ollama.read("/api/show", body, "llama3.1:8b");
    assert_eq!(show(OLLAMA_SHOW), Some(24576));
    let unset = OLLAMA_SHOW.replace("num_ctx                        24576\\n", "");
    assert_eq!(show(&unset), None);
}

#[test]
fn each_probe_asks_in_order_and_only_what_it_can_read() {
    let paths = |probe: Probe| probe.steps("m").iter().map(|step| step.path).collect::<Vec<_>>();
    assert_eq!(paths(Probe::LlamaCpp), ["/props", "/v1/models"]);
    assert_eq!(paths(Probe::Models), ["/api/v0/models", "/v1/models"]);
    assert_eq!(paths(Probe::Ollama), ["/api/ps", "/api/show"]);
    let show = &Probe::Ollama.steps("a\"b")[1];
    assert_eq!(show.body.as_deref(), Some(r#"{"model":"a\"b"}"#));
}

#[test]
fn an_answer_that_is_no_answer_says_nothing() {
    for probe in Probe::ALL {
        for step in probe.steps("m") {
            for body in [
                "",
                "404 page not found",
                "[]",
                "{}",
                "null",
                r#"{"data":null}"#,
                r#"{"data":[]}"#,
                r#"{"models":[{}]}"#,
                r#"{"n_ctx":0}"#,
            ] {
                assert_eq!(probe.read(step.path, body, "m"), None, "{probe:?} {} {body}", step.path);
            }
        }
        assert_eq!(probe.read("/elsewhere", PROPS, "m"), None);
    }
}
