// tests/consumers/checks.mjs: collects what was compared, and says what differed.

export class Checks {
  constructor() {
    this.failures = [];
  }

  // Records a failure unless `condition`.
  that(condition, message) {
    if (!condition) this.failures.push(message);
  }

  equal(what, actual, expected, tolerance = 0) {
    const same = typeof expected === 'number' && typeof actual === 'number'
      ? Math.abs(actual - expected) <= tolerance
      : actual === expected;
    this.that(same, `${what} is ${JSON.stringify(actual)} instead of ${JSON.stringify(expected)}`);
  }

  // Compares the functions that a consumer found with the expected ones. `found` maps functionKey(...) to
  // {self_ns, total_ns}.
  functions(found, expected, tolerance = 0) {
    for (const { name, file, self_ns, total_ns } of expected.functions ?? []) {
      const times = found.get(functionKey(name, file));
      this.that(times !== undefined, `function ${name} in ${file} is missing`);
      if (times === undefined) continue;
      this.equal(`self time of ${name}`, times.self_ns, self_ns, tolerance);
      this.equal(`total time of ${name}`, times.total_ns, total_ns, tolerance);
    }
  }
}

export function functionKey(name, file) {
  return `${name}\n${file ?? ''}`;
}

// Adds times to an entry of a map as Checks.functions wants it.
export function addTimes(map, key, self_ns, total_ns) {
  const times = map.get(key) ?? { self_ns: 0, total_ns: 0 };
  times.self_ns += self_ns;
  times.total_ns += total_ns;
  map.set(key, times);
}
