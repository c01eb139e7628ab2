"""The official OpenAI SDK against a server: openai_sdk.py URL"""

import json
import sys

import openai
from check import CALLS, FORECAST, GREETING, RESULTS, SCHEMA, TOO_LONG, holds, raised, same

client = openai.OpenAI(base_url=sys.argv[1] + "/v1", api_key="none", max_retries=0)
CHAT_TOOLS = [{"type": "function", "function": {"name": "weather", "description": "天気予報", "parameters": SCHEMA}}]
TOOLS = [{"type": "function", "name": "weather", "description": "天気予報", "parameters": SCHEMA, "strict": False}]


def user(text):
    return {"role": "user", "content": text}


def chat():
    answer = client.chat.completions.create(
        model="scripted", messages=[{"role": "system", "content": "日本語で答えて"}, user("こんにちは")]
    )
    same("chat: the words", answer.choices[0].message.content, GREETING)
    same("chat: why it stopped", answer.choices[0].finish_reason, "stop")
    holds("chat: usage", answer.usage.prompt_tokens > 10 and answer.usage.completion_tokens > 10, answer.usage)
    same("chat: usage adds up", answer.usage.total_tokens, answer.usage.prompt_tokens + answer.usage.completion_tokens)


def chat_stream():
    chunks = list(
        client.chat.completions.create(
            model="scripted", messages=[user("こんにちは")], stream=True, stream_options={"include_usage": True}
        )
    )
    pieces = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices and chunk.choices[0].delta.content]
    same("chat stream: the words", "".join(pieces), GREETING)
    holds("chat stream: came in pieces", len(pieces) > 5, pieces)
    holds("chat stream: usage at the end", chunks[-1].usage.completion_tokens > 10, chunks[-1])
    bare = list(client.chat.completions.create(model="scripted", messages=[user("こんにちは")], stream=True))
    holds("chat stream: no usage when none was asked for", all(c.usage is None and c.choices for c in bare), bare[-1])


def chat_tools():
    messages = [user("東京と大阪の天気は？")]
    answer = client.chat.completions.create(model="scripted", messages=messages, tools=CHAT_TOOLS)
    choice = answer.choices[0]
    same("chat tools: why it stopped", choice.finish_reason, "tool_calls")
    calls = [(call.function.name, json.loads(call.function.arguments)) for call in choice.message.tool_calls]
    same("chat tools: the calls", calls, CALLS)
    messages.append(choice.message)
    for call, result in zip(choice.message.tool_calls, RESULTS):
        messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    answer = client.chat.completions.create(model="scripted", messages=messages, tools=CHAT_TOOLS)
    same("chat tools: the round trip", answer.choices[0].message.content, FORECAST)


def chat_tools_stream():
    """The SDK's own accumulator puts the pieces together."""
    with client.chat.completions.stream(
        model="scripted", messages=[user("東京と大阪の天気は？")], tools=CHAT_TOOLS
    ) as stream:
        kinds = {event.type for event in stream}
        answer = stream.get_final_completion()
    found = [(c.function.name, json.loads(c.function.arguments)) for c in answer.choices[0].message.tool_calls]
    same("chat tools stream: the calls", found, CALLS)
    same("chat tools stream: the words", answer.choices[0].message.content, "調べます。")
    holds("chat tools stream: arguments in pieces", "tool_calls.function.arguments.delta" in kinds, kinds)


def responses():
    answer = client.responses.create(model="scripted", instructions="日本語で答えて", input="こんにちは")
    same("responses: the words", answer.output_text, GREETING)
    same("responses: status", answer.status, "completed")
    holds("responses: usage", answer.usage.input_tokens > 10 and answer.usage.output_tokens > 10, answer.usage)


def responses_stream():
    events = list(client.responses.create(model="scripted", input="こんにちは", stream=True))
    pieces = [event.delta for event in events if event.type == "response.output_text.delta"]
    same("responses stream: the words", "".join(pieces), GREETING)
    holds("responses stream: came in pieces", len(pieces) > 5, pieces)
    same("responses stream: begins", events[0].type, "response.created")
    same("responses stream: ends", events[-1].type, "response.completed")
    same("responses stream: the whole at the end", events[-1].response.output_text, GREETING)
    numbers = [event.sequence_number for event in events]
    same("responses stream: events are numbered", numbers, list(range(numbers[0], numbers[0] + len(numbers))))
    with client.responses.stream(model="scripted", input="こんにちは") as stream:
        final = stream.get_final_response()
    same("responses stream: the SDK's own accumulator", final.output_text, GREETING)


def responses_tools():
    history = [user("東京と大阪の天気は？")]
    answer = client.responses.create(model="scripted", input=history, tools=TOOLS, store=False)
    calls = [item for item in answer.output if item.type == "function_call"]
    same("responses tools: the calls", [(call.name, json.loads(call.arguments)) for call in calls], CALLS)
    history += answer.output
    for call, result in zip(calls, RESULTS):
        history.append({"type": "function_call_output", "call_id": call.call_id, "output": result})
    answer = client.responses.create(model="scripted", input=history, tools=TOOLS, store=False)
    same("responses tools: the round trip", answer.output_text, FORECAST)
    with client.responses.stream(model="scripted", input="天気は？", tools=TOOLS) as stream:
        final = stream.get_final_response()
    calls = [item for item in final.output if item.type == "function_call"]
    found = [(call.name, json.loads(call.arguments)) for call in calls]
    same("responses tools: the calls in a stream", found, CALLS)


def reasoning():
    answer = client.responses.create(model="scripted", input="考えて")
    holds("responses: a thought comes before the words", answer.output[0].type == "reasoning", answer.output)


def errors():
    error = raised(
        openai.BadRequestError,
        lambda: client.chat.completions.create(model="scripted", messages=[user(TOO_LONG)]),
    )
    same("chat overflow: status", error.status_code, 400)
    same("chat overflow: code", error.code, "context_length_exceeded")
    holds("chat overflow: the provider's words", "maximum context length" in error.message, error.message)
    error = raised(
        openai.BadRequestError,
        lambda: list(client.chat.completions.create(model="scripted", messages=[user(TOO_LONG)], stream=True)),
    )
    same("chat overflow: the same where a stream was wanted", error.code, "context_length_exceeded")
    error = raised(openai.BadRequestError, lambda: client.responses.create(model="scripted", input=TOO_LONG))
    same("responses overflow: code", error.code, "context_length_exceeded")
    holds("responses overflow: the provider's words", "context window" in error.message, error.message)
    error = raised(
        openai.APIError,
        lambda: list(client.chat.completions.create(model="scripted", messages=[user("途中で")], stream=True)),
    )
    holds("chat overflow inside a stream: the provider's words", "context" in error.message, error.message)
    error = raised(
        openai.RateLimitError,
        lambda: client.chat.completions.create(model="scripted", messages=[user("混んでいます")]),
    )
    same("rate limit: status", error.status_code, 429)
    same("rate limit: when to come back", error.response.headers["retry-after"], "1")
    orphan = {"role": "tool", "tool_call_id": "call_x", "content": "晴れ"}
    error = raised(
        openai.BadRequestError,
        lambda: client.chat.completions.create(model="scripted", messages=[user("天気"), orphan]),
    )
    holds("a result without its call is refused", "tool" in error.message, error.message)


for part in (chat, chat_stream, chat_tools, chat_tools_stream, responses, responses_stream, responses_tools, reasoning):
    part()
errors()
