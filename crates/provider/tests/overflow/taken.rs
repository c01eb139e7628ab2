//! Answers that are an overflow, in the words of those who give them, with numbers of our own.
//!
//! Each row: status, body, `[limit, actual, output]` with 0 for what the text does not say, and the remedy.

use komado_provider::overflow::Remedy;

/// Status, body, `[limit, actual, output]`, remedy.
pub(crate) type Row = (u16, &'static str, [u64; 3], Remedy);

const S: Remedy = Remedy::Shrink;
const L: Remedy = Remedy::LowerMaxTokens;

/// The large clouds.
pub(crate) const CLOUDS: &[Row] = &[
    (
        400,
        r#"{"error":{"message":"This model's maximum context length is 8191 tokens, however you requested 8238 tokens (8238 in your prompt; 0 for the completion). Please reduce your prompt; or completion length.","type":"invalid_request_error","param":null,"code":null}}"#,
        [8191, 8238, 0],
        S,
    ),
    (
        400,
        r#"{"error":{"message":"This model's maximum context length is 16385 tokens. However, you requested 17000 tokens (12904 in the messages, 4096 in the completion). Please reduce the length of the messages or completion.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
        [16385, 17000, 4096],
        L,
    ),
    (
        400,
        r#"{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 130522 tokens (130001 in the messages, 521 in the functions). Please reduce the length of the messages or functions.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
        [128000, 130522, 0],
        S,
    ),
    (
        400,
        r#"{"error":{"message":"Invalid 'messages[1].content': string too long. Expected a string with maximum length 1048576, but instead got a string with length 1540820 instead.","type":"invalid_request_error","param":"messages[1].content","code":"string_above_max_length"}}"#,
        [0, 0, 0],
        S,
    ),
    (
        400,
        r#"{"error":{"message":"Invalid 'input': array too long. Expected an array with maximum length 16384, but instead got an array with length 16401 instead.","type":"invalid_request_error","param":"input","code":"array_above_max_length"}}"#,
        [0, 0, 0],
        S,
    ),
    (
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 201211 tokens > 199999 maximum"}}"#,
        [199999, 201211, 0],
        S,
    ),
    (
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 86888 + 119866 > 204648, decrease input length or `max_tokens` and try again"}}"#,
        [204648, 86888, 119866],
        L,
    ),
    (
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 208888 + 8000 > 204648, decrease input length or `max_tokens` and try again"}}"#,
        [204648, 208888, 8000],
        S,
    ),
    (
        413,
        r#"{"error":{"type":"request_too_large","message":"Request size exceeds model context window"},"type":"error"}"#,
        [0, 0, 0],
        S,
    ),
    (
        400,
        r#"{"message":"The model returned the following errors: Input is too long for requested model."}"#,
        [0, 0, 0],
        S,
    ),
    (
        400,
        r#"ValidationException: The model returned the following errors: prompt is too long: 215008 tokens > 200000 maximum"#,
        [200000, 215008, 0],
        S,
    ),
    (
        400,
        r#"{"message":"This model's maximum context length is 32768 tokens. Please reduce the length of the prompt"}"#,
        [32768, 0, 0],
        S,
    ),
    (
        400,
        r#"{"message":"Too many input tokens. Max input tokens: 4096, request input token count: 5122 "}"#,
        [4096, 5122, 0],
        S,
    ),
    (
        400,
        r#"{"error":{"code":400,"message":"Unable to submit request because the input token count is 1150000 but the model only supports up to 1048575. Reduce the input token count and try again. You can also use the CountTokens API to calculate prompt token count and billable characters.","status":"INVALID_ARGUMENT"}}"#,
        [1048575, 1150000, 0],
        S,
    ),
    (
        400,
        r#"{"error":{"code":400,"message":"The input token count exceeds the maximum number of tokens allowed (32768).","status":"INVALID_ARGUMENT"}}"#,
        [32768, 0, 0],
        S,
    ),
    (
        400,
        "{\"error\":{\"message\":\"{\\n  \\\"error\\\": {\\n    \\\"code\\\": 400,\\n    \\\"message\\\": \\\"The input token count (3475108) exceeds the maximum number of tokens allowed (1048576).\\\",\\n    \\\"status\\\": \\\"INVALID_ARGUMENT\\\"\\n  }\\n}\\n\",\"code\":400,\"status\":\"Bad Request\"}}",
        [1048576, 3475108, 0],
        S,
    ),
    (
        413,
        r#"{"error":{"code":"tokens_limit_reached","message":"Request body too large for gpt-4o-mini model. Max size: 8000 tokens.","details":"Request body too large for gpt-4o-mini model. Max size: 8000 tokens."}}"#,
        [8000, 0, 0],
        S,
    ),
    (
        400,
        r#"{"error":{"message":"prompt token count of 93854 exceeds the limit of 90000","code":"model_max_prompt_tokens_exceeded"}}"#,
        [90000, 93854, 0],
        S,
    ),
    (
        400,
        r#"{"error":{"message":"This model's maximum prompt length is 256000 but the request contains 256001 tokens.","code":"invalid-argument"}}"#,
        [256000, 256001, 0],
        S,
    ),
    (
        400,
        r#"{"object":"error","message":"Prompt contains 35012 tokens and 0 draft tokens, too large for model with 32768 maximum context length","type":"invalid_request_error","code":3051}"#,
        [32768, 35012, 0],
        S,
    ),
];

/// Smaller houses and routers.
pub(crate) const HOUSES: &[Row] = &[
    (
        400,
        r#"{"message":"too many tokens: total number of tokens (prompt and prediction) cannot exceed 2048 - received 6354. Try using a shorter prompt or a smaller max_tokens value."}"#,
        [2048, 6354, 0],
        S,
    ),
    (
        400,
        r#"{"message":"too many tokens: size limit exceeded by 1502 tokens. Try using shorter or fewer inputs, or setting prompt_truncation='AUTO'."}"#,
        [0, 0, 0],
        S,
    ),
    (
        400,
        r#"{"id":"x","message":"too many tokens: size limit exceeded by 466 tokens. Try using shorter or fewer inputs. The limit for this model is 128000 tokens."}"#,
        [128000, 128466, 0],
        S,
    ),
    (
        400,
        r#"{"error":{"object":"error","type":"invalid_request_error","message":"The prompt is too long: 140221, model maximum context length: 131071"}}"#,
        [131071, 140221, 0],
        S,
    ),
    (
        400,
        "The maximum context length of DeepSeek-V3-0324 is 32768. However, answering your request will take 39732 tokens. Please reduce the length of the messages or the specified max_completion_tokens value.",
        [32768, 39732, 0],
        S,
    ),
    (
        400,
        "Requested generation length 1000 is not possible! The provided prompt is 3800 tokens long, so generating 1000 tokens requires a sequence length of 4800, but the maximum supported sequence length is just 4096!",
        [4096, 3800, 1000],
        L,
    ),
    (
        400,
        r#"{"error":{"message":"Requested input length 40001 exceeds maximum input length 32768","type":"invalid_request_error"}}"#,
        [32768, 40001, 0],
        S,
    ),
    (
        400,
        r#"{"errors":[{"code":"invalid_input_argument","message":"Invalid input argument for Model 'ibm/granite-13b-chat-v2': the number of input tokens 9001 cannot exceed the total tokens limit 8192 for this model"}],"status_code":400}"#,
        [8192, 9001, 0],
        S,
    ),
    (
        400,
        r#"{"error_code":"BAD_REQUEST","message":"Bad request: rpc error: code = InvalidArgument desc = prompt token count (40012) cannot exceed 32768. Please reduce the length of your prompt."}"#,
        [32768, 40012, 0],
        S,
    ),
    (
        400,
        r#"{"detail":"Your input is too long. Max input length is 4096 tokens, but you supplied 5012 tokens."}"#,
        [4096, 5012, 0],
        S,
    ),
    (400, "PromptTooLong: Prompt length exceeds maximum input length (E1002)", [0, 0, 0], S),
    (
        400,
        r#"{"error":{"message":"This endpoint's maximum context length is 32768 tokens. However, you requested about 49876 tokens (17108 of text input, 32768 in the output). Please reduce the length of either one, or use the \"middle-out\" transform to compress your prompt automatically.","code":400,"metadata":{"provider_name":null}}}"#,
        [32768, 49876, 32768],
        L,
    ),
    (
        400,
        "litellm.BadRequestError: litellm.ContextWindowExceededError: ContextWindowExceededError: DeepseekException - Error code: 400 - {'error': {'message': \"This model's maximum context length is 65536 tokens. However, you requested 66056 tokens (66056 in the messages, 0 in the completion). Please reduce the length of the messages or completion.\", 'type': 'invalid_request_error', 'param': None, 'code': 'invalid_request_error'}}",
        [65536, 66056, 0],
        S,
    ),
    (
        500,
        r#"{"error":{"message":"litellm.ContextWindowExceededError: litellm.BadRequestError: AnthropicError - b'{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"prompt is too long: 205668 tokens > 200000 maximum\"}}'. Received Model Group=claude\nAvailable Model Group Fallbacks=None LiteLLM Retried: 1 times, LiteLLM Max Retries: 2","type":null,"param":null,"code":"500"}}"#,
        [200000, 205668, 0],
        S,
    ),
    (
        400,
        r#"{"code":"InvalidParameter","message":"Range of input length should be [1, 129024]","request_id":"7b2e"}"#,
        [129024, 0, 0],
        S,
    ),
    (
        400,
        "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 204800]",
        [204800, 0, 0],
        S,
    ),
    (400, r#"{"error":{"code":"1261","message":"Prompt exceeds max length"}}"#, [0, 0, 0], S),
    (
        400,
        r#"{"error":{"code":"InvalidParameter","message":"Input length 203743 exceeds the maximum length 202752. Request id: 021770000000000","param":"","type":"BadRequest"}}"#,
        [202752, 203743, 0],
        S,
    ),
    (
        400,
        r#"{"error":{"code":"InvalidParameter","message":"Total tokens of image and text exceed max message tokens. Request id: 02177","param":"","type":"BadRequest"}}"#,
        [0, 0, 0],
        S,
    ),
    (200, r#"{"error_code":336103,"error_msg":"Prompt tokens too long","id":"as-1"}"#, [0, 0, 0], S),
    (400, "length of prompt_tokens (33001) must be less than max_seq_len (32768).", [32768, 33001, 0], S),
    (400, "Request input tokens exceed model token limit. Reduce the input size.", [0, 0, 0], S),
];

/// Servers people run themselves.
pub(crate) const LOCAL: &[Row] = &[
    (
        400,
        r#"{"error":{"message":"This model's maximum context length is 16384 tokens. However, your request has 18225 input tokens. Please reduce the length of the input messages. None","type":"BadRequestError","param":null,"code":400}}"#,
        [16384, 18225, 0],
        S,
    ),
    (
        400,
        r#"{"object":"error","message":"'max_tokens' or 'max_completion_tokens' is too large: 32768. This model's maximum context length is 32768 tokens and your request has 1131 input tokens (32768 > 32768 - 1131). None","type":"BadRequestError","param":null,"code":400}"#,
        [32768, 1131, 32768],
        L,
    ),
    (
        400,
        r#"{"object":"error","message":"This model's maximum context length is 131072 tokens. However, you requested 102400 output tokens and your prompt contains at least 28673 input tokens, for a total of at least 131073 tokens. Please reduce the length of the input prompt or the number of requested output tokens. (parameter=input_tokens, value=28673)","code":400}"#,
        [131072, 28673, 102400],
        L,
    ),
    (
        400,
        "Input length (160062 tokens) exceeds the maximum allowed length (59862 tokens). Use a shorter input or enable --allow-auto-truncate.",
        [59862, 160062, 0],
        S,
    ),
    (
        400,
        "Requested token count exceeds the model's maximum context length of 32768 tokens. You requested a total of 34000 tokens: 30000 tokens from the input messages and 4000 tokens for the completion. Please reduce the number of tokens in the input messages or the completion to fit within the limit.",
        [32768, 34000, 4000],
        L,
    ),
    (500, "Requested tokens (817) exceed context window of 512", [512, 817, 0], S),
    (
        500,
        r#"{"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}}"#,
        [0, 0, 0],
        S,
    ),
    (
        500,
        r#"{"error":{"code":500,"message":"input (600 tokens) is too large to process. increase the physical batch size (current batch size: 512)","type":"server_error"}}"#,
        [512, 600, 0],
        S,
    ),
    (
        422,
        r#"{"error":"Input validation error: `inputs` must have less than 1024 tokens. Given: 2051","error_type":"validation"}"#,
        [1024, 2051, 0],
        S,
    ),
    (
        422,
        r#"{"error":"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8192. Given: 8000 `inputs` tokens and 512 `max_new_tokens`","error_type":"validation"}"#,
        [8192, 0, 512],
        L,
    ),
    (400, r#"{"error":"Input length 6491 exceeds context length 1500"}"#, [1500, 6491, 0], S),
    (
        400,
        "Token indices sequence length is longer than the specified maximum sequence length for this model (16769 > 16384). Running this sequence through the model will result in indexing errors",
        [16384, 16769, 0],
        S,
    ),
    (400, "Prompt length 9020 is greater than max_seq_len 8192", [8192, 9020, 0], S),
    (400, "Prompt is too long. Prompt is 12040 tokens and max context is 8192", [8192, 12040, 0], S),
    (500, r#"{"error":"llama runner: input length exceeds maximum context length"}"#, [0, 0, 0], S),
    (
        400,
        r#"{"error":"The number of tokens to keep from the initial prompt is greater than the context length. Try to load the model with a larger context length, or provide a shorter input"}"#,
        [0, 0, 0],
        S,
    ),
    (
        200,
        "event: error\ndata: {\"error\":{\"message\":\"The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 9120>= n_ctx: 4096). Try to load the model with a larger context length, or provide a shorter input.\"}}\n\n",
        [4096, 9120, 0],
        S,
    ),
    (
        400,
        "RuntimeError: prompt of 40000 tokens does not fit into the context window (32768)",
        [32768, 40000, 0],
        S,
    ),
];

/// Forms: streams, wrappers, pages, nothing at all.
pub(crate) const FORMS: &[Row] = &[
    (413, "", [0, 0, 0], S),
    (413, "   \n", [0, 0, 0], S),
    (
        413,
        "<html>\r\n<head><title>413 Request Entity Too Large</title></head>\r\n<body>\r\n<center><h1>413 Request Entity Too Large</h1></center>\r\n<hr><center>nginx/1.25.3</center>\r\n</body>\r\n</html>\r\n",
        [0, 0, 0],
        S,
    ),
    (413, r#"{"message":"Payload Too Large","statusCode":413}"#, [0, 0, 0], S),
    (
        200,
        "event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{\"id\":\"r\",\"error\":{\"code\":\"context_length_exceeded\",\"message\":\"Your input exceeds the context window of this model. Please adjust your input and try again.\"}}}\n\n",
        [0, 0, 0],
        S,
    ),
    (
        200,
        "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hello\"},\"finish_reason\":null}]}\n\ndata: {\"error\":{\"message\":\"This model's maximum context length is 4096 tokens, but 4097 tokens are in the sequence\",\"code\":400}}\n\ndata: [DONE]\n\n",
        [4096, 4097, 0],
        S,
    ),
    (
        200,
        r#"{"id":"m","type":"message","role":"assistant","content":[],"stop_reason":"model_context_window_exceeded","usage":{"input_tokens":199000,"output_tokens":1000}}"#,
        [0, 0, 0],
        S,
    ),
    (400, r#""prompt is too long""#, [0, 0, 0], S),
    (
        400,
        r#"[{"error":{"code":400,"message":"The input token count (99) exceeds the maximum number of tokens allowed (10)."}},{"error":{}}]"#,
        [10, 99, 0],
        S,
    ),
    (
        400,
        r#"{"error":"{\"error\":\"{\\\"message\\\":\\\"context length exceeded: limit 4096, got 5000\\\"}\"}"}"#,
        [4096, 5000, 0],
        S,
    ),
    (
        400,
        r#"{"detail":[{"type":"value_error","loc":["body","messages"],"msg":"Value error, total prompt length 9,100 tokens is over the 8,192-token window","input":[{"role":"user","content":"hi"}]}]}"#,
        [8192, 9100, 0],
        S,
    ),
    (
        400,
        r#"{"success":false,"errors":[{"code":5021,"message":"AiError: AiError: The estimated number of input and maximum output tokens (9100) exceeded this model context window limit (7968)."}]}"#,
        [7968, 9100, 0],
        S,
    ),
];

/// Japanese, Chinese, Korean.
pub(crate) const TONGUES: &[Row] = &[
    (
        400,
        r#"{"error":{"message":"入力トークン数（9000）が最大コンテキスト長（8192）を超えています。"}}"#,
        [8192, 9000, 0],
        S,
    ),
    (
        400,
        "プロンプトが長すぎます。最大 4,096 トークンですが、入力は 5,120 トークンです。",
        [4096, 5120, 0],
        S,
    ),
    (400, "コンテキストウィンドウの上限を超過しました。会話を短くしてください。", [0, 0, 0], S),
    (400, "リクエストのトークン数が上限の32768トークンを超えました", [32768, 0, 0], S),
    (400, r#"{"code":"400","msg":"输入内容过长，请减少输入长度"}"#, [0, 0, 0], S),
    (400, "上下文长度超过限制：最大 32768 tokens，当前 40960 tokens", [32768, 40960, 0], S),
    (400, "输入的token数量（131073）超出模型最大上下文长度（131072）", [131072, 131073, 0], S),
    (400, "提示詞太長，超過模型上下文視窗上限 8192 個 token", [8192, 0, 0], S),
    (400, "입력 토큰 수(9000)가 최대 컨텍스트 길이(8192)를 초과했습니다.", [8192, 9000, 0], S),
    (400, "Prompt 超长", [0, 0, 0], S),
];
