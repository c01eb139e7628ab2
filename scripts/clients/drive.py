"""Real agents past the window of their model: once straight at it, once through Komado, and a table of how both ended.

The model follows a script: it has the agent read one part of a log after the other, with the agent's own tools, and answers
only after the last one. All parts together are larger than the model's true window, of which neither the agent nor Komado
is told. What is checked: the agent ends well and hands on the final answer. The model asks for the next part only when the
last word of the one before has reached it, or when the agent has compacted its conversation itself and asks to go on. Exits
with 1 when an agent does not end well through Komado.
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import roster

HERE = pathlib.Path(__file__).parent
PARTS = 8
LINES = 170
ANSWER = "All parts are read: the last word is komado-8."
TASK = "Please read every part of the log, part-1.txt to part-8.txt, one after the other, and tell me the last word."
PATIENCE = 240
EDITS = ("condense", "truncate", "trim")

# How an agent asks for a summary of its own conversation, and what it says to the model after that.
COMPACTS = "Here is the conversation so far|Your task is to create a detailed summary|CONTEXT CHECKPOINT COMPACTION"
GOES_ON = "Continue if you have next steps|continue the conversation from where (we|it) left"


def part(number):
    """One part of the log: about 3,500 tokens, with its own last word."""
    lines = [f"{number}.{line:03} the small window 小窓 was opened and closed {line * number} times" for line in range(LINES)]
    return "\n".join(lines + [f"the last word is komado-{number}", ""])


def script(agent):
    """What the model says: a call for each part, once the last word of the part before has reached it; then the answer.

    Beside requests get what they ask for: a title, or a summary, where the agent compacts its conversation itself. After that
    the model goes on with the next part.
    """
    summary = "<summary>The user wants part-1.txt to part-8.txt read one after the other. Go on with the next part.</summary>"
    steps = [
        {"when": {"contains": "Generate a title"}, "reply": "Reading a log", "repeat": "always"},
        {"when": {"regex": COMPACTS}, "reply": summary, "repeat": "always"},
    ]
    for number in range(1, PARTS + 1):
        before = f"last word is komado-{number - 1}\\b|{GOES_ON}"
        when = {"regex": before} if number > 1 else {"contains": "read every part"}
        steps.append({"when": {**when, "is_summary": False}, "reply": {"calls": [agent.call(number)]}})
    last = {"regex": f"last word is komado-{PARTS}\\b|{GOES_ON}", "is_summary": False}
    steps.append({"when": last, "reply": ANSWER, "repeat": "always"})
    return "".join(json.dumps(step, ensure_ascii=False) + "\n" for step in steps)


class Process:
    """A program that is ended with us, and the lines that it prints."""

    def __init__(self, argv, env, cwd, log):
        self.lines, self.log = [], log
        self.child = subprocess.Popen(argv, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=open(log, "a"), text=True)
        self.first = threading.Event()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.child.stdout:
            self.lines.append(line)
            self.first.set()
        self.first.set()

    def end(self):
        self.child.send_signal(signal.SIGTERM)
        try:
            self.child.wait(10)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def clean_env(home, clients):
    path = f"{clients}/node_modules/.bin:/usr/local/bin:/usr/bin:/bin"
    return {"HOME": str(home), "PATH": path, "LANG": "C.UTF-8", "TERM": "dumb", "NO_COLOR": "1"}


def model_server(options, agent, folder, env):
    """The scripted model with its true window."""
    file = folder / "script.jsonl"
    file.write_text(script(agent))
    argv = [options.komado, "dev", "model-server", "--window", str(agent.window), "--script", str(file), "--json"]
    # As the hosted providers, which do not say how large a window is: it shows when a request is refused.
    argv += ["--words", agent.words] if options.told == "no" else []
    server = Process(argv, env, folder, folder / "model-server.log")
    server.first.wait(20)
    return server, json.loads(server.lines[0])["url"]


def gateway(options, agent, folder, env, url):
    """Komado in front of it, told nothing but where it is."""
    port = free_port()
    argv = [options.komado, "serve", "--listen", f"127.0.0.1:{port}", "--base-dir", str(folder / "contexts")]
    sets = {"llm.provider": "lab", "llm.lab.base_url": url + agent.base, "llm.lab.dialect": agent.dialect}
    for key, value in sets.items():
        argv += ["--set", f"{key}={value}"]
    server = Process(argv, env, folder, folder / "serve.log")
    for _ in range(200):
        if server.child.poll() is not None:
            sys.exit(f"test-clients: komado serve ended: {(folder / 'serve.log').read_text()}")
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return server, f"http://127.0.0.1:{port}"
        except OSError:
            time.sleep(0.05)
    sys.exit("test-clients: komado serve does not listen")


def edits(options, folder, env):
    """Sessions, and the edits that were made in all of their threads, from the journals that Komado keeps.

    Every edit counts, also one that a later edit covers: each has cost the provider's cache.
    """
    def ask(*words):
        argv = [options.komado, *words, "--base-dir", str(folder / "contexts"), "--json"]
        out = subprocess.run(argv, env=env, cwd=folder, capture_output=True, text=True, check=True).stdout
        return [json.loads(line) for line in out.splitlines()]
    sessions, made = ask("sessions"), set()
    for session in sessions:
        for thread in ask("sessions", session["session"]):
            entries = ask("log", f"{session['session']}/{thread['thread']}")
            # A fork shares the beginning of the thread it left: what is there counts once.
            own = int(thread["base"].split("@")[1]) if thread["base"] else 0
            made |= {(thread["thread"], one["seq"]) for one in entries if one.get("op") in EDITS and one["seq"] > own}
    return len(sessions), len(made)


def run(options, agent, through):
    """One agent, once. Gives what is to be told of it."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f"{agent.name}-{'with' if through else 'without'}-", dir=options.scratch))
    home, work = folder / "home", folder / "work"
    home.mkdir(), work.mkdir()
    for number in range(1, PARTS + 1):
        (work / f"part-{number}.txt").write_text(part(number))
    env = clean_env(home, options.clients)
    model, url = model_server(options, agent, folder, env)
    komado, there = gateway(options, agent, folder, env, url) if through else (None, url)
    began = time.monotonic()
    code, said = drive(options, agent, home, work, there, env)
    seconds = time.monotonic() - began
    if komado:
        komado.end()
    model.end()
    asked = [json.loads(line) for line in model.lines[1:]]
    (folder / "said.txt").write_text(said)
    (folder / "requests.jsonl").write_text("".join(model.lines[1:]))
    row = {
        "agent": agent.name,
        "through": through,
        "code": code,
        "ended": code == 0 and ANSWER in said,
        "requests": len(asked),
        "refused": sum(one["status"] >= 400 for one in asked),
        "most": max((one["tokens"] for one in asked if one["status"] < 400), default=0),
        "last": last_words(said),
        "seconds": round(seconds),
        "folder": str(folder),
    }
    if through:
        row["sessions"], row["edits"] = edits(options, folder, env)
    return row


def drive(options, agent, home, work, url, env):
    argv, more = agent.start(home, work, url, TASK, options)
    with tempfile.TemporaryFile() as out:
        child = subprocess.Popen(argv, env={**env, **more}, cwd=work, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)
        try:
            code = child.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            code = f"stopped after {PATIENCE} s"
            child.wait()
        out.seek(0)
        return code, out.read().decode(errors="replace")


def sdks(options):
    """The official SDKs, one question each, through Komado. True when all of them heard the answer."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="sdks-", dir=options.scratch))
    env = clean_env(folder, options.clients)
    plain = roster.ALL[1]
    model, url = model_server(options, plain, folder, env)
    komado, there = gateway(options, plain, folder, env, url)
    python = f"{options.clients}/python/bin/python"
    done = subprocess.run([python, HERE / "sdks.py", there, options.clients], env=env, capture_output=True, text=True)
    komado.end(), model.end()
    print("\nThe official SDKs through Komado:\n" + done.stdout + done.stderr)
    return done.returncode == 0


def last_words(said):
    """The line that says why it ended: the last that speaks of an error, else the last."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    told = [line for line in lines if any(word in line.lower() for word in ("error", "exceed", "too long", "context"))]
    return (told or lines or [""])[-1][:160]


def table(rows):
    print("| client | API | window | without Komado | with Komado |")
    print("|---|---|---|---|---|")
    for agent in roster.ALL:
        pair = {row["through"]: row for row in rows if row["agent"] == agent.name}
        if not pair:
            continue
        cells = [cell(pair.get(through)) for through in (False, True)]
        print(f"| {agent.title} | {agent.api} | {agent.window:,} | {cells[0]} | {cells[1]} |")


def cell(row):
    if row is None:
        return "not run"
    numbers = f"{row['requests']} requests, {row['refused']} refused, at most {row['most']:,} tokens"
    if row["through"]:
        numbers += f", {row['edits']} edit{'' if row['edits'] == 1 else 's'}"
    how = "finished" if row["ended"] else "**failed**"
    return f"{how}, exit {row['code']}: {numbers}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--komado", required=True, help="the binary")
    parser.add_argument("--clients", required=True, help="the folder with node_modules and python")
    parser.add_argument("--scratch", help="where to work; a temporary folder when left out")
    parser.add_argument("--only", choices=["with", "without"], help="only one half")
    parser.add_argument("--told", choices=["no", "yes"], default="no", help="whether the model's server tells its window")
    parser.add_argument("names", nargs="*", help="which agents; all when left out")
    options = parser.parse_args()
    options.komado, options.clients = os.path.abspath(options.komado), os.path.abspath(options.clients)
    known = [agent.name for agent in roster.ALL] + ["sdks"]
    for name in options.names:
        if name not in known:
            sys.exit(f"test-clients: there is no client {name!r}; there are {', '.join(known)}")
    is_ours = options.scratch is None
    options.scratch = options.scratch or tempfile.mkdtemp(prefix="komado-clients-")
    pathlib.Path(options.scratch).mkdir(parents=True, exist_ok=True)
    rows = []
    for agent in roster.ALL:
        if options.names and agent.name not in options.names:
            continue
        for through in (False, True):
            if options.only == ("without" if through else "with"):
                continue
            print(f"test-clients: {agent.name} {'through Komado' if through else 'straight at the model'}", file=sys.stderr)
            row = run(options, agent, through)
            print(json.dumps(row, ensure_ascii=False), file=sys.stderr)
            rows.append(row)
    table(rows)
    wrong = [row for row in rows if row["through"] and not row["ended"]]
    is_heard = options.only == "without" or (options.names and "sdks" not in options.names) or sdks(options)
    if is_ours and not wrong and is_heard:
        shutil.rmtree(options.scratch, ignore_errors=True)
    for row in wrong:
        print(f"test-clients: {row['agent']} did not end well through Komado: {row['last']}; see {row['folder']}", file=sys.stderr)
    sys.exit(0 if is_heard and not wrong else 1)


if __name__ == "__main__":
    main()
