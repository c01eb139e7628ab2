"""A server of a model that knows only what it is shown, with a true window: `model.py --window N [--seed N]`, or a `Model` in a program.

It speaks chat completions, responses and messages, whole and as a stream, counts tokens by a rule of `count.py`, and refuses in the
provider's words what is larger than its window. It tells no window to those who ask. Each request is a row: what was asked, and what came of it.
"""

import argparse
import hashlib
import http.server
import json
import threading
import time

import brain
import count
import wire


class Model:
    """The server. `rows` are the requests so far; `over` is set when there were more than `most`."""

    def __init__(self, window=None, is_counted=False, rule="words", manner=brain.Manner(), most=10_000, keep=None, is_filling=False):
        self.window, self.is_counted, self.rule, self.most, self.keep = window, is_counted, rule, most, keep
        self.is_filling = is_filling
        self.brain = brain.Brain(manner)
        self.rows, self.over, self.lock = [], threading.Event(), threading.Lock()
        model = self

        class Handler(ModelHandler):
            pass

        Handler.model = model
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def ask(self, api, body):
        """The status and the answer to a request: an error's body, or (request, what is said, number, tokens)."""
        row = {"api": api, "bytes": len(body), "body": hashlib.sha256(body).hexdigest()[:16], "at": round(time.time(), 2)}
        with self.lock:
            row["n"] = len(self.rows) + 1
            self.rows.append(row)
            if row["n"] > self.most:
                self.over.set()
        if self.keep:
            (self.keep / f"request-{row['n']:03}.json").write_bytes(body)
        try:
            request = wire.read(api, json.loads(body))
        except wire.Illegal as told:
            return self.refuse(row, wire.error(api, str(told), "invalid_value"), "illegal")
        tokens = count.of_request(request, self.rule)
        row.update(tokens=tokens, max_tokens=request.max_tokens, tools=len(request.tools))
        asked = (request.max_tokens or 0) if self.is_counted else 0
        if self.window is not None and (tokens >= self.window or tokens + asked > self.window):
            return self.refuse(row, wire.too_large(api, tokens, self.window, asked, bool(asked)), "too large")
        step, said = self.brain.answer(request)
        spent = self.cut(said, request, tokens)
        row.update(status=200, step=step)
        return 200, (request, said, row["n"], tokens, spent)

    def refuse(self, row, error, step):
        status, body = error
        row.update(status=status, step=step)
        return status, body

    def cut(self, said, request, tokens):
        """Ends the answer where the length asked for ends, and where the window does if answers fill it as at local servers.

        A call that does not fit is left out whole.
        """
        rule = count.RULES[self.rule]
        rooms = [room for room in (request.max_tokens, self.is_filling and self.window and self.window - tokens) if room]
        room = min(rooms, default=1 << 30)
        spent = rule(said.text)
        if spent > room:
            while rule(said.text) > room:
                said.text = said.text[: len(said.text) * 9 // 10]
            said.is_cut, said.calls, spent = True, [], room
        kept = []
        for call in said.calls:
            size = rule(call["name"]) + rule(json.dumps(call["arguments"]))
            if spent + size > room:
                said.is_cut = True
                break
            kept.append(call)
            spent += size
        said.calls = kept
        return max(spent, 1)

    def repeated(self):
        """How many requests had the very body that was refused as too large before."""
        refused, repeated = set(), 0
        for row in self.rows:
            repeated += row["body"] in refused
            if row.get("step") == "too large":
                refused.add(row["body"])
        return repeated


class ModelHandler(http.server.BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    model = None

    def log_message(self, *words):
        pass

    def body(self):
        if "chunked" in self.headers.get("transfer-encoding", "").lower():
            whole = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                whole += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return whole
        return self.rfile.read(int(self.headers.get("content-length") or 0))

    def say(self, status, value):
        body = json.dumps(value, ensure_ascii=False).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self):
        path = self.path.split("?")[0].rstrip("/")
        if path.endswith("/models"):
            self.say(200, {"object": "list", "data": [{"id": "scripted", "object": "model", "created": 1700000000, "owned_by": "lab"}]})
        elif path in ("", "/health", "/healthz"):
            self.say(200, {"ok": True})
        else:
            self.say(404, {"error": {"message": f"there is no {path}", "type": "not_found_error", "code": None}})

    do_HEAD = do_GET

    def do_POST(self):
        try:
            body = self.body()
            if self.path.split("?")[0].endswith("/count_tokens"):
                return self.say(200, {"input_tokens": count.of_request(wire.read("messages", json.loads(body)), self.model.rule)})
            api = wire.api_of(self.path)
            if api is None:
                return self.say(404, {"error": {"message": f"there is no {self.path}", "type": "not_found_error", "code": None}})
            status, answer = self.model.ask(api, body)
            if status != 200:
                return self.say(status, answer)
            request, said, number, tokens, spent = answer
            if not request.is_stream:
                return self.say(200, wire.whole(api, said, number, tokens, spent))
            return self.stream(wire.stream(api, said, number, tokens, spent, request.wants_usage))
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def stream(self, events):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for name, data in events:
            text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
            line = ((f"event: {name}\n" if name else "") + f"data: {text}\n\n").encode()
            self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
        self.wfile.write(b"0\r\n\r\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--window", type=int, help="tokens; none when left out")
    parser.add_argument("--counted", action="store_true", help="the answer asked for counts as well")
    parser.add_argument("--fills", action="store_true", help="an answer ends where the window does")
    parser.add_argument("--rule", choices=count.RULES, default="words", help="how tokens are counted")
    parser.add_argument("--seed", type=int, default=1, help="which manner the model has")
    options = parser.parse_args()
    model = Model(options.window, options.counted, options.rule, brain.Manner.of(options.seed), is_filling=options.fills)
    print(json.dumps({"url": model.url}), flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
