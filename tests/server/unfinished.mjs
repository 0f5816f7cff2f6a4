// A named pipe in the place of a vocabulary file, so that a test decides when a model's loading is over.
import { execFileSync } from 'node:child_process';
import { closeSync, constants, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A vocabulary of all single bytes, ids 1 to 256. */
export const bytesOfWorld = Array.from({ length: 256 }, (_, byte) => `${byte + 1} b'\\x${byte.toString(16).padStart(2, '0')}' 1\n`).join('');

/** A vocabulary that has not come yet: a server that is given `path` loads until finish(), each time it loads. */
export function unfinished(t) {
  const folder = mkdtempSync(join(tmpdir(), 'skein-'));
  const path = join(folder, 'vocabulary');
  execFileSync('mkfifo', [path]);
  t.after(() => rmSync(folder, { recursive: true }));
  const tryOpen = () => {
    try {
      return openSync(path, constants.O_WRONLY | constants.O_NONBLOCK);
    } catch (trouble) {
      if (trouble.code !== 'ENXIO') throw trouble;  // no reader yet
    }
  };
  const finish = async (text) => {
    let pipe = tryOpen();
    for (let tries = 0; pipe === undefined && tries < 3000; ++tries) {
      await new Promise((r) => setTimeout(r, 10));
      pipe = tryOpen();
    }
    writeSync(pipe, text);
    closeSync(pipe);
  };
  return { path, finish };
}
