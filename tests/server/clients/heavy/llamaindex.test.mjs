// LlamaIndex against the running server with the demo model: function agents that call tools by their own choice and by a
// forced one, and answers of a schema, whole and streamed, over chat completions and Responses.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openai, openaiResponses } from '@llamaindex/openai';
import { agent, agentStreamEvent, agentToolCallEvent, agentToolCallResultEvent, multiAgent, stopAgentEvent } from '@llamaindex/workflow';
import { tool } from 'llamaindex';
import { z } from 'zod';
import { serve } from '../../support.mjs';

let server;
const apis = [openai, openaiResponses];

before(async () => {
  server = await serve('--device', 'cpu', '--set', 'drain.grace_ms=0');
});
after(async () => {
  if (server) assert.equal((await server.stop()).code, 0);
});

/** `additionalChatOptions` go into the body of each request as they are. */
const model = (api, { additionalChatOptions, ...options }) => api({
  model: 'skein-demo', apiKey: 'any', baseURL: `${server.url}/v1`, maxRetries: 0, maxTokens: 2000, maxOutputTokens: 2000, ...options,
  additionalChatOptions: { parallel_tool_calls: false, ...additionalChatOptions } });
const greedy = { additionalChatOptions: { temperature: 0, presence_penalty: 0, frequency_penalty: 0 } };
/** The model has no wish of its own at this temperature, so what matches a schema was made to match. */
const wild = { topP: 1, additionalChatOptions: { temperature: 2 } };
/** The two APIs spell a choice in two ways. */
const choice = (api, name) => ({ tool_choice: api === openai ? { type: 'function', function: { name } } : { type: 'function', name } });
const forced = (how, more) => ({ ...how, additionalChatOptions: { ...how.additionalChatOptions, ...more } });

const asked = [];
const calculator = () => tool({
  name: 'calculator',
  description: 'Evaluates an arithmetic expression.',
  parameters: z.object({ expression: z.string() }),
  execute: ({ expression }) => {
    asked.push(expression);
    return String(expression.split('*').reduce((a, b) => a * b));
  },
});
const shade = z.object({ red: z.int().min(0).max(255), name: z.enum(['dark', 'light']) });
const colour = () => tool({ name: 'colour', description: 'Mixes a colour.', parameters: shade, execute: (value) => JSON.stringify(value) });
const person = z.object({ name: z.enum(['Anna', 'Ben']), age: z.int().min(0).max(120), tags: z.array(z.enum(['a', 'b'])).max(3) });

test('an agent calls its tool, and answers from the result', async () => {
  for (const api of apis) {
    asked.length = 0;
    const helper = agent({ llm: model(api, greedy), tools: [calculator()], systemPrompt: '' });
    const events = await helper.runStream('What is 1234 * 567?').toArray();
    assert.deepEqual(asked, ['1234*567']);
    const calls = events.filter((event) => agentToolCallEvent.include(event)).map(({ data }) => [data.toolName, data.toolKwargs]);
    assert.deepEqual(calls, [['calculator', { expression: '1234*567' }]]);
    const pieces = events.filter((event) => agentStreamEvent.include(event)).map(({ data }) => data.delta);
    assert.ok(pieces.filter((piece) => piece).length > 1, String(pieces));
    const last = events.at(-1);
    assert.ok(stopAgentEvent.include(last));
    assert.match(String(last.data.result), /\b699678\b/);
  }
});

test('a forced choice calls that tool with arguments of its schema', async () => {
  for (const api of apis) {
    const llm = model(api, forced(wild, choice(api, 'colour')));
    const request = { messages: [{ role: 'user', content: 'What is Skein?' }], tools: [calculator(), colour()] };
    const { toolCalls, newMessages } = await llm.exec({ ...request, tools: [...request.tools] });
    assert.deepEqual(toolCalls.map((call) => call.name), ['colour']);
    const [{ input }] = toolCalls;
    assert.deepEqual(JSON.parse(newMessages.at(-1).options.toolResult.result), shade.parse(input));
    const inputs = new Map();
    for await (const { options } of await llm.chat({ ...request, stream: true }))
      for (const call of options?.toolCall ?? []) inputs.set(call.id, [call.name, call.input]);
    assert.equal(inputs.size, 1);
    const [[name, value]] = inputs.values();
    assert.equal(name, 'colour');
    shade.parse(value);
  }
});

test('a handoff goes to the other agent', async () => {
  const expert = agent({ name: 'Expert', description: 'Knows capitals.', llm: model(openai, greedy), tools: [], systemPrompt: '' });
  const llm = model(openai, forced(greedy, choice(openai, 'handOff')));
  const desk = agent({ name: 'Desk', description: 'Asks others.', llm, tools: [], canHandoffTo: [expert], systemPrompt: '' });
  const [first] = desk.getAgents();
  // The tool's own parameters take any name; the model here knows none.
  const flow = multiAgent({ agents: [desk, expert], rootAgent: desk });
  const handOff = first.tools.find(({ metadata }) => metadata.name === 'handOff');
  handOff.metadata.parameters.properties.toAgent.enum = ['Expert'];
  const events = await flow.runStream('What is the capital of France?').toArray();
  const results = events.filter((event) => agentToolCallResultEvent.include(event)).map(({ data }) => data);
  assert.deepEqual(results.map(({ toolName, toolKwargs }) => [toolName, toolKwargs.toAgent]), [['handOff', 'Expert']]);
  assert.equal(events.filter((event) => agentStreamEvent.include(event)).at(-1).data.currentAgentName, 'Expert');
  assert.equal(typeof events.at(-1).data.result, 'string');
});

test('an answer of a schema matches it', async () => {
  const messages = [{ role: 'user', content: 'Who is there?' }];
  for (let i = 0; i < 3; ++i) {
    const asked = { messages, responseFormat: person };
    person.parse(JSON.parse((await model(openai, wild).chat(asked)).message.content));
    let text = '';
    for await (const { delta } of await model(openai, wild).chat({ ...asked, stream: true })) text += delta;
    person.parse(JSON.parse(text));
  }
  // `exec` and agents ask for a schema by a tool of that name, on both APIs.
  for (const api of apis) {
    const llm = model(api, forced(wild, choice(api, 'format_output')));
    person.parse((await llm.exec({ messages, responseFormat: person })).object);
  }
});
