"""What every SDK is asked, and how a check is told: one line each."""

GREETING = "こんにちは。小さな窓へようこそ。𠮷野家の絵文字は🪟です。"
FORECAST = "東京は晴れ、大阪は雨です。"
THOUGHT = "小さな窓から見えるものは、少ないほどよい。"
CONCLUSION = "窓は小さいほうがよいです。"
SEAL = "c2VhbGVk+/="
CALLS = [("weather", {"city": "東京", "days": 1}), ("weather", {"city": "大阪", "days": 2})]
RESULTS = ["東京: 晴れ、最高気温 24 度", "大阪: 雨、最高気温 19 度"]
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "都市"}, "days": {"type": "integer"}},
    "required": ["city"],
}
# More than the window of the server these are run against, whoever counts.
TOO_LONG = "窓が小さすぎて、この文章は入りません。" * 1000


def same(what, found, wanted):
    assert found == wanted, f"{what}: found {found!r}, wanted {wanted!r}"
    print(f"ok {what}", flush=True)


def holds(what, is_so, found):
    assert is_so, f"{what}: found {found!r}"
    print(f"ok {what}", flush=True)


def raised(kind, act):
    """The error of `kind` that `act` raises; no other, and not none."""
    try:
        act()
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} was not raised")
