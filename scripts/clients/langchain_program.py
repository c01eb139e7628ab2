"""An agent of LangChain with one tool: `langchain_program.py URL TASK HANDBOOK openai|anthropic|deep`; `deep` is one of deepagents."""

import pathlib
import sys

from langchain.agents import create_agent
from langchain_core.tools import tool

import own_tool

url, task, handbook, api = sys.argv[1:]
shell = tool(own_tool.shell)
if api == "anthropic":
    from langchain_anthropic import ChatAnthropic

    model = ChatAnthropic(model="scripted", base_url=url, api_key="none", max_retries=0, max_tokens=own_tool.ANSWER)
else:
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(model="scripted", base_url=f"{url}/v1", api_key="none", max_retries=0, streaming=True, max_tokens=own_tool.ANSWER)

if api == "deep":
    from deepagents import create_deep_agent

    agent = create_deep_agent(model=model, tools=[shell], system_prompt=pathlib.Path(handbook).read_text())
else:
    agent = create_agent(model, tools=[shell], system_prompt=pathlib.Path(handbook).read_text())
done = agent.invoke({"messages": [{"role": "user", "content": task}]}, {"recursion_limit": 2 * own_tool.STEPS})
print(done["messages"][-1].text)
