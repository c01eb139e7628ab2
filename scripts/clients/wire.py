"""Three APIs of models, read and written: chat completions, responses and messages.

A request is read into messages that are alike for all three. What the model says is a text and calls; it is written in one piece or as a
stream of events. Only what agents use is here.
"""

import dataclasses
import itertools
import json


class Illegal(Exception):
    """A conversation that no provider takes."""


@dataclasses.dataclass
class Message:
    """What one speaker said: `role` is system, user, assistant or tool; a result names its call in `answers`."""

    role: str
    text: str = ""
    calls: list = dataclasses.field(default_factory=list)
    answers: str | None = None


@dataclasses.dataclass
class Request:
    api: str
    messages: list
    tools: dict
    tools_json: str
    is_stream: bool
    max_tokens: int | None
    wants_usage: bool = True


@dataclasses.dataclass
class Said:
    """An answer: a text, and calls with `id`, `name` and `arguments`."""

    text: str
    calls: list
    is_cut: bool = False


def api_of(path):
    path = path.split("?")[0].rstrip("/")
    ends = {"/chat/completions": "chat", "/responses": "responses", "/messages": "messages"}
    return next((api for end, api in ends.items() if path.endswith(end)), None)


def read(api, body):
    return {"chat": read_chat, "responses": read_responses, "messages": read_messages}[api](body)


def text_of(content):
    """The words of a content that is a text, or a list of parts."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    parts = [content] if isinstance(content, dict) else content
    said = []
    for part in parts:
        if isinstance(part, str):
            said.append(part)
        elif isinstance(part.get("text"), str):
            said.append(part["text"])
        elif "content" in part:
            said.append(text_of(part["content"]))
        elif part.get("type") not in ("tool_use", "tool_result"):
            said.append(json.dumps(part, ensure_ascii=False))
    return "\n".join(said)


def parsed(arguments):
    if isinstance(arguments, dict):
        return arguments
    try:
        value = json.loads(arguments or "{}")
    except ValueError:
        return {"text": arguments}
    return value if isinstance(value, dict) else {"text": arguments}


def tool_table(tools):
    """The tools of a request: name to the schema of its arguments."""
    table = {}
    for tool in tools or []:
        one = tool.get("function") if isinstance(tool.get("function"), dict) else tool
        if one.get("name"):
            table[one["name"]] = one.get("parameters") or one.get("input_schema") or {}
    return table


def request(api, body, messages, limit, usage=True):
    tools = body.get("tools") or []
    text = json.dumps(tools, ensure_ascii=False, separators=(",", ":")) if tools else ""
    pair(messages)
    return Request(api, messages, tool_table(tools), text, bool(body.get("stream")), limit, usage)


def pair(messages):
    """Every call has its result before the next word of another speaker, and every result its call."""
    waiting = []
    for at, message in enumerate(messages):
        if message.role == "tool":
            if message.answers not in waiting:
                raise Illegal(f"messages[{at}]: the result {message.answers!r} has no call before it")
            waiting.remove(message.answers)
            continue
        if waiting and message.role in ("user", "assistant") and not (message.role == "assistant" and messages[at - 1].role == "assistant"):
            raise Illegal(f"messages[{at}]: the calls {waiting} have no result before it")
        waiting += [call["id"] for call in message.calls]
    if waiting:
        raise Illegal(f"the calls {waiting} have no result")


def read_chat(body):
    messages = []
    for one in body.get("messages", []):
        role = {"developer": "system"}.get(one["role"], one["role"])
        calls = [
            {"id": call["id"], "name": call["function"]["name"], "arguments": parsed(call["function"].get("arguments"))}
            for call in one.get("tool_calls") or []
        ]
        messages.append(Message(role, text_of(one.get("content")), calls, one.get("tool_call_id")))
    limit = body.get("max_completion_tokens") or body.get("max_tokens")
    return request("chat", body, messages, limit, bool((body.get("stream_options") or {}).get("include_usage")))


def read_responses(body):
    messages = [Message("system", body["instructions"])] if body.get("instructions") else []
    items = body.get("input") or []
    for item in [{"role": "user", "content": items}] if isinstance(items, str) else items:
        kind = item.get("type") or "message"
        if kind == "message":
            role = {"developer": "system"}.get(item["role"], item["role"])
            messages.append(Message(role, text_of(item.get("content"))))
        elif kind in ("function_call", "custom_tool_call"):
            arguments = item.get("arguments") if kind == "function_call" else {"input": item.get("input")}
            messages.append(Message("assistant", "", [{"id": item["call_id"], "name": item["name"], "arguments": parsed(arguments)}]))
        elif kind in ("function_call_output", "custom_tool_call_output"):
            messages.append(Message("tool", text_of(item.get("output")), answers=item["call_id"]))
        else:
            messages.append(Message("assistant", json.dumps(item, ensure_ascii=False)))
    return request("responses", body, messages, body.get("max_output_tokens"))


def read_messages(body):
    messages = [Message("system", text_of(body["system"]))] if body.get("system") else []
    for one in body.get("messages", []):
        content = one.get("content")
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
        results = [part for part in parts if part.get("type") == "tool_result"]
        messages += [Message("tool", text_of(part.get("content")), answers=part["tool_use_id"]) for part in results]
        calls = [{"id": part["id"], "name": part["name"], "arguments": parsed(part.get("input"))} for part in parts if part.get("type") == "tool_use"]
        text = text_of([part for part in parts if part.get("type") not in ("tool_use", "tool_result")])
        if text or calls:
            messages.append(Message(one["role"], text, calls))
    return request("messages", body, messages, body.get("max_tokens"))


def whole(api, said, number, tokens, spent):
    """The answer in one piece."""
    if api == "chat":
        message = {"role": "assistant", "content": said.text or None}
        if said.calls:
            message["tool_calls"] = [chat_call(call) for call in said.calls]
        choice = {"index": 0, "message": message, "finish_reason": finish(said, "chat")}
        return {"id": f"chatcmpl-{number}", "object": "chat.completion", "created": 1700000000, "model": "scripted", "choices": [choice],
                "usage": chat_usage(tokens, spent)}
    if api == "responses":
        return response_object(said, number, tokens, spent, "incomplete" if said.is_cut else "completed")
    content = [{"type": "text", "text": said.text}] if said.text else []
    content += [{"type": "tool_use", "id": call["id"], "name": call["name"], "input": call["arguments"]} for call in said.calls]
    return {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "scripted", "content": content,
            "stop_reason": finish(said, "messages"), "stop_sequence": None, "usage": {"input_tokens": tokens, "output_tokens": spent}}


def finish(said, api):
    names = {"chat": ("length", "tool_calls", "stop"), "messages": ("max_tokens", "tool_use", "end_turn")}[api]
    return names[0] if said.is_cut else names[1] if said.calls else names[2]


def chat_call(call):
    return {"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": json.dumps(call["arguments"])}}


def chat_usage(tokens, spent):
    return {"prompt_tokens": tokens, "completion_tokens": spent, "total_tokens": tokens + spent}


def response_items(said, number):
    items = []
    if said.text:
        part = {"type": "output_text", "text": said.text, "annotations": []}
        items.append({"id": f"msg_{number}", "type": "message", "role": "assistant", "status": "completed", "content": [part]})
    for at, call in enumerate(said.calls):
        items.append({"id": f"fc_{number}_{at}", "type": "function_call", "status": "completed", "call_id": call["id"], "name": call["name"],
                      "arguments": json.dumps(call["arguments"])})
    return items


def response_object(said, number, tokens, spent, status):
    usage = {"input_tokens": tokens, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": spent,
             "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": tokens + spent}
    return {"id": f"resp_{number}", "object": "response", "created_at": 1700000000, "status": status, "model": "scripted", "error": None,
            "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None, "instructions": None, "metadata": {},
            "output": response_items(said, number) if status != "in_progress" else [], "parallel_tool_calls": True, "temperature": 1.0,
            "tool_choice": "auto", "tools": [], "top_p": 1.0, "usage": usage if status != "in_progress" else None}


def stream(api, said, number, tokens, spent, wants_usage):
    """The answer as events: pairs of an event's name, or none, and its data."""
    if api == "chat":
        yield from chat_stream(said, number, tokens, spent, wants_usage)
    elif api == "responses":
        yield from responses_stream(said, number, tokens, spent)
    else:
        yield from messages_stream(said, number, tokens, spent)


def pieces(text, size=200):
    return [text[at:at + size] for at in range(0, len(text), size)]


def chat_stream(said, number, tokens, spent, wants_usage):
    head = {"id": f"chatcmpl-{number}", "object": "chat.completion.chunk", "created": 1700000000, "model": "scripted"}

    def chunk(delta, why=None):
        return None, {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": why}]}

    yield chunk({"role": "assistant", "content": ""})
    for piece in pieces(said.text):
        yield chunk({"content": piece})
    for at, call in enumerate(said.calls):
        whole_call = chat_call(call)
        yield chunk({"tool_calls": [{"index": at, **whole_call, "function": {"name": call["name"], "arguments": ""}}]})
        for piece in pieces(whole_call["function"]["arguments"]):
            yield chunk({"tool_calls": [{"index": at, "function": {"arguments": piece}}]})
    yield chunk({}, finish(said, "chat"))
    if wants_usage:
        yield None, {**head, "choices": [], "usage": chat_usage(tokens, spent)}
    yield None, "[DONE]"


def responses_stream(said, number, tokens, spent):
    counter = itertools.count()

    def event(kind, **fields):
        return kind, {"type": kind, "sequence_number": next(counter), **fields}

    begun = response_object(said, number, tokens, spent, "in_progress")
    yield event("response.created", response=begun)
    yield event("response.in_progress", response=begun)
    for at, item in enumerate(response_items(said, number)):
        if item["type"] == "message":
            where = {"item_id": item["id"], "output_index": at, "content_index": 0}
            yield event("response.output_item.added", output_index=at, item={**item, "status": "in_progress", "content": []})
            yield event("response.content_part.added", **where, part={"type": "output_text", "text": "", "annotations": []})
            for piece in pieces(said.text):
                yield event("response.output_text.delta", **where, delta=piece, logprobs=[])
            yield event("response.output_text.done", **where, text=said.text, logprobs=[])
            yield event("response.content_part.done", **where, part=item["content"][0])
        else:
            where = {"item_id": item["id"], "output_index": at}
            yield event("response.output_item.added", output_index=at, item={**item, "status": "in_progress", "arguments": ""})
            for piece in pieces(item["arguments"]):
                yield event("response.function_call_arguments.delta", **where, delta=piece)
            yield event("response.function_call_arguments.done", **where, name=item["name"], arguments=item["arguments"])
        yield event("response.output_item.done", output_index=at, item=item)
    end = "incomplete" if said.is_cut else "completed"
    yield event(f"response.{end}", response=response_object(said, number, tokens, spent, end))


def messages_stream(said, number, tokens, spent):
    empty = whole("messages", Said("", []), number, tokens, 1)
    yield "message_start", {"type": "message_start", "message": {**empty, "stop_reason": None}}
    at = 0
    blocks = [({"type": "text", "text": ""}, "text_delta", "text", said.text)] if said.text else []
    for call in said.calls:
        start = {"type": "tool_use", "id": call["id"], "name": call["name"], "input": {}}
        blocks.append((start, "input_json_delta", "partial_json", json.dumps(call["arguments"])))
    for start, kind, field, text in blocks:
        yield "content_block_start", {"type": "content_block_start", "index": at, "content_block": start}
        for piece in pieces(text):
            yield "content_block_delta", {"type": "content_block_delta", "index": at, "delta": {"type": kind, field: piece}}
        yield "content_block_stop", {"type": "content_block_stop", "index": at}
        at += 1
    delta = {"stop_reason": finish(said, "messages"), "stop_sequence": None}
    yield "message_delta", {"type": "message_delta", "delta": delta, "usage": {"output_tokens": spent}}
    yield "message_stop", {"type": "message_stop"}


def too_large(api, tokens, window, asked, is_counted):
    """The provider's own words for a request that is too large: status and body. `asked` is the room for the answer, if it counts."""
    if api == "messages":
        words = f"prompt is too long: {tokens} tokens > {window} maximum"
        if is_counted and tokens <= window:
            words = (f"input length and `max_tokens` exceed context limit: {tokens} + {asked} > {window}, "
                     "decrease input length or `max_tokens` and try again")
        return error(api, words)
    if api == "responses" and not is_counted:
        return error(api, "Your input exceeds the context window of this model. Please adjust your input and try again.", "context_length_exceeded")
    words = f"This model's maximum context length is {window} tokens. However, "
    if is_counted:
        words += f"you requested {tokens + asked} tokens ({tokens} in the messages, {asked} in the completion)."
    else:
        words += f"your messages resulted in {tokens} tokens."
    return error(api, words + " Please reduce the length of the messages" + (" or completion." if is_counted else "."), "context_length_exceeded")


def error(api, words, code=None, status=400):
    if api == "messages":
        return status, {"type": "error", "error": {"type": "invalid_request_error", "message": words}}
    return status, {"error": {"message": words, "type": "invalid_request_error", "param": "messages" if api == "chat" else "input", "code": code}}
