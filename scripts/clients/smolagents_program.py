"""An agent of smolagents that calls tools: `smolagents_program.py URL TASK HANDBOOK`."""

import pathlib
import sys

from smolagents import OpenAIServerModel, ToolCallingAgent, tool

import own_tool

url, task, handbook = sys.argv[1:]
model = OpenAIServerModel("scripted", api_base=f"{url}/v1", api_key="none", client_kwargs={"max_retries": 0}, max_tokens=own_tool.ANSWER)
agent = ToolCallingAgent(
    tools=[tool(own_tool.shell)],
    model=model,
    instructions=pathlib.Path(handbook).read_text(),
    max_steps=own_tool.STEPS,
    verbosity_level=0,
)
print(agent.run(task))
