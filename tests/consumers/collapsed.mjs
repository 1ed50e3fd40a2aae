// tests/consumers/collapsed.mjs: the grammar of collapsed stacks, and their sum.
import fs from 'node:fs';
import { addTimes, functionKey } from './checks.mjs';

const kLine = /^([^;]+(?:;[^;]+)*) ([1-9][0-9]*)$/;
const kFrame = /^(.*?)(?: \((.*?)(?::[0-9]+)?\))?$/;

export function checkCollapsed(file, expected, checks) {
  const text = fs.readFileSync(file, 'utf8');
  const lines = text.split('\n');
  checks.equal('text after the last line end', lines.pop(), '');
  checks.that(!/[\x00-\x09\x0b-\x1f\x7f]/.test(text), 'there are control characters');

  const times = new Map();
  let sum = 0;
  for (const line of lines) {
    const match = kLine.exec(line);
    checks.that(match !== null, `bad line: ${line.slice(0, 200)}`);
    if (match === null) continue;
    const weight = Number(match[2]);
    sum += weight;
    const keys = match[1].split(';').map((frame) => functionKey(...kFrame.exec(frame).slice(1)));
    addTimes(times, keys.at(-1), weight * 1000, 0);
    for (const key of new Set(keys)) addTimes(times, key, 0, weight * 1000);
  }
  checks.equal('sum in microseconds', sum, Math.round(expected.cpu_ns / 1000));
  checks.functions(times, expected, 1000 * lines.length);  // each line is right to a microsecond
  return `${lines.length} lines, ${sum} us`;
}
