"""The usual way to send a conversation: a list of messages in memory. peer.py MESSAGES.jsonl URL

Prints what it is, and how much memory it took: after the imports, and at the most from then on.
"""

import json
import platform
import resource
import sys


def memory(name):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(name + ":"))


def forget_peak():
    try:
        with open("/proc/self/clear_refs", "w") as refs:
            refs.write("5")
    except OSError:
        pass  # The peak of the imports stays in; nothing else can be done.


def sender(url):
    try:
        import openai
    except ImportError:
        import httpx

        client = httpx.Client(timeout=600)

        def send(messages):
            client.post(url + "/chat/completions", json={"model": "sink", "messages": messages}).raise_for_status()

        return "httpx " + httpx.__version__, send

    client = openai.OpenAI(base_url=url, api_key="none", timeout=600, max_retries=0)

    def send(messages):
        client.chat.completions.create(model="sink", messages=messages)

    return "openai " + openai.__version__, send


def main():
    path, url = sys.argv[1:]
    name, send = sender(url)
    # Much of an SDK is loaded with its first request; that is no part of the conversation.
    send([{"role": "user", "content": "こんにちは"}])
    forget_peak()
    idle = memory("VmRSS")
    with open(path, encoding="utf-8") as lines:
        messages = [json.loads(line) for line in lines]
    send(messages)
    print(
        json.dumps(
            {
                "name": f"Python {platform.python_version()}, {name}",
                "messages": len(messages),
                "idle": idle,
                "peak": memory("VmHWM"),
                "max": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            }
        )
    )


main()
