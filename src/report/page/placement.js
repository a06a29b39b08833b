// What stays on the host and why, what goes across, and what became of each kind of module.

function reasonTable(fallbacks) {
  const groups = new Map();
  for (const one of fallbacks) {
    const key = JSON.stringify([one.op, one.reason, one.detail]);
    const group = groups.get(key) ?? {...one, nodes: []};
    group.nodes.push(one);
    groups.set(key, group);
  }
  const rows = [...groups.values()].sort((a, b) => b.nodes.length - a.nodes.length);
  return table('Reasons', ['>nodes', 'operator', 'reason', 'detail', 'where'], rows.map((group) => [
    count(group.nodes.length), el('code', {}, group.op), group.reason, group.detail,
    [group.nodes.slice(0, 4).map((one) => [nodeLink(one.node, one.module || one.node), el('span', {class: 'dim'}, ` ${one.source} `)]),
      group.nodes.length > 4 ? `and ${count(group.nodes.length - 4)} more` : '']]));
}

function nodeLink(name, text) {
  const item = items.find((one) => one.kind === 'node' && one.node.name === name);
  return item ? el('button', {class: 'link', type: 'button', onclick: () => goTo(item)}, text) : text;
}

function moduleKinds() {
  const groups = new Map();
  for (const one of data.compile.modules ?? []) {
    const key = JSON.stringify([one.class, one.op, one.weight_format, one.fidelity]);
    const group = groups.get(key) ?? {...one, count: 0};
    ++group.count;
    groups.set(key, group);
  }
  const rows = [...groups.values()].sort((a, b) => b.count - a.count);
  return table('Modules on the device', ['>modules', 'class', 'operator', 'weights', 'fidelity'],
    rows.map((row) => [count(row.count), row.class.split('.').pop(), el('code', {}, row.op), row.weight_format, row.fidelity]));
}

function showPlacement() {
  const {fallbacks = [], near_misses: misses = [], summary, transfers} = data.compile;
  const host = document.querySelector('#placement .body');
  host.append(el('p', {}, summary));
  host.append(fallbacks.length
    ? reasonTable(fallbacks)
    : el('p', {}, `Every compute node is on the device; ${plural(transfers.count, 'transfer')} of ${bytes(transfers.bytes)} in all bring inputs in and outputs back.`));
  if (misses.length)
    host.append(el('h3', {}, 'Nearly recognised'),
      table('Nearly recognised', ['pass', 'module', 'reason', 'detail'], misses.map((miss) => [el('code', {}, miss.pass), miss.module, miss.reason, miss.detail])));
  if (data.compile.modules?.length) host.append(el('h3', {}, 'Modules on the device'), moduleKinds());
}
