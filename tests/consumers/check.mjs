// tests/consumers/check.mjs: gives converted profiles to the programs that they are written for.
//
//   node check.mjs DIRECTORY     every NAME.expected.json in it, with the files NAME.* beside it
//
// Prints a line per file and consumer. Exits with 1 if any consumer refuses a file or finds other numbers.
import fs from 'node:fs';
import path from 'node:path';
import { Checks } from './checks.mjs';
import { checkCollapsed } from './collapsed.mjs';
import { checkCollapsedWithFirefox, checkFirefox } from './firefox.mjs';
import { checkPprof, checkProtobuf } from './pprof.mjs';
import { checkCollapsedWithSpeedscope, checkPprofWithSpeedscope, checkSpeedscope } from './speedscope.mjs';

// File name endings, and who reads such files.
const kConsumers = [
  ['.speedscope.json', 'speedscope', checkSpeedscope],
  ['.collapsed', 'grammar', checkCollapsed],
  ['.collapsed', 'speedscope', checkCollapsedWithSpeedscope],
  ['.collapsed', 'profiler-cli', checkCollapsedWithFirefox],
  ['.firefox.json', 'profiler-cli', checkFirefox],
  ['.firefox.json.gz', 'profiler-cli', checkFirefox],
  ['.pb.gz', 'protoc', checkProtobuf],
  ['.pb.gz', 'go tool pprof', checkPprof],
  ['.pb.gz', 'speedscope', checkPprofWithSpeedscope],
];

async function check(file, consumer, run, expected) {
  const checks = new Checks();
  const start = performance.now();
  let summary = '';
  try {
    summary = await run(file, expected, checks);
  } catch (error) {
    checks.failures.push(error.message);
  }
  const seconds = ((performance.now() - start) / 1000).toFixed(1);
  const verdict = checks.failures.length === 0 ? 'ok  ' : 'FAIL';
  console.log(`${verdict} ${path.basename(file)} in ${consumer}: ${summary} (${seconds} s)`);
  for (const failure of checks.failures.slice(0, 20)) console.log(`       ${failure}`);
  return checks.failures.length === 0;
}

async function main(directory) {
  const names = fs.readdirSync(directory).filter((name) => name.endsWith('.expected.json')).sort();
  let passed = 0;
  let failed = 0;
  for (const name of names) {
    const expected = JSON.parse(fs.readFileSync(path.join(directory, name), 'utf8'));
    for (const [ending, consumer, run] of kConsumers) {
      const file = path.join(directory, name.replace(/\.expected\.json$/, ending));
      if (!fs.existsSync(file)) continue;
      (await check(file, consumer, run, expected)) ? ++passed : ++failed;
    }
  }
  console.log(`${passed} passed, ${failed} failed`);
  return passed > 0 && failed === 0 ? 0 : 1;
}

if (process.argv.length !== 3) {
  console.error('usage: node check.mjs DIRECTORY');
  process.exit(2);
}
process.exitCode = await main(process.argv[2]);
