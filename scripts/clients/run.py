"""One run of one agent: a folder of its own, a model with a window, Komado between the two or not, and what came of it.

Every run is bounded in requests and in seconds, and ends every process that it started.
"""

import json
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import threading
import time

import brain
import count
import job
import model
import roster

EDITS = ("condense", "truncate", "trim")
# How much of the room beside the fixed prompt one file takes, and all of them together.
FILE, ALL = 1 / 6, 1.8
MOST_FILES = 24
# What the task takes, about.
TASK = 300
HANDBOOK = 24_000
SAY_OK = "Say ok."


class Process:
    """A program that is ended with us, with its own children."""

    def __init__(self, argv, env, cwd, log):
        self.child = subprocess.Popen(argv, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=open(log, "a"), stderr=subprocess.STDOUT,
                                      start_new_session=True)

    def end(self):
        kill(self.child, signal.SIGTERM)
        try:
            self.child.wait(10)
        except subprocess.TimeoutExpired:
            pass
        kill(self.child, signal.SIGKILL)
        self.child.wait()


def kill(child, how):
    try:
        os.killpg(child.pid, how)
    except ProcessLookupError:
        pass


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def clean_env(home, clients):
    path = f"{clients}/node_modules/.bin:/usr/local/bin:/usr/bin:/bin"
    return {"HOME": str(home), "PATH": path, "LANG": "C.UTF-8", "TERM": "dumb", "NO_COLOR": "1", "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "400"}


def gateway(options, agent, folder, env, url):
    """Komado in front of the model, told nothing but where it is."""
    port = free_port()
    argv = [options.komado, "serve", "--listen", f"127.0.0.1:{port}", "--base-dir", str(folder / "contexts")]
    sets = {"llm.provider": "lab", "llm.lab.base_url": url + agent.base, "llm.lab.dialect": agent.dialect}
    for key, value in sets.items():
        argv += ["--set", f"{key}={value}"]
    for one in options.set:
        argv += ["--set", one]
    server = Process(argv, env, folder, folder / "serve.log")
    for _ in range(400):
        if server.child.poll() is not None:
            raise RuntimeError(f"komado serve ended: {(folder / 'serve.log').read_text()}")
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return server, f"http://127.0.0.1:{port}"
        except OSError:
            time.sleep(0.05)
    server.end()
    raise RuntimeError("komado serve does not listen")


def kept(options, folder, env):
    """What Komado kept: sessions, the edits made in all of their threads, and the windows it learned.

    Every edit counts, also one that a later edit covers: each has cost the provider's cache.
    """
    def ask(*words):
        argv = [options.komado, *words, "--base-dir", str(folder / "contexts"), "--json"]
        done = subprocess.run(argv, env=env, cwd=folder, capture_output=True, text=True, timeout=60)
        if done.returncode != 0:
            raise RuntimeError(f"komado {' '.join(words)}: {done.stderr}")
        return [json.loads(line) for line in done.stdout.splitlines()]
    sessions, made = ask("sessions", "--all"), set()
    for session in sessions:
        for thread in ask("sessions", session["session"]):
            entries = ask("log", f"{session['session']}/{thread['thread']}")
            # A fork shares the beginning of the thread it left: what is there counts once.
            own = int(thread["base"].split("@")[1]) if thread["base"] else 0
            made |= {(thread["thread"], one["seq"]) for one in entries if one.get("op") in EDITS and one["seq"] > own}
    return {"sessions": len(sessions), "edits": len(made), "learned": ask("models", "learned")}


def sized(agent, fixed, window, seed):
    """The job of a run: files in proportion to the room that the window leaves beside the agent's own prompt."""
    sample = job.make(seed, 1, 8_000)
    density = count.words(sample.files["store/box-01.txt"]) / 8_000
    room = max(window - fixed - TASK, 100)
    size = int(min(room * FILE / density, agent.output))
    files = min(MOST_FILES, max(4, round(room * ALL / (size * density))))
    return job.make(seed, files, size, agent.kind)


def agent_run(options, agent, work, seed=1, window=None, is_counted=False, through=False, most=400):
    """One agent, once, at `work`: a job, or None to learn how large its own prompt is. Gives a row."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f"{agent.name}-", dir=options.scratch))
    home, here = folder / "home", folder / "work"
    home.mkdir(), here.mkdir()
    (folder / "handbook.txt").write_text(job.handbook(HANDBOOK))
    for name, text in (work.files if work else {}).items():
        (here / name).parent.mkdir(exist_ok=True)
        (here / name).write_text(text)
    if agent.kind == "chat":
        (here / job.ANSWERS).write_text("")
    env = clean_env(home, options.clients)
    bodies = folder / "bodies" if options.bodies else None
    if bodies:
        bodies.mkdir()
    lab = model.Model(window, is_counted, options.rule, brain.Manner.of(seed), most, bodies, options.fills)
    komado = None
    try:
        komado, there = gateway(options, agent, folder, env, lab.url) if through else (None, lab.url)
        launch = roster.Launch(home, here, there, work.task if work else SAY_OK, options.clients, folder / "handbook.txt", work.steps if work else [])
        began = time.monotonic()
        code, said = drive(options, agent, launch, env, lab)
        seconds = time.monotonic() - began
    finally:
        if komado:
            komado.end()
        lab.close()
    (folder / "said.txt").write_text(said)
    (folder / "requests.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lab.rows))
    row = {"code": code, "seconds": round(seconds, 1), "folder": str(folder), **told(lab, work, here, code, said, agent)}
    if through:
        try:
            row.update(kept(options, folder, env))
        except RuntimeError as error:
            row["unreadable"] = str(error)
    return row


def told(lab, work, here, code, said, agent):
    """What the requests, the folder and the agent's words tell of a run."""
    rows = lab.rows
    row = {
        "requests": len(rows),
        "refused": sum(one.get("step") == "too large" for one in rows),
        "illegal": sum(one.get("step") == "illegal" for one in rows),
        "repeated": lab.repeated(),
        "most": max((one["tokens"] for one in rows if one.get("status") == 200), default=0),
        "own": max((one["tokens"] for one in rows[:3] if one.get("tools")), default=rows[0].get("tokens", 0) if rows else 0),
        "asks_room": max((one.get("max_tokens") or 0 for one in rows), default=0),
        "steps": " ".join(short(one.get("step", "open")) for one in rows)[:1500],
        "last": last_words(said),
    }
    if work:
        answers = here / job.ANSWERS
        row["answers"] = answers.exists() and answers.read_text() == work.answers
        row["reported"] = agent.kind == "chat" or work.line in said
        row["finished"] = code == 0 and row["answers"] and row["reported"]
    return row


def short(step):
    return step.replace("read store/box-", "r").replace("grep store/box-", "g").replace(".txt", "").replace(" ", "")


def drive(options, agent, launch, env, lab):
    """Starts the agent and waits for its end; it is stopped when it asks too often or takes too long."""
    argv, more, typed = agent.start(launch)
    out = launch.home.parent / "out.txt"
    with open(out, "wb") as sink:
        try:
            child = subprocess.Popen(argv, env={**env, **more}, cwd=launch.work, stdin=subprocess.PIPE, stdout=sink, stderr=subprocess.STDOUT,
                                     start_new_session=True)
        except OSError as error:
            return "not started", str(error)
        threading.Thread(target=feed, args=(child, typed), daemon=True).start()
        try:
            code = wait(options, child, lab)
        finally:
            kill(child, signal.SIGKILL)
            child.wait()
    return code, out.read_bytes().decode(errors="replace")


def wait(options, child, lab):
    """How the agent ended, or why it was stopped."""
    until = time.monotonic() + options.seconds
    while True:
        try:
            return child.wait(0.2)
        except subprocess.TimeoutExpired:
            if lab.over.is_set():
                return f"stopped after {len(lab.rows)} requests"
            if time.monotonic() > until:
                return f"stopped after {options.seconds} s"


def feed(child, typed):
    try:
        child.stdin.write(typed.encode())
        child.stdin.close()
    except OSError:
        pass


def last_words(said):
    """The line that says why it ended: the last that speaks of an error, else the last."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if any(word in line.lower() for word in ("error", "exceed", "too long", "context"))]
    return (errors or lines or [""])[-1][:200]
