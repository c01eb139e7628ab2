"""The official SDKs through the gateway, one question each: `sdks.py URL CLIENTS`. Says what each of them heard."""

import pathlib
import subprocess
import sys

from anthropic import Anthropic
from openai import OpenAI

url, clients = sys.argv[1:]
HEARD = "小窓 is small"
WORDS = f"repeat: {HEARD}"


def openai_chat():
    client = OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
    answer = client.chat.completions.create(model="scripted", messages=[{"role": "user", "content": WORDS}])
    return answer.choices[0].message.content


def openai_chat_stream():
    client = OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
    parts = client.chat.completions.create(model="scripted", messages=[{"role": "user", "content": WORDS}], stream=True)
    return "".join(part.choices[0].delta.content or "" for part in parts if part.choices)


def openai_responses():
    client = OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
    return client.responses.create(model="scripted", input=WORDS).output_text


def openai_responses_stream():
    client = OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
    with client.responses.stream(model="scripted", input=WORDS) as stream:
        return stream.get_final_response().output_text


def anthropic_messages():
    client = Anthropic(base_url=url, api_key="none", max_retries=0)
    answer = client.messages.create(model="scripted", max_tokens=100, messages=[{"role": "user", "content": WORDS}])
    return answer.content[0].text


def anthropic_stream():
    client = Anthropic(base_url=url, api_key="none", max_retries=0)
    with client.messages.stream(model="scripted", max_tokens=100, messages=[{"role": "user", "content": WORDS}]) as stream:
        return stream.get_final_text()


def javascript():
    program = pathlib.Path(__file__).parent / "sdks.mjs"
    done = subprocess.run(["node", program, url, WORDS, clients], capture_output=True, text=True, timeout=60)
    heard = done.stdout.splitlines()
    # One line for each question: fewer, or an end that is not a good one, is a question without an answer.
    if done.returncode != 0 or heard != [HEARD] * 3:
        return f"exit {done.returncode}: {heard} {done.stderr}"
    return HEARD


wrong = 0
for ask in (openai_chat, openai_chat_stream, openai_responses, openai_responses_stream, anthropic_messages, anthropic_stream, javascript):
    try:
        heard = ask()
    except Exception as error:  # whatever it is, it is told, and the others are still asked
        heard = repr(error)
    is_right = heard == HEARD
    wrong += not is_right
    print(f"{ask.__name__}: {'ok' if is_right else heard[:300]}")
sys.exit(1 if wrong else 0)
