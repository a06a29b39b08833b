// What the search for precision measured: accuracy against cost, and the worst nodes of a comparison.

const costs = {
  cycles: {name: 'device cycles of the calls', of: (trial) => trial.cycles, text: (value) => number(value, 4)},
  weight_bytes: {name: 'bytes of packed weights', of: (trial) => trial.weight_bytes, text: (value) => bytes(value), ticks: ticksBytes},
};

// 1 - PCC, so that mixes near 1 stand apart; what is exactly 1 stands at the edge.
const errorOf = (trial) => Math.max(1e-9, 1 - trial.pcc);

function extent(values, margin = 0.08) {
  const low = Math.min(...values);
  const high = Math.max(...values);
  const room = (high - low || Math.abs(high) || 1) * margin;
  return {low: Math.max(0, low - room), high: high + room};
}

function drawPareto(width, cost) {
  const {trials} = data.search;
  const known = trials.filter((trial) => trial.pcc !== null && costs[cost].of(trial) !== null);
  const errors = known.map(errorOf);
  const plot = frame(width, 360, 'Accuracy against cost',
    {...extent(known.map(costs[cost].of)), name: costs[cost].name, text: costs[cost].text, ticks: costs[cost].ticks},
    {low: Math.min(...errors) / 1.6, high: Math.max(...errors) * 1.6, log: true, name: '1 − PCC (lower is nearer)', text: (value) => value.toExponential(0)});
  const at = (trial) => [plot.x(costs[cost].of(trial)), plot.y(errorOf(trial))];
  const front = known.filter((trial) => trial.pareto).sort((a, b) => costs[cost].of(a) - costs[cost].of(b) || errorOf(b) - errorOf(a));
  plot.picture.append(svg('polyline', {class: 'front', points: front.map((trial) => at(trial).join(',')).join(' ')}));
  const marks = [...known].sort((a, b) => costs[cost].of(a) - costs[cost].of(b)).map((trial) => {
    const [x, y] = at(trial);
    const colour = trial.met ? 'var(--device)' : 'var(--host)';
    const element = trial.met ? svg('circle', {class: 'point', cx: x, cy: y, r: trial.pareto ? 6 : 4, fill: colour})
      : svg('path', {class: 'point', d: `M${x} ${y - 6}L${x + 6} ${y + 5}H${x - 6}Z`, fill: colour});
    plot.picture.append(element);
    return {element, text: `${trial.what}\nPCC ${pccText(trial.pcc)}, SNR ${number(trial.snr_db)} dB\n${number(trial.cycles, 5)} cycles, ${bytes(trial.weight_bytes)} of weights\n${trial.met ? 'meets the goal' : 'misses the goal'}${trial.pareto ? ', none is better in all' : ''}`};
  });
  if (marks.length) walkable(marks);
  return plot.picture;
}

function showSearch(host) {
  if (!data.search) {
    host.append(missing('No search for precision was given. Accuracy against device time and bytes, all mixes that were measured:',
      `ttc compile ${modelName} -o out.pt2 --min-pcc 0.99 --io F --pareto mixes.json && ttc report ${modelName} -o r.html --search mixes.json`));
    return;
  }
  let cost = new Set(data.search.trials.map((trial) => trial.cycles)).size > 1 ? 'cycles' : 'weight_bytes';
  const plot = plotIn((width) => drawPareto(width, cost));
  const choice = el('select', {onchange: (event) => {
    cost = event.target.value;
    plot.again();
  }}, Object.entries(costs).map(([key, {name}]) => el('option', {value: key, selected: key === cost}, name)));
  const {seen, held_back: held} = data.search;
  host.append(
    el('div', {class: 'controls'}, el('label', {}, 'Cost ', choice)),
    el('div', {class: 'key'}, el('span', {class: 'key-item'}, el('span', {class: 'swatch', style: 'background:var(--device)'}), '● meets the goal'),
      el('span', {class: 'key-item'}, el('span', {class: 'swatch', style: 'background:var(--host)'}), '▲ misses it'),
      el('span', {class: 'key-item'}, 'line: none is better in accuracy, time and bytes')),
    plot,
    el('p', {}, `The choice reaches a PCC of ${pccText(seen.pcc)} on ${plural(data.search.calls, 'call')}, and of ${pccText(held.pcc)} on ${plural(data.search.held_back_calls, 'call')} held back.`),
    table('The choice', ['module', 'weights', 'fidelity', 'sums in float32'], data.search.choice.map((one) => [one.module, one.weight_dtype, one.fidelity, one.fp32_acc])));
}

function showCompare(host) {
  if (!data.compare) {
    host.append(missing('No comparison was given. PCC of every node against LibTorch:', `ttc report ${modelName} -o r.html --io calls.safetensors`));
    return;
  }
  const rows = data.compare.rows.filter((row) => row.pcc !== null).sort((a, b) => a.pcc - b.pcc);
  const failed = rows.filter((row) => row.pass === false).length;
  host.append(el('p', {}, `${plural(rows.length, 'value')} compared with LibTorch, mode ${data.compare.mode}: `,
    failed ? `${plural(failed, 'value')} below the threshold.` : 'all reach their thresholds.'),
  table('The lowest correlations', ['>PCC', '>threshold', '>max rel', '>SNR dB', 'operator', 'where'], rows.slice(0, 40).map((row) => [
    pccText(row.pcc), row.threshold === null ? '' : String(row.threshold), number(row.max_rel), number(row.snr_db),
    el('code', {}, row.op), nodeLink(row.node, row.module || row.node)])));
}

function showPrecision() {
  const host = document.querySelector('#precision .body');
  const mixes = el('div', {}, el('h3', {}, 'Accuracy against cost'));
  const nodes = el('div', {}, el('h3', {}, 'Lowest correlations'));
  showSearch(mixes);
  showCompare(nodes);
  host.append(mixes, nodes);
}
