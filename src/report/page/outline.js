// The same tree as rows: modules and nodes with what is known of each. Only rows that can be seen are elements.

const outline = {host: null, rows: [], height: 26, body: null, space: null};

// Rows in order: children of open groups; while somebody searches, what was found and the modules around it.
function outlineRows() {
  const rows = [];
  const visit = (item) => {
    for (const child of item.children) {
      if (view.found.size && !view.found.has(child) && !view.around.has(child)) continue;
      rows.push(child);
      if (isGroup(child) && (child.open || (view.found.size && view.around.has(child)))) visit(child);
    }
  };
  visit(items[0]);
  return rows;
}

const columns = [
  {name: 'PCC', class: 'pcc', text: (item) => pccText(item.pcc), when: () => data.compare},
  {name: 'format', class: 'format', text: (item) => formatOf(item)},
  {name: 'place', class: 'place', text: (item) => ({edge: '', device: 'device', host: 'host', mixed: 'both'})[placeOf(item)]},
  {name: 'µs', class: 'time', text: (item) => (item.time ? micros(item.time.us) : ''), when: () => profileOps.length},
].filter((column) => !column.when || column.when());

function rowOf(item, index) {
  const colour = colourOf(item);
  const twisty = isGroup(item) ? el('span', {class: 'twisty', 'data-toggle': true, 'aria-hidden': 'true'}, item.open ? '▾' : '▸') : el('span', {class: 'twisty'});
  const share = item.time && items[0].time?.us ? item.time.us / items[0].time.us : 0;
  return el('div', {class: `row ${item.kind}${view.selected === item ? ' selected' : ''}${view.found.has(item) ? ' found' : ''}`, role: 'row', id: `row${item.id}`,
    'data-item': item.id, style: `top:${index * outline.height}px`, 'aria-level': item.depth, 'aria-rowindex': index + 1,
    'aria-expanded': isGroup(item) ? String(item.open) : null, 'aria-selected': String(view.selected === item), title: describe(item)},
    el('span', {class: 'name', role: 'gridcell', style: `padding-left:${6 + 14 * Math.min(item.depth - 1, 9)}px`},
      twisty, el('span', {class: 'swatch', style: `background:${colour.strong}`, 'aria-hidden': 'true'}),
      el('span', {class: 'words'}, item.label, el('span', {class: 'dim'}, ` ${outlineNote(item)}`))),
    columns.map((column) => el('span', {class: `cell ${column.class}`, role: 'gridcell'},
      column.class === 'time' && share > 0 ? el('span', {class: 'bar', style: `width:${Math.max(2, 100 * share)}%`, 'aria-hidden': 'true'}) : null,
      el('span', {class: 'value'}, column.text(item)))));
}

function outlineNote(item) {
  if (item.kind === 'module') return [item.klass?.split('.').pop(), count(item.nodes)].filter(Boolean).join(' · ');
  if (item.kind === 'node') return item.klass ? shortOp(item.node.op) : item.node.name;
  return item.kind;
}

function drawOutline() {
  const {scrollTop, clientHeight} = outline.host;
  const first = Math.max(0, Math.floor(scrollTop / outline.height) - 6);
  const last = Math.min(outline.rows.length, Math.ceil((scrollTop + clientHeight) / outline.height) + 6);
  outline.space.style.height = `${outline.rows.length * outline.height}px`;
  outline.space.replaceChildren(...outline.rows.slice(first, last).map((item, i) => rowOf(item, first + i)));
  outline.host.setAttribute('aria-rowcount', outline.rows.length);
  if (view.selected) outline.host.setAttribute('aria-activedescendant', `row${view.selected.id}`);
}

function refreshOutline() {
  outline.rows = outlineRows();
  drawOutline();
}

function showInOutline(item) {
  const index = outline.rows.indexOf(item);
  if (index < 0) return;
  const top = index * outline.height;
  const {scrollTop, clientHeight} = outline.host;
  if (top < scrollTop || top + outline.height > scrollTop + clientHeight) outline.host.scrollTop = Math.max(0, top - clientHeight / 2);
}

function outlineKey(event) {
  const rows = outline.rows;
  const index = rows.indexOf(view.selected);
  const item = rows[index];
  const page = Math.max(1, Math.floor(outline.host.clientHeight / outline.height) - 1);
  const go = (to) => rows.length && select(rows[Math.min(rows.length - 1, Math.max(0, to))]);
  const moves = {ArrowDown: index + 1, ArrowUp: index - 1, Home: 0, End: rows.length - 1, PageDown: index + page, PageUp: index - page};
  if (event.key in moves) go(moves[event.key]);
  else if (!item) return;
  else if (event.key === 'ArrowRight' && isGroup(item)) {
    if (item.open) go(index + 1);
    else toggle(item);
  } else if (event.key === 'ArrowLeft') {
    if (isGroup(item) && item.open) toggle(item);
    else if (item.parent?.parent) select(item.parent);
  } else if (event.key === 'Enter' || event.key === ' ') toggle(item);
  else if (event.key === '*') setOpenAll(item, true);
  else return;
  event.preventDefault();
}

function startOutline() {
  outline.host = byId('outline');
  outline.space = byId('outline-rows');
  byId('outline-head').append(el('span', {class: 'name', role: 'columnheader'}, 'module or node'),
    ...columns.map((column) => el('span', {class: `cell ${column.class}`, role: 'columnheader'}, column.name)));
  outline.host.addEventListener('scroll', drawOutline, {passive: true});
  outline.host.addEventListener('keydown', outlineKey);
  outline.space.addEventListener('click', (event) => {
    const row = event.target.closest('[data-item]');
    if (!row) return;
    const item = items[row.dataset.item];
    if (event.target.closest('[data-toggle]') || event.detail === 2) toggle(item);
    else select(item);
  });
  new ResizeObserver(drawOutline).observe(outline.host);
}
