//! More wordings made up without looking, after the first round had been answered.

use super::taken::Row;
use komado_provider::overflow::Remedy;

const S: Remedy = Remedy::Shrink;
const L: Remedy = Remedy::LowerMaxTokens;

/// Overflows.
pub(crate) const TAKEN: &[Row] = &[
    (400, "Your prompt uses 9500 tokens. The model you selected can only accept 8192.", [8192, 9500, 0], S),
    (400, "Total tokens 33500 exceeds model maximum of 32768", [32768, 33500, 0], S),
    (400, "Expected at most 4096 tokens, got 5000", [4096, 5000, 0], S),
    (400, "Input sequence too long. Sequence length: 2500. Max: 2048", [2048, 2500, 0], S),
    (
        400,
        r#"{"error":{"message":"Input tokens: 150000. Maximum allowed: 128000.","code":"input_tokens_exceeded"}}"#,
        [128000, 150000, 0],
        S,
    ),
    (400, "You passed 16500 input tokens, exceeding the model's 16384-token context.", [16384, 16500, 0], S),
    (
        422,
        r#"{"detail":[{"loc":["body","messages"],"msg":"total message length too long","type":"value_error"}]}"#,
        [0, 0, 0],
        S,
    ),
    (
        400,
        r#"{"error":{"message":"This model's maximum context length is 131072 tokens. However, your request has 131073 input tokens. Please reduce the length of the input messages. (parameter=input_tokens, value=131073)","type":"BadRequestError"}}"#,
        [131072, 131073, 0],
        S,
    ),
    (
        400,
        r#"{"error":{"code":"tokens_limit_reached","message":"Request body too large for the model. Max size: 8000 tokens. Yours: 12000 tokens."}}"#,
        [8000, 12000, 0],
        S,
    ),
    (400, "The request exceeds the 200K context window", [200000, 0, 0], S),
    (400, "prompt is too long: 1200000 tokens > 1000000 maximum", [1000000, 1200000, 0], S),
    (
        400,
        "Context length exceeded. Maximum: 4096, requested: 4196 (3996 prompt + 200 completion)",
        [4096, 4196, 200],
        L,
    ),
    (400, "Model input cannot exceed its context window.", [0, 0, 0], S),
    (400, "The conversation has grown past the model's context window", [0, 0, 0], S),
    (400, "history too long, please clear some messages", [0, 0, 0], S),
    (400, "message token length is 35000, but the limit is 32000", [32000, 35000, 0], S),
    (500, "RuntimeError: The size of tensor: sequence length 4200 exceeds maximum 4096", [4096, 4200, 0], S),
    (
        400,
        r#"{"type":"BadRequest","message":"Prompt tokens + max_new_tokens = 8300, model maximum is 8192"}"#,
        [8192, 8300, 0],
        S,
    ),
    (
        400,
        r#"[400] Error from provider: {"error":{"message":"Requested 70000 tokens, which exceeds max context 65536"}}"#,
        [65536, 70000, 0],
        S,
    ),
    (400, "最大入力トークン数は 100,000 です。入力を短くしてください。", [100000, 0, 0], S),
    (400, "トークン数が多すぎます（10000 / 8192）", [8192, 10000, 0], S),
    (400, "入力が長すぎます。6000トークンが送信されましたが、上限は4096トークンです。", [4096, 6000, 0], S),
    (400, "输入 token 数不能超过 32768", [32768, 0, 0], S),
    (400, "本次请求的上下文共 9000 tokens，超出了模型支持的最大 8192 tokens 限制", [8192, 9000, 0], S),
    (400, "上下文过长", [0, 0, 0], S),
    (400, "参数错误：messages 内容长度超限", [0, 0, 0], S),
    (400, "The max input length is 6144 tokens, while the current input is 7000 tokens", [6144, 7000, 0], S),
    (400, "text too long, should be less than 4000 tokens", [4000, 0, 0], S),
    (
        400,
        r#"{"error":{"message":"INVALID_REQUEST: The total length of messages exceeds 1000000 characters"}}"#,
        [0, 0, 0],
        S,
    ),
];

/// Everything else.
pub(crate) const LEFT: &[super::left::Row] = &[
    (400, "The request is missing the 'input' field; at least one of prompt or messages is required"),
    (400, "max_tokens should be in range [1, 4096]"),
    (400, "completion tokens limit exceeded"),
    (400, "Your organization has exceeded its token budget for this month"),
    (400, "stream_options is only allowed when stream is true"),
    (500, "Error reading context file"),
    (400, "Invalid prompt: your prompt was flagged as potentially violating our usage policy"),
    (400, "Only one of max_tokens and max_completion_tokens may be given"),
    (400, "Unsupported value: 'messages[0].role' does not support 'system' with this model"),
    (400, "audio input too long: at most 25 minutes"),
    (400, "Invalid schema: nesting depth exceeds 5 levels"),
    (404, r#"model "long:latest" not found, try pulling it first"#),
    (400, "The number of messages must be greater than 1"),
    (400, "Batch size exceeds limit of 2048 inputs"),
    (
        400,
        "Maximum cache_control blocks exceeded: a maximum of 4 blocks with cache_control may be provided. Found 5.",
    ),
    (400, "The model's output exceeded the allowed length"),
    (400, "出力トークン数が上限を超えています"),
    (400, "请求超时，请缩短输入"),
    (500, r#"{"error":"model requires more system memory (8.4 GiB) than is available (4.0 GiB)"}"#),
    (500, "llama runner process has terminated: exit status 2"),
];
