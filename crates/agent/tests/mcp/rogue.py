"""An MCP server that misbehaves, each time in the one way that its first argument names. It needs no SDK.

The second argument is a file: what is worth knowing afterwards is written there.
"""

import json
import os
import signal
import subprocess
import sys
import time

how, notes = sys.argv[1], sys.argv[2]


def note(text):
    with open(notes, "a") as file:
        file.write(text + "\n")


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def answer(request, result):
    send({"id": request["id"], "result": result})


def text(words):
    return {"content": [{"type": "text", "text": words}]}


def read():
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)


def tool(name):
    return {"name": name, "inputSchema": {"type": "object"}}


def tools():
    if how == "odd":
        return [tool("do it!"), tool("do it?"), tool("検索"), tool("検索"), {"name": "bare", "inputSchema": {}}]
    return [tool("go"), tool("rest")]


def ask(request):
    """Asks the client for what it does not do, and tells what it said."""
    said = []
    asked = [
        ("sampling/createMessage", {"messages": [], "maxTokens": 5}),
        ("elicitation/create", {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}),
        ("roots/list", {}),
    ]
    for number, (method, params) in enumerate(asked):
        send({"id": f"ask-{number}", "method": method, "params": params})
        reply = read()
        said.append(f"{method}: {json.dumps(reply.get('result', reply.get('error')))}")
    answer(request, text("\n".join(said)))


def call(request):
    if request["params"]["name"] == "rest":
        return answer(request, text("rested"))
    if how == "dies":
        print("だめでした: key sesame-open refused", file=sys.stderr, flush=True)
        os._exit(3)
    if how == "half":
        sys.stdout.write('{"jsonrpc": "2.0", "id": 1, "result": {"cont')
        sys.stdout.flush()
        os._exit(0)
    if how == "huge":
        sys.stdout.write('{"jsonrpc": "2.0", "id": ')
        for _ in range(200):
            sys.stdout.write("9" * (1 << 20))
    if how == "closes":
        os.close(1)
        time.sleep(1000)
    if how == "never":
        return None
    if how == "wrong-id":
        return send({"id": 4711, "result": text("not yours")})
    if how == "asks":
        return ask(request)
    if how == "deaf":
        time.sleep(1000)
    if how == "garbage":
        sys.stdout.write("DEBUG about to answer\n\n{not json\n\x00\x01\n[]\n{}\n")
    if how == "no-result":
        return answer(request, {"tools": "?"})
    if how == "refuses":
        return send({"id": request["id"], "error": {"code": -32602, "message": "引数が違います"}})
    if how == "changes":
        send({"method": "notifications/tools/list_changed"})
    return answer(request, text("gone"))


def begin():
    note(f"pid {os.getpid()}")
    if how == "exits":
        print("starting up", file=sys.stderr)
        print("no licence: sesame-open", file=sys.stderr, flush=True)
        sys.exit(3)
    if how == "hangs":
        print("waiting for the moon", file=sys.stderr, flush=True)
        time.sleep(1000)
    if how == "floods":
        while True:
            sys.stdout.write("9" * (1 << 20))
    if how == "garbage":
        sys.stdout.write("Welcome to the server!\nよろしく\n")
    if how == "stays":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child = subprocess.Popen(["sleep", "1000"], stderr=subprocess.DEVNULL)
        note(f"pid {child.pid}")


def listed(request):
    if how == "endless":
        answer(request, {"tools": tools(), "nextCursor": "again"})
    elif how == "heavy":
        answer(request, {"tools": [{**tool("x"), "description": "x" * (3 << 20)}], "nextCursor": "again"})
    elif how == "pages":
        cursor = int(request["params"].get("cursor", "0"))
        more = {"nextCursor": str(cursor + 1)} if cursor < 4 else {}
        answer(request, {"tools": [tool(f"page-{cursor}")], **more})
    else:
        answer(request, {"tools": tools()})


def main():
    begin()
    while True:
        request = read()
        method = request.get("method")
        if method == "initialize":
            version = request["params"]["protocolVersion"]
            server = {"name": "rogue", "version": "1"}
            answer(request, {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server})
        elif method == "tools/list":
            listed(request)
        elif method == "tools/call":
            call(request)
        elif method == "notifications/cancelled":
            note("cancelled")


try:
    main()
except SystemExit:
    if how != "stays":
        raise
    time.sleep(1000)
