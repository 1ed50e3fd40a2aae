// tests/consumers/firefox.mjs: files as the Firefox Profiler's engine reads them (its command line, profiler-cli).
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import zlib from 'node:zlib';
import { createRequire } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import { spawn, spawnSync } from 'node:child_process';
import { addTimes, functionKey } from './checks.mjs';
import { checkInvariants } from './firefox_invariants.mjs';

const require = createRequire(import.meta.url);
const kEngine = require.resolve('@firefox-devtools/profiler-cli/dist/profiler-cli.js');
const kMostOutput = 1 << 30;
const kRounding = 1;  // nanoseconds; the engine adds milliseconds as binary fractions

// The engine needs Node 24. The lock file brings one, for systems that have an older one.
function nodeOfEngine() {
  if (Number(process.versions.node.split('.')[0]) >= 24) return process.execPath;
  const packageOfNode = require.resolve(`node-${process.platform}-${process.arch}/package.json`);
  return path.join(path.dirname(packageOfNode), 'bin', 'node');
}

const kSession = 'plimsoll';
const kPatience = 120_000;  // milliseconds, for a load or an answer

// A profile loaded into the engine. The engine is a process in the background, which its commands talk to. It is
// started here and not by the command for it, which gives up after half a second on a busy machine and does not stop
// an engine that is caught in a loop.
class Engine {
  static async open(file) {
    const engine = new Engine(file);
    try {
      await engine.loaded(Date.now() + kPatience);
      return engine;
    } catch (error) {
      engine.close();
      throw error;
    }
  }

  constructor(file) {
    this.directory = fs.mkdtempSync(path.join(os.tmpdir(), 'plimsoll-consumers-'));
    this.environment = { ...process.env, PROFILER_CLI_SESSION_DIR: this.directory };
    this.daemon = spawn(nodeOfEngine(), [kEngine, '--daemon', path.resolve(file), '--session', kSession],
                        { env: this.environment, stdio: 'ignore' });
  }

  async loaded(deadline) {
    // A command that comes before the engine is ready deletes the files of its session.
    const log = path.join(this.directory, `${kSession}.log`);
    const isReady = () => fs.existsSync(log) && fs.readFileSync(log, 'utf8').includes('Daemon ready');
    while (!isReady()) {
      if (this.daemon.exitCode !== null || Date.now() > deadline) throw new Error('profiler-cli does not start');
      await sleep(50);
    }
    for (;;) {
      const { status, output } = this.command(['status']);
      if (status === 0) return;
      if (output.includes('load failed') || Date.now() > deadline) throw new Error(`profiler-cli: ${output}`);
      await sleep(200);
    }
  }

  command(args) {
    const result = spawnSync(nodeOfEngine(), [kEngine, ...args, '--session', kSession],
                             { encoding: 'utf8', env: this.environment, maxBuffer: kMostOutput, timeout: kPatience });
    return { status: result.status, output: result.status === 0 ? result.stdout : result.stderr + result.stdout };
  }

  json(...args) {
    const { status, output } = this.command([...args, '--json']);
    if (status !== 0) throw new Error(`profiler-cli ${args.join(' ')}: ${output}`);
    return JSON.parse(output);
  }

  close() {
    this.daemon.kill('SIGKILL');
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
  const found = new Map();  // line number -> {self_ns, text}
  for (const { threadHandle } of threads) {
    const { functions } = engine.json('thread', 'functions', '--thread', threadHandle, '--include-idle',
                                      '--limit', '0');
    const row = functions.find((candidate) => candidate.name === expected.lines.function);
    if (!row) continue;
    engine.json('thread', 'select', threadHandle);
    const annotated = engine.json('function', 'annotate', row.functionHandle, '--context', 'file');
    for (const { lineNumber, selfSamples, sourceText } of annotated.srcAnnotation?.lines ?? [])
      found.set(lineNumber, { self_ns: (found.get(lineNumber)?.self_ns ?? 0) + nanoseconds(selfSamples),
                              text: sourceText });
  }
  for (const [number, self_ns] of Object.entries(expected.lines.self_ns)) {
    const line = found.get(Number(number));
    checks.equal(`self time of line ${number}`, line?.self_ns, self_ns, threads.length * kRounding);
    checks.that(line?.text, `line ${number} has no text`);
  }
}

export async function checkFirefox(file, expected, checks) {
  const bytes = fs.readFileSync(file);
  const profile = JSON.parse((file.endsWith('.gz') ? zlib.gunzipSync(bytes) : bytes).toString('utf8'));
  const { cpu_ns, samples } = checkInvariants(profile, checks);
  checks.equal('sum of CPU deltas', cpu_ns, expected.cpu_ns);
  if (expected.samples) checks.equal('number of samples', samples, expected.samples);

  if (checks.failures.length > 0) return 'not given to the engine, which may never end on wrong indices';
  const engine = await Engine.open(file);
  try {
    const threads = checkTimes(engine, profile, expected, checks);
    checkLines(engine, threads, expected, checks);
    const counters = engine.json('counter', 'list').counters.map((counter) => counter.name);
    checks.equal('counters', counters.join(), (expected.counters ?? []).join());
    const markers = profile.threads.map((thread) => thread.markers.length).reduce((sum, count) => sum + count, 0);
    checks.equal('number of markers', markers, expected.markers ?? markers);
    profile.threads.forEach((thread, index) => {
      if (thread.markers.length === 0) return;
      const { totalMarkerCount } = engine.json('thread', 'markers', '--thread', `t-${index}`);
      checks.equal(`number of markers of t-${index}`, totalMarkerCount, thread.markers.length);
    });
    return `${threads.length} threads, ${samples} samples, ${cpu_ns} ns, ${markers} markers`;
  } finally {
    engine.close();
  }
}

// A collapsed file. The viewer makes one sample of each unit, so this is for short recordings only.
export async function checkCollapsedWithFirefox(file, expected, checks) {
  if (expected.cpu_ns > 5e9) return 'left out: more than 5 s of CPU time';
  const engine = await Engine.open(file);
  try {
    const { functions } = engine.json('thread', 'functions', '--thread', 't-0', '--include-idle', '--limit', '0');
    const sum = functions.reduce((total, row) => total + row.selfSamples, 0);
    checks.equal('sum', sum, Math.round(expected.cpu_ns / 1000));
    return `${functions.length} functions, ${sum} us`;
  } finally {
    engine.close();
  }
}
