"""An agent of the OpenAI Agents SDK with one tool: `agents_program.py URL TASK chat|responses`."""

import sys

from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

url, task, api = sys.argv[1:]
set_tracing_disabled(True)
client = AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)


@function_tool
def read_part(number: int) -> str:
    """Read a part of the log."""
    return open(f"part-{number}.txt").read()


kind = {"chat": OpenAIChatCompletionsModel, "responses": OpenAIResponsesModel}[api]
agent = Agent(name="reader", instructions="Answer briefly.", tools=[read_part], model=kind(model="scripted", openai_client=client))
print(Runner.run_sync(agent, task, max_turns=30).final_output)
