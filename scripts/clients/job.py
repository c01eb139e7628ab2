"""Jobs made from a seed: values to be found in files, some only by following a pointer from one file to the next.

The answers are written to a file in a given order, then a command checks that file, and the line it prints is what the agent is to
report. Everything is a function of the seed and of the sizes asked for, so a job can be made again anywhere.
"""

import dataclasses
import hashlib
import random

FIRST = "amber basil cedar delta ember fable garnet hazel indigo jasper kelp larch maple nectar onyx pearl quill russet sable topaz".split()
SECOND = "anchor brook cliff drift eddy fjord grove harbor inlet knoll lagoon mesa notch orchard prairie ridge shoal tundra vale weir".split()
THINGS = "valve pump relay sensor cable filter mirror bracket gasket rotor turbine lens spool hinge ladder beacon".split()
PLACES = "hall yard cellar loft gate dock kiln mill barn shed annex tower".split()
DEEDS = "was cleaned|was moved|is out of order|runs warm|was painted grey|waits for a spare|was counted twice|must be oiled before use".split("|")
ANSWERS = "answers.txt"
CHECK = f"sh check.sh {ANSWERS}"
REPORT = "check result"


@dataclasses.dataclass
class Job:
    """One job: its files by name, what is asked, and what must come of it."""

    seed: int
    kind: str
    files: dict
    starts: dict
    values: dict
    order: list
    task: str
    steps: list

    @property
    def answers(self):
        return "".join(f"{key} = {self.values[key]}\n" for key in self.order)

    @property
    def line(self):
        """The line that the check prints when the answers are right."""
        return f"{REPORT}: {hashlib.sha256(self.answers.encode()).hexdigest()[:12]}"


def check_script(job):
    """Prints the line from the file it is given, so it tells nothing before the answers are right."""
    return (
        'if [ "$(sha256sum < "$1" | cut -c1-64)" = "' + hashlib.sha256(job.answers.encode()).hexdigest() + '" ]; then\n'
        f'  echo "{REPORT}: $(sha256sum < "$1" | cut -c1-12)"\n'
        f'else\n  echo "{REPORT}: wrong answers in $1"\nfi\n'
    )


def filler(dice, number):
    """One line as logs and notes have them; never one that speaks of a key or a value."""
    thing, place, deed = dice.choice(THINGS), dice.choice(PLACES), dice.choice(DEEDS)
    return dice.choice([
        f"{number:04} the {thing} in the {place} {deed}",
        f"2026-03-{dice.randint(1, 28):02}T{dice.randint(0, 23):02}:{dice.randint(0, 59):02} INFO {place}: {thing} {deed}",
        f'{{"row": {number}, "part": "{thing}", "site": "{place}", "count": {dice.randint(1, 900)}}}',
        f"    {thing}_{place} = measure({thing!r}, {dice.randint(1, 99)})  # {deed}",
    ])


def page(dice, size, lines):
    """The text of a file: `size` characters of filler with `lines` somewhere in it."""
    body, number = [], 0
    while sum(map(len, body)) + len(body) < size:
        number += 1
        body.append(filler(dice, number))
    for line in lines:
        body.insert(dice.randint(len(body) // 5, max(len(body) // 5, len(body) * 4 // 5)), line)
    return "\n".join(body) + "\n"


def make(seed, files, size, kind="tools"):
    """A job over so many files of so many characters each. `kind` is `tools` or `chat`, for an agent without tools."""
    dice = random.Random(f"komado clients {seed}")
    firsts, seconds = dice.sample(FIRST, len(FIRST)), dice.sample(SECOND, len(SECOND))
    # Every key is in one file; about half of the files are pointers on the way to one.
    count = files if kind == "chat" else max(2, (files + 1) // 2)
    keys = [f"{firsts[at % 20]}-{seconds[(at + at // 20) % 20]}" for at in range(count)]
    values = {key: f"{dice.choice(THINGS)}-{dice.randint(1000, 9999)}" for key in keys}
    names = [f"store/box-{number:02}.txt" for number in range(1, files + 1)]
    dice.shuffle(names)
    ways = {key: [name] for key, name in zip(keys, names)}
    for name in names[len(keys):]:
        dice.choice(list(ways.values())).append(name)
    lines = {}
    for key, way in ways.items():
        for here, there in zip(way, way[1:]):
            lines.setdefault(here, []).append(f"the value of {key} stands in {there}, not in {here}")
        lines.setdefault(way[-1], []).append(f"the value of {key} is {values[key]}")
    texts = {name: page(dice, size, lines[name]) for name in sorted(names)}
    starts, order = {key: way[0] for key, way in ways.items()}, dice.sample(keys, len(keys))
    job = Job(seed, kind, texts, starts, values, order, "", [])
    job.task = tools_task(job) if kind == "tools" else chat_task(job)
    if kind == "chat":
        job.steps = chat_steps(job)
    job.files["check.sh"] = check_script(job)
    return job


def tools_task(job):
    begin = "; ".join(f"{key} in {name}" for key, name in job.starts.items())
    return (
        f"Find the value of each key. Where to begin: {begin}. A file either holds the value of its key, or says in which file it stands. "
        "Look into the files yourself, in the order given, and guess nothing. "
        f"Then write {ANSWERS} with one line 'KEY = VALUE' for each key, in this order: {', '.join(job.order)}. "
        f"Then run '{CHECK}' and report the line that it prints."
    )


def chat_task(job):
    return "I will show you files, one after the other, and ask for the value of one key each time. Remember the values: at the end I ask for all of them."


def chat_steps(job):
    """What the user says in a chat, turn by turn: a file is shown, as a file of the chat or as the output of a command, and asked about."""
    steps = []
    for at, (key, name) in enumerate(job.starts.items()):
        steps.append({"file" if at % 2 else "output": name, "say": f"What is the value of {key}? It is in {name}."})
    order = ", ".join(job.order)
    steps.append({"file": ANSWERS, "say": f"Now write {ANSWERS} with one line 'KEY = VALUE' for each key, in this order: {order}."})
    return steps


def handbook(size):
    """The set-up of an agent that has none of its own: rules of a house, `size` characters long."""
    dice = random.Random("komado clients handbook")
    lines = ["You look values up in files and do nothing else. Answer briefly. These are the rules of the house.", ""]
    while sum(map(len, lines)) + len(lines) < size:
        thing, other, place, there = dice.choice(THINGS), dice.choice(THINGS), dice.choice(PLACES), dice.choice(PLACES)
        lines.append(dice.choice([
            f"- When the {thing} in the {place} is cleaned, the {other} in the {there} stays closed until both have been looked at.",
            f"- Nobody moves a {thing} from the {place} to the {there} without writing down who asked for it and when.",
            f"- A {thing} that runs warm is told of first, then the {other} beside it; the {place} comes before the {there}.",
            f"- Prefer the {other} of the {there} over the {thing} of the {place} when both would do.",
        ]))
    return "\n".join(lines) + "\n"
