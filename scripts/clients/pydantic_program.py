"""An agent of pydantic-ai with one tool: `pydantic_program.py URL TASK HANDBOOK chat|messages`."""

import pathlib
import sys

from pydantic_ai import Agent, UsageLimits
from pydantic_ai.settings import ModelSettings

import own_tool

url, task, handbook, api = sys.argv[1:]
if api == "chat":
    from openai import AsyncOpenAI
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    client = AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
    model = OpenAIChatModel("scripted", provider=OpenAIProvider(openai_client=client))
else:
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    client = AsyncAnthropic(base_url=url, api_key="none", max_retries=0)
    model = AnthropicModel("scripted", provider=AnthropicProvider(anthropic_client=client))

agent = Agent(
    model,
    instructions=pathlib.Path(handbook).read_text(),
    tools=[own_tool.shell],
    model_settings=ModelSettings(max_tokens=own_tool.ANSWER),
)
print(agent.run_sync(task, usage_limits=UsageLimits(request_limit=own_tool.STEPS)).output)
