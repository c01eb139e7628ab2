"""The usual loop of an agent: a list of messages in memory, sent whole with every turn. peer.py URL FOLDER

The model calls one tool, which reads a file as the one that is measured beside it does; the loop ends when it calls none.
"""

import json
import os
import platform
import sys

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "read",
            "description": "Reads a file.",
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}}},
        },
    }
]


def asker(url):
    try:
        import openai
    except ImportError:
        import httpx

        client = httpx.Client(timeout=600)

        def ask(messages):
            body = {"model": "bench", "messages": messages, "tools": TOOLS}
            answer = client.post(url + "/chat/completions", json=body).raise_for_status()
            return answer.json()["choices"][0]["message"]

        return "httpx " + httpx.__version__, ask

    client = openai.OpenAI(base_url=url, api_key="none", timeout=600, max_retries=0)

    def ask(messages):
        answer = client.chat.completions.create(model="bench", messages=messages, tools=TOOLS)
        return answer.choices[0].message.model_dump(exclude_none=True)

    return "openai " + openai.__version__, ask


def read(folder, arguments):
    path = json.loads(arguments)["path"]
    with open(os.path.join(folder, path), encoding="utf-8") as lines:
        return "".join(f"{n}\t{line}" for n, line in enumerate(lines, 1))


def main():
    url, folder = sys.argv[1:]
    name, ask = asker(url)
    messages = [
        {"role": "system", "content": "You are an agent."},
        {"role": "user", "content": "Read the files one after the other. 順番に読んでください。"},
    ]
    while True:
        message = ask(messages)
        messages.append(message)
        calls = message.get("tool_calls") or []
        for call in calls:
            said = read(folder, call["function"]["arguments"])
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": said})
        if not calls:
            break
    print(json.dumps({"name": f"Python {platform.python_version()}, {name}"}))


main()
