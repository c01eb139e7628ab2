// An agent of the Vercel AI SDK with one tool: `node ai_sdk.mjs URL TASK CLIENTS`.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [url, task, clients] = process.argv.slice(2);
// The packages are not beside this file, so they are found from where they were installed.
const require = createRequire(`${clients}/package.json`);
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const { generateText, jsonSchema, stepCountIs, tool } = await load("ai");
const { createOpenAICompatible } = await load("@ai-sdk/openai-compatible");

const schema = { type: "object", properties: { number: { type: "integer" } }, required: ["number"], additionalProperties: false };
const read_part = tool({
  description: "Read a part of the log.",
  inputSchema: jsonSchema(schema),
  execute: async ({ number }) => readFileSync(`part-${number}.txt`, "utf8"),
});
const provider = createOpenAICompatible({ name: "komado", baseURL: `${url}/v1`, apiKey: "none" });
const { text } = await generateText({
  model: provider("scripted"),
  system: "Answer briefly.",
  prompt: task,
  tools: { read_part },
  stopWhen: stepCountIs(30),
  maxRetries: 0,
});
console.log(text);
