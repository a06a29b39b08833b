// The tree of modules and nodes, and what is known of each.
//
// An item is a module, a node, an input or an output. A module of one node is that node; a module that holds one module
// alone is one item with it. Edges are kept by the group in which both ends are children: {from, to, count}.

const items = [];
const itemOfValue = [];  // by the numbers in data.graph

function newItem(kind, label, parent, rest) {
  const item = {id: items.length, kind, label, parent, children: [], edges: [], open: false, depth: parent ? parent.depth + 1 : 0,
    nodes: 0, device: 0, host: 0, ...rest};
  items.push(item);
  if (parent) parent.children.push(item);
  return item;
}

const isGroup = (item) => item.children.length > 0;

function* ancestors(item) {
  for (let at = item.parent; at; at = at.parent) yield at;
}

function buildModules(root) {
  const modules = data.graph.modules;
  const members = modules.map(() => ({nodes: 0, children: 0}));
  for (const node of data.graph.nodes) if (node.module >= 0) ++members[node.module].nodes;
  // Modules in which nothing is computed any more do not show.
  for (let i = modules.length - 1; i >= 0; --i)
    if (modules[i].parent >= 0 && members[i].nodes + members[i].children > 0) ++members[modules[i].parent].children;
  return modules.map((module, i) => ({module, own: members[i].nodes, children: members[i].children, item: null, root}));
}

const relativePath = (path, parent) => (parent.path ? path.slice(parent.path.length + 1) : path);

// Holds nothing but one module.
const isOnly = (entry) => entry !== undefined && entry.own === 0 && entry.children === 1;

// The item of a module, made when its first node is met, so that children stand in the order of execution.
function moduleItem(all, index) {
  if (index < 0) return items[0];
  const entry = all[index];
  if (entry.item) return entry.item;
  const parent = moduleItem(all, entry.module.parent);
  const label = relativePath(entry.module.path, parent);
  if (parent.kind === 'module' && parent.only) {  // alone in its parent
    parent.label = parent.label + '.' + label;
    Object.assign(parent, {path: entry.module.path, klass: entry.module.class});
    entry.item = parent;
  } else {
    entry.item = newItem('module', label, parent, {path: entry.module.path, klass: entry.module.class});
  }
  entry.item.only = isOnly(entry);
  return entry.item;
}

function addNode(all, node, index) {
  const inRegion = node.region !== undefined;
  const entry = all[node.module];
  const alone = !inRegion && entry && entry.own === 1 && entry.children === 0;
  let outer = entry;  // the outermost module that holds this node alone
  while (alone && isOnly(all[outer.module.parent])) outer = all[outer.module.parent];
  const parent = inRegion ? itemOfValue[node.region] : moduleItem(all, alone ? outer.module.parent : node.module);
  const label = alone ? relativePath(entry.module.path, parent) : shortOp(node.op);
  const item = newItem('node', label, parent, {node, path: node.module >= 0 ? data.graph.modules[node.module].path : '',
    klass: alone ? entry.module.class : ''});
  itemOfValue[data.graph.inputs.length + index] = item;
}

// Both are children of the group that they have in common.
function addEdge(from, to) {
  let a = from;
  let b = to;
  while (a.depth > b.depth) a = a.parent;
  while (b.depth > a.depth) b = b.parent;
  while (a !== b && a.parent !== b.parent) {
    a = a.parent;
    b = b.parent;
  }
  if (a === b || !a.parent) return;
  const group = a.parent;
  group.edgeOf ??= new Map();
  const key = a.id * items.length + b.id;
  const known = group.edgeOf.get(key);
  if (known) {
    ++known.count;
    return;
  }
  const edge = {from: a, to: b, count: 1};
  group.edgeOf.set(key, edge);
  group.edges.push(edge);
}

function countUp() {
  for (const item of items) {
    if (item.kind !== 'node') continue;
    for (const at of [item, ...ancestors(item)]) {
      if (at !== item || !isGroup(item)) ++at.nodes;
      if (isGroup(item)) continue;
      if (item.node.place === 'device') ++at.device;
      else ++at.host;
    }
  }
}

// What other records say of a node, by its name.
function joinRecords() {
  const byName = new Map();
  for (const item of items) if (item.kind === 'node') byName.set(item.node.name, item);
  for (const fallback of data.compile.fallbacks ?? []) {
    const item = byName.get(fallback.node);
    if (item) item.fallback = fallback;
  }
  for (const row of data.compare?.rows ?? []) {
    // With several calls "step0.name" stands before "name"; the lowest counts.
    const item = byName.get(row.node) ?? byName.get(row.node.slice(row.node.indexOf('.') + 1));
    if (item && row.pcc !== null && !(item.compare && item.compare.pcc <= row.pcc)) item.compare = row;
  }
  for (const item of items)
    if (item.compare)
      for (const at of [item, ...ancestors(item)]) at.pcc = Math.min(at.pcc ?? 1, item.compare.pcc);
  joinProfile(byName);
  return byName;
}

function formatOf(item) {
  if (item.kind === 'node') return item.node.weight_format ?? '';
  if (item.formats === undefined) {
    const all = new Set(item.children.map(formatOf).filter((format) => format !== ''));
    item.formats = all.size > 1 ? 'mixed' : ([...all][0] ?? '');
  }
  return item.formats;
}

function placeOf(item) {
  if (item.kind === 'input' || item.kind === 'output') return 'edge';
  return item.host === 0 ? 'device' : item.device === 0 ? 'host' : 'mixed';
}

function buildTree() {
  const root = newItem('module', modelName, null, {path: '', klass: ''});
  const all = buildModules(root);
  data.graph.inputs.forEach((input, i) => {
    itemOfValue[i] = newItem('input', input.name, root, {type: input.type});
  });
  data.graph.nodes.forEach((node, i) => addNode(all, node, i));
  for (const output of data.graph.outputs) newItem('output', output.name, root, {type: output.type, from: itemOfValue[output.from]});
  data.graph.nodes.forEach((node, i) => {
    const to = itemOfValue[data.graph.inputs.length + i];
    to.from = node.from.map((value) => itemOfValue[value]);
    for (const from of to.from) {
      (from.users ??= []).push(to);
      addEdge(from, to);
    }
  });
  for (const item of items)
    if (item.kind === 'output') {
      (item.from.users ??= []).push(item);
      addEdge(item.from, item);
      item.from = [item.from];
    }
  countUp();
  for (const item of items) delete item.edgeOf;
  // A module that lost its nodes to others has nothing to show.
  for (const item of items) item.children = item.children.filter((child) => child.kind !== 'module' || child.nodes > 0);
  return joinRecords();
}

// Opens modules until there is something to see.
function openFirst(root) {
  root.open = true;
  for (let at = root; ;) {
    const groups = at.children.filter(isGroup);
    if (groups.length !== 1 || at.children.length > 12) return;
    at = groups[0];
    at.open = true;
  }
}

// Strings that search looks at, lower case.
function searchText(item) {
  item.words ??= [item.label, item.path, item.klass, item.type, item.node?.name, item.node?.op, item.node?.type].join('\n').toLowerCase();
  return item.words;
}
