// Device time by node and module, as the profile has it: what bounds it, and where it goes.

const noProfile = (what) => missing(`${what}: nothing of this model runs on the device. Why, and which shapes are missing, is printed by`, `ttc check ${modelName}`);

function joinProfile(byName) {
  const modules = new Map(data.profile.modules.map((row) => [row.path, row]));
  for (const row of profileOps) {
    const item = byName.get(row.node);
    if (item) item.time = row;
  }
  for (const item of items) if (item.kind === 'module') item.time = modules.get(item.path);
  items[0].time = data.profile.total;
}

function profileTiles() {
  if (!profileOps.length) return [];
  const {us, bound, samples_per_s: samples, tokens_per_s: tokens} = data.profile.total;
  const loop = data.profile.decode;
  const rate = loop ? `${number(loop.tokens_per_s, 3)} tokens/s in a loop` : tokens ? `${number(tokens, 3)} tokens/s` : samples ? `${number(samples, 3)} samples/s` : '';
  return [tile('device time', `${micros(us)} µs`, [rate, us > 0 && `mostly ${bound}`].filter(Boolean).join(', '))];
}

function profileDetails(item) {
  const {time} = item;
  if (!time) return [];
  const parts = Object.entries(time.terms ?? {}).filter(([, cycles]) => cycles > 0).sort((a, b) => b[1] - a[1]);
  return [
    ['device time', [`${number(time.us, 4)} µs`, data.profile.total.us > 0 ? ` (${percent(time.us / data.profile.total.us)})` : '',
      time.bound ? `, bound by ${time.bound}` : '', time.cores ? `, ${plural(time.cores, 'core')}` : '']],
    ['program', time.program ?? time.kernel ?? ''],
    ['engines', parts.length > 1 ? parts.map(([name, cycles]) => `${name} ${number(cycles, 4)}`).join(', ') + ' cycles' : ''],
    ['moves', time.bytes ? `${bytes(time.bytes)}, ${bytes(time.dram_bytes)} of it from and to DRAM` : ''],
    ['computes', time.flops ? flops(time.flops) + (time.utilization === undefined ? '' : `, ${percent(time.utilization)} of the peak`) : ''],
  ];
}

const bar = (row, widest, name, choose) => ({name, figure: `${micros(row.us)} µs`, choose,
  parts: [{share: row.us / widest, colour: `var(--${row.bound || 'edge'})`, text: `${name}: ${number(row.us, 4)} µs, bound by ${row.bound}`}]});

// Time by what bounds it, one bar in all.
function boundBar() {
  const total = data.profile.total.us;
  const all = Object.entries(data.profile.total.us_by_bound ?? {}).sort((a, b) => b[1] - a[1]);
  return [
    el('div', {class: 'bars whole'}, el('span', {class: 'track', role: 'img', 'aria-label': `Time by bound: ${all.map(([name, us]) => `${name} ${percent(us / total)}`).join(', ')}`},
      all.map(([name, us]) => el('span', {class: 'part', style: `width:${100 * us / total}%;background:var(--${name})`, title: `${name}: ${number(us, 4)} µs`})))),
    el('div', {class: 'key'}, all.map(([name, us]) => el('span', {class: 'key-item'}, el('span', {class: 'swatch', style: `background:var(--${name})`}), `${name} ${percent(us / total)}`)))];
}

function kindRows() {
  const kinds = new Map();
  for (const row of profileOps) {
    const kind = kinds.get(row.op) ?? {op: row.op, us: 0, calls: 0, bound: new Map()};
    kind.us += row.us;
    kind.calls += 1;
    kind.bound.set(row.bound, (kind.bound.get(row.bound) ?? 0) + row.us);
    kinds.set(row.op, kind);
  }
  return [...kinds.values()].sort((a, b) => b.us - a.us);
}

function showProfile() {
  const host = document.querySelector('#time .body');
  if (!profileOps.length) {
    host.append(noProfile('Device time'));
    return;
  }
  const slowest = [...profileOps].sort((a, b) => b.us - a.us).slice(0, 16);
  const total = data.profile.total.us;
  const itemOf = new Map(items.filter((item) => item.kind === 'node').map((item) => [item.node.name, item]));
  const kinds = kindRows();
  const {transfer_us: transfer, host_nodes: onHost, unpriced_nodes: unpriced} = data.profile.total;
  host.append(
    el('p', {}, [`${micros(total)} µs a call on ${data.arch.name}, by its time model; the bar has the time by what bounds it.`,
      transfer > 0 && `${micros(transfer)} µs of it go to and from the host.`,
      onHost > 0 && `${plural(onHost, 'node')} on the host ${onHost === 1 ? 'is' : 'are'} not in it.`,
      unpriced > 0 && `${plural(unpriced, 'node')} with shapes that only a run knows ${unpriced === 1 ? 'is' : 'are'} not in it; --shape gives them.`].filter(Boolean).join(' ')),
    ...boundBar(),
    el('div', {class: 'split'},
      el('div', {}, el('h3', {}, 'Slowest nodes'),
        bars('Slowest nodes', slowest.map((row) => bar(row, slowest[0].us, `${row.module || row.node} · ${shortOp(row.op)}`, () => goTo(itemOf.get(row.node)))))),
      el('div', {}, el('h3', {}, 'By operator'),
        table('Time by operator', ['operator', '>nodes', '>µs', '>share', 'bound'], kinds.map((kind) => [
          el('code', {}, kind.op), count(kind.calls), micros(kind.us), percent(kind.us / total),
          [...kind.bound].sort((a, b) => b[1] - a[1])[0][0]])))));
}
