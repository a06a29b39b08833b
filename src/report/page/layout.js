// Where the boxes of an open group stand: layers from top to bottom (Sugiyama), each open group laid out by itself and a
// box in the group around it. What does not depend on sizes (layers, order) is kept; a fold lays out again only the
// groups around it.

const box = {height: 36, gapX: 22, gapY: 30, head: 26, pad: 14, port: 6, widest: 250, narrowest: 84};
// Edges longer than this are drawn past the boxes; routing them between these would need a place in each layer.
const longestRoute = 400;
const routePlaces = 30000;  // of all edges of a group together
const manyEdges = 60;       // of one box

// The children in an order in which, but for cycles, what feeds comes before what it feeds. A module that runs twice, or
// in parts, makes cycles: these are cut at what runs first.
function topological(size, edges) {
  const order = new Array(size).fill(0);
  const left = new Array(size).fill(0);
  const next = Array.from({length: size}, () => []);
  for (const {a, b} of edges) {
    ++left[b];
    next[a].push(b);
  }
  const placed = new Array(size).fill(false);
  const queue = [];
  let placedCount = 0;
  const put = (i) => {
    placed[i] = true;
    order[i] = placedCount++;
    queue.push(i);
  };
  for (let i = 0; i < size; ++i) if (left[i] === 0) put(i);
  for (let first = 0, taken = 0; placedCount < size || taken < queue.length; ) {
    if (taken === queue.length) {
      while (placed[first]) ++first;
      put(first);
    }
    for (const b of next[queue[taken++]]) if (--left[b] === 0 && !placed[b]) put(b);
  }
  return order;
}

// Layer of each child, by the longest path; edges that close a cycle count as none.
function layersOf(group) {
  const at = new Map(group.children.map((child, i) => [child, i]));
  const layer = new Array(group.children.length).fill(0);
  const edges = group.edges.map((edge) => ({edge, a: at.get(edge.from), b: at.get(edge.to)})).filter(({a, b}) => a !== undefined && b !== undefined);
  const order = topological(layer.length, edges);
  const ahead = edges.filter(({a, b}) => order[a] < order[b]);
  const back = edges.filter(({a, b}) => order[a] > order[b]);
  ahead.sort((x, y) => order[x.b] - order[y.b] || order[x.a] - order[y.a]);
  for (const {a, b} of ahead) layer[b] = Math.max(layer[b], layer[a] + 1);
  // What nothing feeds stands right above its first reader.
  const soonest = new Array(layer.length).fill(Infinity);
  const fed = new Array(layer.length).fill(false);
  for (const {a, b} of ahead) {
    soonest[a] = Math.min(soonest[a], layer[b] - 1);
    fed[b] = true;
  }
  layer.forEach((_, i) => {
    if (!fed[i] && Number.isFinite(soonest[i])) layer[i] = soonest[i];
  });
  return {layer, ahead, back};
}

// Places in layers: one for each child, and on the way of long edges one in each layer between. Edges from one child
// share these.
function placesOf(group) {
  const {layer, ahead, back} = layersOf(group);
  const places = group.children.map((item, i) => ({item, layer: layer[i], up: [], down: [], x: 0, y: 0, width: 0, height: 0}));
  const reach = new Map();
  for (const {a, b} of ahead) reach.set(a, Math.max(reach.get(a) ?? 0, layer[b] - layer[a]));
  let budget = routePlaces;
  const chains = new Map();
  for (const [a, length] of reach) {
    if (length > longestRoute || length - 1 > budget) continue;
    budget -= length - 1;
    const chain = [places[a]];
    for (let i = 1; i < length; ++i) {
      const place = {item: null, layer: layer[a] + i, up: [], down: [], x: 0, y: 0, width: 2, height: 0};
      link(chain[i - 1], place);
      places.push(place);
      chain.push(place);
    }
    chains.set(a, chain);
  }
  const routes = [];
  for (const {edge, a, b} of ahead) {
    const chain = chains.get(a);
    const span = layer[b] - layer[a];
    if (chain) link(chain[span - 1], places[b]);
    routes.push({edge, way: chain ? [...chain.slice(0, span), places[b]] : [places[a], places[b]], far: !chain && span > 1});
  }
  for (const {edge, a, b} of back) routes.push({edge, way: [places[a], places[b]], far: true});
  const ends = new Map();
  for (const {edge} of routes) for (const end of [edge.from, edge.to]) ends.set(end, (ends.get(end) ?? 0) + 1);
  for (const route of routes) route.hub = ends.get(route.edge.from) > manyEdges || ends.get(route.edge.to) > manyEdges;
  return {places, routes};
}

function link(above, below) {
  above.down.push(below);
  below.up.push(above);
}

// Orders each layer by where its neighbours stand, downwards and upwards in turn.
function orderLayers(places) {
  const layers = [];
  for (const place of places) (layers[place.layer] ??= []).push(place);
  for (let i = 0; i < layers.length; ++i) layers[i] ??= [];
  const number = (row) => row.forEach((place, i) => { place.rank = i; });
  layers.forEach(number);
  const sweep = (row, side) => {
    if (row.length < 2) return;
    for (const place of row) {
      const near = place[side];
      place.wish = near.length ? near.reduce((sum, other) => sum + other.rank, 0) / near.length : place.rank;
    }
    row.sort((a, b) => a.wish - b.wish || a.rank - b.rank);
    number(row);
  };
  for (let round = 0; round < 3; ++round) {
    for (let i = 1; i < layers.length; ++i) sweep(layers[i], 'up');
    for (let i = layers.length - 2; i >= 0; --i) sweep(layers[i], 'down');
  }
  for (let i = 1; i < layers.length; ++i) sweep(layers[i], 'up');
  return layers;
}

// Moves a layer as near as its order allows to what it wishes (least squares: neighbours that would overlap move
// together, by the mean of their wishes).
function placeLayer(row, side) {
  const blocks = [];
  let offset = 0;
  row.forEach((place, i) => {
    if (i > 0) offset += (row[i - 1].width + place.width) / 2 + box.gapX;
    const near = place[side];
    const wish = near.length ? near.reduce((sum, other) => sum + other.x, 0) / near.length : place.x;
    const weight = (place.item ? 1 : 3) * Math.max(1, near.length);
    let block = {sum: (wish - offset) * weight, weight, places: [[place, offset]]};
    while (blocks.length && blocks.at(-1).sum / blocks.at(-1).weight >= block.sum / block.weight) {
      const before = blocks.pop();
      before.sum += block.sum;
      before.weight += block.weight;
      before.places.push(...block.places);
      block = before;
    }
    blocks.push(block);
  });
  for (const block of blocks)
    for (const [place, at] of block.places) place.x = block.sum / block.weight + at;
}

function setSizes(layers) {
  for (const row of layers)
    for (const place of row) {
      if (!place.item) continue;
      const size = sizeOf(place.item);
      place.width = size.width;
      place.height = size.height;
    }
}

// x of centres, y of tops.
function setPositions(layers) {
  let y = 0;
  for (const row of layers) {
    const height = Math.max(0, ...row.map((place) => place.height));
    let x = 0;
    for (const place of row) {
      place.y = y + (height - place.height) / 2;
      place.top = y;
      place.bottom = y + height;
      place.x = x + place.width / 2;
      x += place.width + box.gapX;
    }
    y += height + box.gapY;
  }
  for (let round = 0; round < 2; ++round) {
    for (let i = 1; i < layers.length; ++i) placeLayer(layers[i], 'up');
    for (let i = layers.length - 2; i >= 0; --i) placeLayer(layers[i], 'down');
  }
  return Math.max(0, y - box.gapY);
}

// The rectangle that the edge is drawn in.
function setReach(route, side) {
  route.left = Infinity;
  route.right = route.far ? side + 30 : -Infinity;
  route.top = Infinity;
  route.bottom = -Infinity;
  for (const place of route.way) {
    route.left = Math.min(route.left, place.x);
    route.right = Math.max(route.right, place.x);
    route.top = Math.min(route.top, place.y);
    route.bottom = Math.max(route.bottom, place.y + place.height);
  }
}

// group.layout: {width, height, places, routes}, from the group's own corner.
function layoutOf(group) {
  if (group.layout) return group.layout;
  if (!group.skeleton) {
    const {places, routes} = placesOf(group);
    group.skeleton = {places, routes, layers: orderLayers(places)};
  }
  const {places, routes, layers} = group.skeleton;
  setSizes(layers);
  const height = setPositions(layers);
  let left = Infinity;
  let right = -Infinity;
  for (const place of places) {
    left = Math.min(left, place.x - place.width / 2);
    right = Math.max(right, place.x + place.width / 2);
  }
  const beside = routes.some((route) => route.far) ? 60 : 0;  // where edges pass
  const root = !group.parent;
  const head = root ? 0 : box.head;
  const width = Math.max(right - left + 2 * box.pad + beside, root ? 0 : textWidth(group.label) + 130);
  const shift = (width - beside - (right - left)) / 2 - left;
  for (const place of places) {
    place.x += shift;
    place.y += head + box.pad;
    place.top += head + box.pad;
    place.bottom += head + box.pad;
  }
  for (const route of routes) setReach(route, right + shift);
  group.layout = {width, height: height + 2 * box.pad + head, places, routes, right: right + shift};
  return group.layout;
}

const textWidth = (text) => 7.4 * Math.min(text.length, 40);

function sizeOf(item) {
  if (isGroup(item) && item.open) return layoutOf(item);
  const wide = Math.max(textWidth(item.label) + (isGroup(item) ? 50 : 28), 6 * Math.min(subText(item).length, 34) + 24);
  return {width: Math.min(box.widest, Math.max(box.narrowest, wide)), height: box.height};
}

// The second line of a box.
function subText(item) {
  if (item.kind === 'module') return plural(item.nodes, 'node');
  if (item.kind === 'node') return item.klass ? `${shortOp(item.node.op)}  ${shapeText(item.node.type)}` : shapeText(item.node.type);
  return shapeText(item.type);
}

const shapeText = (type) => type ?? '';

function setOpen(item, open) {
  if (!isGroup(item) || item.open === open) return;
  item.open = open;
  for (let at = item; at; at = at.parent) at.layout = null;
}

// Where the item stands in the whole drawing; null inside a closed group. With all layouts at hand.
function cornerOf(item) {
  if (!item.parent) return {x: 0, y: 0};
  const outer = cornerOf(item.parent);
  if (!outer || !item.parent.open) return null;
  const layout = layoutOf(item.parent);
  item.parent.placeOf ??= new Map(layout.places.filter((place) => place.item).map((place) => [place.item, place]));
  const place = item.parent.placeOf.get(item);
  return place ? {x: outer.x + place.x - place.width / 2, y: outer.y + place.y, place} : null;
}
