"""The agents: how each is pointed at a base URL, started, and which of its tools reads a file.

Each believes in a window of 200,000 tokens or more. `window` is what the model truly has: room for the agent's own prompt
and tools, and for some of the parts, not for all of them.
"""

import dataclasses
import json
import pathlib
import typing

HERE = pathlib.Path(__file__).parent


@dataclasses.dataclass
class Agent:
    """One agent."""

    name: str
    title: str
    api: str
    dialect: str
    window: int
    call: typing.Callable[[int], dict]
    start: typing.Callable
    base: str = "/v1"

    @property
    def words(self):
        """Whose words the model's server has."""
        return "anthropic" if self.dialect == "anthropic" else "openai"


def shell(tool, argument):
    """A call of a tool that runs commands."""
    return lambda number: {"name": tool, "arguments": {argument: f"cat part-{number}.txt", **({"description": "Read a part"} if tool in ("bash", "Bash") else {})}}


def own_tool(number):
    """A call of the tool that our own small programs have."""
    return {"name": "read_part", "arguments": {"number": number}}


def codex(home, work, url, task, options):
    folder = home / ".codex"
    folder.mkdir()
    (folder / "config.toml").write_text(f"""model = "scripted"
model_provider = "komado"
model_context_window = 272000

[model_providers.komado]
name = "Komado"
base_url = "{url}/v1"
wire_api = "responses"
""")
    argv = ["codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", task]
    return argv, {}


def opencode(home, work, url, task, options):
    model = {"name": "scripted", "limit": {"context": 200000, "output": 2000}}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Komado",
        "options": {"baseURL": f"{url}/v1", "apiKey": "none"},
        "models": {"scripted": model},
    }
    settings = {"model": "komado/scripted", "autoupdate": False, "share": "disabled", "permission": "allow", "provider": {"komado": provider}}
    (work / "opencode.json").write_text(json.dumps(settings))
    return ["opencode", "run", task], {}


def claude(home, work, url, task, options):
    more = {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "2000",
    }
    return ["claude", "-p", task, "--allowedTools", "Bash"], more


def python(program, *words):
    """One of our own small programs, each an agent of a library with one tool."""
    def start(home, work, url, task, options):
        return [f"{options.clients}/python/bin/python", str(HERE / program), url, task, *words], {}
    return start


def node(program):
    def start(home, work, url, task, options):
        return ["node", str(HERE / program), url, task, options.clients], {}
    return start


ALL = [
    Agent("codex", "Codex 0.166.0", "responses", "responses", 20000, shell("exec_command", "cmd"), codex),
    Agent("opencode", "opencode 1.18.33", "chat", "openai", 20000, shell("bash", "command"), opencode),
    Agent("claude", "Claude Code 2.1.197", "messages", "anthropic", 40000, shell("Bash", "command"), claude, base=""),
    Agent("agents-chat", "OpenAI Agents SDK 0.20.0", "chat", "openai", 12000, own_tool, python("agents_program.py", "chat")),
    Agent("agents-responses", "OpenAI Agents SDK 0.20.0", "responses", "responses", 12000, own_tool, python("agents_program.py", "responses")),
    Agent("langchain-openai", "LangChain 1.4.7, ChatOpenAI", "chat", "openai", 12000, own_tool, python("langchain_program.py", "openai")),
    Agent("langchain-anthropic", "LangChain 1.4.7, ChatAnthropic", "messages", "anthropic", 12000, own_tool, python("langchain_program.py", "anthropic"), base=""),
    Agent("ai-sdk", "Vercel AI SDK 6.0.326", "chat", "openai", 12000, own_tool, node("ai_sdk.mjs")),
]
