"""The agents: how each is pointed at a base URL and started. Each believes in a window of 200,000 tokens or more."""

import dataclasses
import json
import pathlib
import typing

HERE = pathlib.Path(__file__).parent
# The answer that agents ask room for, where they can be told.
ANSWER = 1000


@dataclasses.dataclass
class Agent:
    """One agent. `output` is how many characters of a command's output it shows to its model whole."""

    name: str
    title: str
    api: str
    start: typing.Callable
    base: str = "/v1"
    output: int = 20_000
    kind: str = "tools"
    note: str = ""

    @property
    def dialect(self):
        """The API's name in Komado's settings."""
        return {"chat": "openai", "responses": "responses", "messages": "anthropic"}[self.api]


@dataclasses.dataclass
class Launch:
    """What an agent needs to be started for one job."""

    home: pathlib.Path
    work: pathlib.Path
    url: str
    task: str
    clients: str
    handbook: pathlib.Path
    steps: list


def codex(launch):
    folder = launch.home / ".codex"
    folder.mkdir()
    (folder / "config.toml").write_text(f"""model = "scripted"
model_provider = "komado"
model_context_window = 272000

[model_providers.komado]
name = "Komado"
base_url = "{launch.url}/v1"
wire_api = "responses"
""")
    return ["codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", launch.task], {}, ""


def opencode(launch):
    model = {"name": "scripted", "limit": {"context": 200000, "output": ANSWER}}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Komado",
        "options": {"baseURL": f"{launch.url}/v1", "apiKey": "none"},
        "models": {"scripted": model},
    }
    settings = {"model": "komado/scripted", "autoupdate": False, "share": "disabled", "permission": "allow", "provider": {"komado": provider}}
    (launch.work / "opencode.json").write_text(json.dumps(settings))
    return ["opencode", "run", launch.task], {}, ""


def claude(launch):
    more = {
        "ANTHROPIC_BASE_URL": launch.url,
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(ANSWER),
    }
    return ["claude", "-p", launch.task, "--allowedTools", "Bash"], more, ""


def qwen(launch):
    more = {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": f"{launch.url}/v1", "OPENAI_MODEL": "qwen3-coder-plus"}
    folder = launch.home / ".qwen"
    folder.mkdir()
    settings = {"general": {"disableAutoUpdate": True}, "privacy": {"usageStatisticsEnabled": False}, "telemetry": {"enabled": False},
                # Through a terminal of its own it loses the end of what a short command prints.
                "tools": {"shell": {"enableInteractiveShell": False}, "shouldUseNodePtyShell": False}}
    (folder / "settings.json").write_text(json.dumps(settings))
    return ["qwen", "--auth-type", "openai", "--yolo", "-p", launch.task], more, ""


def pi(launch):
    folder = launch.home / ".pi" / "agent"
    folder.mkdir(parents=True)
    model = {"id": "scripted", "name": "scripted", "reasoning": False, "input": ["text"], "contextWindow": 200000, "maxTokens": ANSWER,
             "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}}
    provider = {"baseUrl": f"{launch.url}/v1", "api": "openai-completions", "apiKey": "none", "models": [model]}
    (folder / "models.json").write_text(json.dumps({"providers": {"lab": provider}}))
    (launch.work / "AGENTS.md").write_text(launch.handbook.read_text())
    return ["pi", "--provider", "lab", "--model", "scripted", "-p", launch.task], {"PI_OFFLINE": "1"}, ""


def mini(launch):
    more = {
        "OPENAI_API_KEY": "none",
        "OPENAI_API_BASE": f"{launch.url}/v1",
        "OPENAI_BASE_URL": f"{launch.url}/v1",
        "MSWEA_COST_TRACKING": "ignore_errors",
        "MSWEA_CONFIGURED": "true",
        "MSWEA_SILENT_STARTUP": "1",
        "MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT": "2",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }
    # A file of settings is YAML, and JSON is YAML.
    (launch.home / "system.yaml").write_text(json.dumps({"agent": {"system_template": launch.handbook.read_text()}}))
    argv = [f"{launch.clients}/mini/bin/mini", "-m", "openai/scripted", "-c", "mini.yaml", "-c", str(launch.home / "system.yaml"), "-y", "-l", "0"]
    argv += ["--exit-immediately", "-o", str(launch.home / "trajectory.json"), "-t", launch.task]
    return argv, more, ""


def aider(launch):
    """Talks with the user only: what is shown and asked is typed, a line each."""
    more = {"OPENAI_API_KEY": "none", "OPENAI_API_BASE": f"{launch.url}/v1", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    limits = {"max_input_tokens": 200000, "max_output_tokens": ANSWER, "max_tokens": ANSWER, "input_cost_per_token": 0, "output_cost_per_token": 0,
              "litellm_provider": "openai", "mode": "chat"}
    (launch.home / "metadata.json").write_text(json.dumps({"openai/scripted": limits}))
    argv = [f"{launch.clients}/aider/bin/aider", "--model", "openai/scripted", "--weak-model", "openai/scripted", "--edit-format", "whole"]
    argv += "--yes-always --no-git --no-check-update --no-analytics --no-show-model-warnings --no-pretty --no-stream --no-show-release-notes".split()
    argv += ["--no-suggest-shell-commands", "--map-tokens", "0", "--max-chat-history-tokens", "180000"]
    argv += ["--model-metadata-file", str(launch.home / "metadata.json"), "--read", str(launch.handbook)]
    lines = [launch.task]
    for step in launch.steps:
        lines += [f"/add {step['file']}"] if "file" in step else [f"/run cat {step['output']}"]
        lines.append(step["say"])
        lines += [f"/drop {step['file']}"] if "file" in step else []
    return argv, more, "\n".join([*lines, "/exit", ""])


def python(program, *words, home="python"):
    """One of our own small programs, each an agent of a library with one tool that runs commands."""
    def start(launch):
        return [f"{launch.clients}/{home}/bin/python", str(HERE / program), launch.url, launch.task, str(launch.handbook), *words], {}, ""
    return start


def node(program):
    def start(launch):
        return ["node", str(HERE / program), launch.url, launch.task, str(launch.handbook), launch.clients], {}, ""
    return start


ALL = [
    Agent("pydantic-chat", "pydantic-ai 2.68.0", "chat", python("pydantic_program.py", "chat", home="pydantic")),
    Agent("pydantic-messages", "pydantic-ai 2.68.0", "messages", python("pydantic_program.py", "messages", home="pydantic"), base=""),
    Agent("smolagents", "smolagents 1.26.0", "chat", python("smolagents_program.py")),
    Agent("agents-chat", "OpenAI Agents SDK 0.20.0", "chat", python("agents_program.py", "chat")),
    Agent("agents-responses", "OpenAI Agents SDK 0.20.0", "responses", python("agents_program.py", "responses")),
    Agent("langchain-chat", "LangChain 1.4.7, ChatOpenAI", "chat", python("langchain_program.py", "openai")),
    Agent("langchain-messages", "LangChain 1.4.7, ChatAnthropic", "messages", python("langchain_program.py", "anthropic"), base=""),
    Agent("deepagents", "deepagents 0.7.32", "chat", python("langchain_program.py", "deep")),
    Agent("ai-sdk", "Vercel AI SDK 6.0.326", "chat", node("ai_sdk.mjs")),
    Agent("mini-swe-agent", "mini-swe-agent 2.4.6", "chat", mini, output=9_000),
    Agent("pi", "pi 0.73.1", "chat", pi),
    Agent("qwen", "Qwen Code 0.15.10", "chat", qwen),
    Agent("opencode", "opencode 1.18.33", "chat", opencode),
    Agent("codex", "Codex 0.166.0", "responses", codex),
    Agent("claude", "Claude Code 2.1.197", "messages", claude, base=""),
    Agent("aider", "aider 0.86.2", "chat", aider, kind="chat"),
]
