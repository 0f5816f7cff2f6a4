// The official client (npm install openai): a streamed chat, then two responses of which the second continues the first.
import OpenAI from 'openai';

const url = process.env.SKEIN_URL ?? 'http://127.0.0.1:8000';
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: process.env.SKEIN_KEY || 'none' });

const stream = await client.chat.completions.create({
  model: 'rwkv7',
  messages: [{ role: 'user', content: 'What is Skein?' }],
  max_tokens: 64,
  stream: true,
});
for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta.content ?? '');
process.stdout.write('\n');

const first = await client.responses.create({ model: 'rwkv7', input: 'I am Anna.', max_output_tokens: 64 });
const next = await client.responses.create({
  model: 'rwkv7', input: 'Who am I?', previous_response_id: first.id, max_output_tokens: 64,
});
console.log(next.output_text);
console.log(`${next.usage.input_tokens} input tokens: earlier turns are not processed again`);
