// Chat templates against the running server: /apply-template shows each, answers end with their turn, and a session knows
// its history again.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serve } from './support.mjs';

const setting = (key, value) => ['--set', `models.skein-demo.${key}=${value}`];
const messages = [{ role: 'system', content: 'Be\n\nkind.' }, { role: 'user', content: 'What is 2 + 3?' }];

const templates = [
  { name: 'assistant', args: [], prompt: 'System: Be\nkind.\n\nUser: What is 2 + 3?\n\nAssistant: ' },
  { name: 'bot', args: setting('chat_template', 'bot'), prompt: 'System✿Be\nkind.✿\nUser✿What is 2 + 3?✿\nBot✿' },
  {
    name: 'custom',
    args: [...setting('chat_template', 'custom'), ...setting('template_user', '<u>'), ...setting('template_assistant', 'Assistant:'),
      ...setting('template_system', '<s>'), ...setting('template_end', '\n\n--\n')],
    prompt: '<s> Be\nkind.\n\n--\n<u> What is 2 + 3?\n\n--\nAssistant: ',
  },
];

for (const { name, args, prompt } of templates)
  test(`the template ${name}`, async () => {
    const server = await serve('--device', 'cpu', '--set', 'drain.grace_ms=0', ...args);
    try {
      const shown = async (fields) => (await server.post('/apply-template', { messages, ...fields })).body.prompt;
      assert.equal(await shown({}), `${prompt}<think>\n</think`);
      assert.equal(await shown({ thinking: { type: 'enabled' } }), `${prompt}<think`);
      const wishes = { low: ' (think a bit)', medium: ' (think)', high: ' (think a lot)' };
      for (const [reasoning_effort, wish] of Object.entries(wishes))
        assert.equal(await shown({ reasoning_effort }), `${prompt.replace('3?', `3?${wish}`)}<think`);

      const ask = async (fields) => {
        const { status, body } = await server.post('/v1/chat/completions', { messages, max_tokens: 40, session_id: name, ...fields });
        assert.equal(status, 200, JSON.stringify(body));
        return body;
      };
      const first = await ask({});
      const [{ message }] = first.choices;
      const again = { role: 'user', content: 'And 3 + 3?' };
      const second = await ask({ messages: [...messages, message, again] });
      assert.equal(second.session.version, 2);
      const { prompt_tokens: all, prompt_tokens_details: { cached_tokens: known } } = second.usage;
      assert.ok(known >= first.usage.prompt_tokens && all > known, 'the history is recognised');

      const { body: response } = await server.post('/v1/responses', { input: 'Hello', max_output_tokens: 4 });
      const { status, body: next } = await server.post('/v1/responses', { input: 'Go on', previous_response_id: response.id, max_output_tokens: 4 });
      assert.equal(status, 200, JSON.stringify(next));
      const more = await server.fetch(`/v1/responses/${response.id}/continue`, { method: 'POST', body: '{"max_output_tokens": 8}' });
      assert.equal(more.status, 200);
      await more.text();

      const tools = [{ type: 'function', function: { name: 'look', parameters: { type: 'object', properties: {}, additionalProperties: false } } }];
      const called = await ask({ tools, tool_choice: 'required', session_id: undefined, max_tokens: 600, parallel_tool_calls: false });
      assert.equal(called.choices[0].finish_reason, 'tool_calls');
    } finally {
      assert.equal((await server.stop()).code, 0);
    }
  });
