// The AI SDK of Vercel against the running server with the demo model, through each of its providers: text, tools with a
// forced choice, and answers of a schema, whole and streamed. `clients` has the tests of larger clients.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateObject, generateText, Output, stepCountIs, streamObject, streamText, tool } from 'ai';
import { z } from 'zod';
import { serve } from './support.mjs';

let server;
let models;

before(async () => {
  globalThis.AI_SDK_LOG_WARNINGS = false;  // the provider of Responses warns of each setting that it does not send
  server = await serve('--device', 'cpu', '--set', 'drain.grace_ms=0');
  const settings = { apiKey: 'any', baseURL: `${server.url}/v1` };
  const compatible = createOpenAICompatible({ ...settings, name: 'skein', includeUsage: true, supportsStructuredOutputs: true });
  const openai = createOpenAI(settings);
  models = [compatible('skein-demo'), openai.chat('skein-demo'), openai.responses('skein-demo')];
});
after(async () => {
  if (server) assert.equal((await server.stop()).code, 0);
});

const greedy = { temperature: 0, presencePenalty: 0, frequencyPenalty: 0, maxRetries: 0 };
const calculator = tool({
  description: 'Evaluates an arithmetic expression.',
  inputSchema: z.object({ expression: z.string() }),
  execute: ({ expression }) => String(expression.split('*').reduce((a, b) => a * b)),
});
const colour = tool({ description: 'Mixes a colour.', inputSchema: z.object({ red: z.int().min(0).max(255), name: z.enum(['dark', 'light']) }) });
const person = z.object({ name: z.enum(['Anna', 'Ben']), age: z.int().min(0).max(120), tags: z.array(z.enum(['a', 'b'])).max(3) });

/** Temperature 2 with a seed: the model has no wish of its own, so what matches the schema was made to match. */
const wild = (seed) => ({ maxRetries: 0, temperature: 2, topP: 1, seed, maxOutputTokens: 2000 });

test('text is the same, whole and streamed', async () => {
  for (const model of models) {
    const request = { ...greedy, model, prompt: 'What is the capital of France?' };
    const whole = await generateText(request);
    assert.equal(whole.text, 'The capital of France is Paris.');
    assert.equal(whole.finishReason, 'stop');
    assert.ok(whole.usage.inputTokens > 0 && whole.usage.outputTokens > 0);
    const stream = streamText(request);
    let text = '';
    let pieces = 0;
    for await (const piece of stream.textStream) {
      text += piece;
      ++pieces;
    }
    assert.equal(text, whole.text);
    assert.ok(pieces > 1);
    assert.equal(await stream.finishReason, 'stop');
    assert.equal((await stream.usage).outputTokens, whole.usage.outputTokens);
    assert.equal((await stream.usage).inputTokens, whole.usage.inputTokens);
  }
});

test('a call runs its tool, and the answer has the result', async () => {
  for (const model of models)
    for (const toolChoice of ['auto', 'required']) {
      const prepareStep = ({ stepNumber }) => ({ toolChoice: stepNumber === 0 ? toolChoice : 'auto' });
      const request = { ...greedy, model, prompt: 'What is 1234 * 567?', tools: { calculator, colour }, stopWhen: stepCountIs(2), prepareStep };
      const whole = await generateText(request);
      assert.deepEqual(whole.steps.map((step) => step.finishReason), ['tool-calls', 'stop']);
      assert.deepEqual(whole.steps[0].toolCalls.map((call) => [call.toolName, call.input]), [['calculator', { expression: '1234*567' }]]);
      assert.match(whole.text, /\b699678\b/);
      const stream = streamText(request);
      assert.equal(await stream.text, whole.text);
      assert.deepEqual((await stream.steps)[0].toolCalls.map((call) => call.input), [{ expression: '1234*567' }]);
    }
});

test('a forced choice calls that tool with arguments of its schema', async () => {
  for (const model of models)
    for (const toolChoice of ['required', { type: 'tool', toolName: 'colour' }]) {
      const request = { ...wild(3), model, prompt: 'What is Skein?', tools: { colour }, toolChoice };
      const whole = await generateText(request);
      assert.equal(whole.finishReason, 'tool-calls');
      assert.ok(whole.toolCalls.length > 0);
      const stream = streamText(request);
      const inputs = new Map();
      const calls = [];
      for await (const part of stream.fullStream) {
        if (part.type === 'tool-input-delta') inputs.set(part.id, (inputs.get(part.id) ?? '') + part.delta);
        if (part.type === 'tool-call') calls.push(part);
      }
      for (const call of [...whole.toolCalls, ...calls]) {
        assert.equal(call.toolName, 'colour');
        assert.ok(!call.invalid, String(call.error));
        colour.inputSchema.parse(call.input);
      }
      assert.ok(calls.length > 0);
      for (const call of calls) assert.deepEqual(JSON.parse(inputs.get(call.toolCallId)), call.input);
      assert.equal(await stream.finishReason, 'tool-calls');
    }
});

test('an object matches its schema', async () => {
  for (const model of models)
    for (let seed = 0; seed < 3; ++seed) {
      const request = { ...wild(seed), model, prompt: 'Who is there?' };
      person.parse((await generateObject({ ...request, schema: person })).object);
      person.parse((await generateText({ ...request, output: Output.object({ schema: person }) })).output);
      const stream = streamObject({ ...request, schema: person });
      let last;
      for await (const partial of stream.partialObjectStream) last = partial;
      assert.deepEqual(last, person.parse(await stream.object));
      const { object } = await generateObject({ ...request, output: 'enum', enum: ['yes', 'no'] });
      assert.ok(['yes', 'no'].includes(object));
    }
});
