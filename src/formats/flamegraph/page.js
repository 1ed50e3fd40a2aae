// formats/flamegraph/page.js: draws the call trees that stand in the page; writer.h says how. Numbers are computed by
// pure functions first, which tests call without a page.
'use strict';

const ROOT = -1, SMALL = -2;  // in the place of functions
const ROW = 19;               // pixels
// No browser draws more than some 30,000 pixels: of deeper trees these rows, and so many callers of what is widened.
const MOST_ROWS = 500, MOST_CALLERS = 30;

// A tree as columns: of each node its caller, where its row begins (in weight), and which node follows its last callee.
function treeOf(depth, func, total, self, count) {
  const size = depth.length, parent = new Int32Array(size), end = new Int32Array(size), start = new Float64Array(size);
  const next = new Float64Array(size);  // where the next callee of a node begins
  const open = [];
  for (let i = 0; i < size; i++) {
    while (open.length > depth[i]) end[open.pop()] = i;
    parent[i] = depth[i] === 0 ? -1 : open[depth[i] - 1];
    start[i] = parent[i] < 0 ? 0 : next[parent[i]];
    if (parent[i] >= 0) next[parent[i]] += total[i];
    next[i] = start[i];
    open.push(i);
  }
  for (const node of open) end[node] = size;
  return {size, depth, func, total, self, count, parent, end, start};
}

// The same weights, by who was at work: below the root each function, below it its callers.
function inverted(tree) {
  const root = {func: ROOT, total: tree.total[0], self: 0, count: tree.count[0], callees: new Map()};
  for (let i = 0; i < tree.size; i++) {
    if (!(tree.self[i] > 0)) continue;
    let at = root;
    let count = tree.count[i];
    for (let child = i + 1; child < tree.end[i]; child = tree.end[child]) count -= tree.count[child];
    for (let node = i; node > 0; node = tree.parent[node]) {
      const func = tree.func[node];
      if (!at.callees.has(func)) at.callees.set(func, {func, total: 0, self: 0, count: 0, callees: new Map()});
      at = at.callees.get(func);
      at.total += tree.self[i];
      at.count += count;
    }
    at.self += tree.self[i];
  }
  const columns = [[], [], [], [], []];
  const open = [[root, 0]];
  while (open.length > 0) {
    const [node, depth] = open.pop();
    [depth, node.func, node.total, node.self, node.count].forEach((value, i) => columns[i].push(value));
    const callees = [...node.callees.values()].reverse().sort((a, b) => a.total - b.total);
    for (const callee of callees) open.push([callee, depth + 1]);
  }
  return treeOf(...columns);
}

// Nodes of functions for which `matches` holds, and the weight of all of them, none of it counted twice.
function find(tree, matches) {
  const found = new Uint8Array(tree.size);
  let weight = 0;
  let covered = 0;  // up to this node all is below one that was found
  for (let i = 0; i < tree.size; i++) {
    if (tree.func[i] < 0 || !matches(tree.func[i])) continue;
    found[i] = 1;
    if (i < covered) continue;
    weight += tree.total[i];
    covered = tree.end[i];
  }
  return {found, weight};
}

// What is to be drawn when `focus` is as wide as the page: boxes of at least half a pixel, callers of the focus whole.
function layout(tree, focus, width) {
  const boxes = [];
  for (let node = tree.parent[focus]; node >= 0; node = tree.parent[node])
    boxes.push({node, x: 0, width, isCaller: true});
  boxes.reverse();
  const scale = tree.total[focus] > 0 ? width / tree.total[focus] : 0;
  for (let i = focus; i < tree.end[focus];) {
    const size = tree.total[i] * scale;
    if (size < 0.5 && i !== focus) {
      i = tree.end[i];
      continue;
    }
    boxes.push({node: i, x: (tree.start[i] - tree.start[focus]) * scale, width: size, isCaller: false});
    i++;
  }
  return boxes;
}

// The node that an arrow key leads to from another one.
function neighbour(tree, node, key) {
  if (key === 'ArrowUp') return tree.parent[node] < 0 ? node : tree.parent[node];
  if (key === 'ArrowDown') return node + 1 < tree.end[node] ? node + 1 : node;
  const parent = tree.parent[node];
  if (parent < 0) return node;
  if (key === 'ArrowRight') return tree.end[node] < tree.end[parent] ? tree.end[node] : node;
  let before = node;
  for (let child = parent + 1; child < node; child = tree.end[child]) before = child;
  return before;
}

function rounded(value, digits) {
  return value.toLocaleString('en', {minimumFractionDigits: digits, maximumFractionDigits: digits});
}

// "1.25 s", "340 MB": three digits.
function withUnit(value, unit) {
  const steps = unit === 'ns' ? [[1e9, 's'], [1e6, 'ms'], [1e3, 'us'], [1, 'ns']] :
                                [[1e9, 'GB'], [1e6, 'MB'], [1e3, 'kB'], [1, 'B']];
  const [size, name] = steps.find(([step]) => Math.abs(value) >= step * 0.9995) || steps[steps.length - 1];
  const shown = value / size;
  return rounded(shown, size === 1 || shown >= 99.95 ? 0 : shown >= 9.995 ? 1 : 2) + ' ' + name;
}

function percent(part, whole) { return rounded(whole > 0 ? 100 * part / whole : 0, 1) + ' %'; }

function hash(text) {
  let value = 2166136261;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 16777619);
  return value >>> 0;
}

// Files have shades of one warm colour, native code has cold ones, what is not code is grey.
function colourOf(fn, isDark) {
  if (!fn || fn[3] === 'synthetic') return isDark ? 'hsl(230 8% 38%)' : 'hsl(230 14% 82%)';
  const shade = hash(fn[1] || fn[0]);
  const hue = fn[3] === 'native' ? 185 + shade % 50 : 12 + shade % 44;
  const light = (isDark ? 34 : 70) + (shade >>> 8) % 9;
  return `hsl(${hue} ${isDark ? 45 : 78}% ${light}%)`;
}

function nameOf(profile, func) {
  if (func === ROOT) return 'all';
  if (func === SMALL) return '(too small to be shown)';
  return profile.functions[func][0];
}

function placeOf(profile, func) {
  if (func < 0) return '';
  const [, file, line] = profile.functions[func];
  return file + (file && line > 0 ? ':' + line : '');
}

// The page itself: what is shown, and what users do.
class Page {
  constructor(profile, document) {
    this.profile = profile;
    this.document = document;
    this.at = (id) => document.getElementById(id);
    this.sort = 1;
    this.matches = null;
    this.isDark = window.matchMedia('(prefers-color-scheme: dark)');
    const started = profile.started_ns > 0 ? [new Date(profile.started_ns / 1e6).toLocaleString()] : [];
    document.title = profile.title + ' - Plimsoll';
    this.at('title').textContent = profile.title;
    this.at('facts').textContent = [...started, ...profile.facts].join(', ');
    profile.views.forEach((view, i) => this.at('view').append(new Option(view.name, i)));
    this.listen();
    this.chooseView();
  }

  listen() {
    const on = (target, event, action) => target.addEventListener(event, action);
    const graph = this.at('graph');
    on(this.at('view'), 'change', () => this.chooseView());
    on(this.at('inverted'), 'change', () => this.chooseTree());
    on(this.at('upwards'), 'change', () => this.draw());
    on(this.at('reset'), 'click', () => this.clear());
    on(this.at('search'), 'input', () => this.search(this.at('search').value));
    on(graph, 'mousemove', (event) => this.tell(this.nodeAt(event)));
    on(graph, 'mouseleave', () => this.tell(this.focus));
    on(graph, 'click', (event) => this.widen(this.nodeAt(event)));
    on(graph, 'keydown', (event) => this.key(event));
    on(this.document, 'keydown', (event) => {
      if (event.key === 'Escape') this.clear();
      if (event.key !== '/' || event.target === this.at('search')) return;
      event.preventDefault();
      this.at('search').focus();
    });
    on(window, 'resize', () => this.draw());
    on(this.isDark, 'change', () => this.draw());
    for (const button of this.document.querySelectorAll('[data-sort]'))
      on(button, 'click', () => this.table(Number(button.dataset.sort)));
  }

  chooseView() {
    this.view = this.profile.views[Number(this.at('view').value)];
    this.chooseTree();
    this.table(this.sort);
  }

  chooseTree() {
    const {depth, function: func, total, self, count} = this.view;
    const tree = treeOf(depth, func, total, self, count);
    this.tree = this.at('inverted').checked ? inverted(tree) : tree;
    this.focus = this.chosen = 0;
    this.find();
    this.draw();
    this.tell(0);
  }

  // All again, nothing looked for.
  clear() {
    this.focus = this.chosen = 0;
    this.at('search').value = '';
    this.search('');
    this.tell(0);
  }

  search(text) {
    const wanted = text.toLowerCase();
    const holds = (func) =>
        (nameOf(this.profile, func) + ' ' + placeOf(this.profile, func)).toLowerCase().includes(wanted);
    this.matches = wanted === '' ? null : holds;
    this.find();
    this.draw();
  }

  find() {
    this.result = this.matches ? find(this.tree, this.matches) : null;
    const weight = this.result ? this.result.weight : 0;
    this.at('found').textContent =
        this.result ? `${percent(weight, this.tree.total[0])}, ${withUnit(weight, this.view.unit)}` : '';
  }

  widen(node) {
    if (node < 0 || this.tree.func[node] === SMALL) return;
    this.focus = this.chosen = node;
    this.draw();
    this.tell(node);
  }

  key(event) {
    if (event.key === 'Enter') this.widen(this.chosen);
    if (!event.key.startsWith('Arrow')) return;
    event.preventDefault();
    const isTurned = this.at('upwards').checked && /Up|Down/.test(event.key);
    const key = isTurned ? (event.key === 'ArrowUp' ? 'ArrowDown' : 'ArrowUp') : event.key;
    this.chosen = neighbour(this.tree, this.chosen, key);
    const isHidden = this.tree.depth[this.chosen] - this.firstDepth >= MOST_ROWS;
    if (this.chosen < this.focus || this.chosen >= this.tree.end[this.focus] || isHidden) this.focus = this.chosen;
    this.draw();
    this.tell(this.chosen);
  }

  rowTop(depth) {
    const row = depth - this.firstDepth;
    return (this.at('upwards').checked ? this.shownDepth - row : row) * ROW;
  }

  nodeAt(event) {
    const place = this.at('graph').getBoundingClientRect();
    const x = event.clientX - place.left, y = event.clientY - place.top;
    const box = (this.boxes || []).find((one) => {
      const top = this.rowTop(this.tree.depth[one.node]);
      return y >= top && y < top + ROW && x >= one.x && x < one.x + one.width;
    });
    return box ? box.node : -1;
  }

  draw() {
    const graph = this.at('graph'), width = graph.clientWidth, ratio = window.devicePixelRatio || 1;
    this.boxes = layout(this.tree, this.focus, width);
    this.firstDepth = Math.max(0, this.tree.depth[this.focus] - MOST_CALLERS);
    this.shownDepth = 0;
    this.boxes = this.boxes.filter((box) => {
      const row = this.tree.depth[box.node] - this.firstDepth;
      if (row >= 0 && row < MOST_ROWS) this.shownDepth = Math.max(this.shownDepth, row);
      return row >= 0 && row < MOST_ROWS;
    });
    const height = (this.shownDepth + 1) * ROW;
    graph.style.height = height + 'px';
    graph.width = Math.round(width * ratio);
    graph.height = Math.round(height * ratio);
    const context = graph.getContext('2d');
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.font = '12px ui-monospace, monospace';
    context.textBaseline = 'middle';
    this.letter = context.measureText('m').width;
    for (const box of this.boxes) this.drawBox(context, box);
  }

  drawBox(context, box) {
    const func = this.tree.func[box.node], isDark = this.isDark.matches;
    const top = this.rowTop(this.tree.depth[box.node]), width = Math.max(box.width - 1, 0.5);
    const isFaded = box.isCaller || (this.result && !this.result.found[box.node]);
    context.globalAlpha = isFaded ? 0.4 : 1;
    context.fillStyle = colourOf(this.profile.functions[func], isDark);
    context.fillRect(box.x, top, width, ROW - 1);
    context.globalAlpha = 1;
    if (box.node === this.chosen) {
      context.strokeStyle = isDark ? '#fff' : '#000';
      context.strokeRect(box.x + 0.5, top + 0.5, Math.max(width - 1, 0.5), ROW - 2);
    }
    const letters = Math.floor((width - 6) / this.letter);
    if (letters < 2) return;
    const name = nameOf(this.profile, func);
    context.fillStyle = isDark ? '#f4f4f6' : '#1d1d1f';
    context.fillText(name.length <= letters ? name : name.slice(0, letters - 1) + '\u2026', box.x + 3, top + ROW / 2);
  }

  // The line below the graph.
  tell(node) {
    if (node < 0) return;
    const {tree, view} = this, func = tree.func[node];
    const place = placeOf(this.profile, func);
    const parts = [
      nameOf(this.profile, func) + (place ? ` (${place})` : ''),
      `${withUnit(tree.total[node], view.unit)}, ${percent(tree.total[node], tree.total[0])}`,
      this.at('inverted').checked || func < 0 ? '' : `own ${withUnit(tree.self[node], view.unit)}`,
      node === 0 ? `${view.name}: ${view.about}` : `${tree.count[node]} sampled`,
    ];
    this.at('about').textContent = parts.filter((part) => part !== '').join('  \u00b7  ');
  }

  table(sort) {
    this.sort = sort;
    for (const button of this.document.querySelectorAll('[data-sort]'))
      button.setAttribute('aria-pressed', String(Number(button.dataset.sort) === sort));
    const {view} = this, all = view.total[0];
    const rows = [...view.flat].sort((a, b) => b[sort] - a[sort]).slice(0, 100);
    this.at('flat').tBodies[0].replaceChildren(...rows.map((row) => {
      const line = this.document.createElement('tr');
      const own = `${percent(row[1], all)}  ${withUnit(row[1], view.unit)}`;
      const whole = `${percent(row[2], all)}  ${withUnit(row[2], view.unit)}`;
      for (const text of [own, whole, nameOf(this.profile, row[0]), placeOf(this.profile, row[0])])
        line.insertCell().textContent = text;
      line.addEventListener('click', () => this.show(row[0], line));
      return line;
    }));
  }

  // Where one function is.
  show(func, line) {
    for (const other of this.at('flat').tBodies[0].rows) other.classList.toggle('chosen', other === line);
    this.at('search').value = '';
    this.focus = this.chosen = 0;
    this.matches = (other) => other === func;
    this.find();
    this.draw();
    this.at('graph').scrollIntoView({block: 'nearest'});
  }
}

if (typeof document !== 'undefined')
  new Page(JSON.parse(document.getElementById('profile').textContent), document);
else
  module.exports = {treeOf, inverted, find, layout, neighbour, withUnit, percent};
