// tests/consumers/firefox_invariants.mjs: what version 66 of the Firefox Profiler's format asks of a file.
//
// The viewer itself accepts files with wrong indices, times that go back, or process ids that are numbers, and then
// shows nonsense. So this checks every index and every column.

const kColors = ['transparent', 'purple', 'green', 'orange', 'yellow', 'lightblue', 'blue', 'brown', 'magenta', 'red',
                 'lightred', 'darkgrey', 'grey'];
const kDisplays = ['marker-chart', 'marker-table', 'timeline-overview', 'timeline-memory', 'timeline-ipc',
                   'timeline-fileio'];
const kFormats = ['url', 'file-path', 'sanitized-string', 'string', 'unique-string', 'flow-id', 'terminating-flow-id',
                  'duration', 'time', 'seconds', 'milliseconds', 'microseconds', 'nanoseconds', 'bytes', 'percentage',
                  'integer', 'decimal', 'hexadecimal', 'pid', 'tid', 'list'];
const kColumns = {
  stackTable: ['frame', 'prefixOffset'],
  frameTable: ['address', 'inlineDepth', 'category', 'subcategory', 'func', 'nativeSymbol', 'innerWindowID', 'line',
               'column', 'originalLocation'],
  funcTable: ['name', 'isJS', 'relevantForJS', 'resource', 'source', 'lineNumber', 'columnNumber', 'originalLocation'],
  resourceTable: ['lib', 'name', 'host', 'type'],
  nativeSymbols: ['libIndex', 'address', 'name', 'functionSize'],
  sources: ['id', 'filename', 'startLine', 'startColumn', 'sourceMapURL', 'content'],
  sourceLocationTable: ['source', 'line', 'column'],
};

const isIndex = (value, length) => Number.isInteger(value) && value >= 0 && value < length;
const isText = (value) => typeof value === 'string';
const isPosition = (value) => value === null || (Number.isInteger(value) && value >= 1);

// Checks that a table has exactly `columns`, all of its length.
function checkTable(name, table, columns, checks) {
  const names = Object.keys(table).filter((key) => key !== 'length').sort();
  checks.equal(`columns of ${name}`, names.join(), [...columns].sort().join());
  for (const column of columns)
    checks.equal(`length of ${name}.${column}`, table[column]?.length, table.length);
}

// Checks every value of a column; reports the first bad one.
function checkColumn(name, column, isGood, checks) {
  const bad = column.findIndex((value, row) => !isGood(value, row));
  checks.that(bad === -1, `${name}[${bad}] is ${JSON.stringify(column[bad])}`);
}

function checkMeta(meta, threads, checks) {
  checks.equal('preprocessedProfileVersion', meta.preprocessedProfileVersion, 66);
  for (const name of ['interval', 'startTime', 'processType', 'version', 'profilingStartTime', 'profilingEndTime'])
    checks.that(Number.isFinite(meta[name]), `meta.${name} is ${meta[name]}`);
  checks.that(isText(meta.product) && meta.product !== '', 'meta.product is empty');
  checks.that(meta.stackwalk === 0 || meta.stackwalk === 1, 'meta.stackwalk');
  checks.that(['ns', 'µs', 'variable CPU cycles'].includes(meta.sampleUnits.threadCPUDelta), 'meta.sampleUnits');
  checks.that(meta.categories.some((category) => category.color === 'grey'), 'there is no grey category');
  for (const category of meta.categories) {
    checks.that(kColors.includes(category.color), `colour ${category.color}`);
    checks.equal(`first subcategory of ${category.name}`, category.subcategories[0], 'Other');
  }
  for (const name of ['initialVisibleThreads', 'initialSelectedThreads'])
    checkColumn(`meta.${name}`, meta[name] ?? [], (index) => isIndex(index, threads.length), checks);
  for (const section of meta.extra ?? [])
    for (const entry of section.entries)
      checks.that(isText(entry.label) && kFormats.includes(entry.format) && entry.value !== undefined,
                  `extra entry ${JSON.stringify(entry)}`);
}

function checkSchemas(schemas, checks) {
  checks.equal('number of different schema names', new Set(schemas.map((schema) => schema.name)).size, schemas.length);
  for (const schema of schemas) {
    checkColumn(`display of ${schema.name}`, schema.display, (place) => kDisplays.includes(place), checks);
    checkColumn(`fields of ${schema.name}`, schema.fields,
                (field) => isText(field.key) && kFormats.includes(field.format), checks);
  }
}

function checkShared(shared, meta, checks) {
  for (const [name, columns] of Object.entries(kColumns)) checkTable(name, shared[name], columns, checks);
  const { stackTable, frameTable, funcTable, resourceTable, sources, stringArray } = shared;
  const isString = (index) => isIndex(index, stringArray.length);
  checkColumn('stringArray', stringArray, isText, checks);
  checks.equal('number of different strings', new Set(stringArray).size, stringArray.length);
  checkColumn('stackTable.frame', stackTable.frame, (frame) => isIndex(frame, frameTable.length), checks);
  checkColumn('stackTable.prefixOffset', stackTable.prefixOffset, (offset, row) => isIndex(offset, row + 1), checks);
  checkColumn('frameTable.func', frameTable.func, (func) => isIndex(func, funcTable.length), checks);
  checkColumn('frameTable.category', frameTable.category, (index) => isIndex(index, meta.categories.length), checks);
  checkColumn('frameTable.subcategory', frameTable.subcategory,
              (index, row) => isIndex(index, meta.categories[frameTable.category[row]].subcategories.length), checks);
  const { nativeSymbols } = shared;
  checkColumn('frameTable.nativeSymbol', frameTable.nativeSymbol,
              (symbol) => symbol === null || isIndex(symbol, nativeSymbols.length), checks);
  checkColumn('frameTable.address', frameTable.address, (address, row) => {
    const symbol = frameTable.nativeSymbol[row];
    return address === (symbol === null ? -1 : nativeSymbols.address[symbol]);
  }, checks);
  checkColumn('nativeSymbols.address', nativeSymbols.address, (address) => isIndex(address, 2 ** 31), checks);
  checkColumn('frameTable.inlineDepth', frameTable.inlineDepth, (depth) => depth === 0, checks);
  checkColumn('frameTable.line', frameTable.line, isPosition, checks);
  checkColumn('frameTable.column', frameTable.column, isPosition, checks);
  checkColumn('funcTable.name', funcTable.name, isString, checks);
  checkColumn('funcTable.isJS', funcTable.isJS, (flag) => typeof flag === 'boolean', checks);
  checkColumn('funcTable.relevantForJS', funcTable.relevantForJS, (flag) => typeof flag === 'boolean', checks);
  checkColumn('funcTable.resource', funcTable.resource,
              (index) => index === -1 || isIndex(index, resourceTable.length), checks);
  checkColumn('funcTable.source', funcTable.source,
              (index) => index === null || isIndex(index, sources.length), checks);
  checkColumn('funcTable.lineNumber', funcTable.lineNumber, isPosition, checks);
  checkColumn('resourceTable.name', resourceTable.name, isString, checks);
  checkColumn('resourceTable.type', resourceTable.type, (type) => isIndex(type, 6), checks);
  checkColumn('sources.filename', sources.filename, isString, checks);
  checkColumn('sources.content', sources.content, (text) => text === null || isText(text), checks);
}

function checkSamples(thread, where, profile, checks) {
  const { samples } = thread;
  const { meta, shared } = profile;
  for (const column of ['stack', 'timeDeltas', 'weight', 'threadCPUDelta'])
    checks.equal(`length of ${where}.samples.${column}`, samples[column]?.length, samples.length);
  checks.equal(`${where}.samples.weightType`, samples.weightType, 'tracing-ms');
  checkColumn(`${where}.samples.stack`, samples.stack,
              (stack, row) => (row === 0 ? stack === null : isIndex(stack, shared.stackTable.length)), checks);
  checkColumn(`${where}.samples.timeDeltas`, samples.timeDeltas,
              (delta) => Number.isFinite(delta) && delta >= 0, checks);
  checkColumn(`${where}.samples.weight`, samples.weight, (weight) => Number.isFinite(weight) && weight >= 0, checks);
  checkColumn(`${where}.samples.threadCPUDelta`, samples.threadCPUDelta,
              (delta, row) => Number.isInteger(delta) && Math.abs(delta / 1e6 - samples.weight[row]) < 1e-9, checks);
  const last = samples.timeDeltas.reduce((sum, delta) => sum + delta, 0);
  checks.that(samples.length === 0 || last < meta.profilingEndTime, `${where} has samples after the end of the range`);
}

function checkMarkers(thread, where, profile, checks) {
  const { markers } = thread;
  const schemas = new Map(profile.meta.markerSchema.map((schema) => [schema.name, schema]));
  checkTable(`${where}.markers`, markers, ['data', 'name', 'startTime', 'endTime', 'phase', 'category'], checks);
  checkColumn(`${where}.markers.name`, markers.name,
              (name) => isIndex(name, profile.shared.stringArray.length), checks);
  checkColumn(`${where}.markers.category`, markers.category,
              (index) => isIndex(index, profile.meta.categories.length), checks);
  checkColumn(`${where}.markers.startTime`, markers.startTime,
              (time, row) => row === 0 || time >= markers.startTime[row - 1], checks);
  checkColumn(`${where}.markers.endTime`, markers.endTime,
              (time, row) => (markers.phase[row] === 1 ? time > markers.startTime[row] : time === null), checks);
  checkColumn(`${where}.markers.phase`, markers.phase, (phase) => phase === 0 || phase === 1, checks);
  checkColumn(`${where}.markers.data`, markers.data, (data) => {
    const fields = schemas.get(data.type)?.fields;
    const keys = Object.keys(data).filter((key) => key !== 'type');
    return fields && keys.every((key) => fields.some((field) => field.key === key));
  }, checks);
}

function checkThread(thread, index, profile, checks) {
  const where = `threads[${index}]`;
  for (const name of ['name', 'processType', 'pid']) checks.that(isText(thread[name]), `${where}.${name} is no text`);
  checks.that(isText(thread.tid) || Number.isInteger(thread.tid), `${where}.tid`);
  checks.that(typeof thread.isMainThread === 'boolean', `${where}.isMainThread`);
  for (const name of ['processStartupTime', 'registerTime'])
    checks.that(Number.isFinite(thread[name]), `${where}.${name}`);
  for (const name of ['processShutdownTime', 'unregisterTime'])
    checks.that(thread[name] === null || Number.isFinite(thread[name]), `${where}.${name}`);
  checks.that(Array.isArray(thread.pausedRanges), `${where}.pausedRanges`);
  checkSamples(thread, where, profile, checks);
  checkMarkers(thread, where, profile, checks);
}

function checkCounter(counter, index, profile, checks) {
  const where = `counters[${index}]`;
  checks.that(isText(counter.pid), `${where}.pid is no text`);
  checks.equal(`process of ${where}`, profile.threads[counter.mainThreadIndex]?.pid, counter.pid);
  checkTable(`${where}.samples`, counter.samples, ['time', 'count'], checks);
  checkColumn(`${where}.samples.time`, counter.samples.time,
              (time, row) => row === 0 || time >= counter.samples.time[row - 1], checks);
  let sum = 0;
  checkColumn(`sums of ${where}.samples.count`, counter.samples.count, (count) => (sum += count) >= 0, checks);
  checks.that(['line-accumulated', 'line-rate'].includes(counter.display.graphType), `${where}.display.graphType`);
  checks.that(Array.isArray(counter.display.tooltipRows), `${where}.display.tooltipRows`);
}

// Checks a parsed file. Returns {cpu_ns, samples} of it.
export function checkInvariants(profile, checks) {
  checkMeta(profile.meta, profile.threads, checks);
  checkSchemas(profile.meta.markerSchema, checks);
  checkShared(profile.shared, profile.meta, checks);
  profile.threads.forEach((thread, index) => checkThread(thread, index, profile, checks));
  const tids = profile.threads.map((thread) => `${thread.pid}/${thread.tid}`);
  checks.equal('number of different threads', new Set(tids).size, tids.length);
  profile.counters.forEach((counter, index) => checkCounter(counter, index, profile, checks));
  checkColumn('nativeSymbols.libIndex', profile.shared.nativeSymbols.libIndex,
              (lib) => isIndex(lib, profile.libs.length), checks);

  let cpu_ns = 0;
  let samples = 0;
  for (const thread of profile.threads) {
    for (const delta of thread.samples.threadCPUDelta) cpu_ns += delta;
    samples += Math.max(thread.samples.length - 1, 0);
  }
  return { cpu_ns, samples };
}
