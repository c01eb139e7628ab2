// An agent of the Vercel AI SDK with one tool: `node ai_sdk.mjs URL TASK HANDBOOK CLIENTS`.
import { createRequire } from "node:module";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [url, task, handbook, clients] = process.argv.slice(2);
// The packages are not beside this file, so they are found from where they were installed.
const require = createRequire(`${clients}/package.json`);
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const { generateText, jsonSchema, stepCountIs, tool } = await load("ai");
const { createOpenAICompatible } = await load("@ai-sdk/openai-compatible");

const schema = { type: "object", properties: { command: { type: "string" } }, required: ["command"], additionalProperties: false };
const shell = tool({
  description: "Runs a command in the working folder and gives what it prints.",
  inputSchema: jsonSchema(schema),
  execute: async ({ command }) => {
    const done = spawnSync("sh", ["-c", command], { encoding: "utf8" });
    return done.stdout + done.stderr || "(no output)";
  },
});
const provider = createOpenAICompatible({ name: "komado", baseURL: `${url}/v1`, apiKey: "none" });
const { text } = await generateText({
  model: provider("scripted"),
  system: readFileSync(handbook, "utf8"),
  prompt: task,
  tools: { shell },
  stopWhen: stepCountIs(200),
  maxOutputTokens: 400,
  maxRetries: 0,
});
console.log(text);
