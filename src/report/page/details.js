// All that is known of the selected module or node.

function linkTo(item) {
  return el('button', {class: 'link', type: 'button', onclick: () => select(item, {open: true})}, item.label,
    el('span', {class: 'dim'}, ` ${item.node?.name ?? item.kind}`));
}

function linksTo(list, most = 12) {
  if (!list?.length) return '';
  const all = [...new Set(list)];
  return [all.slice(0, most).map((item) => [linkTo(item), ' ']), all.length > most ? `and ${count(all.length - most)} more` : ''];
}

function nodeDetails(item) {
  const {node} = item;
  const fallback = item.fallback;
  return [
    ['operator', el('code', {}, node.op)],
    ['result', el('code', {}, node.type)],
    ['place', [node.place === 'device' ? 'device' : 'host', fallback ? `: ${fallback.reason}: ${fallback.detail}` : '']],
    ['precision', [node.weight_format && `weights ${node.weight_format}`, node.fidelity, node.fp32_acc === undefined ? '' : node.fp32_acc ? 'sums in float32' : 'sums in bfloat16']
      .filter(Boolean).join(', ')],
    ...profileDetails(item),
    ['PCC', compareText(item)],
    ['module', node.module >= 0 ? `${item.path} (${data.graph.modules[node.module].class})` : ''],
    ['source', node.source ?? ''],
    ['reads', linksTo(item.from)],
    ['read by', linksTo(item.users)],
    ['weights', (node.weights ?? []).join(', ')],
    ['text', el('code', {class: 'text'}, node.text)],
  ];
}

function compareText(item) {
  if (item.compare) {
    const row = item.compare;
    const fails = row.pass === false ? `, below its threshold of ${row.threshold}` : '';
    return `${pccText(row.pcc)}, max rel ${number(row.max_rel)}, SNR ${number(row.snr_db)} dB${fails}`;
  }
  return item.pcc === undefined ? '' : `${pccText(item.pcc)}, the lowest within`;
}

function moduleDetails(item) {
  return [
    ['class', item.klass],
    ['nodes', `${count(item.nodes)}: ${count(item.device)} on the device, ${count(item.host)} on the host`],
    ['weights', formatOf(item)],
    ...profileDetails(item),
    ['PCC', compareText(item)],
  ];
}

function showDetails(item) {
  const host = byId('details');
  if (!item) {
    host.replaceChildren(el('p', {class: 'dim'}, 'Select a box or a row: its place, formats, time and neighbours stand here.'));
    return;
  }
  const rows = item.kind === 'module' ? moduleDetails(item)
    : item.kind === 'node' ? nodeDetails(item)
      : [['type', el('code', {}, item.type)], ['reads', linksTo(item.from)], ['read by', linksTo(item.users)]];
  const name = item.kind === 'node' ? item.node.name : item.path || item.label;
  host.replaceChildren(el('h3', {}, name || modelName),
    el('dl', {}, rows.filter(([, value]) => value && value.length !== 0).map(([key, value]) => [el('dt', {}, key), el('dd', {}, value)])));
}

// One line about an item, for tooltips and screen readers.
function describe(item) {
  if (item.kind === 'input' || item.kind === 'output') return `${item.kind} ${item.label} ${item.type}`;
  const parts = [item.kind === 'module' ? `module ${item.path || item.label}, ${item.klass}` : `${item.node.op} ${item.node.name} ${item.node.type}`];
  if (item.kind === 'module') parts.push(plural(item.nodes, 'node'));
  parts.push({device: 'on the device', host: 'on the host', mixed: 'on device and host', edge: ''}[placeOf(item)]);
  if (item.fallback) parts.push(`${item.fallback.reason}: ${item.fallback.detail}`);
  if (item.time?.us) parts.push(`${number(item.time.us)} µs${item.time.bound ? `, bound by ${item.time.bound}` : ''}`);
  if (item.pcc !== undefined) parts.push(`PCC ${pccText(item.pcc)}`);
  return parts.filter(Boolean).join(', ');
}
