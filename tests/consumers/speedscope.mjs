// tests/consumers/speedscope.mjs: files as speedscope reads them.
//
// The npm package has the built application only. Its importers are one lazily loaded module in it. This runs the
// application's own code with no browser around it, up to the point where it wants to draw, and takes that module.
import fs from 'node:fs';
import path from 'node:path';
import vm from 'node:vm';
import { createRequire } from 'node:module';
import Ajv from 'ajv';
import { addTimes, functionKey } from './checks.mjs';

const require = createRequire(import.meta.url);
const release = path.join(path.dirname(require.resolve('speedscope/package.json')), 'dist', 'release');

let importer;

async function loadImporter() {
  const application = fs.readdirSync(release).find((name) => /^speedscope-.*\.js$/.test(name));
  let code = fs.readFileSync(path.join(release, application), 'utf8');
  const module = /\(([\w$]+),\{importFromFileSystemDirectoryEntry:/.exec(code)?.[1];
  const load = `Promise\\.resolve\\(\\)\\.then\\(\\(\\)=>\\([\\w$]+\\(\\),${module?.replaceAll('$', '\\$')}\\)\\)`;
  code = code.replace(new RegExp(load), (text) => `(globalThis.importerModule=${text})`);

  const quiet = { ...console, log() {} };
  const browser = vm.createContext({
    console: quiet, TextDecoder, TextEncoder, setTimeout, clearTimeout, performance, URL, Blob, atob, btoa,
    location: { hash: '', protocol: 'file:', search: '' },
  });
  browser.window = browser.self = browser;
  try {
    vm.runInContext(code, browser);
  } catch (error) {
    if (!String(error).includes('document')) throw error;  // where drawing begins
  }
  if (!browser.importerModule) throw new Error('the importers of this speedscope release were not found');
  return browser.importerModule;
}

// The profile group that speedscope makes of a file.
async function imported(file) {
  importer ??= await loadImporter();
  const bytes = fs.readFileSync(file);
  const buffer = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
  const group = await importer.importProfilesFromArrayBuffer(path.basename(file), buffer);
  if (!group) throw new Error(`speedscope does not recognise ${file}`);
  return group;
}

function timesOf(group, nanosecondsPerUnit) {
  const times = new Map();
  let total = 0;
  for (const profile of group.profiles) {
    total += profile.getTotalWeight();
    profile.forEachFrame((frame) =>
      addTimes(times, functionKey(frame.name, frame.file), frame.getSelfWeight() * nanosecondsPerUnit,
               frame.getTotalWeight() * nanosecondsPerUnit));
  }
  return { times, total_ns: total * nanosecondsPerUnit };
}

// A file in speedscope's own format: its schema, then its importer.
export async function checkSpeedscope(file, expected, checks) {
  const content = JSON.parse(fs.readFileSync(file, 'utf8'));
  const schema = JSON.parse(fs.readFileSync(path.join(release, 'file-format-schema.json'), 'utf8'));
  const validate = new Ajv({ strict: false }).compile(schema);
  checks.that(validate(content), `schema: ${JSON.stringify(validate.errors?.slice(0, 3))}`);

  const group = await imported(file);
  const { times, total_ns } = timesOf(group, 1);
  checks.equal('sum of all profiles', total_ns, expected.cpu_ns);
  checks.equal('unit', group.profiles[0].getWeightUnit(), 'nanoseconds');
  if (expected.threads) checks.equal('number of profiles', group.profiles.length, expected.threads);
  checks.functions(times, expected);
  return `${group.profiles.length} profiles, ${total_ns} ns`;
}

// A collapsed file, whose weights are microseconds and whose frames carry their place in the name.
export async function checkCollapsedWithSpeedscope(file, expected, checks) {
  const { total_ns } = timesOf(await imported(file), 1000);
  checks.equal('sum', total_ns, Math.round(expected.cpu_ns / 1000) * 1000);
  return `${total_ns} ns`;
}

// A pprof file. Speedscope reads its default sample type.
export async function checkPprofWithSpeedscope(file, expected, checks) {
  const group = await imported(file);
  const { times, total_ns } = timesOf(group, 1);
  checks.equal('sum', total_ns, expected.cpu_ns);
  checks.equal('unit', group.profiles[0].getWeightUnit(), 'nanoseconds');
  checks.functions(times, expected);
  return `${total_ns} ns`;
}
