"""What the rows of a matrix say: a table, and what is not as it should be."""

import roster

MOST_RATIO = 1.5


def cases(rows):
    """The runs that belong together: without a window, straight at it, and through Komado."""
    free = {(row["agent"], row["seed"], row["factor"]): row for row in rows if row["way"] == "unlimited"}
    pairs = {}
    for row in rows:
        if row["way"] in ("bare", "komado"):
            pairs.setdefault((row["agent"], row["seed"], row["factor"], row["counted"]), {})[row["way"]] = row
    order = [agent.name for agent in roster.ALL]
    for key in sorted(pairs, key=lambda key: (order.index(key[0]), *key[1:])):
        yield free.get(key[:3]), pairs[key].get("bare"), pairs[key].get("komado")


def faults(free, bare, through):
    """Why a case is not as it should be."""
    if free is None or through is None:
        return []
    if not free["finished"]:
        return ["the job does not finish without a window, so it measures nothing"]
    found = []
    if not through["finished"]:
        found.append(f"does not finish ({ending(through)})")
    elif through["requests"] > MOST_RATIO * free["requests"]:
        found.append(f"takes {through['requests'] / free['requests']:.2f} times the requests")
    if through["finished"] and bare and bare["finished"] and through["requests"] > bare["requests"]:
        found.append(f"takes {through['requests']} requests, alone {bare['requests']}")
    if through["repeated"]:
        found.append(f"sends {through['repeated']} bodies again that were refused")
    if "unreadable" in through:
        found.append(f"leaves sessions that cannot be read: {through['unreadable']}")
    if through["illegal"]:
        found.append(f"sends {through['illegal']} illegal requests")
    return found


def wrong(rows):
    """All that is not as it should be, one sentence each."""
    told = []
    for free, bare, through in cases(rows):
        for words in faults(free, bare, through):
            told.append(f"{through['agent']}, seed {through['seed']}, window {through['factor']}{', counted' if through['counted'] else ''}: "
                        f"{words}; last words: {through['last'].strip() or 'none'}; see {through['folder']}")
    asleep = {row["agent"]: row for row in rows if row["way"] == "fixed" and not row["own"]}
    return told + [f"{name} asked nothing: {row['last']}" for name, row in asleep.items()]


def of(rows):
    heads = "client,API,own prompt,window,counted,seed,no window,alone,through Komado,ratio,again,learned,not as it should be".split(",")
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for free, bare, through in cases(rows):
        one = through or bare
        ratio = f"{through['requests'] / free['requests']:.2f}" if through and free and through["finished"] else ""
        cells = [one["title"], one["api"], f"{one['fixed']:,}", f"{one['window']:,} ({one['factor']:g})", "yes" if one["counted"] else "no"]
        cells += [one["seed"], ended(free), ended(bare), ended(through), ratio, through["repeated"] if through else "", learned(through)]
        cells.append("; ".join(faults(free, bare, through)))
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    for row in rows:
        if row["way"] == "fixed" and not row["own"]:
            lines.append(f"| {row['title']} | {row['api']} |" + " |" * 10 + f" could not be driven: {row['last'].replace('|', ' ')} |")
    return "\n".join(lines)


def short(rows):
    """A line for each agent, seed and counting, a cell for each window: requests through Komado, alone, and without a window."""
    lines, factors = {}, sorted({row["factor"] for row in rows if row["factor"]})
    for free, bare, through in cases(rows):
        one = through or bare
        figures = " / ".join("" if row is None else str(row["requests"]) if row["finished"] else "–" for row in (through, bare, free))
        head = (one["title"], one["api"], f"{one['fixed']:,}", "yes" if one["counted"] else "no", str(one["seed"]))
        lines.setdefault(head, {})[one["factor"]] = f"**{figures}**" if faults(free, bare, through) else figures
    table = ["| client | API | own prompt | answer counted | seed | " + " | ".join(f"{factor:g}" for factor in factors) + " |",
             "|---" * (5 + len(factors)) + "|"]
    return "\n".join(table + ["| " + " | ".join([*head, *(cells.get(factor, "") for factor in factors)]) + " |" for head, cells in lines.items()])


def sums(rows):
    """The matrix in figures."""
    whole = [case for case in cases(rows) if case[0] and case[2] and case[0]["finished"]]
    done = [(free, through) for free, bare, through in whole if through["finished"]]
    within = sum(through["requests"] <= MOST_RATIO * free["requests"] for free, through in done)
    alone = sum(bool(bare and bare["finished"]) for _, bare, _ in whole)
    return (f"Of {len(whole)} cases that finish without a window, {len(done)} finish through Komado, {within} of them in at most {MOST_RATIO} times the "
            f"requests; alone {alone} finish. {sum(case[2]['repeated'] for case in whole)} bodies were sent again after they were refused for their size, "
            f"{sum(case[2]['illegal'] for case in whole)} requests were illegal.")


def write(path, rows, told):
    """Puts the short table, and what it was made of, into a page: between the two marks."""
    text = path.read_text()
    begin, end = "<!-- table -->", "<!-- end of table -->"
    head, rest = text.split(begin)
    _, tail = rest.split(end)
    path.write_text(f"{head}{begin}\n{told} {sums(rows)}\n\n{short(rows)}\n{end}{tail}")


def ended(row):
    if row is None:
        return ""
    more = [f"{row['refused']} refused"] if row["refused"] else []
    more += [f"{row['edits']} edits"] if "edits" in row else []
    more += [f"{row['sessions']} sessions"] if row.get("sessions", 1) != 1 else []
    how = [] if row["finished"] else ["**failed**", ending(row)]
    return ", ".join([*how, f"{row['requests']} requests", *more])


def ending(row):
    return row["code"] if isinstance(row["code"], str) else f"exit {row['code']}"


def learned(row):
    """The windows that Komado learned in this run: for all sessions, or (marked) for the one that met it."""
    windows = []
    for one in (row or {}).get("learned", []):
        windows += [str(one["window"])] if one.get("window") else [f"{own['window']}*" for own in one.get("sessions", []) if own.get("window")]
    return ", ".join(dict.fromkeys(windows))
