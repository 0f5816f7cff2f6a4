// The wire contract statement by statement, as rows of data: what a field means, which prompt a template makes, what is
// refused in which words, what an older server's route answers. Each row says which part of the contract it is of. The
// model's tokens are bytes, so that `prompt_tokens` is the length of the text that was fed. (Whole requests and the order
// of events: conformance.test.mjs; models, states and orders: managing.test.mjs.)
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { anything, hasShape, is, isCount, isText, like } from './shapes.mjs';
import { noOracle, oracle, serve, serveTiny } from './support.mjs';

const auth = { authorization: 'Bearer secret' };
const folder = mkdtempSync(join(tmpdir(), 'skein-statements-'));
after(() => rmSync(folder, { recursive: true, force: true }));

const sure = { temperature: 0, max_tokens: 8, ignore_eos: true };
const drawn = { temperature: 1, seed: 7, max_tokens: 8, ignore_eos: true };
/** Far from greedy, so that whatever changes the weights of tokens changes the text. */
const unsaid = { top_k: undefined, top_p: undefined, alpha_presence: undefined, alpha_frequency: undefined, alpha_decay: undefined };
const free = { temperature: 1, top_k: 0, top_p: 1, alpha_presence: 0, alpha_frequency: 0, alpha_decay: 1, seed: 7, max_tokens: 32, ignore_eos: true };
const [v1, v2, v3] = ['v1', 'v2', 'v3'].map((v) => `/${v}/chat/completions`);
const [state, tree, openai] = ['/state', '/multi_state', '/openai/v1'].map((p) => `${p}/chat/completions`);
const raw = '/v1/completions';
const infer = '/chat/completions';
const ai = '/api/oai/chat/completions';
const fim = '/FIM/v1/batch-FIM';
const hi = [{ role: 'user', content: 'Hi' }];
const x = { contents: ['x'] };
const open = 'Assistant: <think>\n</think';
const poet = { state_filename: 'models/state-tiny-7v0.pth', state_viewname: 'poet' };

/** [part, what, path, body, path, body]: the same prompt, and the same text. */
const equal = [
  ['3', 'the model is a label', v1, { ...x, ...sure, model: 'whatever' }, v1, { ...x, ...sure }],
  ['3', 'null is as good as absent', v1, { ...x, ...sure, session_id: null, stop_tokens: null, top_k: null, system: null }, v1, { ...x, ...sure }],
  ['3', 'fields that count on other routes only', v1, { ...x, ...drawn, pad_zero: true, enable_think: true, dialogue_idx: 3, session_id: 's' }, v1, { ...x, ...drawn }],
  ['3', 'switches of another server', '/v1/batch/completions', { ...x, ...drawn, metrics: true, report_metrics: true, include_metrics: true }, v1, { ...x, ...drawn }],
  ['3', 'top_k of 0 is no limit', v1, { ...x, ...drawn, top_k: 0 }, v1, { ...x, ...drawn, top_k: 100000 }],
  ['3', 'nor one below it', v1, { ...x, ...drawn, top_k: -5 }, v1, { ...x, ...drawn, top_k: 256 }],
  ['3', 'top_p above 1 is 1', v1, { ...x, ...drawn, top_k: 0, top_p: 1.5 }, v1, { ...x, ...drawn, top_k: 0, top_p: 1 }],
  ['3', 'top_p below 0 is 1', v1, { ...x, ...drawn, top_k: 0, top_p: -1 }, v1, { ...x, ...drawn, top_k: 0, top_p: 1 }],
  ['3', 'defaults of native routes', v1, { ...x, ...drawn }, v1, { ...x, ...drawn, top_k: 50, top_p: 0.6, alpha_presence: 2, alpha_frequency: 0.2, alpha_decay: 0.996 }],
  ['3', 'defaults of RWKV-Infer', infer, { messages: hi, ...drawn }, infer, { messages: hi, ...drawn, top_p: 0.3, presence_penalty: 0.5, frequency_penalty: 0.5, penalty_decay: 0.996 }],
  ['3', 'defaults of ai00', ai, { messages: hi, ...drawn }, ai, { messages: hi, ...drawn, top_p: 0.5, top_k: 128, presence_penalty: 0.3, frequency_penalty: 0.3, penalty_decay: 0.99654026 }],
  ['4.2', 'a stop that stands alone', v1, { ...x, ...sure, stop_tokens: 101 }, v1, { ...x, ...sure, stop_tokens: [101] }],
  ['4.2', 'also a text', v1, { ...x, ...sure, stop_tokens: 'e' }, v1, { ...x, ...sure, stop_tokens: [101] }],
  ['4.2', 'ids of another vocabulary', v1, { ...x, ...sure, stop_tokens: [261, 24281, 101] }, v1, { ...x, ...sure, stop_tokens: [101] }],
  ['4.2', 'also in a chat', v1, { messages: hi, ...sure, stop_tokens: [261, 24281] }, v1, { messages: hi, ...sure, stop_tokens: [] }],
  ['4.2', 'an empty text is none', v1, { ...x, ...sure, stop_tokens: ['', 'e'] }, v1, { ...x, ...sure, stop_tokens: ['e'] }],
  ['4.2', 'also for OpenAI', raw, { prompt: 'x', ...sure, stop: '' }, raw, { prompt: 'x', ...sure }],
  ['4.2', 'also where it stands alone', infer, { messages: hi, ...sure, stop: '' }, infer, { messages: hi, ...sure }],
  ['4.4', 'v3 puts a question', v3, { contents: ['Why?'], ...sure }, v1, { contents: ['User: Why?\n\nAssistant: <think>\n</think>'], ...sure }],
  ['4.4', 'v3 that thinks', v3, { contents: ['Why?'], enable_think: true, ...sure }, v1, { contents: ['User: Why?\n\nAssistant: <think'], ...sure }],
  ['4.4', 'prefix and suffix', fim, { prefix: ['A'], suffix: ['B'], ...sure }, v1, { contents: ['✿prefix✿✿suffix✿B✿middle✿A'], ...sure }],
  ['4.4', 'prompts stand as they are', '/big_batch/completions', { contents: ['User: x  \n'], ...sure, stream: false }, raw, { prompt: 'User: x  \n', ...sure }],
  ['5.1', 'nothing below 0.001 is warm', v1, { ...x, ...drawn, temperature: 0.0005 }, v1, { ...x, ...drawn, temperature: 0 }],
  ['5.1', 'the preset for texts is greedy', v1, { ...x, ...sure, temperature: 0.8, top_k: 1, top_p: 0, alpha_presence: 0, alpha_frequency: 0, alpha_decay: 0.96 }, v1, { ...x, ...sure, alpha_presence: 0, alpha_frequency: 0 }],
  ['5.1', 'frequency works alone', v1, { ...x, ...sure, alpha_presence: 0, alpha_frequency: 3, alpha_decay: 1 }, raw, { prompt: 'x', ...sure, frequency_penalty: 0, alpha_frequency: 3, alpha_presence: 0, alpha_decay: 1 }],
  ['5.2', 'v2 is greedy at 0', v2, { ...x, ...drawn, temperature: 0, pad_zero: false }, v1, { ...x, ...drawn, temperature: 0 }],
  ['5.2', 'the one mode of penalties', v2, { ...x, ...drawn, penalty_mode: 'rapid' }, v2, { ...x, ...drawn }],
  ['5.2', 'v2 pads unless it is told', v2, { ...x, ...sure }, v2, { ...x, ...sure, pad_zero: true }],
  ['5.6', 'noise is read over', '/big_batch/completions', { ...x, ...drawn, noise: 1.5, stream: false }, '/big_batch/completions', { ...x, ...drawn, stream: false }],
  ['6.3', 'contents go before messages', v3, { contents: ['Why?'], messages: hi, ...sure }, v3, { contents: ['Why?'], ...sure }],
  ['6.12', 'think has three names', v1, { messages: hi, think: true, ...sure }, v1, { messages: hi, enable_think: true, ...sure }],
  ['6.12', 'the most exact one counts', v1, { messages: hi, think_type: 'fast', think: true, ...sure }, v1, { messages: hi, ...sure }],
  ['6.12', 'think before enable_think', v1, { messages: hi, think: false, enable_think: true, ...sure }, v1, { messages: hi, ...sure }],
  ['9.6', 'numbers as texts', infer, { messages: hi, temperature: '0', max_tokens: '8', ignore_eos: 'True', top_p: '1.0' }, infer, { messages: hi, ...sure, top_p: 1 }],
  ['9.6', 'a seed as a text', infer, { messages: hi, ...drawn, seed: '7' }, infer, { messages: hi, ...drawn }],
  ['9.6', 'fields in params, the outer ones first', infer, { messages: hi, ...sure, params: { max_tokens: 3, user_name: 'Bob' } }, infer, { messages: hi, ...sure, user_name: 'Bob' }],
  ['9.6', 'fields that mean nothing here', infer, { messages: hi, ...sure, delete_ragprompt: true, minimum_gen_count: 2, input_logits_record: true }, infer, { messages: hi, ...sure }],
  ['9.6', 'a stop that is a list, on completions', '/completions', { prompt: 'x', stop: ['e'], ...sure }, '/completions', { prompt: 'x', stop: 'e', ...sure }],
  ['12.1', 'max_completion_tokens before max_tokens', raw, { prompt: 'x', ...sure, max_completion_tokens: 3 }, raw, { prompt: 'x', ...sure, max_tokens: 3 }],
  ['12.1', 'two zeros are no error', raw, { prompt: 'x', ...sure, top_p: 0 }, raw, { prompt: 'x', ...sure }],
  ['12.2', 'no presystem unless it is true', infer, { messages: hi, ...sure, presystem: false }, infer, { messages: hi, ...sure }],
  ['12.2', 'an answer that is begun', infer, { messages: [...hi, { role: 'assistant', content: 'Once', prefix: true }], ...sure }, raw, { prompt: 'User: Hi\n\nAssistant: Once', ...sure }],
  ['12.3', 'names of who speaks', ai, { messages: hi, names: { User: 'Bob', Assistant: 'Alice' }, ...sure }, ai, { messages: hi, user_name: 'Bob', assistant_name: 'Alice', ...sure }],
  ['12.3', 'bias is the other name of logit_bias', '/api/oai/completions', { prompt: 'x', bias: { 65: 100 }, ...sure }, '/api/oai/completions', { prompt: 'x', logit_bias: { 65: 100 }, ...sure }],
  ['12.3', 'its own stop in place of the blank line', ai, { messages: hi, stop: '\n\nBob:', bias: { 10: 100 }, ...sure }, ai, { messages: hi, stop_tokens: [], bias: { 10: 100 }, ...sure }],
  ['12.3', 'the state that is none', ai, { messages: hi, state: '00000000-0000-0000-0000-000000000000', ...sure }, ai, { messages: hi, state: '', ...sure }],
  ['15', 'contents where messages is empty', v1, { ...x, messages: [], ...sure }, v1, { ...x, ...sure }],
  ['15', 'prompt where there is nothing else', v1, { prompt: 'x', ...sure }, raw, { prompt: 'x', ...sure }],
  ['15', 'messages on the route of texts', raw, { messages: hi, ...sure }, v1, { messages: hi, ...sure }],
  ['15', 'a state by the field of others', v1, { ...x, ...free, state: 'poet' }, v1, { ...x, ...free, state_name: 'poet' }],
  ['15', 'or by its file', infer, { messages: hi, ...free, state: poet.state_filename }, infer, { messages: hi, ...free, model: 'tiny poet' }],
  ['9.5', 'or by its bare name', raw, { prompt: 'x', ...free, model: 'poet' }, raw, { prompt: 'x', ...free, model: 'tiny poet' }],
];

/** The same rows, of which the two must not come to the same: what is named there counts. */
const unequal = [
  ['3', 'top_k', v1, { ...x, ...free, top_k: 1 }, v1, { ...x, ...free }],
  ['3', 'top_p', v1, { ...x, ...free, top_p: 0.1 }, v1, { ...x, ...free }],
  ['3', 'alpha_presence', v1, { ...x, ...free, top_k: 1, alpha_presence: 5 }, v1, { ...x, ...free, top_k: 1 }],
  ['3', 'alpha_frequency, alone', v1, { ...x, ...free, top_k: 1, alpha_frequency: 5 }, v1, { ...x, ...free, top_k: 1 }],
  ['3', 'alpha_decay', v1, { ...x, ...free, top_k: 1, alpha_presence: 5 }, v1, { ...x, ...free, top_k: 1, alpha_presence: 5, alpha_decay: 0.1 }],
  ['3', 'the seed', v1, { ...x, ...free }, v1, { ...x, ...free, seed: 8 }],
  ['3', 'native defaults are not those of texts', v1, { ...x, ...free, ...unsaid }, raw, { prompt: 'x', ...free, ...unsaid }],
  ['3', 'a big batch has a temperature alone', '/big_batch/completions', { ...x, ...free, ...unsaid, stream: false }, v1, { ...x, ...free, ...unsaid }],
  ['4.2', 'a stop', v1, { ...x, ...free, stop_tokens: ['n'] }, v1, { ...x, ...free }],
  ['5.2', 'pad_zero', v2, { ...x, ...free }, v2, { ...x, ...free, pad_zero: false }],
  ['5.5', 'top_p comes first there', infer, { messages: hi, ...free, temperature: 1.5, top_p: 0.5 }, v1, { messages: hi, ...free, temperature: 1.5, top_p: 0.5 }],
  ['6.3', 'enable_think', v3, { ...x, ...free, enable_think: true }, v3, { ...x, ...free }],
  ['9.6', 'presence_penalty', infer, { messages: hi, ...free, ...unsaid, top_k: 1, presence_penalty: 2 }, infer, { messages: hi, ...free, ...unsaid, top_k: 1, presence_penalty: 0 }],
  ['9.6', 'params', infer, { messages: hi, ...free, top_k: undefined, params: { top_k: 1 } }, infer, { messages: hi, ...free }],
  ['12.1', 'frequency_penalty', raw, { prompt: 'x', ...free, ...unsaid, top_k: 1, frequency_penalty: 2 }, raw, { prompt: 'x', ...free, ...unsaid, top_k: 1 }],
  ['12.1', 'include_stop_str_in_output', raw, { prompt: 'x', ...free, stop: 'n', include_stop_str_in_output: true }, raw, { prompt: 'x', ...free, stop: 'n' }],
  ['12.3', 'sampler', ai, { messages: hi, ...free, sampler: { min_p: 0.5 } }, ai, { messages: hi, ...free }],
  ['12.3', 'bias', ai, { messages: hi, ...free, bias: { 65: 100 } }, ai, { messages: hi, ...free }],
  ['15', 'a state, by a field', v1, { ...x, ...free, state: 'poet' }, v1, { ...x, ...free }],
  ['15', 'a state, by the model', infer, { messages: hi, ...free, model: 'poet' }, infer, { messages: hi, ...free }],
];

/** [part, what, path, body, prompt]: the text that is fed, by its length and by what follows it. */
const fed = [
  ['4.4', 'no think', v1, { messages: hi }, `User: Hi\n\n${open}`],
  ['4.4', 'fast', v1, { messages: hi, think_type: 'fast' }, `User: Hi\n\n${open}`],
  ['4.4', 'free', v1, { messages: hi, think_type: 'free' }, 'User: Hi\n\nAssistant: <think'],
  ['4.4', 'Chinese', v1, { messages: hi, think_type: 'preferChinese' }, 'User: Hi\n\nAssistant: <think>嗯'],
  ['4.4', 'Chinese, spelled otherwise', v1, { messages: hi, think_type: 'prefer_chinese' }, 'User: Hi\n\nAssistant: <think>嗯'],
  ['4.4', 'en', v1, { messages: hi, think_type: 'en' }, 'User: Hi (think)\n\nAssistant: <think'],
  ['4.4', 'enShort', v1, { messages: hi, think_type: 'enShort' }, 'User: Hi (think a bit)\n\nAssistant: <think'],
  ['4.4', 'enLong', v1, { messages: hi, think_type: 'enLong' }, 'User: Hi (think a lot)\n\nAssistant: <think'],
  ['4.5', 'who instructs comes first, joined by a newline', openai, { system: 'A', messages: [{ role: 'system', content: 'B' }, { role: 'developer', content: 'C' }, ...hi] }, `System: A\nB\nC\n\nUser: Hi\n\n${open}`],
  ['4.5', 'contents are one more turn', openai, { messages: [...hi, { role: 'assistant', content: 'Yes' }], contents: ['More'] }, `User: Hi\n\nAssistant: Yes\n\nUser: More\n\n${open}`],
  ['4.5', 'contents alone', openai, { contents: ['Hi'] }, `User: Hi\n\n${open}`],
  ['4.5', 'no blank line within a turn, and its indents kept', v1, { messages: [{ role: 'user', content: ' a\r\n\r\n\n  b\n ' }] }, `User: a\n  b\n\n${open}`],
  ['4.5', 'parts of text', v1, { messages: [{ role: 'user', content: [{ type: 'text', text: 'a' }, { type: 'text', text: 'b' }] }] }, `User: ab\n\n${open}`],
  ['4.5', 'nothing said', v1, { messages: [{ role: 'user', content: null }] }, `User:\n\n${open}`],
  ['9.6', 'a text that was looked up', infer, { messages: [{ role: 'rag', content: 'R' }, ...hi], system_name: 'Sys' }, `Sys: R\n\nUser: Hi\n\n${open}`],
  ['9.6', 'roles with capitals', infer, { messages: [{ role: 'System', content: 'S' }, { role: 'User', content: 'Hi' }] }, `System: S\n\nUser: Hi\n\n${open}`],
  ['12.1', 'the answer is not opened', v1, { messages: hi, add_generation_prompt: false }, 'User: Hi\n\n'],
  ['12.2', 'a tool that answered', v1, { messages: [...hi, { role: 'tool', content: '42' }] }, `User: Hi\n\nObservation: 42\n\n${open}`],
  ['12.2', 'names of who speaks, on the path that OpenAI has', v1, { messages: hi, user_name: 'Bob', assistant_name: 'Alice' }, `Bob: Hi\n\n${open.replace('Assistant', 'Alice')}`],
  ['12.2', 'as it stands', infer, { messages: [{ role: 'user', content: 'Q: ', raw: true }] }, `Q: ${open}`],
  ['12.2', 'presystem', infer, { messages: hi, presystem: true }, `User: hi\n\nAssistant: Hi. I am your assistant. Ask me.\n\nUser: Hi\n\n${open}`],
];

const flat = (words) => (body) => hasShape(body, { error: typeof words === 'string' ? is(words) : like(words) });
const object = (param, words = /./, code = anything) => (body) =>
  hasShape(body, { error: { message: typeof words === 'string' ? is(words) : like(words), type: isText, param: is(param), code } });
const both = (words) => (body) => hasShape(body, { error: like(words), detail: like(words) });
const many = { contents: Array(4097).fill('x'), max_tokens: 1 };
const single = 'Server Error: Requst must be single prompt !';
const ranking = { object: is('list'), model: isText, data: Array.isArray, usage: anything };

/** [part, what, path, body, status, check]. A body of null is a GET. */
const said = [
  ...['/v2/chat/completions', '/state/chat/completions', '/state/status', '/state/delete', '/v1/tokens/count', '/v1/server/stop', '/v1/model/load', fim, '/translate/v1/batch-translate']
    .map((path) => ['2.5', 'no JSON', path, '{', 400, flat(/^Invalid JSON: /)]),
  ...['/loadmodel', '/removestatemodel', '/update-config'].map((path) => ['2.5', 'no JSON', path, '{', 400, both(/^Invalid JSON: /)]),
  ['2.5', 'a byte order mark before the JSON', v2, '\ufeff{"contents":["x"],"max_tokens":1}', 200, (b) => assert.equal(b.choices.length, 1)],
  ['2.5', 'half a character', v2, '{"contents":["\\ud83d"]}', 400, flat(/unpaired surrogate/)],
  ['2.5', 'a number that is too large', v2, '{"contents":["x"],"max_tokens":99999999999999999999999}', 400, flat(/does not fit into 64 bits/)],
  ['2.5', 'another method', v2, null, 405, flat('this route allows POST, OPTIONS')],
  ['2.5', 'another method, for OpenAI', openai, null, 405, object(null, /allows POST/)],
  ['3', 'a text for a number', v1, { ...x, top_p: 'x' }, 400, flat('top_p must be a number')],
  ['3', 'a fraction', v1, { ...x, chunk_size: 1.5 }, 400, flat('chunk_size must be a 64-bit integer')],
  ['3', 'fewer tokens than none', v1, { ...x, max_tokens: -1 }, 400, flat('max_tokens must be a 64-bit integer, at least 0')],
  ['3', 'a big batch that is too warm', '/big_batch/completions', { ...x, temperature: 1001 }, 400, flat('temperature must be a number of at most 1000')],
  ['4.2', 'a stop that is none', v1, { ...x, stop_tokens: {} }, 400, flat('stop_tokens must be a string, a token id or a list of these')],
  ['4.2', 'one of several', v1, { ...x, stop_tokens: [0, [1]] }, 400, flat('stop_tokens[1] must be a string or a token id')],
  ['6.7', 'an empty session', state, { ...x, session_id: '' }, 400, flat('session_id must have 1 to 256 bytes')],
  ['4.2', 'an id of another vocabulary, for OpenAI', raw, { prompt: 'x', stop_token_ids: [261] }, 400, object('stop_token_ids')],
  ['2.5', 'no JSON for OpenAI', openai, '{', 400, object(null, /^Invalid JSON: /)],
  ['2.5', 'no message', openai, { messages: [] }, 400, object('messages', 'Empty prompt')],
  ['2.5', 'nor by many words', openai, { messages: [{ role: 'user', content: '' }], session_id: 's' }, 400, object('messages', 'Empty prompt')],
  ['2.5', 'nor by none', openai, {}, 400, object('messages', 'Empty prompt')],
  ...[v1, v2, v3, '/big_batch/completions', '/v1/batch/completions'].map((path) => ['2.5', 'no prompts', path, { contents: [] }, 400, flat('Empty prompts list')]),
  ['2.5', 'a number for a text', v1, { contents: [7] }, 400, flat(/contents/)],
  ...[v1, v2, v3, '/big_batch/completions', '/v1/batch/completions'].map((path) => ['2.6', 'more than the limit', path, many, 400, is({ error: 'bsz overflow, Max bsz=4096', request_bsz: 4097, max_bsz: 4096 })]),
  ['2.6', 'the same as pairs', fim, { prefix: many.contents, suffix: many.contents }, 400, is({ error: 'bsz overflow, Max bsz=4096', request_bsz: 4097, max_bsz: 4096 })],
  ['2.6', 'the same for OpenAI', raw, { prompt: many.contents }, 400, object('prompt', /4096 answers/)],
  ['5.1', 'too warm', v1, { ...x, temperature: 1001 }, 400, flat(/temperature/)],
  ['5.1', 'below nothing', v1, { ...x, temperature: -1 }, 400, flat(/temperature/)],
  ['5.1', 'a decay of nothing', v1, { ...x, alpha_decay: 0 }, 400, flat(/alpha_decay/)],
  ['5.1', 'a decay that grows', v1, { ...x, alpha_decay: 1.01 }, 400, flat(/alpha_decay/)],
  ['4.5', 'an image', openai, { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'x' } }] }] }, 400, object('messages[0].content[0].type')],
  ['5.2', 'the penalties of the first v2', v2, { ...x, penalty_mode: 'v2' }, 400, flat('penalty_mode must be rapid')],
  ['6.5', 'lists of other lengths', fim, { prefix: ['a', 'b'], suffix: ['c'] }, 400, flat('suffix has 1 entries, but prefix has 2; they must have the same number')],
  ['6.6', 'an empty source', '/translate/v1/batch-translate', { source_lang: '', target_lang: 'zh', text_list: [''] }, 200, is({ translations: [{ detected_source_lang: 'en', text: '' }] })],
  ['6.7', 'two prompts', state, { contents: ['a', 'b'], session_id: 's' }, 500, flat(single)],
  ['6.7', 'none', state, { contents: [], session_id: 's' }, 400, flat('Request must contain exactly one prompt')],
  ['6.8', 'two prompts', tree, { contents: ['a', 'b'], session_id: 's', dialogue_idx: 0 }, 500, flat(single)],
  ['6.8', 'no session', tree, { ...x, dialogue_idx: 0 }, 400, flat('Missing session_id parameter')],
  ['6.8', 'no place in it', tree, { ...x, session_id: 's' }, 400, flat('Missing dialogue_idx parameter')],
  ['6.8', 'a place that is not there', tree, { ...x, session_id: 's', dialogue_idx: 7 }, 404, flat('State not found for dialogue_idx=7')],
  ['6.10', 'two contents in a session', openai, { contents: ['a', 'b'], session_id: 's' }, 400, object('contents', 'State mode only supports a single contents item')],
  ['6.12', 'text before messages before contents', '/v1/tokens/count', { text: 'Hi', messages: hi, contents: ['abc'] }, 200, is({ tokens: 2 })],
  ['6.12', 'both, as a chat has them', '/v1/tokens/count', { messages: hi, contents: ['abc'] }, 200, is({ tokens: `User: Hi\n\nUser: abc\n\n${open}`.length })],
  ['9.5', 'an unknown name, on the routes of RWKV-Infer', infer, { messages: hi, model: 'gpt-3.5-turbo', ...sure }, 200, (b) => assert.equal(b.model, 'gpt-3.5-turbo')],
  ['9.5', 'an unknown name, elsewhere', v1, { messages: hi, model: 'gpt-3.5-turbo', ...sure }, 200, (b) => assert.equal(b.model, 'tiny')],
  ['12.1', 'several answers', raw, { prompt: 'x', ...sure, n: 2, best_of: 2 }, 200, (b) => assert.equal(b.choices.length, 2)],
  ['12.2', 'no messages', infer, { model: 'x' }, 400, object('messages')],
  ['12.2', 'how it is', '/status', null, 200, (b) => hasShape(b, { status: is(3), pid: isCount, device_name: is('cpu') })],
  ['12.2', 'defaults that are none', '/update-config', { temperature: 'hot' }, 400, both(/temperature/)],
  ['12.2', 'a state as a default', '/update-config', { state: 'poet' }, 400, both(/^state /)],
  ['12.2', 'an unknown strategy', '/switch-model', { model: 'tiny-7v0.pth', strategy: 'zzz' }, 400, both(/^strategy 'zzz' is unknown/)],
  ['12.2', 'no embeddings', '/v1/embeddings', { input: 'x' }, 400, object(null, /embeddings are not supported/)],
  ['12.3', 'what follows best', '/api/oai/v1/chooses', { input: ['The ', 'quick'], choices: ['zzzz', ' the', ' the'], state: '' }, 200, (b) => {
    hasShape(b, ranking);
    for (const [rank, c] of b.data.entries()) hasShape(c, { object: is('choice'), index: isCount, rank: is(rank), choice: isText, perplexity: (p) => assert.ok(p > 0) });
    assert.deepEqual(b.data.map((c) => c.index), [1, 2, 0]);
    assert.equal(b.data[0].perplexity, b.data[1].perplexity);
  }],
  ['12.3', 'what gains most by the input', '/api/oai/chooses', { input: 'The ', choices: ['the', 'q'], calibrate: true }, 200, (b) => hasShape(b, ranking)],
  ['12.3', 'nothing to choose from', '/api/oai/chooses', { input: 'x', choices: [] }, 400, flat(/^choices /)],
  ['12.3', 'a state as numbers', '/api/oai/v1/states', { input: 'x' }, 400, flat(/export/)],
  ['12.3', 'embeds', '/api/oai/embeds', { input: 'x' }, 400, flat(/embeddings are not supported/)],
  ...['/embeddings', '/embedding', '/openai/v1/embeddings', '/engines/text-embedding-ada-002/embeddings',
    '/v1/engines/text-embedding-ada-002/embeddings'].map((path) => ['12.2', 'no embeddings', path, { input: 'x' }, 400, object(null, /embeddings are not supported/)]),
  ...['/api/oai/v1/embeds', '/api/oai/embeddings', '/api/oai/v1/embeddings', '/api/embed', '/api/embeddings'].map((path) =>
    ['12.3', 'no embeddings', path, { input: 'x' }, 400, flat(/embeddings are not supported/)]),
  ['12.3', 'a route that there is not', '/api/generate', { model: 'x' }, 404, flat(/no route/)],
  ['12.3', 'a wrong field', ai, { messages: hi, temperature: 'hot' }, 400, flat(/temperature/)],
  ['12.3', 'another sampler for the state', ai, { messages: hi, sampler_override: { type: 'Typical' } }, 400, flat(/sampler_override/)],
  ['12.3', 'states', ai, { messages: hi, states: [{ id: 'x' }] }, 400, flat(/states/)],
  ['6.8', 'the sessions, by the other name', '/multi_state/status', {}, 200, (b) => assert.equal(b.status, 'success')],
  ['6.8', 'the end of none', '/multi_state/delete', {}, 400, flat('Missing session_id parameter')],
  ['12.3', 'a template of its own', ai, { messages: hi, template: { sep: '|' } }, 400, flat(/template/)],
  ['12.3', 'a grammar', ai, { messages: hi, bnf_schema: 'start::="x";' }, 200, (b) => assert.equal(b.choices[0].message.content, 'x')],
  ['12.3', 'a wrong grammar', ai, { messages: hi, bnf_schema: 'start::=x;' }, 400, flat(/^bnf_schema: .*the rule x is used but missing/)],
  ['12.3', 'another sampler', ai, { messages: hi, sampler: { type: 'Typical' } }, 400, flat(/sampler\.type/)],
  ['15', 'a state that is not there', infer, { messages: hi, state: 'nobody' }, 404, object('state')],
  ['15', 'a state in numbers', ai, { messages: hi, state: { id: 'x', data: [0] } }, 400, flat(/^state /)],
  ['15', 'none of the three forms', v1, {}, 400, object('messages')],
];

/** How the older servers are started, where there is no GPU; a port of 0 is any. */
const starts = {
  'rwkv_lightning': ['--model-path', 'models/tiny-7v0', '--port', '0', '--password', 'secret'],
  'its CUDA port': ['--model-path', 'models/tiny-7v0.pth', '--vocab-path', 'bytes', '--host', '127.0.0.1', '--port', '0', '--chunk-size', '128', '--state-db-path', join(folder, 'states'), '--wkv32', '--chunk-load', '--enable-dynamic-loading', '--password', 'secret'],
  'RWKV-Infer': ['--localhost', '0.0.0.0', '--port', '0', '--debug', 'False', '--workers', '64', '--dynamic_state_cache_size', '512', '--mrssmax', '4', '--password', 'secret', '--model', 'models/tiny-7v0.pth'],
  'RWKV-Runner': ['--host', '127.0.0.1', '--port', '0', '--webui', '--rwkv-beta', '--password', 'secret', '--model', 'models/tiny-7v0.pth'],
  'conRWKV': ['--model', 'models/tiny-7v0.pth', '--port', '0', '--password', 'secret'],
};

describe('2.1: start lines of older servers', { skip: noOracle }, () => {
  for (const [name, flags] of Object.entries(starts))
    test(name, async () => {
      const server = await serve('--device', 'cpu', '--set', 'drain.grace_ms=0', ...flags.map((f) => (f.startsWith('models/') ? join(oracle, f) : f)));
      const { body } = await server.get('/models', auth);
      assert.deepEqual(body, [{ object: 'models', id: 'tiny-7v0' }]);
      assert.equal((await server.stop()).code, 0);
    });
});

describe('a tiny model', { skip: noOracle }, () => {
  let server;
  before(async () => {
    server = await serveTiny('--password', 'secret', '--model-root', join(oracle, 'models'), '--states-dir', oracle, '--set', 'drain.grace_ms=0');
    assert.equal((await server.post('/loadstatemodel', poet, auth)).status, 200);
  });
  after(async () => assert.equal((await server.stop()).code, 0));

  const ask = async (path, body) => {
    const answer = await server.post(path, body, auth);
    assert.equal(answer.status, 200, `${path} ${JSON.stringify(body)}: ${JSON.stringify(answer.body)}`);
    const { choices, usage } = answer.body;
    return { prompt: usage.prompt_tokens, said: choices.map((c) => c.text ?? (c.message.reasoning_content ?? '') + c.message.content) };
  };
  const each = async (rows, check) => {
    const wrong = [];
    for (const row of rows)
      await check(row).catch((e) => wrong.push(`${row[0]} ${row[1]} (${row[2]}): ${e.message}`));
    assert.deepEqual(wrong, []);
  };

  test('two ways to say the same', () => each(equal, async ([, , path, body, other, its]) => assert.deepEqual(await ask(path, body), await ask(other, its))));

  test('what counts', () => each(unequal, async ([, , path, body, other, its]) => assert.notDeepEqual(await ask(path, body), await ask(other, its))));

  test('what is fed', () => each(fed, async ([, , path, body, prompt]) => assert.equal((await ask(path, { ...sure, max_tokens: 1, ...body })).prompt, Buffer.byteLength(prompt))));

  test('what is answered, in which words', () => each(said, async ([, , path, body, status, check]) => {
    const answer = body === null ? await server.get(path, auth) : await server.post(path, body, auth);
    assert.equal(answer.status, status, JSON.stringify(answer.body));
    check(answer.body);
  }));

  test('2.1, 2.2: any type of body, a password in any place', async () => {
    const body = JSON.stringify({ ...x, ...sure });
    for (const headers of [{ ...auth, 'content-type': 'application/x-www-form-urlencoded' }, { 'x-api-key': 'secret' }, { ...auth, 'content-type': '' }])
      assert.equal((await server.fetch(v1, { method: 'POST', body, headers })).status, 200);
    assert.equal((await server.post(openai, { messages: hi, ...sure, password: 'secret' })).status, 200);
    const { status, headers, body: no } = await server.post(v2, x);
    assert.deepEqual([status, headers.get('www-authenticate'), no], [401, 'Bearer', { error: 'Unauthorized: invalid or missing password' }]);
  });

  test('2.3, 2.4: headers for pages and for streams', async () => {
    const origin = 'http://page.example';
    const stream = await server.fetch(v1, { method: 'POST', body: JSON.stringify({ ...x, ...sure, stream: true }), headers: { ...auth, origin } });
    for (const [name, value] of [['content-type', /^text\/event-stream/], ['cache-control', /^no-store$/], ['x-accel-buffering', /^no$/], ['access-control-allow-origin', /^\*$/]])
      assert.match(stream.headers.get(name) ?? '', value, name);
    assert.match(await stream.text(), /\n\ndata: \[DONE\]\n\n$/);
    for (const [path, status] of [['/nowhere', 404], [v2, 400]]) {
      const no = await server.fetch(path, { method: 'POST', body: '{', headers: { ...auth, origin } });
      assert.deepEqual([no.status, no.headers.get('access-control-allow-origin')], [status, '*']);
    }
    for (const path of new Set([...equal, ...fed, ...said].map(([, , path]) => path))) {
      const asked = await server.fetch(path, { method: 'OPTIONS', headers: { origin, 'access-control-request-headers': 'x-mine' } });
      const got = (name) => asked.headers.get(`access-control-${name}`);
      assert.deepEqual([asked.status, await asked.text(), got('allow-origin'), got('allow-headers'), got('max-age')], [204, '', '*', 'x-mine', '86400'], path);
      assert.equal(got('allow-methods'), 'GET, POST, PUT, DELETE, OPTIONS');
    }
    const plain = await server.fetch(v2, { method: 'OPTIONS', headers: { origin } });
    assert.equal(plain.headers.get('access-control-allow-headers'), 'Content-Type, Authorization');
  });

  test('6.4: a big batch is streamed unless it says no', async () => {
    const type = async (more) => (await server.fetch('/big_batch/completions', { method: 'POST', body: JSON.stringify({ ...x, max_tokens: 1, ...more }), headers: auth })).headers.get('content-type');
    assert.match(await type({}), /^text\/event-stream/);
    assert.match(await type({ stream: null }), /^text\/event-stream/);
    assert.equal(await type({ stream: false }), 'application/json');
  });

  test('6.13: queue events are sent on request, before all others', async () => {
    const lines = async (more) => {
      const answer = await server.fetch(v1, { method: 'POST', body: JSON.stringify({ ...x, ...sure, stream: true, ...more }), headers: auth });
      return (await answer.text()).split('\n\n').filter((l) => l.startsWith('data: {')).map((l) => JSON.parse(l.slice(6)));
    };
    const [first, ...rest] = await lines({ queue_events: true });
    hasShape(first, { object: is('queue.status'), status: is('processing'), ticket: isCount, queue_position: is(0), requests_ahead: is(0), waiting_requests: is(0) });
    for (const event of [...rest, ...(await lines({}))]) assert.equal(event.object, 'chat.completion.chunk');
  });

  test('6.7, 7: sessions are made by turns, and a blank line parts these', async () => {
    const turn = async (text, session_id) => {
      const answer = await server.post(state, { contents: [text], ...sure, session_id }, auth);
      return [answer.headers.get('x-session-state'), answer.body.choices[0].message.content];
    };
    const known = async () => (await server.post('/state/status', {}, auth)).body.sessions.map((s) => s.session_id).filter((id) => id.startsWith('turn'));
    await server.post(state, { contents: ['a', 'b'], session_id: 'turn-0' }, auth);
    assert.deepEqual(await known(), []);
    assert.deepEqual(await turn('User: a', 'turn-1'), await turn('User: a', 'turn-2'));
    const [how, text] = await turn('User: b', 'turn-1');
    assert.equal(how, 'continued');
    assert.deepEqual(await turn('\n\nUser: b', 'turn-2'), [how, text]);
    // A branch has the name of its tree with its number behind it, for those who continue or delete it.
    const branch = (dialogue_idx) => server.post(tree, { contents: ['User: a'], ...sure, session_id: 'turn-3', dialogue_idx }, auth);
    assert.equal((await branch(0)).body.dialogue_idx, 1);
    const by_parent = await server.post(tree, { contents: ['User: b'], ...sure, session_id: 'turn-3', parent: 1 }, auth);
    assert.deepEqual([by_parent.body.dialogue_idx, by_parent.body.parent], [2, 1]);
    assert.deepEqual(await turn('User: b', 'turn-3:1'), ['continued', by_parent.body.choices[0].message.content]);
    assert.equal((await server.post('/state/delete', { session_id: 'turn-3:2' }, auth)).status, 200);
    assert.deepEqual((await branch(2)).body, { error: 'State not found for dialogue_idx=2' });
    assert.equal((await branch(1)).body.dialogue_idx, 3);
  });

  test('9.1, 12.2: what a client makes the defaults', async () => {
    const load = (more) => server.post('/loadmodel', { model_filename: 'tiny-7v0.pth', model_viewname: 'tiny', ...more }, auth);
    const chat = async (path) => (await server.post(path, { messages: hi }, auth)).body.choices[0];
    const greedy = async (path, more) => (await server.post(path, { messages: hi, temperature: 0, ...more }, auth)).body.choices[0];
    assert.equal((await load({ default_temperature: '0', endtoken: 'e' })).status, 200);
    for (const path of [infer, v1]) {
      const choice = await chat(path);
      assert.deepEqual([choice.message.content, choice.stop_reason], [(await greedy(path, { stop: 'e' })).message.content, 'e'], path);
    }
    assert.equal((await server.post('/update-config', { max_tokens: 3, top_p: '0.5', global_penalty: false, state: null }, auth)).body, 'success');
    for (const path of [infer, v1]) {
      const choice = await chat(path);
      assert.deepEqual([choice.message.content, choice.finish_reason], [(await greedy(path, { max_tokens: 3 })).message.content, 'length'], path);
    }
    assert.equal((await load({})).status, 200);
    const afresh = { messages: hi, seed: 7, max_tokens: 12 };
    const [a, b] = await Promise.all([{}, { temperature: 1, top_p: 0.3 }].map((more) => server.post(infer, { ...afresh, ...more }, auth)));
    assert.deepEqual(a.body.choices, b.body.choices);
  });

  test('9.5: a server that is strict about the names of models', async () => {
    const strict = await serveTiny('--set', 'server.strict_model_names=true', '--set', 'drain.grace_ms=0');
    const ask = (path, model) => strict.post(path, { messages: hi, model, ...sure });
    const { status, body } = await ask(v1, 'gpt-3.5-turbo');
    assert.equal(status, 404);
    hasShape(body, { error: { message: isText, type: is('invalid_request_error'), param: is('model'), code: is('model_not_found') } });
    assert.match(body.error.message, /gpt-3.5-turbo/);
    assert.equal((await ask(v1, 'tiny')).status, 200);
    assert.equal((await ask(infer, 'gpt-3.5-turbo')).status, 200);
    assert.equal((await strict.stop()).code, 0);
  });

  test('2.4: a stream that breaks off says why, in the words of its route', async () => {
    const breaks = async (path, body) => {
      const headers = { ...auth, 'x-request-id': 'breaks' };
      const answer = server.fetch(path, { method: 'POST', body: JSON.stringify({ ...body, ...sure, max_tokens: 1000000, stream: true, chunk_size: 1 }), headers });
      const reader = (await answer).body.pipeThrough(new TextDecoderStream()).getReader();
      let text = (await reader.read()).value;
      assert.equal((await server.post('/loadmodel', { model_filename: 'tiny-7v0.pth', model_viewname: 'tiny', force: true }, auth)).status, 200);
      for (let part; !(part = await reader.read()).done; ) text += part.value;
      const [event, done] = text.trim().split('\n\n').slice(-2);
      assert.equal(done, 'data: [DONE]');
      return JSON.parse(event.slice(6));
    };
    flat(/unloaded by force/)(await breaks(v1, x));
    object(null, /unloaded by force/)(await breaks(v1, { messages: hi }));
  });
});
