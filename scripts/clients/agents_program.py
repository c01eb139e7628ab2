"""An agent of the OpenAI Agents SDK with one tool: `agents_program.py URL TASK HANDBOOK chat|responses`."""

import pathlib
import sys

from agents import Agent, ModelSettings, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

import own_tool

url, task, handbook, api = sys.argv[1:]
set_tracing_disabled(True)
client = AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
kind = {"chat": OpenAIChatCompletionsModel, "responses": OpenAIResponsesModel}[api]
agent = Agent(
    name="reader",
    instructions=pathlib.Path(handbook).read_text(),
    tools=[function_tool(own_tool.shell)],
    model=kind(model="scripted", openai_client=client),
    model_settings=ModelSettings(max_tokens=own_tool.ANSWER),
)
print(Runner.run_sync(agent, task, max_turns=own_tool.STEPS).final_output)
