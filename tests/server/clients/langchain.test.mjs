// LangChain against the running server with the demo model: text, bound tools with a forced choice, and its methods for
// answers of a schema, over chat completions and Responses.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { HumanMessage, ToolMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { ChatOpenAI } from '@langchain/openai';
import { z } from 'zod';
import { serve } from '../support.mjs';

let server;
const apis = [false, true];  // useResponsesApi; with it, LangChain sends a choice that names a tool, but not "required"

before(async () => {
  server = await serve('--device', 'cpu', '--set', 'drain.grace_ms=0');
});
after(async () => {
  if (server) assert.equal((await server.stop()).code, 0);
});

const chat = (options) => new ChatOpenAI({
  model: 'skein-demo', apiKey: 'any', maxRetries: 0, maxTokens: 2000, streamUsage: true, configuration: { baseURL: `${server.url}/v1` }, ...options });
const greedy = { temperature: 0, presencePenalty: 0, frequencyPenalty: 0 };
/** The model has no wish of its own at this temperature, so what matches a schema was made to match. */
const wild = { temperature: 2, topP: 1 };

const calculator = tool(({ expression }) => String(expression.split('*').reduce((a, b) => a * b)), {
  name: 'calculator', description: 'Evaluates an arithmetic expression.', schema: z.object({ expression: z.string() }) });
const shade = z.object({ red: z.int().min(0).max(255), name: z.enum(['dark', 'light']) });
const colour = tool(() => 'mixed', { name: 'colour', description: 'Mixes a colour.', schema: shade });
const person = z.object({ name: z.enum(['Anna', 'Ben']), age: z.int().min(0).max(120), tags: z.array(z.enum(['a', 'b'])).max(3) });

test('text is the same, whole and streamed', async () => {
  for (const useResponsesApi of apis) {
    const model = chat({ ...greedy, useResponsesApi });
    const whole = await model.invoke('What is the capital of France?');
    assert.equal(whole.text, 'The capital of France is Paris.');
    const { input_tokens, output_tokens, total_tokens } = whole.usage_metadata;
    assert.equal(total_tokens, input_tokens + output_tokens);
    if (!useResponsesApi) assert.equal(whole.response_metadata.finish_reason, 'stop');
    let joined;
    let pieces = 0;
    for await (const chunk of await model.stream('What is the capital of France?')) {
      joined = joined ? joined.concat(chunk) : chunk;
      pieces += chunk.text ? 1 : 0;
    }
    assert.equal(joined.text, whole.text);
    assert.ok(pieces > 1);
    assert.equal(joined.usage_metadata.output_tokens, output_tokens);
  }
});

test('a call runs its tool, and the answer has the result', async () => {
  for (const useResponsesApi of apis)
    for (const tool_choice of ['auto', 'required', 'any', 'calculator']) {
      const model = chat({ ...greedy, useResponsesApi });
      const messages = [new HumanMessage('What is 1234 * 567?')];
      const asked = await model.bindTools([calculator, colour], { tool_choice }).invoke(messages);
      assert.deepEqual(asked.tool_calls.map((call) => [call.name, call.args]), [['calculator', { expression: '1234*567' }]]);
      if (!useResponsesApi) assert.equal(asked.response_metadata.finish_reason, 'tool_calls');
      const result = await calculator.invoke(asked.tool_calls[0]);
      assert.ok(result instanceof ToolMessage);
      const answer = await model.bindTools([calculator, colour]).invoke([...messages, asked, result]);
      assert.match(answer.text, /\b699678\b/);
    }
});

test('a forced choice calls that tool with arguments of its schema', async () => {
  for (const useResponsesApi of apis)
    for (const tool_choice of useResponsesApi ? ['colour'] : ['required', 'any', 'colour']) {
      const model = chat({ ...wild, useResponsesApi }).bindTools(tool_choice === 'colour' ? [calculator, colour] : [colour], { tool_choice });
      const whole = await model.invoke('What is Skein?');
      let joined;
      for await (const chunk of await model.stream('What is Skein?')) joined = joined ? joined.concat(chunk) : chunk;
      for (const { tool_calls, invalid_tool_calls } of [whole, joined]) {
        assert.ok(tool_calls.length > 0);
        assert.deepEqual(invalid_tool_calls ?? [], []);
        for (const call of tool_calls) {
          assert.equal(call.name, 'colour');
          shade.parse(call.args);
        }
      }
    }
});

test('each method of withStructuredOutput gives an object of the schema', async () => {
  for (const useResponsesApi of apis)
    for (const method of ['jsonSchema', 'functionCalling', 'jsonMode'])
      for (const strict of method === 'jsonMode' ? [undefined] : [undefined, true]) {
        // jsonMode enforces an object of any length, which the greedy answer ends soon.
        const free = method === 'jsonMode';
        const model = chat({ ...(free ? greedy : wild), useResponsesApi });
        const schema = free ? z.looseObject({}) : person;
        const structured = model.withStructuredOutput(schema, { name: 'person', method, strict, includeRaw: true });
        for (let i = 0; i < (free ? 1 : 3); ++i) {
          const { parsed, raw } = await structured.invoke('Call a function.');
          assert.ok(parsed, JSON.stringify(raw));
          schema.parse(parsed);
        }
      }
});
