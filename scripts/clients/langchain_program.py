"""An agent of LangChain with one tool: `langchain_program.py URL TASK openai|anthropic`."""

import sys

from langchain.agents import create_agent
from langchain_core.tools import tool

url, task, api = sys.argv[1:]


@tool
def read_part(number: int) -> str:
    """Read a part of the log."""
    return open(f"part-{number}.txt").read()


if api == "openai":
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(model="scripted", base_url=f"{url}/v1", api_key="none", max_retries=0, streaming=True)
else:
    from langchain_anthropic import ChatAnthropic

    model = ChatAnthropic(model="scripted", base_url=url, api_key="none", max_retries=0, max_tokens=1000)

agent = create_agent(model, tools=[read_part], system_prompt="Answer briefly.")
done = agent.invoke({"messages": [{"role": "user", "content": task}]}, {"recursion_limit": 60})
print(done["messages"][-1].text)
