"""Checks the measure itself, without any agent: can the jobs be done at all in these windows, by a conversation that is kept well?

A small agent is played here. When its conversation is larger than the window, the oldest results are replaced by those of their lines that
name a key of the task, then the oldest calls go as well. That is enough to finish every job within the bound, so a job that does not
finish through Komado is not the job's fault. A conversation of which only the newest result is kept, without those lines, must not be enough.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

import brain
import count
import job
import run
import table
import wire

TOOL = {"type": "function", "function": {"name": "shell", "description": "Runs a command.", "parameters": {
    "type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}}}
HIDDEN = "[hidden]"


def size(messages):
    return count.of_request(wire.read("chat", {"messages": messages, "tools": [TOOL]}), "words")


def hide(messages, window, keys):
    """The same conversation in the window; what is hidden leaves its lines that name a key, if there are `keys` to look for."""
    messages, lines = [dict(one) for one in messages], []
    if not keys and size(messages) >= window * 0.9:
        newest = max(at for at, one in enumerate(messages) if one["role"] == "assistant")
        return messages[:2] + messages[newest:]
    for one in messages[:-1]:
        if size(messages) < window * 0.9:
            break
        if one["role"] == "tool" and one["content"] != HIDDEN:
            lines += [line for line in one["content"].splitlines() if keys and keys.search(line)]
            one["content"] = HIDDEN
    while size(messages) + sum(map(count.words, lines)) >= window * 0.9 and len(messages) > 5:
        # The oldest call with its results; what was said with it stays among the lines.
        gone = messages.pop(2)
        lines += [gone["content"]] if keys and gone.get("content") else []
        while messages[2]["role"] == "tool":
            messages.pop(2)
    if lines:
        messages.insert(2, {"role": "user", "content": "Hidden from here:\n" + "\n".join(dict.fromkeys(lines))})
    return messages


def play(work, manner, window=None, is_keeping=True, most=200):
    """The number of requests until the job is done; None when it is not."""
    keys = re.compile("|".join(work.order)) if is_keeping else None
    mind = brain.Brain(manner)
    with tempfile.TemporaryDirectory() as folder:
        for name, text in work.files.items():
            path = pathlib.Path(folder) / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        messages = [{"role": "system", "content": job.handbook(run.HANDBOOK)}, {"role": "user", "content": work.task}]
        for number in range(1, most):
            shown = hide(messages, window, keys) if window else messages
            request = wire.read("chat", {"messages": shown, "tools": [TOOL]})
            if window and count.of_request(request, "words") >= window:
                return None
            _, said = mind.answer(request)
            if not said.calls:
                answers = pathlib.Path(folder) / job.ANSWERS
                is_right = work.line in said.text and answers.exists() and answers.read_text() == work.answers
                return number if is_right else None
            messages.append({"role": "assistant", "content": said.text or None, "tool_calls": [wire.chat_call(call) for call in said.calls]})
            for call in said.calls:
                done = subprocess.run(["sh", "-c", call["arguments"]["command"]], cwd=folder, capture_output=True, text=True, timeout=30)
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": done.stdout + done.stderr or "(no output)"})
    return None


class Own:
    """An agent of our own, as far as a job is measured for it."""

    output, kind = 20_000, "tools"


def main():
    fixed = size([{"role": "system", "content": job.handbook(run.HANDBOOK)}, {"role": "user", "content": run.SAY_OK}])
    faults, lost = [], 0
    for seed in range(1, 5):
        for factor in (1.3, 2, 4):
            window = int(fixed * factor)
            work = run.sized(Own, fixed, window, seed)
            free = play(work, brain.Manner.of(seed))
            kept = play(work, brain.Manner.of(seed), window)
            lost += play(work, brain.Manner.of(seed), window, is_keeping=False, most=3 * (free or 10)) is None
            if not free or not kept or kept > table.MOST_RATIO * free:
                faults.append(f"seed {seed}, window {factor}: {free} requests without a window, {kept} in it")
    # json is how the two ends speak: what is written must be what is read.
    said = wire.Said("words", [{"id": "call_1", "name": "shell", "arguments": {"command": "ls"}}])
    for api in ("chat", "responses", "messages"):
        json.dumps([wire.whole(api, said, 1, 2, 3), list(wire.stream(api, said, 1, 2, 3, True))])
    if not lost:
        faults.append("hiding everything harms no job, so nothing is measured")
    good = f"test-clients: 12 jobs can be done in their windows; {lost} of them fail when what was found is thrown away"
    print("\n".join(faults) or good, file=sys.stderr)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
