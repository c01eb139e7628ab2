"""The official Anthropic SDK against a server: anthropic_sdk.py URL"""

import sys

import anthropic
from check import CALLS, CONCLUSION, FORECAST, GREETING, RESULTS, SCHEMA, SEAL, THOUGHT, TOO_LONG, holds, raised, same

client = anthropic.Anthropic(base_url=sys.argv[1], api_key="none", max_retries=0)
TOOLS = [{"name": "weather", "description": "天気予報", "input_schema": SCHEMA}]
ASK = {"model": "scripted", "max_tokens": 500}
THINKING = {"type": "enabled", "budget_tokens": 1024}


def user(content):
    return {"role": "user", "content": content}


def uses(content):
    return [block for block in content if block.type == "tool_use"]


def plain():
    answer = client.messages.create(**ASK, system="日本語で答えて", messages=[user("こんにちは")])
    same("messages: the words", answer.content[0].text, GREETING)
    same("messages: why it stopped", answer.stop_reason, "end_turn")
    holds("messages: usage", answer.usage.input_tokens > 10 and answer.usage.output_tokens > 10, answer.usage)


def stream():
    events = list(client.messages.create(**ASK, messages=[user("こんにちは")], stream=True))
    pieces = [e.delta.text for e in events if e.type == "content_block_delta" and e.delta.type == "text_delta"]
    same("stream: the words", "".join(pieces), GREETING)
    holds("stream: came in pieces", len(pieces) > 5, pieces)
    same("stream: begins and ends", (events[0].type, events[-1].type), ("message_start", "message_stop"))
    holds("stream: the input is counted at once", events[0].message.usage.input_tokens > 0, events[0])
    with client.messages.stream(**ASK, messages=[user("こんにちは")]) as helper:
        same("stream helper: the words as they come", "".join(helper.text_stream), GREETING)
        final = helper.get_final_message()
    same("stream helper: the whole at the end", final.content[0].text, GREETING)
    holds("stream helper: usage", final.usage.input_tokens > 0 and final.usage.output_tokens > 10, final.usage)


def tools():
    messages = [user("東京と大阪の天気は？")]
    answer = client.messages.create(**ASK, messages=messages, tools=TOOLS)
    same("tools: why it stopped", answer.stop_reason, "tool_use")
    same("tools: the calls", [(use.name, use.input) for use in uses(answer.content)], CALLS)
    results = [
        {"type": "tool_result", "tool_use_id": use.id, "content": result}
        for use, result in zip(uses(answer.content), RESULTS)
    ]
    messages += [{"role": "assistant", "content": answer.content}, user(results)]
    answer = client.messages.create(**ASK, messages=messages, tools=TOOLS)
    same("tools: the round trip", answer.content[0].text, FORECAST)
    with client.messages.stream(**ASK, messages=[user("天気は？")], tools=TOOLS) as helper:
        final = helper.get_final_message()
    same("tools: the calls in a stream", [(use.name, use.input) for use in uses(final.content)], CALLS)
    same("tools: the words before them", final.content[0].text, "調べます。")


def thinking():
    ask = {**ASK, "max_tokens": 2000, "thinking": THINKING}
    messages = [user("窓について考えて")]
    answer = client.messages.create(**ask, messages=messages)
    thought, words = answer.content
    same("thinking: the thought", (thought.type, thought.thinking), ("thinking", THOUGHT))
    same("thinking: its seal", thought.signature, SEAL)
    same("thinking: the words", words.text, CONCLUSION)
    with client.messages.stream(**ask, messages=messages) as helper:
        kinds = {event.type for event in helper}
        final = helper.get_final_message()
    same("thinking: the same in a stream", [final.content[0].thinking, final.content[0].signature], [THOUGHT, SEAL])
    holds("thinking: in pieces", {"thinking", "signature"} <= kinds, kinds)
    messages += [{"role": "assistant", "content": final.content}, user("続けて")]
    answer = client.messages.create(**ask, messages=messages)
    same("thinking: the sealed thought is taken back", answer.content[0].text, "先ほどの考えのとおりです。")


def counting():
    short = client.messages.count_tokens(model="scripted", messages=[user("窓")]).input_tokens
    long = client.messages.count_tokens(model="scripted", system="窓", messages=[user(TOO_LONG)], tools=TOOLS)
    holds("count_tokens: a short question", 0 < short < 20, short)
    holds("count_tokens: more than the window is counted, not refused", long.input_tokens > 4000, long)
    answer = client.messages.create(**ASK, messages=[user("こんにちは")])
    counted = client.messages.count_tokens(model="scripted", messages=[user("こんにちは")]).input_tokens
    same("count_tokens: as in the answer", counted, answer.usage.input_tokens)


def errors():
    error = raised(anthropic.BadRequestError, lambda: client.messages.create(**ASK, messages=[user(TOO_LONG)]))
    same("overflow: status", error.status_code, 400)
    same("overflow: kind", error.body["error"]["type"], "invalid_request_error")
    holds("overflow: the provider's words", "prompt is too long" in error.message, error.message)
    holds("overflow: both numbers", "tokens > 4000 maximum" in error.message, error.message)

    def helper():
        with client.messages.stream(**ASK, messages=[user(TOO_LONG)]) as stream:
            stream.until_done()

    error = raised(anthropic.BadRequestError, helper)
    holds("overflow: the same where a stream was wanted", "prompt is too long" in error.message, error.message)
    error = raised(
        anthropic.APIStatusError,
        lambda: list(client.messages.create(**ASK, messages=[user("途中で")], stream=True)),
    )
    holds("overflow inside a stream: the provider's words", "too long" in error.message, error.message)
    error = raised(anthropic.RateLimitError, lambda: client.messages.create(**ASK, messages=[user("混んで")]))
    same("rate limit: status", error.status_code, 429)
    orphan = user([{"type": "tool_result", "tool_use_id": "toolu_x", "content": "晴れ"}])
    error = raised(anthropic.BadRequestError, lambda: client.messages.create(**ASK, messages=[orphan]))
    holds("a result without its call is refused", "tool_result" in error.message, error.message)


for part in (plain, stream, tools, thinking, counting, errors):
    part()
