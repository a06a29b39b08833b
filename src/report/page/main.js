// What the reader has selected, folded, searched and how it is coloured; the parts of the page in order.

const view = {selected: null, near: new Map(), found: new Set(), around: new Set(), matches: [], match: -1, colour: 'place'};

const bounds = ['math', 'unpack', 'pack', 'noc', 'dram', 'dispatch', 'pcie'];
const formats = ['float32', 'bfloat16', 'bfloat8_b', 'bfloat4_b', 'mixed'];
const plain = {strong: 'var(--edge)', fill: 'var(--panel)'};

const tinted = (name) => ({strong: `var(--${name})`, fill: `color-mix(in oklab, var(--${name}) 16%, var(--panel))`});
function heat(share) {
  const part = Math.round(12 + 54 * Math.sqrt(Math.min(1, Math.max(0, share))));
  return {strong: `color-mix(in oklab, var(--heat) ${Math.round(part * 1.5)}%, var(--panel))`, fill: `color-mix(in oklab, var(--heat) ${part}%, var(--panel))`};
}

// How a PCC is graded: each step is a nine more.
const pccSteps = [0.9, 0.99, 0.999, 0.9999];
const pccGrade = (value) => pccSteps.filter((step) => value >= step).length;

const colourings = {
  place: {name: 'place', of: (item) => tinted(placeOf(item)), key: () => [['device', 'device'], ['host', 'host'], ['mixed', 'both']].map(([name, text]) => [tinted(name), text])},
  time: {name: 'device time', when: () => profileOps.length, of: (item) => (item.time ? heat(item.time.us / items[0].time.us) : plain),
    key: () => [0.001, 0.01, 0.1, 0.5, 1].map((share) => [heat(share), percent(share, 2)])},
  bound: {name: 'bound', when: () => profileOps.length, of: (item) => (item.time?.bound ? tinted(item.time.bound) : plain),
    key: () => bounds.map((name) => [tinted(name), name])},
  format: {name: 'weight format', of: (item) => (formatOf(item) ? tinted(formatOf(item)) : plain),
    key: () => formats.map((name) => [tinted(name), name])},
  pcc: {name: 'PCC', when: () => data.compare, of: (item) => (item.pcc === undefined ? plain : tinted(`grade${pccGrade(item.pcc)}`)),
    key: () => ['< 0.9', '0.9', '0.99', '0.999', '0.9999'].map((text, i) => [tinted(`grade${i}`), text])},
};

const colourOf = (item) => colourings[view.colour].of(item);

function showKey() {
  byId('key').replaceChildren(...colourings[view.colour].key().map(([colour, text]) =>
    el('span', {class: 'key-item'}, el('span', {class: 'swatch', style: `background:${colour.strong}`}), text)));
}

function redraw() {
  refreshOutline();
  drawDiagram();
}

// How an item is reached from the selected one: what it reads and what reads it, folded modules around these too.
function findNear(item) {
  view.near = new Map();
  const mark = (list, name) => {
    for (const one of list ?? []) for (const at of [one, ...ancestors(one)]) if (!view.near.has(at) && at !== item && at.parent) view.near.set(at, name);
  };
  if (!item) return;
  if (item.from || item.users) {
    mark(item.from, 'read');
    mark(item.users, 'reader');
  } else if (item.parent) {
    for (const edge of item.parent.edges) {
      if (edge.to === item) view.near.set(edge.from, 'read');
      if (edge.from === item) view.near.set(edge.to, 'reader');
    }
  }
  for (const at of ancestors(item)) view.near.delete(at);
}

// options.open: unfold what is around it; options.stay: it was clicked where it stands.
function select(item, options = {}) {
  view.selected = item;
  findNear(item);
  if (item) for (const at of ancestors(item)) setOpen(at, true);
  showDetails(item);  // first: how much room it takes is how much the drawing has not
  refreshOutline();
  showInOutline(item);
  if (item && !options.stay) showInDiagram(item);
  drawOutline();
  drawDiagram();
}

// Where the box stands on the screen does not change by folding it.
function toggle(item) {
  if (!isGroup(item) || !item.parent) {
    select(item, {stay: true});
    return;
  }
  const before = cornerOf(item);
  setOpen(item, !item.open);
  if (!item.open && view.selected && [...ancestors(view.selected)].includes(item)) view.selected = item;
  else view.selected = item;
  findNear(view.selected);
  layoutOf(items[0]);
  const after = cornerOf(item);
  refreshOutline();
  drawDiagram();
  if (before && after) diagram.host.scrollTo(diagram.host.scrollLeft + scale(after.x - before.x), diagram.host.scrollTop + scale(after.y - before.y));
  showInOutline(item);
  showDetails(view.selected);
}

function setOpenAll(item, open, depth = Infinity) {
  const visit = (at, left) => {
    if (!isGroup(at)) return;
    if (at.parent) setOpen(at, open && left > 0);
    for (const child of at.children) visit(child, at.parent ? left - 1 : left);
  };
  visit(item, depth);
  redraw();
}

function openDepth() {
  let deepest = 0;
  const visit = (item) => {
    for (const child of item.children)
      if (isGroup(child) && child.open) {
        deepest = Math.max(deepest, child.depth);
        visit(child);
      }
  };
  visit(items[0]);
  return deepest;
}

function search(text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  view.matches = words.length ? items.filter((item) => item.parent && words.every((word) => searchText(item).includes(word))) : [];
  view.found = new Set(view.matches);
  view.around = new Set(view.matches.flatMap((item) => [...ancestors(item)]));
  view.match = -1;
  byId('found').textContent = words.length ? (view.matches.length ? `${count(view.matches.length)} found` : 'nothing found') : '';
  redraw();
}

function nextMatch(step) {
  if (!view.matches.length) return;
  view.match = (view.match + step + view.matches.length) % view.matches.length;
  select(view.matches[view.match], {open: true});
  byId('found').textContent = `${count(view.match + 1)} of ${count(view.matches.length)}`;
}

function startSearch() {
  const field = byId('search');
  let timer = 0;
  field.addEventListener('input', () => {
    clearTimeout(timer);
    timer = setTimeout(() => search(field.value), 80);
  });
  field.addEventListener('keydown', (event) => {
    if (event.key === 'Enter') nextMatch(event.shiftKey ? -1 : 1);
    else if (event.key === 'Escape') {
      field.value = '';
      search('');
    } else if (event.key === 'ArrowDown') outline.host.focus();
    else return;
    event.preventDefault();
  });
  addEventListener('keydown', (event) => {
    if (event.key !== '/' || /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement?.tagName)) return;
    event.preventDefault();
    field.focus();
  });
}

function startToolbar() {
  const choice = byId('colour');
  for (const [key, {name, when}] of Object.entries(colourings)) if (!when || when()) choice.append(el('option', {value: key}, name));
  if (profileOps.length) view.colour = 'time';
  choice.value = view.colour;
  choice.addEventListener('change', () => {
    view.colour = choice.value;
    showKey();
    redraw();
  });
  showKey();
  byId('fold').addEventListener('click', () => {
    setOpenAll(items[0], false);
    fitDiagram(0.8);
  });
  byId('unfold').addEventListener('click', () => setOpenAll(items[0], true, openDepth() + 1));
  byId('unfold-all').addEventListener('click', () => setOpenAll(items[0], true));
  byId('print').addEventListener('click', () => print());
}

function tile(name, value, note) {
  return el('div', {class: 'tile'}, el('dt', {}, name), el('dd', {}, value, note ? el('span', {class: 'note'}, note) : null));
}

function showSummary() {
  const {nodes, flops: work, memory, transfers, weights} = data.compile;
  const {dram} = data.profile.memory;
  const {model, arch} = data;
  byId('model').textContent = modelName;
  byId('about').textContent = [arch.name, `${arch.grid_x}×${arch.grid_y} cores`, model.format, model.torch && `PyTorch ${model.torch}`, `ttc ${data.ttc}`].filter(Boolean).join(' · ');
  byId('tiles').append(
    tile('on the device', `${count(nodes.device)} of ${count(nodes.total)}`, nodes.cpu ? `${plural(nodes.cpu, 'node')} on the host` : 'every compute node'),
    ...profileTiles(),
    tile('work', flops(work.total), work.total ? `${percent(work.device / work.total)} on the device` : ''),
    tile('weights', bytes(weights.bytes_out), `${bytes(weights.bytes_in)} in the model`),
    tile('DRAM at the peak', bytes(dram.peak), `of ${bytes(dram.bytes)}${dram.fits ? '' : memory.streamed ? ', weights are streamed' : ', does not fit'}`),
    tile('transfers', count(transfers.count), bytes(transfers.bytes)));
}

// All of the drawing stands on paper, as small as it has to be.
function startPrint() {
  let before = null;
  addEventListener('beforeprint', () => {
    before = {zoom: diagram.zoom, height: outline.host.clientHeight};
    diagram.zoom = 1;
    drawDiagram({left: -Infinity, right: Infinity, top: -Infinity, bottom: Infinity});
    const {width, height} = layoutOf(items[0]);
    diagram.drawn.setAttribute('transform', '');
    diagram.picture.setAttribute('viewBox', `0 0 ${width} ${Math.min(height, width * 8 + 1000)}`);
    outline.space.replaceChildren(...outline.rows.slice(0, 400).map(rowOf));
    byId('outline-rest').textContent = outline.rows.length > 400 ? `and ${count(outline.rows.length - 400)} more rows` : '';
  });
  addEventListener('afterprint', () => {
    diagram.zoom = before?.zoom ?? 1;
    diagram.picture.removeAttribute('viewBox');
    byId('outline-rest').textContent = '';
    redraw();
  });
}

function start() {
  startTheme();
  buildTree();
  openFirst(items[0]);
  showSummary();
  startToolbar();
  startOutline();
  startDiagram();
  startSearch();
  showDetails(null);
  refreshOutline();
  drawDiagram();
  fitDiagram(0.8);
  showPlacement();
  showProfile();
  showWhatIf();
  showRoofline();
  showMemory();
  showPrecision();
  showPasses();
  startPrint();
}

start();
