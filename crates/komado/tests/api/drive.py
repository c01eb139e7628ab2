"""Starts `komado serve` with sample sessions, lints the document that it serves, and runs schemathesis against it.

Usage: drive.py KOMADO SCHEMATHESIS REDOCLY [OPTIONS OF `schemathesis run`]
"""

import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
KOMADO, SCHEMATHESIS, REDOCLY = map(os.path.abspath, sys.argv[1:4])
MORE = sys.argv[4:]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def main():
    with tempfile.TemporaryDirectory() as folder:
        # What schemathesis remembers between runs goes with the folder.
        os.chdir(folder)
        env = {"PATH": os.environ.get("PATH", ""), "HOME": folder}
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        key = subprocess.run(
            [KOMADO, "--base-dir", f"{folder}/contexts", "key", "add", "tester", "--sees", "all"],
            cwd=folder, env=env, check=True, capture_output=True, text=True,
        ).stdout.strip()
        server = subprocess.Popen(
            [KOMADO, "--base-dir", f"{folder}/contexts", "serve", "--listen", f"127.0.0.1:{port}", "--upstream", "scripted"],
            cwd=folder, env=env, stderr=subprocess.DEVNULL,
        )
        try:
            wait(server, url, key)
            for name in ["dev", "demo", "scrap"]:
                furnish(url, key, name)
            return max(lint(url, key, folder), run(url, key))
        finally:
            server.terminate()
            server.wait(10)


def call(url, key, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    headers = {"x-komado-key": key, "content-type": "application/json"}
    request = urllib.request.Request(f"{url}/api/v1{path}", data=data, headers=headers)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


def wait(server, url, key):
    for _ in range(100):
        if server.poll() is not None:
            sys.exit(f"komado serve ended with {server.returncode}")
        try:
            return call(url, key, "")
        except OSError:
            time.sleep(0.1)
    sys.exit("komado serve does not answer")


def furnish(url, key, name):
    """A session with words, a long output and a child thread."""
    call(url, key, "/sessions", {"id": name, "window": 8000, "system": "丁寧に答える。"})
    tool = {"id": "c1", "type": "function", "function": {"name": "sh", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "窓を直して。"},
        {"role": "assistant", "content": None, "tool_calls": [tool]},
        {"role": "tool", "tool_call_id": "c1", "content": "\n".join(f"line {i}" for i in range(5000))},
        {"role": "assistant", "content": "直しました。"},
        {"role": "user", "content": "ありがとう。"},
    ]
    call(url, key, f"/sessions/{name}/threads/root/entries", {"messages": messages})
    call(url, key, f"/sessions/{name}/threads/root/start", {"name": "child", "label": "調査"})


def lint(url, key, folder):
    """The document by the strict rules of Redocly: a warning is a failure."""
    path = pathlib.Path(folder) / "openapi.json"
    path.write_text(json.dumps(call(url, key, "/openapi.json"), indent=1))
    command = [REDOCLY, "lint", "--config", str(HERE / "redocly.yaml"), "--max-problems", "1000", str(path)]
    return subprocess.run(command, env={**os.environ, "REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true"}).returncode


def run(url, key):
    """What the document allows, of sessions that are there; then what it does not allow, of anything."""
    right = ask(url, key, "schemathesis.toml", "positive", 30)
    # What is right beside something wrong is not asked about here: a cursor that was made up is refused.
    wrong = ask(url, key, "wrong.toml", "negative", 15, "positive_data_acceptance")
    return max(right, wrong)


def ask(url, key, config, mode, examples, *without):
    # Events have no end, and exports are no form that is made up: the tests of the crate ask for those.
    command = [
        SCHEMATHESIS, "--config-file", str(HERE / config), "run", f"{url}/api/v1/openapi.json",
        "--header", f"x-komado-key: {key}", "--exclude-path-regex", "/(events|import)$", "--checks", "all",
        "--exclude-checks", ",".join(["ignored_auth", *without]), "--max-examples", str(examples), "--mode", mode, "--seed", "4141",
        "--phases", "examples,coverage,fuzzing", "--continue-on-failure", "--no-shrink", "--no-color", *MORE,
    ]
    return subprocess.run(command).returncode


sys.exit(main())
