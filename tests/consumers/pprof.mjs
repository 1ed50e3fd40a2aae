// tests/consumers/pprof.mjs: pprof files as protoc and pprof itself read them.
import fs from 'node:fs';
import path from 'node:path';
import zlib from 'node:zlib';
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const here = path.dirname(fileURLToPath(import.meta.url));
const kMostOutput = 1 << 30;

function run(command, args, input) {
  const result = spawnSync(command, args, { input, encoding: 'utf8', maxBuffer: kMostOutput });
  if (result.error) throw new Error(`${command}: ${result.error.message}`);
  if (result.status !== 0) throw new Error(`${command} ${args.join(' ')}: ${result.stderr}`);
  return result.stdout;
}

// Every field decodes under its name, and nothing is left over.
export function checkProtobuf(file, expected, checks) {
  const text = run('protoc', ['--decode=plimsoll.pprof.Profile', `--proto_path=${here}`, 'profile.proto'],
                   zlib.gunzipSync(fs.readFileSync(file)));
  checks.that(!/^\s*[0-9]+[:{ ]/m.test(text), 'there are fields that profile.proto does not know');
  const strings = [...text.matchAll(/^string_table: (".*")$/gm)].map((match) => match[1]);
  checks.equal('first string', strings[0], '""');
  const defaultType = Number(/^default_sample_type: ([0-9]+)$/m.exec(text)?.[1]);
  checks.equal('default sample type', strings[defaultType], '"cpu"');

  let samples = 0;
  let cpu = 0;
  let rows = 0;
  for (const [, count, ns] of text.matchAll(/^ {2}value: ([0-9]+)\n {2}value: ([0-9]+)$/gm)) {
    samples += Number(count);
    cpu += Number(ns);
    ++rows;
  }
  checks.equal('sum of cpu', cpu, expected.cpu_ns);
  if (expected.samples) checks.equal('sum of samples', samples, expected.samples);
  return `${rows} stacks, ${samples} samples, ${cpu} ns`;
}

// pprof accepts the file, and its report has the same times. It joins functions by name alone.
export function checkPprof(file, expected, checks) {
  run('go', ['tool', 'pprof', '-raw', file]);
  const report = run('go', ['tool', 'pprof', '-top', '-unit=ns', '-nodecount=0', '-nodefraction=0', file]);
  checks.equal('total', Number(/Total samples = ([0-9]+)ns/.exec(report)?.[1]), expected.cpu_ns);
  const rows = new Map();
  for (const [, self, total, name] of report.matchAll(/^ *([0-9]+)(?:ns)? +\S+ +\S+ +([0-9]+)ns +\S+ {2}(.*)$/gm))
    rows.set(name.replace(/ \(inline\)$/, ''), { self_ns: Number(self), total_ns: Number(total) });
  for (const { name, self_ns, total_ns, is_unique_name } of expected.functions ?? []) {
    checks.that(rows.has(name), `function ${name} is missing`);
    if (!rows.has(name) || !is_unique_name) continue;
    checks.equal(`flat time of ${name}`, rows.get(name).self_ns, self_ns);
    checks.equal(`cum time of ${name}`, rows.get(name).total_ns, total_ns);
  }
  return `${rows.size} functions, ${/Total samples = (\S+)/.exec(report)?.[1]}`;
}
