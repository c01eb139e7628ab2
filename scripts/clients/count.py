"""How many tokens a request has, by rules that are stated here and shared with no other program.

`words` is near the public tokenisers: a run of letters costs one token for each seven begun, digits one for each three,
signs one for each two, any other character one; a blank before a word costs nothing. `bytes4` is a token for each four bytes.
`dense` is `words` and a quarter more, as a model whose tokens are smaller than a client believes.
"""

import functools
import json
import math
import re

PIECES = re.compile(r" ?([A-Za-z]+)| ?([0-9]+)| ?([!-/:-@\[-`{-~]+)|(\s+)|(.)", re.S)


@functools.lru_cache(maxsize=4096)
def words(text):
    total = 0
    for letters, digits, signs, blanks, other in PIECES.findall(text):
        if letters:
            total += -(-len(letters) // 7)
        elif digits:
            total += -(-len(digits) // 3)
        elif signs:
            total += -(-len(signs) // 2)
        else:
            total += 1
    return total


RULES = {
    "words": words,
    "bytes4": lambda text: -(-len(text.encode()) // 4),
    "dense": lambda text: math.ceil(words(text) * 1.25),
}


def of_request(request, rule):
    """The tokens of a request: four for each message, its texts, its calls, and its tools as compact JSON."""
    count = RULES[rule]
    total = 3 + count(request.tools_json)
    for message in request.messages:
        total += 4 + count(message.text)
        for call in message.calls:
            total += 4 + count(call["name"]) + count(json.dumps(call["arguments"], ensure_ascii=False))
    return total
