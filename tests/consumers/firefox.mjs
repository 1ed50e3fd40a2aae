// tests/consumers/firefox.mjs: files as the Firefox Profiler's engine reads them (its command line, profiler-cli).
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import zlib from 'node:zlib';
import { createRequire } from 'node:module';
import { spawnSync } from 'node:child_process';
import { addTimes, functionKey } from './checks.mjs';
import { checkInvariants } from './firefox_invariants.mjs';

const require = createRequire(import.meta.url);
const kMostOutput = 1 << 30;
const kRounding = 1;  // nanoseconds; the engine adds milliseconds as binary fractions

// The engine needs Node 24. The lock file brings one, for systems that have an older one.
function nodeOfEngine() {
  if (Number(process.versions.node.split('.')[0]) >= 24) return process.execPath;
  const packageOfNode = require.resolve(`node-${process.platform}-${process.arch}/package.json`);
  return path.join(path.dirname(packageOfNode), 'bin', 'node');
}

// A profile loaded into the engine, which stays in the background until close().
class Engine {
  constructor(file) {
    this.directory = fs.mkdtempSync(path.join(os.tmpdir(), 'plimsoll-consumers-'));
    this.run('load', file);
  }

  run(...args) {
    const engine = require.resolve('@firefox-devtools/profiler-cli/dist/profiler-cli.js');
    const environment = { ...process.env, PROFILER_CLI_SESSION_DIR: this.directory };
    const result = spawnSync(nodeOfEngine(), [engine, ...args],
                             { encoding: 'utf8', env: environment, maxBuffer: kMostOutput });
    if (result.status !== 0) throw new Error(`profiler-cli ${args.join(' ')}: ${result.stderr || result.stdout}`);
    return result.stdout;
  }

  json(...args) {
    return JSON.parse(this.run(...args, '--json'));
  }

  close() {
    this.run('stop', '--all');
    fs.rmSync(this.directory, { recursive: true, force: true });
  }
}

const nanoseconds = (milliseconds) => Math.round(milliseconds * 1e6);

// CPU times per thread from the timeline, and per function from the call trees.
function checkTimes(engine, profile, expected, checks) {
  const info = engine.json('profile', 'info', '--all');
  const threads = info.processes.flatMap((process) => process.threads);
  checks.equal('number of threads', threads.length, profile.threads.length);
  const cpu_ns = threads.reduce((sum, thread) => sum + nanoseconds(thread.cpuMs), 0);
  checks.equal('CPU time in the timeline', cpu_ns, expected.cpu_ns, threads.length * kRounding);

  const { funcTable, sources, stringArray } = profile.shared;
  const times = new Map();
  let self_ns = 0;
  for (const { threadHandle } of threads) {
    const { functions, weightType } = engine.json('thread', 'functions', '--thread', threadHandle, '--include-idle',
                                                   '--limit', '0');
    checks.equal(`weight type of ${threadHandle}`, weightType, 'tracing-ms');
    for (const { functionIndex, selfSamples, totalSamples } of functions) {
      const source = funcTable.source[functionIndex];
      const file = source === null ? undefined : stringArray[sources.filename[source]];
      addTimes(times, functionKey(stringArray[funcTable.name[functionIndex]], file), nanoseconds(selfSamples),
               nanoseconds(totalSamples));
      self_ns += nanoseconds(selfSamples);
    }
  }
  checks.equal('sum of the self times', self_ns, expected.cpu_ns, times.size * threads.length * kRounding);
  checks.functions(times, expected, threads.length * kRounding);
  return threads;
}

// The times beside the lines of a function's source, which must have travelled inside the file.
function checkLines(engine, threads, expected, checks) {
  if (!expected.lines) return;
  const found = engine.json('thread', 'functions', '--thread', threads[0].threadHandle, '--search',
                            expected.lines.function);
  const { functionHandle } = found.functions.find((row) => row.name === expected.lines.function) ?? {};
  const annotated = engine.json('function', 'annotate', functionHandle, '--context', 'file');
  const lines = annotated.srcAnnotation?.lines ?? [];
  for (const [number, self_ns] of Object.entries(expected.lines.self_ns)) {
    const line = lines.find((row) => row.lineNumber === Number(number));
    checks.equal(`self time of line ${number}`, nanoseconds(line?.selfSamples), self_ns, kRounding);
    checks.that(line?.sourceText, `line ${number} has no text`);
  }
}

export function checkFirefox(file, expected, checks) {
  const bytes = fs.readFileSync(file);
  const profile = JSON.parse((file.endsWith('.gz') ? zlib.gunzipSync(bytes) : bytes).toString('utf8'));
  const { cpu_ns, samples } = checkInvariants(profile, checks);
  checks.equal('sum of CPU deltas', cpu_ns, expected.cpu_ns);
  if (expected.samples) checks.equal('number of samples', samples, expected.samples);

  const engine = new Engine(file);
  try {
    const threads = checkTimes(engine, profile, expected, checks);
    checkLines(engine, threads, expected, checks);
    const counters = engine.json('counter', 'list').counters.map((counter) => counter.name);
    checks.equal('counters', counters.join(), (expected.counters ?? []).join());
    const markers = profile.threads.map((thread) => thread.markers.length).reduce((sum, count) => sum + count, 0);
    checks.equal('number of markers', markers, expected.markers ?? markers);
    if (markers > 0) {
      const { totalMarkerCount } = engine.json('thread', 'markers', '--thread', threads[0].threadHandle);
      checks.equal('markers of the first thread', totalMarkerCount, profile.threads[0].markers.length);
    }
    return `${threads.length} threads, ${samples} samples, ${cpu_ns} ns, ${markers} markers`;
  } finally {
    engine.close();
  }
}

// A collapsed file. The viewer makes one sample of each unit, so this is for short recordings only.
export function checkCollapsedWithFirefox(file, expected, checks) {
  if (expected.cpu_ns > 5e9) return 'left out: more than 5 s of CPU time';
  const engine = new Engine(file);
  try {
    const { functions } = engine.json('thread', 'functions', '--thread', 't-0', '--include-idle', '--limit', '0');
    const sum = functions.reduce((total, row) => total + row.selfSamples, 0);
    checks.equal('sum', sum, Math.round(expected.cpu_ns / 1000));
    return `${functions.length} functions, ${sum} us`;
  } finally {
    engine.close();
  }
}
