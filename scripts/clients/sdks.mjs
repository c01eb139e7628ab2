// The official JavaScript SDKs, one question each: `node sdks.mjs URL WORDS CLIENTS`. Prints what each of them heard.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [url, content, clients] = process.argv.slice(2);
// The packages are not beside this file, so they are found from where they were installed.
const require = createRequire(`${clients}/package.json`);
const load = async (name) => (await import(pathToFileURL(require.resolve(name)).href)).default;
const OpenAI = await load("openai");
const Anthropic = await load("@anthropic-ai/sdk");
const messages = [{ role: "user", content }];

const openai = new (OpenAI.default ?? OpenAI)({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0 });
const said = await openai.chat.completions.create({ model: "scripted", messages });
console.log(said.choices[0].message.content);
const answered = await openai.responses.create({ model: "scripted", input: content });
console.log(answered.output_text);

const anthropic = new (Anthropic.default ?? Anthropic)({ baseURL: url, apiKey: "none", maxRetries: 0 });
const told = await anthropic.messages.stream({ model: "scripted", max_tokens: 100, messages }).finalMessage();
console.log(told.content[0].text);
