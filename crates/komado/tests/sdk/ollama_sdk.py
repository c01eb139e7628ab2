"""The official Ollama package against a server: ollama_sdk.py URL"""

import sys

import ollama
from check import CALLS, CONCLUSION, FORECAST, GREETING, RESULTS, SCHEMA, THOUGHT, TOO_LONG, holds, raised, same

client = ollama.Client(host=sys.argv[1])
TOOLS = [{"type": "function", "function": {"name": "weather", "description": "天気予報", "parameters": SCHEMA}}]


def user(text):
    return {"role": "user", "content": text}


def chat(messages, **more):
    return client.chat(model="scripted", messages=messages, **more)


def plain():
    answer = chat([{"role": "system", "content": "日本語で答えて"}, user("こんにちは")])
    same("chat: the words", answer.message.content, GREETING)
    same("chat: why it stopped", (answer.done, answer.done_reason), (True, "stop"))
    holds("chat: usage", answer.prompt_eval_count > 10 and answer.eval_count > 10, answer)
    holds("chat: how long it took", answer.total_duration is not None, answer)


def stream():
    pieces = list(chat([user("こんにちは")], stream=True))
    same("stream: the words", "".join(piece.message.content or "" for piece in pieces), GREETING)
    holds("stream: came in pieces", len(pieces) > 5, pieces)
    same("stream: one end, at the end", [piece.done for piece in pieces], [False] * (len(pieces) - 1) + [True])
    holds("stream: usage at the end", pieces[-1].eval_count > 10, pieces[-1])


def calls(message):
    return [(call.function.name, dict(call.function.arguments)) for call in message.tool_calls or []]


def tools():
    messages = [user("東京と大阪の天気は？")]
    answer = chat(messages, tools=TOOLS)
    same("tools: the calls", calls(answer.message), CALLS)
    messages.append(answer.message)
    messages += [{"role": "tool", "tool_name": "weather", "content": result} for result in RESULTS]
    same("tools: the round trip", chat(messages, tools=TOOLS).message.content, FORECAST)
    pieces = list(chat([user("天気は？")], tools=TOOLS, stream=True))
    same("tools: the calls in a stream", [call for piece in pieces for call in calls(piece.message)], CALLS)


def thinking():
    answer = chat([user("窓について考えて")], think=True)
    same("thinking: the thought and the words", (answer.message.thinking, answer.message.content), (THOUGHT, CONCLUSION))
    pieces = list(chat([user("窓について考えて")], think=True, stream=True))
    same("thinking: the same in a stream", "".join(piece.message.thinking or "" for piece in pieces), THOUGHT)


def about():
    holds("list: the model", "scripted" in [model.model for model in client.list().models], client.list())
    shown = client.show("scripted")
    windows = [value for key, value in shown.modelinfo.items() if key.endswith(".context_length")]
    same("show: the window", windows, [4000])
    holds("show: what it can do", {"completion", "tools"} <= set(shown.capabilities), shown.capabilities)
    loaded = client.ps().models[0]
    same("ps: the window it runs with", loaded.context_length, 4000)


def errors():
    error = raised(ollama.ResponseError, lambda: chat([user(TOO_LONG)]))
    same("overflow: status", error.status_code, 400)
    holds("overflow: the provider's words", "context" in error.error, error.error)
    error = raised(ollama.ResponseError, lambda: list(chat([user(TOO_LONG)], stream=True)))
    holds("overflow: the same where a stream was wanted", "context" in error.error, error.error)
    error = raised(ollama.ResponseError, lambda: list(chat([user("途中で")], stream=True)))
    holds("overflow inside a stream: the provider's words", "context" in error.error, error.error)
    error = raised(ollama.ResponseError, lambda: chat([user("混んで")]))
    same("rate limit: status", error.status_code, 429)


for part in (plain, stream, tools, thinking, about, errors):
    part()
