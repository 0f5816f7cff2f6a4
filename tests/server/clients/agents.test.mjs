// The OpenAI Agents SDK against the running server with the demo model: tools with a forced choice, handoffs, typed
// outputs and streams, over Responses and chat completions.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Agent, OpenAIProvider, Runner, tool } from '@openai/agents';
import { z } from 'zod';
import { serve } from '../support.mjs';

let server;
const runners = [];

before(async () => {
  server = await serve('--device', 'cpu', '--set', 'drain.grace_ms=0');
  for (const useResponses of [true, false]) {
    const modelProvider = new OpenAIProvider({ apiKey: 'any', baseURL: `${server.url}/v1`, useResponses });
    runners.push(new Runner({ modelProvider, model: 'skein-demo', tracingDisabled: true }));
  }
});
after(async () => {
  if (server) assert.equal((await server.stop()).code, 0);
});

const greedy = { temperature: 0, presencePenalty: 0, frequencyPenalty: 0 };
/** The model has no wish of its own at this temperature, so what matches a schema was made to match. */
const wild = { temperature: 2, topP: 1, maxTokens: 2000, parallelToolCalls: false };

const asked = [];
const calculator = tool({
  name: 'calculator',
  description: 'Evaluates an arithmetic expression.',
  parameters: z.object({ expression: z.string() }),
  execute: ({ expression }) => {
    asked.push(expression);
    return String(expression.split('*').reduce((a, b) => a * b));
  },
});
const shade = z.object({ red: z.int().min(0).max(255), name: z.enum(['dark', 'light']) });
const colour = tool({ name: 'colour', description: 'Mixes a colour.', parameters: shade, execute: (value) => JSON.stringify(value) });
const calls = (result) => result.newItems.filter((item) => item.type === 'tool_call_item').map((item) => item.rawItem);

test('a call runs its tool, and the answer has the result', async () => {
  for (const runner of runners)
    for (const toolChoice of ['auto', 'required', 'calculator'])
      for (const stream of [false, true]) {
        asked.length = 0;
        const agent = new Agent({ name: 'Helper', tools: [calculator, colour], modelSettings: { ...greedy, toolChoice } });
        const result = await runner.run(agent, 'What is 1234 * 567?', { stream, maxTurns: 3 });
        let text = '';
        if (stream)
          for await (const piece of result.toTextStream()) text += piece;
        await result.completed;
        assert.deepEqual(asked, ['1234*567']);
        assert.match(result.finalOutput, /\b699678\b/);
        if (stream) assert.ok(text.endsWith(result.finalOutput), text);
        assert.equal(result.rawResponses.length, 2);
        for (const { usage } of result.rawResponses) assert.equal(usage.totalTokens, usage.inputTokens + usage.outputTokens);
      }
});

test('a forced choice calls that tool with arguments of its schema', async () => {
  for (const runner of runners)
    for (const stream of [false, true]) {
      const agent = new Agent({
        name: 'Painter', tools: [calculator, colour], modelSettings: { ...wild, toolChoice: 'colour' }, toolUseBehavior: 'stop_on_first_tool' });
      const result = await runner.run(agent, 'What is Skein?', { stream });
      await result.completed;
      const [call, ...more] = calls(result);
      assert.deepEqual([call.name, more], ['colour', []]);
      assert.deepEqual(shade.parse(JSON.parse(call.arguments)), JSON.parse(result.finalOutput));
    }
});

test('a handoff goes to the other agent', async () => {
  for (const runner of runners)
    for (const stream of [false, true]) {
      const expert = new Agent({ name: 'Expert', handoffDescription: 'Knows capitals.', modelSettings: greedy });
      const desk = Agent.create({ name: 'Desk', handoffs: [expert], modelSettings: { ...wild, toolChoice: 'transfer_to_Expert' } });
      const result = await runner.run(desk, 'What is the capital of France?', { stream, maxTurns: 3 });
      await result.completed;
      assert.equal(result.lastAgent.name, 'Expert');
      assert.equal(typeof result.finalOutput, 'string');
    }
});

test('an output type is enforced', async () => {
  const outputType = z.object({ name: z.enum(['Anna', 'Ben']), age: z.int().min(0).max(120) });
  for (const runner of runners)
    for (const stream of [false, true])
      for (let i = 0; i < 3; ++i) {
        const agent = new Agent({ name: 'Clerk', outputType, modelSettings: wild });
        const result = await runner.run(agent, 'Who is there?', { stream });
        await result.completed;
        outputType.parse(result.finalOutput);
      }
});
