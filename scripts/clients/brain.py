"""The next step of a model that knows only what the request in front of it shows.

`Brain.answer` is a function of one request and of a fixed manner: it keeps nothing from one request to the next. What it can see are the words of
the user, its own earlier words, results of tools, and whatever else stands in the request, such as a summary. What it needs and cannot see it
reads again. If it sees no task it asks what to do, and the job has failed.
"""

import dataclasses
import hashlib
import json
import re

import wire

KEY = r"[a-z]+-[a-z]+"
VALUE = r"[a-z]+-\d{4}"
FILE = r"store/box-\d+\.txt"
# Nothing between a key and its value speaks of another key.
GAP = rf"(?:(?!\b{KEY}\b)[^\n]){{0,40}}?"
SHOWS = "I will show you files"
MARKED = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"

BEGIN = re.compile(r"Where to begin: (.+?)\. A file either")
ORDER = re.compile(r"write (\S+) with one line 'KEY = VALUE' for each key, in this order: ([^.]+)\.")
CHECK = re.compile(r"run '([^']+)' and report")
RESULT = re.compile(r"check result: ([0-9a-f]{12}|wrong answers in \S+)")
POINTER = re.compile(rf"value of ({KEY}) stands in ({FILE})(?:, not in ({FILE}))?")
PLAIN = re.compile(rf"value of ({KEY}) is ({VALUE})\b")
WROTE = re.compile(r"> ?answers\.txt|(?i:wrote|written|created|changed|saved)\b[^#]{0,80}answers\.txt")
ASKED = re.compile(rf"What is the value of ({KEY})\? It is in ({FILE})")
TITLE = re.compile(r"(?i)generate a (short |brief |concise )?title|title for (this|the) (conversation|session|thread)|concise title")
SUMMARY = re.compile(
    r"Here is the conversation so far|Your task is to create a detailed summary|CONTEXT CHECKPOINT COMPACTION|<summary></summary>"
    r"|generate the <state_snapshot>|anchored summary|[Pp]rovide a detailed (prompt|summary)|structured (context )?(checkpoint )?summary|[Ss]ummarize (this|the) conversation"
)
# A request without tools is beside the work; a summary is asked for in many words.
BESIDE = re.compile(r"(?i)summar|extract the|compact|checkpoint")
SHELLS = ("exec_command", "shell", "bash", "Bash", "run_shell_command", "execute", "shell_command")


@dataclasses.dataclass(frozen=True)
class Manner:
    """How a model works: does it say what it found, how many files it reads at once, and how it gets back what it cannot see any more."""

    is_noting: bool = True
    at_once: int = 1
    is_recalling: bool = False

    @staticmethod
    def of(seed):
        """Four seeds in a row have four manners."""
        return [Manner(False, 2, True), Manner(True, 1, False), Manner(False, 1, False), Manner(True, 2, True)][seed % 4]

    def __str__(self):
        back = "recalls when it can" if self.is_recalling else "reads again"
        return f"{'notes what it finds' if self.is_noting else 'says nothing'}, {self.at_once} at once, {back}"


class Sight:
    """Everything that is to be known from one request."""

    def __init__(self, request):
        self.request = request
        self.spoken = [one.text.replace("\\n", "\n") for one in request.messages if one.role != "tool"]
        self.results = [one.text.replace("\\n", "\n") for one in request.messages if one.role == "tool"]
        self.made = [call for one in request.messages for call in one.calls]
        self.read_task()
        self.stated = self.facts(self.spoken + [self.command(call) for call in self.made])
        self.shown = self.facts(self.results)
        self.values = {**self.shown[0], **self.stated[0]}
        self.ways = self.shown[1] | self.stated[1]

    @staticmethod
    def command(call):
        return "\n".join(str(value) for value in call["arguments"].values())

    def read_task(self):
        """The task, from the words of the request; what is not there is None. A line that was broken is one line."""
        text = " ".join(" ".join(self.spoken).split())
        begin, order, check = BEGIN.search(text), ORDER.search(text), CHECK.search(text)
        self.starts = dict(re.findall(rf"({KEY}) in ({FILE})", begin[1])) if begin else None
        self.target, self.order = (order[1], re.findall(KEY, order[2])) if order else (None, None)
        self.check = check[1] if check else None
        self.task = text[text.rfind("Find the value", 0, begin.start()):check.end()] if begin and check and check.end() > begin.start() else ""

    @property
    def has_task(self):
        return bool(self.starts and self.order and self.check)

    def facts(self, texts):
        """Values of keys, and where pointers lead: (key, from or None, to)."""
        values, ways = {}, set()
        for text in texts:
            for key in self.order or []:
                for found in re.finditer(rf"\b{key}\b{GAP}\b({VALUE})\b", text):
                    values[key] = found[1]
            values.update(PLAIN.findall(text))
            ways |= {(key, here or None, there) for key, there, here in POINTER.findall(text)}
        return values, ways

    def file_of(self, key):
        """Where to look next for a key, following the pointers that can be seen."""
        here, seen = self.starts.get(key), set()
        while here and here not in seen:
            seen.add(here)
            there = next((there for one, source, there in self.ways if one == key and source == here), None)
            there = there or next((there for one, source, there in self.ways if one == key and source is None and there not in seen), None)
            if there is None:
                break
            here = there
        return here

    @property
    def newest(self):
        """The calls of which the results are the last thing in the conversation."""
        last = {one.answers for one in self.tail()}
        return [call for call in self.made if call["id"] in last]

    def tail(self):
        """The results at the end of the conversation."""
        tail = []
        for one in reversed(self.request.messages):
            if one.role == "assistant":
                break
            if one.role == "tool":
                tail.append(one)
        return tail

    @property
    def news(self):
        """What the user said after the last words of the model."""
        said = []
        for one in reversed(self.request.messages):
            if one.role == "assistant":
                break
            if one.role == "user":
                said.append(one.text)
        return "\n".join(reversed(said))

    def was_read(self, name):
        """Whether the request tells that this file was read before."""
        if any(name in self.command(call) for call in self.made):
            return True
        told = [POINTER.sub("", BEGIN.sub("", " ".join(text.split()))) for text in self.spoken]
        return any(name in text for text in told)

    def result_of(self, call):
        return next((one.text for one in self.request.messages if one.answers == call["id"]), "")


class Brain:
    """The model. `answer` gives what is said, and a word for the step."""

    def __init__(self, manner):
        self.manner = manner

    def answer(self, request):
        sight = Sight(request)
        step, text, calls = self.step(sight)
        seal = hashlib.sha256(json.dumps([[one.role, one.text, one.answers] for one in request.messages]).encode()).hexdigest()[:16]
        prefix = "toolu_" if request.api == "messages" else "call_"
        made = [{"id": f"{prefix}{seal}{at}", "name": name, "arguments": arguments} for at, (name, arguments) in enumerate(calls)]
        return step, wire.Said(text, made)

    def step(self, sight):
        is_beside = not sight.request.tools
        if is_beside and SHOWS in sight.news:
            return "says", "Understood.", []
        if is_beside and (ASKED.search(sight.news) or self.chat_order(sight)):
            return self.chat(sight)
        if TITLE.search(sight.news) or (is_beside and any(TITLE.search(text) for text in sight.spoken)):
            return "title", "Values of keys", []
        if SUMMARY.search(sight.news) or (is_beside and any(BESIDE.search(text) for text in sight.spoken)):
            return "summary", self.summary(sight), []
        shell = self.shell(sight.request.tools)
        if not sight.has_task:
            words = "ok" if "Say ok" in " ".join(sight.spoken) else "I see no task. What should I do?"
            return ("asks", words, []) if shell is None else ("asks", *self.finish(sight, shell, words)[1:])
        if shell is None:
            return "toolless", "I have no tool to run a command with.", []
        return self.work(sight, shell)

    def work(self, sight, shell):
        seen = RESULT.search("\n".join(sight.results + sight.spoken))
        if seen:
            return self.finish(sight, shell, f"The check printed: {seen[0]}")
        if any(re.search(r"> ?answers\.txt", sight.command(call)) for call in sight.made) or any(WROTE.search(text) for text in sight.spoken):
            return "check", "", [shell(sight.check, "Check the answers")]
        wanted = [key for key in sight.starts if key not in sight.values]
        notes = self.notes(sight, wanted)
        if not wanted:
            lines = "".join(f"{key} = {sight.values[key]}\n" for key in sight.order)
            return "write", notes, [shell(f"cat > {sight.target} <<'END'\n{lines}END", "Write the answers")]
        steps, calls = [], []
        for key in wanted:
            step, call = self.look(sight, shell, key, sight.file_of(key))
            if step not in steps:
                steps.append(step)
                calls.append(call)
            if len(steps) == self.manner.at_once:
                break
        return " + ".join(steps), notes, calls

    def look(self, sight, shell, key, name):
        """A call that may show where a key is or what it is."""
        last = [call for call in sight.newest if name in sight.command(call) or key in sight.command(call)]
        if last:
            # It was just asked, and the answer does not show it: another way is tried.
            if any(sight.command(call).startswith("grep") or key in sight.command(call) for call in last):
                return f"read {name}", shell(f"cat {name}", "Read a file")
            return f"grep {name}", shell(f"grep -n '{key}' {name}", "Search a file")
        if self.manner.is_recalling and sight.was_read(name):
            found = self.recall(sight, key, name)
            if found:
                return found
        return f"read {name}", shell(f"cat {name}", "Read a file")

    @staticmethod
    def recall(sight, key, name):
        """The call that brings back what was hidden, where it is offered and was not tried in vain."""
        tools = sight.request.tools
        tried = {json.dumps(call["arguments"], sort_keys=True) for call in sight.made}
        if "tool_output_cache" in tools:
            for call in sight.made:
                ref = re.search(r'ref=([@\w/]+)|ref_id\W+([@\w/]+)', sight.result_of(call)) if name in sight.command(call) else None
                arguments = {"ref_id": ref[1] or ref[2]} if ref else None
                if arguments and json.dumps(arguments, sort_keys=True) not in tried:
                    return f"output {name}", ("tool_output_cache", arguments)
        arguments = {"query": f"the value of {key}"}
        if "recall" in tools and json.dumps(arguments, sort_keys=True) not in tried:
            return f"recall {key}", ("recall", arguments)
        return None

    def notes(self, sight, wanted):
        """What only results show, in own words: always, or as soon as something has to be read a second time."""
        again = any(sight.was_read(sight.file_of(key) or "") for key in wanted)
        if not (self.manner.is_noting or again or any("Noted: " in text for text in sight.spoken)):
            return ""
        lines = [f"the value of {key} is {value}" for key, value in sight.shown[0].items() if key in sight.starts and key not in sight.stated[0]]
        lines += [f"the value of {key} stands in {there}" + (f", not in {here}" if here else "")
                  for key, here, there in sorted(sight.shown[1] - sight.stated[1], key=str) if key in wanted]
        return "Noted: " + "; ".join(lines) + "." if lines else ""

    @staticmethod
    def finish(sight, shell, words):
        if "final_answer" in sight.request.tools:
            return "answer", "", [("final_answer", {"answer": words})]
        if any(MARKED in text for text in sight.spoken):
            return "answer", "Done.", [shell(f"echo {MARKED} && echo '{words}'", "Submit")]
        return "answer", words, []

    def summary(self, sight):
        lines = [sight.task] if sight.task else ["No task can be seen."]
        lines += [f"the value of {key} is {value}" for key, value in sight.values.items()]
        lines += [f"the value of {key} stands in {there}" + (f", not in {here}" if here else "") for key, here, there in sorted(sight.ways, key=str)]
        if any(re.search(r"> ?answers\.txt", sight.command(call)) for call in sight.made):
            lines.append("Wrote answers.txt.")
        seen = RESULT.search("\n".join(sight.results + sight.spoken))
        lines += [seen[0]] if seen else []
        tag = "state_snapshot" if "state_snapshot" in "\n".join(sight.spoken) else "summary"
        return f"<{tag}>\n" + "\n".join(lines) + f"\n</{tag}>"

    @staticmethod
    def chat_order(sight):
        return "Now write answers.txt" in sight.news

    def chat(self, sight):
        """A chat without tools: a question about a file that the client shows, or the order to write all answers."""
        values = dict(sight.facts(sight.spoken)[0])
        if self.chat_order(sight):
            order = re.findall(KEY, re.search(r"in this order: ([^.]+)\.", sight.news)[1])
            lost = [key for key in order if key not in values]
            if lost:
                return "asks", f"I do not see the value of {', '.join(lost)} any more.", []
            lines = "".join(f"{key} = {values[key]}\n" for key in order)
            return "write", f"answers.txt\n```\n{lines}```\n", []
        key, name = ASKED.findall(sight.news)[-1]
        if key in values:
            return "says", f"The value of {key} is {values[key]}.", []
        return f"asks {name}", f"I do not see {name}. Please add it to the chat.", []

    @staticmethod
    def shell(tools):
        """A maker of calls to the tool that runs commands, with the arguments that its schema wants; None without one."""
        name = next((name for name in SHELLS if name in tools), None)
        if name is None:
            return None
        schema = tools[name]
        fields, needed = schema.get("properties", {}), schema.get("required", [])
        field = "cmd" if "cmd" in fields else "command"

        def make(command, why):
            is_list = fields.get(field, {}).get("type") == "array"
            arguments = {field: ["sh", "-c", command] if is_list else command}
            for other in needed:
                kind = fields.get(other, {}).get("type")
                arguments.setdefault(other, {"boolean": False, "integer": 30, "number": 30}.get(kind, why))
            return name, arguments
        return make
