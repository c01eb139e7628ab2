"""Real agents in small windows: at a model without a window, at one with a window, and at that one through Komado.

The model knows only what each request shows it (`brain.py`), and the jobs are made from a seed (`job.py`). For each agent, seed and
window there is a run without a window, one straight at the window, and one through Komado, where the answer asked for counts for the window
and where it does not. Windows are multiples of the agent's own prompt, which is measured first. Neither the
agent nor Komado is told the window.

A row for each run is appended to a file of JSON lines; runs that are in it are not made again, so a run that was stopped goes on.
Exits with 1 when a job that finishes without a window does not finish through Komado, takes more than 1.5 times its requests or
more than the agent alone where that finishes, or when a body that was refused for its size is sent again.
"""

import argparse
import datetime
import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

import brain
import count
import roster
import run
import table

HERE = pathlib.Path(__file__).parent


def say(words):
    print(f"test-clients: {words}", file=sys.stderr, flush=True)


class Rows:
    """The file of rows, and those that are in it by what was run."""

    KEY = ("agent", "title", "way", "seed", "factor", "counted", "rule", "komado", "brain")

    def __init__(self, path, is_again):
        self.path, self.all = pathlib.Path(path), {}
        if self.path.exists() and not is_again:
            for line in self.path.read_text().splitlines():
                self.put(json.loads(line))

    def put(self, row):
        self.all[self.key(row)] = row

    def key(self, row):
        return tuple(row.get(field) for field in self.KEY)

    def of(self, what, make):
        """The row of this run: as it stands in the file, or made now."""
        found = self.all.get(self.key(what))
        if found:
            return found
        begun = datetime.datetime.now().isoformat(timespec="seconds")
        row = {**what, "begun": begun, **make()}
        self.put(row)
        # An agent that asked nothing is tried again the next time.
        if row["requests"]:
            with open(self.path, "a") as file:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
        how = "" if "finished" not in row else " finished" if row["finished"] else f" NOT finished ({row['code']}: {row['last']})"
        say(f"{what['agent']} seed {what['seed']} window {what['factor']} {'counted ' if what['counted'] else ''}{what['way']}:"
            f"{how} {row['requests']} requests, {row['refused']} refused, {row['seconds']} s")
        return row


def digest_of(*paths):
    mark = hashlib.sha256()
    for path in paths:
        mark.update(pathlib.Path(path).read_bytes())
    return mark.hexdigest()[:12]


def matrix(options, rows, agent):
    """All runs of one agent."""
    base = {"agent": agent.name, "title": agent.title, "api": agent.api, "rule": options.rule, "brain": options.brain, "komado": None,
            "seed": None, "factor": None, "counted": False}
    first = rows.of({**base, "way": "fixed"}, lambda: run.agent_run(options, agent, None))
    fixed = first["own"]
    if not fixed:
        say(f"{agent.name} asked nothing: {first['last']}")
        return
    for seed in options.seed:
        for factor in options.windows:
            window = int(fixed * factor)
            work = run.sized(agent, fixed, window, seed)
            here = {**base, "seed": seed, "factor": factor}
            sizes = {"fixed": fixed, "window": window, "files": len(work.files) - 1}
            free = rows.of({**here, "way": "unlimited", **sizes}, lambda: run.agent_run(options, agent, work, seed))
            most = 3 * free["requests"] + 20
            for counted in options.counted:
                if counted and not free["asks_room"]:
                    continue
                mine = {**here, "counted": counted, **sizes}
                if "bare" in options.ways:
                    rows.of({**mine, "way": "bare"}, lambda: run.agent_run(options, agent, work, seed, window, counted, most=most))
                if "komado" in options.ways:
                    made = {**mine, "way": "komado", "komado": options.mark, "commit": options.commit}
                    rows.of(made, lambda: run.agent_run(options, agent, work, seed, window, counted, True, most))


def sdks(options):
    """The official SDKs, one question each, through Komado. True when all of them heard the answer."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="sdks-", dir=options.scratch))
    env = run.clean_env(folder, options.clients)
    argv = [options.komado, "dev", "model-server", "--json"]
    server = subprocess.Popen(argv, env=env, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    komado = None
    try:
        url = json.loads(server.stdout.readline())["url"]
        komado, there = run.gateway(options, next(agent for agent in roster.ALL if agent.name == "ai-sdk"), folder, env, url)
        python = f"{options.clients}/python/bin/python"
        done = subprocess.run([python, HERE / "sdks.py", there, options.clients], env=env, capture_output=True, text=True, timeout=300)
    finally:
        if komado:
            komado.end()
        server.kill()
        server.wait()
    print("\nThe official SDKs through Komado:\n" + done.stdout + done.stderr)
    return done.returncode == 0


def commit():
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=HERE, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def read():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--komado", required=True, help="the binary")
    parser.add_argument("--clients", required=True, help="the folder with node_modules, python, mini and aider")
    parser.add_argument("--out", help="the file of rows; clients.jsonl beside the clients when left out")
    parser.add_argument("--again", action="store_true", help="make every run again, also those in the file")
    parser.add_argument("--scratch", help="where to work; a temporary folder when left out")
    parser.add_argument("--only", help="agents, with commas between; all, and the SDKs, when left out")
    parser.add_argument("--seed", default="1", help="seeds of jobs, with commas between")
    parser.add_argument("--windows", default="1.3,1.6,2,3,4", help="windows, as multiples of an agent's own prompt")
    parser.add_argument("--counted", choices=["no", "yes", "both"], default="both", help="whether the answer asked for counts")
    parser.add_argument("--ways", default="bare,komado", help="bare, komado or both, beside the run without a window")
    parser.add_argument("--rule", choices=count.RULES, default="words", help="how the model counts tokens")
    parser.add_argument("--fills", action="store_true", help="an answer ends where the window does, as at local servers")
    parser.add_argument("--seconds", type=int, default=240, help="the longest that a run may take")
    parser.add_argument("--set", action="append", default=[], help="a setting for Komado; may be given several times")
    parser.add_argument("--commit", help="what the table says was run; the commit of this folder when left out")
    parser.add_argument("--bodies", action="store_true", help="keep each request that the model saw")
    parser.add_argument("--table", action="store_true", help="run nothing, only print the table of the rows that are there")
    parser.add_argument("--page", type=pathlib.Path, help="write the short table into this page, such as docs/clients.md")
    parser.add_argument("names", nargs="*", help="agents, as with --only")
    options = parser.parse_args()
    options.komado, options.clients = os.path.abspath(options.komado), os.path.abspath(options.clients)
    options.out = options.out or f"{options.clients}/clients.jsonl"
    options.names += options.only.split(",") if options.only else []
    known = [agent.name for agent in roster.ALL] + ["sdks"]
    for name in options.names:
        if name not in known:
            sys.exit(f"test-clients: there is no client {name!r}; there are {', '.join(known)}")
    options.seed = [int(one) for one in options.seed.split(",")]
    options.windows = [float(one) for one in options.windows.split(",")]
    options.counted = {"no": [False], "yes": [True], "both": [False, True]}[options.counted]
    options.ways = options.ways.split(",")
    options.mark = digest_of(options.komado) + "".join(sorted(options.set))
    options.commit = options.commit or commit()
    # What decides a run beside Komado: when it changes, the rows in the file are of another measure.
    options.brain = digest_of(*(HERE / name for name in ("brain.py", "count.py", "job.py", "model.py", "wire.py"))) + ("+fills" if options.fills else "")
    return options


def main():
    options = read()
    # Stopped from outside, it ends what it started on its way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    is_ours = options.scratch is None
    options.scratch = options.scratch or tempfile.mkdtemp(prefix="komado-clients-")
    pathlib.Path(options.scratch).mkdir(parents=True, exist_ok=True)
    rows = Rows(options.out, options.again)
    for seed in options.seed:
        say(f"seed {seed}: the model {brain.Manner.of(seed)}")
    chosen = [agent for agent in roster.ALL if not options.names or agent.name in options.names]
    for agent in chosen if not options.table else []:
        matrix(options, rows, agent)
    wanted = [row for row in rows.all.values() if row["agent"] in {agent.name for agent in chosen} and row["komado"] in (None, options.mark)
              and row["brain"] == options.brain and row["rule"] == options.rule]
    print(table.of(wanted), table.sums(wanted), sep="\n\n")
    if options.page:
        day = max((row["begun"][:10] for row in wanted), default="")
        made = sorted({row["commit"] for row in wanted if row["komado"]})
        table.write(options.page, wanted, f"Run on {day} with Komado at commit {', '.join(made)}, tokens counted by `{options.rule}`.")
    wrong = table.wrong(wanted)
    is_heard = options.table or (options.names and "sdks" not in options.names) or sdks(options)
    if is_ours and not wrong and is_heard:
        shutil.rmtree(options.scratch, ignore_errors=True)
    for words in wrong:
        say(words)
    say(f"{len(wrong)} cases are not as they should be" if wrong else "all cases are as they should be")
    sys.exit(0 if is_heard and not wrong else 1)


if __name__ == "__main__":
    main()
