// Each operator by how much it computes for a byte of DRAM, and how fast it does: below the chip's peaks and bandwidth.

function drawRoofline(width, rows, goes) {
  const {peak_tflops: peaks, dram_gb_s: bandwidth} = data.arch;
  const intensity = (row) => row.flops / row.dram_bytes;
  const rate = (row) => row.flops / row.us * 1e-6;  // TFLOP/s
  const top = Math.max(...Object.values(peaks));
  const ridge = top * 1e3 / bandwidth;
  const lowX = Math.min(...rows.map(intensity), ridge / 30) / 1.6;
  const highX = Math.max(...rows.map(intensity), ridge * 6) * 1.6;
  const lowY = Math.min(...rows.map(rate), top / 300) / 1.6;
  const plot = frame(width, 420, 'Roofline', {low: lowX, high: highX, log: true, name: 'FLOP per byte of DRAM', text: (value) => number(value, 2)},
    {low: lowY, high: top * 2, log: true, name: 'TFLOP/s', text: (value) => number(value, 2)});
  const inside = svg('g', {});
  plot.picture.append(inside);
  const seen = new Set();
  for (const [name, peak] of Object.entries(peaks).sort((a, b) => b[1] - a[1])) {
    if (seen.has(peak)) continue;
    seen.add(peak);
    const knee = peak * 1e3 / bandwidth;
    const [x, y] = [plot.x(Math.max(knee, lowX)), plot.y(peak)];
    const first = seen.size === 1;
    inside.append(svg('path', {class: first ? 'roof' : 'roof lower', d: `${first ? `M${plot.x(Math.max(lowX, lowY * 1e3 / bandwidth))} ${plot.y(Math.max(lowY, lowX * bandwidth * 1e-3))}L` : 'M'}${x} ${y}H${plot.x(highX)}`}),
      svg('text', {x: plot.x(highX) - 4 - (width > 600 && seen.size % 2 === 0 ? 130 : 0), y: y - 4, 'text-anchor': 'end', class: 'title'}, `${name} ${number(peak)} TFLOP/s`));
  }
  const slope = Math.atan2(plot.y(10 * lowY) - plot.y(lowY), plot.x(10 * lowX) - plot.x(lowX)) * 180 / Math.PI;
  const at = Math.sqrt(Math.max(lowX, lowY * 1e3 / bandwidth) * ridge);
  inside.append(svg('text', {class: 'title', 'text-anchor': 'middle', transform: `translate(${plot.x(at)} ${plot.y(at * bandwidth * 1e-3) - 6}) rotate(${slope})`}, `DRAM ${number(bandwidth)} GB/s`));
  const slowest = Math.max(...rows.map((row) => row.us));
  const marks = [...rows].sort((a, b) => b.us - a.us).map((row) => {
    const element = svg('circle', {class: 'point', cx: plot.x(intensity(row)), cy: plot.y(rate(row)), r: 3 + 9 * Math.sqrt(row.us / slowest), fill: `var(--${row.bound})`, 'fill-opacity': 0.75});
    plot.picture.append(element);
    return {element, choose: () => goes(row), text: `${row.module || row.node}\n${row.op} ${row.fidelity ?? ''}\n${number(row.us, 4)} µs, bound by ${row.bound}\n${number(rate(row))} TFLOP/s, ${percent(row.utilization)} of the peak\n${number(intensity(row))} FLOP per byte`};
  });
  walkable(marks);
  return plot.picture;
}

function showRoofline() {
  const host = document.querySelector('#roofline .body');
  const rows = profileOps.filter((row) => row.flops > 0 && row.dram_bytes > 0 && row.us > 0);
  if (!rows.length) {
    host.append(profileOps.length ? missing('No node on the device multiplies matrices. What stays on the host, and why, is printed by', `ttc check ${modelName}`) : noProfile('The roofline'));
    return;
  }
  const itemOf = new Map(items.filter((item) => item.kind === 'node').map((item) => [item.node.name, item]));
  const used = [...new Set(rows.map((row) => row.bound))];
  host.append(el('p', {}, `Products, convolutions and attention: ${plural(rows.length, 'node')}. The larger a point, the longer it takes.`),
    el('div', {class: 'key'}, used.map((name) => el('span', {class: 'key-item'}, el('span', {class: 'swatch', style: `background:var(--${name})`}), `bound by ${name}`))),
    plotIn((width) => drawRoofline(width, rows, (row) => goTo(itemOf.get(row.node)))));
}
