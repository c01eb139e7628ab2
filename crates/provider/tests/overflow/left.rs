//! Answers that are no overflow, however much they sound like one.

/// Status and body.
pub(crate) type Row = (u16, &'static str);

/// Rates, quotas, credits.
pub(crate) const RATES: &[Row] = &[
    (
        429,
        r#"{"error":{"message":"Rate limit reached for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Used 28000, Requested 4000. Please try again in 4s.","type":"tokens","code":"rate_limit_exceeded"}}"#,
    ),
    (
        429,
        r#"{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization's rate limit of 40,000 input tokens per minute. Please reduce the prompt length or the maximum tokens requested, or try again later."}}"#,
    ),
    (400, "Number of request tokens has exceeded your per-minute rate limit"),
    (
        429,
        r#"{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","code":"insufficient_quota"}}"#,
    ),
    (
        429,
        r#"{"error":{"code":429,"message":"Quota exceeded for metric: generate_content_free_tier_input_token_count, limit: 250000. Please retry in 12s.","status":"RESOURCE_EXHAUSTED"}}"#,
    ),
    (
        400,
        r#"{"message":"Too many tokens, please wait before trying again.","__type":"ThrottlingException"}"#,
    ),
    (429, "Too many requests"),
    (
        402,
        r#"{"error":{"message":"This request requires more credits, or fewer max_tokens. You requested up to 64000 tokens, but can only afford 3123.","code":402}}"#,
    ),
    (
        402,
        r#"{"error":{"message":"Prompt tokens limit exceeded: 9120 > 5331. To increase, visit the settings page and add credits.","code":402}}"#,
    ),
    (
        413,
        r#"{"error":{"message":"Request too large for model `x` in organization `o` service tier `on_demand` on tokens per minute (TPM): Limit 8000, Requested 12345","type":"tokens","code":"rate_limit_exceeded"}}"#,
    ),
    (400, "Daily token limit exceeded: 1000000 tokens per day"),
    (503, "Maximum number of concurrent requests exceeded, try again in 10 seconds"),
    (429, r#"{"error":{"message":"トークンのレート制限を超えました。1 分あたり 30000 トークンまでです。"}}"#),
    (429, "请求过于频繁，已超过每分钟 token 限制"),
];

/// Time, doors and engines.
pub(crate) const SERVERS: &[Row] = &[
    (
        504,
        "upstream request timeout: context deadline exceeded (Client.Timeout exceeded while awaiting headers)",
    ),
    (500, "context canceled"),
    (500, r#"Post "http://127.0.0.1:11434/api/chat": context deadline exceeded"#),
    (408, "The request took too long to process. Reduce the prompt length."),
    (400, "Processing time limit exceeded for this prompt: 300 seconds"),
    (500, "failed to determine the maximum context length of the model"),
    (
        502,
        "<html><head><title>502 Bad Gateway</title></head><body>input/output error while reading context</body></html>",
    ),
    (
        500,
        r#"{"error":{"message":"The server had an error while processing your request. Sorry about that!","type":"server_error"}}"#,
    ),
    (529, r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#),
    (
        401,
        r#"{"error":{"message":"Incorrect API key provided: sk-x. The token is too long.","type":"invalid_request_error","code":"invalid_api_key"}}"#,
    ),
    (403, "Your access token has exceeded its lifetime"),
    (
        404,
        r#"{"error":{"message":"The model `gpt-9-long-context` does not exist or you do not have access to it.","code":"model_not_found"}}"#,
    ),
    (500, "CUDA out of memory. Tried to allocate 2.00 GiB"),
    (431, "Request Header Fields Too Large"),
    (414, "<html><body>414 Request-URI Too Large</body></html>"),
    (500, "RecursionError: maximum recursion depth exceeded in context manager"),
    (500, ""),
    (400, ""),
    (200, ""),
];

/// The answer's room, and other values that are too large.
pub(crate) const VALUES: &[Row] = &[
    (
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for claude-sonnet-4-20250514"}}"#,
    ),
    (
        400,
        r#"{"error":{"message":"Invalid 'max_output_tokens': integer above maximum value. Expected a value <= 128000, but got 200000 instead.","type":"invalid_request_error","param":"max_output_tokens","code":"integer_above_max_value"}}"#,
    ),
    (
        400,
        "The maximum tokens you requested exceeds the model limit of 4096. Try again with a maximum tokens value that is lower than 4096.",
    ),
    (400, "max_tokens (10000) cannot exceed 8192. Please reduce the length of max output tokens generated."),
    (400, "Range of max_tokens should be [1, 8192]"),
    (400, "`max_tokens` must be greater than `thinking.budget_tokens`."),
    (
        400,
        r#"{"detail":[{"type":"less_than_equal","loc":["body","temperature"],"msg":"Input should be less than or equal to 2","input":3}]}"#,
    ),
    (
        400,
        r#"{"error":{"message":"Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64, but instead got a string with length 80 instead.","param":"tools[0].function.name","code":"string_above_max_length"}}"#,
    ),
    (
        400,
        r#"{"error":{"message":"Invalid 'input[2].call_id': string too long. Expected a string with maximum length 64, but instead got a string with length 100 instead.","param":"input[2].call_id","code":"string_above_max_length"}}"#,
    ),
    (
        400,
        r#"{"error":{"message":"Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 170 instead.","param":"tools","code":"array_above_max_length"}}"#,
    ),
    (
        400,
        "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes",
    ),
    (
        400,
        "messages.2.content.0.image.source.base64.data: At least one of the image dimensions exceed max allowed size: 8000 pixels",
    ),
    (413, "image too large: 30 MB, limit is 20 MB"),
    (400, "A maximum of 100 PDF pages may be provided."),
    (400, "Too many images in the prompt: 25, at most 20 are allowed"),
    (400, "top_k must be less than or equal to 40"),
    (400, "Maximum tool call limit reached: 25"),
];

/// Requests that are wrong in another way, and answers that are fine.
pub(crate) const OTHERS: &[Row] = &[
    (
        400,
        "messages: roles must alternate between \"user\" and \"assistant\", but found multiple \"user\" roles in a row",
    ),
    (400, "messages: text content blocks must be non-empty"),
    (400, "Input validation error: `temperature` must be strictly positive"),
    (
        400,
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.",
    ),
    (
        400,
        r#"{"error":{"message":"The response was filtered due to the prompt triggering Azure OpenAI's content management policy. Please modify your prompt and retry.","code":"content_filter","status":400}}"#,
    ),
    (
        200,
        r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"The prompt is too long: 9000 tokens > 8192 maximum. That is what the error means."},"finish_reason":"stop"}]}"#,
    ),
    (
        200,
        r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"…"},"finish_reason":"length"}],"usage":{"prompt_tokens":4000,"completion_tokens":96}}"#,
    ),
    (
        200,
        "data: {\"choices\":[{\"delta\":{\"content\":\"context_length_exceeded means that your input exceeds the context window\"}}]}\n\ndata: [DONE]\n\n",
    ),
    (
        200,
        r#"{"type":"message","content":[{"type":"text","text":"prompt is too long"}],"stop_reason":"max_tokens"}"#,
    ),
    (
        400,
        r#"{"detail":[{"type":"string_type","loc":["body","messages",0,"content"],"msg":"Input should be a valid string","input":["the prompt is too long, it exceeds the context window"]}]}"#,
    ),
    (400, "The prompt is empty"),
    (400, "input is too short: at least 1 token is needed"),
    (422, "Conversation roles must alternate user/assistant/user/assistant/..."),
];
