// The drawing of the graph: boxes and edges as SVG, of which only what can be seen is there. A large one has tens of
// thousands of boxes; each is drawn when it is scrolled to.

const diagram = {zoom: 1, host: null, picture: null, drawn: null};

// Corners as they are drawn.
const scale = (value) => value * diagram.zoom;

function labelText(text, widest) {
  const most = Math.max(4, Math.floor(widest / 7));
  return text.length > most ? `${text.slice(0, Math.ceil(most / 2) - 1)}…${text.slice(text.length - Math.floor(most / 2))}` : text;
}

function boxOf(item, x, y, place) {
  const colour = colourOf(item);
  const classes = ['box', item.kind, isGroup(item) ? 'group' : '', item.open && isGroup(item) ? 'open' : '',
    view.selected === item ? 'selected' : '', view.near.has(item) ? view.near.get(item) : '', view.found.has(item) ? 'found' : ''];
  const twisty = isGroup(item) ? (item.open ? '▾ ' : '▸ ') : '';
  const group = svg('g', {class: classes.join(' '), transform: `translate(${x} ${y})`, 'data-item': item.id, role: 'treeitem', id: `box${item.id}`,
    'aria-label': describe(item), 'aria-expanded': isGroup(item) ? String(item.open) : null, 'aria-selected': String(view.selected === item)},
    svg('title', {}, describe(item)),
    svg('rect', {class: 'body', width: place.width, height: place.height, rx: item.kind === 'node' ? 4 : 8,
      style: item.open && isGroup(item) ? null : `fill:${colour.fill}`}),
    item.open && isGroup(item) ? null : svg('rect', {class: 'stripe', width: 5, height: place.height, rx: 2, style: `fill:${colour.strong}`}));
  if (item.open && isGroup(item)) {
    group.append(svg('text', {x: 10, y: 18, class: 'label'}, twisty + labelText(item.label, place.width - 110)),
      svg('text', {x: place.width - 10, y: 18, class: 'sub', 'text-anchor': 'end'}, subText(item)));
  } else {
    group.append(svg('text', {x: 12, y: 15, class: 'label'}, twisty + labelText(item.label, place.width - (twisty ? 36 : 18))),
      svg('text', {x: 12, y: 29, class: 'sub'}, labelText(subText(item), (place.width - 16) * 7 / 6)));
  }
  return group;
}

function wayOf(route, layout, x, y) {
  const ends = route.way.map((place) => ({x: x + place.x, top: y + place.y, bottom: y + place.y + place.height, over: y + place.top, under: y + place.bottom}));
  const first = ends[0];
  const last = ends.at(-1);
  if (route.far) {
    const side = x + layout.right + 26;
    return `M${first.x} ${first.bottom}C${first.x} ${first.bottom + 24} ${side} ${first.bottom} ${side} ${(first.bottom + last.top) / 2}` +
      `S${last.x} ${last.top - 24} ${last.x} ${last.top}`;
  }
  let path = `M${first.x} ${first.bottom}V${first.under}`;
  for (let i = 1; i < ends.length; ++i) {
    const from = ends[i - 1];
    const to = ends[i];
    const middle = (from.under + to.over) / 2;
    path += `C${from.x} ${middle} ${to.x} ${middle} ${to.x} ${to.over}V${i + 1 < ends.length ? to.under : to.top}`;
  }
  return path;
}

const isSeen = (place, x, y, seen) => y + place.y <= seen.bottom && y + place.y + place.height >= seen.top &&
  x + place.x - place.width / 2 <= seen.right && x + place.x + place.width / 2 >= seen.left;

// Where an edge passes or begins with very many others, only the ends show where its other end is out of sight: one stub
// a box, however many there are.
function drawEdges(group, layout, x, y, seen, into) {
  const stubs = new Set();
  for (const route of layout.routes) {
    if (y + route.bottom < seen.top || y + route.top > seen.bottom || x + route.right < seen.left || x + route.left > seen.right) continue;
    const {from, to, count: values} = route.edge;
    const marked = view.selected && (view.selected === from || view.selected === to);
    const first = route.way[0];
    const last = route.way.at(-1);
    if ((route.far || route.hub) && !(isSeen(first, x, y, seen) && isSeen(last, x, y, seen))) {
      if (isSeen(first, x, y, seen)) stubs.add(`M${x + first.x} ${y + first.y + first.height}q0 10 12 12`);
      if (isSeen(last, x, y, seen)) stubs.add(`M${x + last.x + 12} ${y + last.y - 14}q-12 2 -12 12`);
      continue;
    }
    into.append(svg('path', {class: `edge${marked ? ' marked' : ''}${route.far ? ' far' : ''}`, d: wayOf(route, layout, x, y),
      'stroke-width': Math.min(4, 1 + Math.log2(values)), 'marker-end': 'url(#arrow)'}));
  }
  if (stubs.size) into.append(svg('path', {class: 'edge far', d: [...stubs].join('')}));
}

function drawGroup(group, x, y, seen, into) {
  const layout = layoutOf(group);
  drawEdges(group, layout, x, y, seen, into);
  for (const place of layout.places) {
    if (!place.item) continue;
    const left = x + place.x - place.width / 2;
    const top = y + place.y;
    if (top > seen.bottom || top + place.height < seen.top || left > seen.right || left + place.width < seen.left) continue;
    into.append(boxOf(place.item, left, top, place));
    if (isGroup(place.item) && place.item.open) drawGroup(place.item, left, top, seen, into);
  }
}

// What the window shows, and a margin, in the drawing's own units.
function seenPart() {
  const {scrollLeft, scrollTop, clientWidth, clientHeight} = diagram.host;
  const margin = 200;
  return {left: (scrollLeft - margin) / diagram.zoom, right: (scrollLeft + clientWidth + margin) / diagram.zoom,
    top: (scrollTop - margin) / diagram.zoom, bottom: (scrollTop + clientHeight + margin) / diagram.zoom};
}

function drawDiagram(part = seenPart()) {
  const root = items[0];
  const layout = layoutOf(root);
  const spare = Math.max(0, diagram.host.clientWidth - scale(layout.width)) / 2 / diagram.zoom;
  diagram.left = spare;
  const drawing = svg('g', {role: 'none', transform: `scale(${diagram.zoom}) translate(${spare} 0)`});
  drawGroup(root, 0, 0, {...part, left: part.left - spare, right: part.right - spare}, drawing);
  diagram.picture.setAttribute('width', Math.max(scale(layout.width), diagram.host.clientWidth - 2));
  diagram.picture.setAttribute('height', scale(layout.height));
  diagram.drawn?.remove();
  diagram.drawn = drawing;
  diagram.picture.append(drawing);
  if (view.selected) diagram.picture.setAttribute('aria-activedescendant', `box${view.selected.id}`);
}

let waiting = false;
function redrawSoon() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    drawDiagram();
  });
}

function zoomTo(zoom, centre) {
  const host = diagram.host;
  const next = Math.min(2, Math.max(0.1, zoom));
  const at = centre ?? {x: host.clientWidth / 2, y: host.clientHeight / 2};
  const x = (host.scrollLeft + at.x) / diagram.zoom;
  const y = (host.scrollTop + at.y) / diagram.zoom;
  diagram.zoom = next;
  drawDiagram();
  host.scrollTo(x * next - at.x, y * next - at.y);
  byId('zoom').textContent = `${Math.round(100 * next)} %`;
  redrawSoon();
}

// As large as the window shows whole, but no smaller than `least`.
function fitDiagram(least = 0.1) {
  const layout = layoutOf(items[0]);
  const {clientWidth, clientHeight} = diagram.host;
  zoomTo(Math.max(least, Math.min(1, clientWidth / layout.width, clientHeight / layout.height)), {x: 0, y: 0});
  diagram.host.scrollTo(Math.max(0, (scale(layout.width) - clientWidth) / 2), 0);
}

function showInDiagram(item) {
  const corner = cornerOf(item);
  if (!corner || !corner.place) return;
  const host = diagram.host;
  const x = scale(corner.x + diagram.left);
  const y = scale(corner.y);
  const width = scale(corner.place.width);
  const height = Math.min(scale(corner.place.height), host.clientHeight - 40);
  if (x < host.scrollLeft || x + width > host.scrollLeft + host.clientWidth)
    host.scrollLeft = Math.max(0, x - (host.clientWidth - width) / 2);
  if (y < host.scrollTop || y + height > host.scrollTop + host.clientHeight)
    host.scrollTop = Math.max(0, y - (host.clientHeight - height) / 2);
}

// The box in that direction from the selected one: along edges up and down, to the side in its layer.
function neighbour(item, key) {
  if (!item.parent) return item;
  const layout = layoutOf(item.parent);
  const place = layout.places.find((one) => one.item === item);
  const real = (one, side) => {
    while (one && !one.item) one = one[side][0];
    return one?.item;
  };
  if (key === 'ArrowDown' && isGroup(item) && item.open) return item.children[0];
  if (key === 'ArrowUp') return real(place.up[0], 'up') ?? (item.parent.parent ? item.parent : item);
  if (key === 'ArrowDown') return real(place.down[0], 'down') ?? (item.parent.parent ? neighbour(item.parent, 'Next') : item);
  if (key === 'Next') return real(place.down[0], 'down') ?? (item.parent.parent ? neighbour(item.parent, 'Next') : item);
  const row = item.parent.skeleton.layers[place.layer].filter((one) => one.item);
  return row[row.indexOf(place) + (key === 'ArrowRight' ? 1 : -1)]?.item ?? item;
}

function diagramKey(event) {
  const item = view.selected ?? items[0].children[0];
  if (event.key.startsWith('Arrow')) select(view.selected ? neighbour(item, event.key) : item);
  else if (event.key === 'Enter' || event.key === ' ') toggle(item);
  else if (event.key === '+' || event.key === '=') zoomTo(diagram.zoom * 1.25);
  else if (event.key === '-') zoomTo(diagram.zoom / 1.25);
  else if (event.key === '0') fitDiagram();
  else return;
  event.preventDefault();
}

function dragToPan(host) {
  let from = null;
  host.addEventListener('pointerdown', (event) => {
    if (event.button === 0 && event.pointerType === 'mouse') from = {x: event.clientX, y: event.clientY, left: host.scrollLeft, top: host.scrollTop, moved: false};
  });
  host.addEventListener('pointermove', (event) => {
    if (!from) return;
    if (Math.abs(event.clientX - from.x) + Math.abs(event.clientY - from.y) > 4) from.moved = true;
    if (from.moved) host.scrollTo(from.left + from.x - event.clientX, from.top + from.y - event.clientY);
  });
  addEventListener('pointerup', () => {
    diagram.moved = from?.moved ?? false;
    from = null;
  });
}

function startDiagram() {
  const host = byId('diagram');
  diagram.host = host;
  diagram.picture = svg('svg', {tabindex: '0', role: 'tree', 'aria-label': 'The graph; arrow keys follow edges, Enter folds and unfolds, + and - zoom'},
    svg('defs', {}, svg('marker', {id: 'arrow', viewBox: '0 0 8 8', refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, markerUnits: 'userSpaceOnUse', orient: 'auto'},
      svg('path', {d: 'M0 0L8 4L0 8z', class: 'head'}))));
  host.append(diagram.picture);
  host.addEventListener('scroll', redrawSoon, {passive: true});
  host.addEventListener('wheel', (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const frame = host.getBoundingClientRect();
    zoomTo(diagram.zoom * Math.exp(-event.deltaY / 400), {x: event.clientX - frame.left, y: event.clientY - frame.top});
  }, {passive: false});
  diagram.picture.addEventListener('keydown', diagramKey);
  diagram.picture.addEventListener('click', (event) => {
    if (diagram.moved) return;
    const found = event.target.closest('[data-item]');
    if (!found) return;
    const item = items[found.dataset.item];
    if (isGroup(item) && (view.selected === item || event.detail === 2 || event.target.matches('.label'))) toggle(item);
    else select(item, {stay: true});
  });
  dragToPan(host);
  byId('zoom-in').addEventListener('click', () => zoomTo(diagram.zoom * 1.25));
  byId('zoom-out').addEventListener('click', () => zoomTo(diagram.zoom / 1.25));
  byId('zoom-fit').addEventListener('click', () => fitDiagram());
  new ResizeObserver(redrawSoon).observe(host);
}
