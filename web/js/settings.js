// The user's settings for answers and the request fields made of them. An empty setting means the model's default.

export const fields = [
  { name: 'instructions', label: 'Instructions', kind: 'text', hint: 'Added at the start of new conversations' },
  { name: 'think', label: 'Think first', kind: 'choice', choices: [['', 'Model default'], ['high', 'Yes'], ['none', 'No']] },
  { name: 'temperature', label: 'Temperature', kind: 'number', min: 0, max: 5, step: 0.05, hint: '0 always picks the most likely token' },
  { name: 'top_p', label: 'Top p', kind: 'number', min: 0, max: 1, step: 0.05 },
  { name: 'top_k', label: 'Top k', kind: 'number', min: 0, max: 100000, step: 1 },
  { name: 'min_p', label: 'Min p', kind: 'number', min: 0, max: 1, step: 0.01 },
  { name: 'alpha_presence', label: 'Presence penalty', kind: 'number', min: -100, max: 100, step: 0.1 },
  { name: 'alpha_frequency', label: 'Frequency penalty', kind: 'number', min: -100, max: 100, step: 0.1 },
  { name: 'alpha_decay', label: 'Penalty decay', kind: 'number', min: 0.001, max: 1, step: 0.001 },
  { name: 'max_output_tokens', label: 'Maximum tokens', kind: 'number', min: 1, max: 1000000, step: 1 },
  { name: 'seed', label: 'Seed', kind: 'number', min: 0, max: 9007199254740991, step: 1, hint: 'The same seed gives the same answer' },
  { name: 'stop', label: 'Stop strings', kind: 'text', hint: 'One per line' },
  { name: 'more', label: 'Extra fields', kind: 'text', hint: 'A JSON object that is merged into each request' },
];

/** Why a value is invalid, or null. */
export function fault({ name, kind, min, max, step }, value) {
  if (value === '' || value === undefined) return null;
  if (kind === 'number') {
    const number = Number(value);
    if (!Number.isFinite(number) || number < min || number > max) return `must be a number from ${min} to ${max}`;
    if (step === 1 && !Number.isInteger(number)) return 'must be a whole number';
  }
  if (name === 'more') {
    try {
      const object = JSON.parse(value);
      if (typeof object !== 'object' || object === null || Array.isArray(object)) return 'must be a JSON object';
    } catch {
      return 'is not valid JSON';
    }
  }
  return null;
}

/** Fields of a request; invalid values are omitted. */
export function requestFields(values) {
  const request = {};
  for (const field of fields) {
    const value = values[field.name];
    if (value === undefined || value === '' || fault(field, value)) continue;
    if (field.name === 'think') request.reasoning = { effort: value };
    else if (field.name === 'stop') request.stop = value.split('\n').filter(Boolean);
    else if (field.name === 'more') Object.assign(request, JSON.parse(value));
    else request[field.name] = field.kind === 'number' ? Number(value) : value;
  }
  return request;
}

const place = 'skein.settings';

export function loadSettings() {
  try {
    return JSON.parse(localStorage.getItem(place)) ?? {};
  } catch {
    return {};
  }
}
export const saveSettings = (values) => localStorage.setItem(place, JSON.stringify(values));
