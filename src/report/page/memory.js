// What is in L1 and DRAM as the model runs, what holds it at the peak, and what tile padding costs.

function drawMemory(width, steps, room, name) {
  const most = Math.max(...steps.map((step) => step.bytes));
  const near = room <= most * 3;  // else the limit is only told
  const plot = frame(width, 260, name, {low: 0, high: Math.max(1, steps.length), name: 'nodes in the order of execution', text: (value) => count(value)},
    {low: 0, high: Math.max(1, near ? Math.max(room, most) : most) * 1.08, name, text: (value) => bytes(value), ticks: ticksBytes});
  let path = `M${plot.x(0)} ${plot.y(0)}`;
  steps.forEach((step, i) => {
    path += `L${plot.x(i)} ${plot.y(step.bytes)}H${plot.x(i + 1)}`;
  });
  plot.picture.append(svg('path', {class: 'area', d: `${path}V${plot.y(0)}Z`, fill: 'var(--math)', stroke: 'var(--math)'}));
  if (near) plot.picture.append(svg('line', {class: 'limit', x1: plot.x(0), x2: plot.x(steps.length), y1: plot.y(room), y2: plot.y(room)}),
    svg('text', {class: 'title', x: plot.x(steps.length) - 4, y: plot.y(room) - 5, 'text-anchor': 'end'}, `there are ${bytes(room)}`));
  const top = steps.findIndex((step) => step.bytes === most);
  plot.picture.append(svg('circle', {cx: plot.x(top + 0.5), cy: plot.y(most), r: 4, fill: 'var(--grade0)'}));
  const cursor = svg('line', {class: 'cursor', y1: plot.room.top, y2: plot.height - plot.room.bottom, visibility: 'hidden'});
  plot.picture.append(cursor);
  const show = (i, x, y) => {
    cursor.setAttribute('visibility', 'visible');
    for (const side of ['x1', 'x2']) cursor.setAttribute(side, plot.x(i + 0.5));
    showTip(`${steps[i].module || steps[i].node}\n${steps[i].op}\n${bytes(steps[i].bytes, 4)}`, x, y);
  };
  const stepAt = (x) => Math.min(steps.length - 1, Math.max(0, Math.floor((x - plot.room.left) / (width - plot.room.left - plot.room.right) * steps.length)));
  const hide = () => {
    hideTip();
    cursor.setAttribute('visibility', 'hidden');
  };
  const scaleOf = () => width / plot.picture.getBoundingClientRect().width;
  plot.picture.addEventListener('pointermove', (event) => show(stepAt((event.clientX - plot.picture.getBoundingClientRect().x) * scaleOf()), event.clientX, event.clientY));
  plot.picture.addEventListener('pointerleave', hide);
  let at = top;
  Object.entries({tabindex: '0', role: 'img', 'aria-label': `${name}: at most ${bytes(most)} of ${bytes(room)}, at ${steps[top].module || steps[top].node}; arrow keys read it node by node`}).forEach(([key, value]) => plot.picture.setAttribute(key, value));
  plot.picture.addEventListener('blur', hide);
  plot.picture.addEventListener('keydown', (event) => {
    const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    if (!step) return;
    at = Math.min(steps.length - 1, Math.max(0, at + step));
    const frameOf = plot.picture.getBoundingClientRect();
    show(at, frameOf.x + plot.x(at + 0.5) / scaleOf(), frameOf.y + 30);
    event.preventDefault();
  });
  return plot.picture;
}

function showMemory() {
  showWaste();
  const host = document.querySelector('#memory .body');
  const {memory} = data.profile;
  if (!profileOps.length) {
    host.append(noProfile('Memory over time'));
    return;
  }
  for (const [name, one, what] of [['DRAM', memory.dram, 'of all banks'], ['L1', memory.l1, 'of one core: circular buffers of the node that runs']]) {
    const fits = one.peak <= one.bytes;
    host.append(el('h3', {}, `${name}, ${what}`),
      el('p', {}, `At most ${bytes(one.peak)} of ${bytes(one.bytes)}${fits ? '' : ', which does not fit'}.`),
      plotIn((width) => drawMemory(width, one.over_time, one.bytes, name)));
    if (one.held?.length)
      host.append(table(`What holds ${name} at the peak`, ['held at the peak', 'kind', '>bytes', '>share'], one.held.slice(0, 60).map((held) => [
        nodeLink(held.name, held.name), held.kind, bytes(held.bytes), percent(held.bytes / one.peak)])));
  }
}

function showWaste() {
  const host = document.querySelector('#waste .body');
  const rows = profileOps.filter((row) => row.padded_bytes > row.useful_bytes);
  if (!profileOps.length) {
    host.append(noProfile('Tile padding'));
    return;
  }
  const all = profileOps.reduce((sum, row) => ({useful: sum.useful + row.useful_bytes, padded: sum.padded + row.padded_bytes}), {useful: 0, padded: 0});
  if (!rows.length) {
    host.append(el('p', {class: 'missing'}, 'No tensor on the device is padded: all sizes are multiples of 32. Other sizes are tried with ', el('code', {}, `ttc report ${modelName} -o r.html --shape NAME=8x100`)));
    return;
  }
  const itemOf = new Map(items.filter((item) => item.kind === 'node').map((item) => [item.node.name, item]));
  const worst = [...rows].sort((a, b) => (b.padded_bytes - b.useful_bytes) - (a.padded_bytes - a.useful_bytes)).slice(0, 20);
  const widest = Math.max(...worst.map((row) => row.padded_bytes));
  host.append(
    el('p', {}, `Tiles are 32 × 32: of the ${bytes(all.padded)} that nodes read and write, ${bytes(all.padded - all.useful)} (${percent((all.padded - all.useful) / all.padded)}) are padding.`),
    el('div', {class: 'key'}, el('span', {class: 'key-item'}, el('span', {class: 'swatch', style: 'background:var(--device)'}), 'values'),
      el('span', {class: 'key-item'}, el('span', {class: 'swatch', style: 'background:var(--host)'}), 'padding')),
    bars('Padding by node', worst.map((row) => {
      const name = `${row.module || row.node} · ${shortOp(row.op)}`;
      return {name, figure: percent((row.padded_bytes - row.useful_bytes) / row.padded_bytes), choose: () => goTo(itemOf.get(row.node)), parts: [
        {share: row.useful_bytes / widest, colour: 'var(--device)', text: `${name}: ${bytes(row.useful_bytes)} of values`},
        {share: (row.padded_bytes - row.useful_bytes) / widest, colour: 'var(--host)', text: `${bytes(row.padded_bytes - row.useful_bytes)} of padding`}]};
    })));
}
