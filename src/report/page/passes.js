// The passes that ran, and the graph before and after any of them as dumps have it.

// What became of the lines: [{kind: 'same'|'removed'|'added', line}]. Lines that are there once on both sides are
// anchors (patience); between them the same again, and what has no anchor is removed and added whole.
function diffLines(before, after) {
  const out = [];
  const walk = (a0, a1, b0, b1) => {
    while (a0 < a1 && b0 < b1 && before[a0] === after[b0]) out.push({kind: 'same', line: before[a0++]}), ++b0;
    const tail = [];
    while (a0 < a1 && b0 < b1 && before[a1 - 1] === after[b1 - 1]) tail.push({kind: 'same', line: before[--a1]}), --b1;
    const anchors = a0 < a1 && b0 < b1 ? anchorsOf(a0, a1, b0, b1) : [];
    if (!anchors.length) {
      for (; a0 < a1; ++a0) out.push({kind: 'removed', line: before[a0]});
      for (; b0 < b1; ++b0) out.push({kind: 'added', line: after[b0]});
    } else {
      for (const [a, b] of anchors) {
        walk(a0, a, b0, b);
        out.push({kind: 'same', line: before[a]});
        a0 = a + 1;
        b0 = b + 1;
      }
      walk(a0, a1, b0, b1);
    }
    for (let i = tail.length - 1; i >= 0; --i) out.push(tail[i]);
  };
  const once = (lines, from, to) => {
    const seen = new Map();
    for (let i = from; i < to; ++i) seen.set(lines[i], seen.has(lines[i]) ? -1 : i);
    return seen;
  };
  const anchorsOf = (a0, a1, b0, b1) => {
    const here = once(before, a0, a1);
    const there = once(after, b0, b1);
    const pairs = [];
    for (const [line, a] of here) {
      const b = there.get(line);
      if (a >= 0 && b !== undefined && b >= 0) pairs.push([a, b]);
    }
    pairs.sort((x, y) => x[0] - y[0]);
    return rising(pairs);
  };
  walk(0, before.length, 0, after.length);
  return out;
}

// The longest part of the pairs whose second numbers rise.
function rising(pairs) {
  const ends = [];
  const last = new Array(pairs.length).fill(-1);
  pairs.forEach(([, b], i) => {
    let low = 0;
    let high = ends.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (pairs[ends[middle]][1] < b) low = middle + 1;
      else high = middle;
    }
    last[i] = low > 0 ? ends[low - 1] : -1;
    ends[low] = i;
  });
  const out = [];
  for (let i = ends.at(-1) ?? -1; i >= 0; i = last[i]) out.push(pairs[i]);
  return out.reverse();
}

// Steps that have a text before: their own dump, or the one after the step before them.
function dumpSteps() {
  const steps = [];
  let before = null;
  const texts = data.dumps.dumps;
  texts.forEach((dump) => {
    if (dump.when === 'after' && before && texts.some((one) => one === before))
      steps.push({name: `${dump.index} ${dump.pass}`, before, after: dump});
    if (!(dump.when === 'after' && isUnchanged(dump))) before = dump;
  });
  return steps;
}

const isUnchanged = (dump) => dump.lines.length === 1 && data.dumps.lines[dump.lines[0]] === '(unchanged)';

function diffView(step) {
  const rows = isUnchanged(step.after) ? [] : diffLines(step.before.lines, step.after.lines);
  const added = rows.filter((row) => row.kind === 'added').length;
  const removed = rows.filter((row) => row.kind === 'removed').length;
  const near = new Array(rows.length).fill(false);
  const context = 3;
  rows.forEach((row, i) => {
    if (row.kind !== 'same') for (let j = Math.max(0, i - context); j <= Math.min(rows.length - 1, i + context); ++j) near[j] = true;
  });
  const lineOf = (row) => el('div', {class: row.kind}, `${{same: ' ', added: '+', removed: '−'}[row.kind]} ${data.dumps.lines[row.line]}`);
  const view = el('div', {class: 'diff', tabindex: '0', role: 'region', 'aria-label': `The graph before and after ${step.name}`});
  for (let i = 0; i < rows.length; ) {
    if (near[i]) {
      view.append(lineOf(rows[i++]));
      continue;
    }
    const first = i;
    while (i < rows.length && !near[i]) ++i;
    const hidden = rows.slice(first, i);
    view.append(el('button', {type: 'button', onclick: (event) => event.target.replaceWith(...hidden.map(lineOf))}, `⋯ ${plural(hidden.length, 'line')} as before`));
  }
  return [el('p', {}, `${step.name}: ${plural(added, 'line')} added, ${plural(removed, 'line')} removed, against ${step.before.when} ${step.before.index} ${step.before.pass}`), view];
}

function showDumps(host) {
  if (!data.dumps) {
    host.append(missing('No dumps were given. The graph before and after each pass:',
      `ttc report ${modelName} -o r.html --dump-after change --dump-dir dumps`));
    return;
  }
  const steps = dumpSteps();
  if (!steps.length) {
    host.append(missing(`${data.dumps.folder} holds single dumps; before and after need two.`,
      `ttc report ${modelName} -o r.html --dump-after change --dump-dir dumps`));
    return;
  }
  const place = el('div', {});
  const show = (i) => place.replaceChildren(...diffView(steps[i]));
  const select = el('select', {onchange: (event) => show(Number(event.target.value))}, steps.map((step, i) => el('option', {value: i}, step.name)));
  host.append(el('div', {class: 'controls'}, el('label', {}, 'Pass ', select)), place);
  const largest = steps.map((step, i) => [Math.abs(step.after.lines.length - step.before.lines.length), i]).sort((a, b) => b[0] - a[0])[0][1];
  select.value = String(largest);
  show(largest);
}

function showPasses() {
  const host = document.querySelector('#passes .body');
  const ran = (data.compile.passes ?? []).filter((pass) => pass.changed);
  if (ran.length)
    host.append(table('Passes that changed the graph', ['pass', '>nodes before', '>after', '>rewrites', '>refusals', '>ms'], ran.map((pass) => [
      el('code', {}, pass.name), count(pass.nodes_before), count(pass.nodes_after), count(pass.matched), count(pass.refused), number(pass.ms)])),
    el('p', {class: 'dim'}, `${count(data.compile.passes.length - ran.length)} of ${plural(data.compile.passes.length, 'pass', 'passes')} left the graph as it was.`));
  else
    host.append(missing('This file was rewritten before; what each pass did shows for the model it was made from:', 'ttc report MODEL.pt2 -o r.html'));
  const dumps = el('div', {}, el('h3', {}, 'Before and after'));
  showDumps(dumps);
  host.append(dumps);
}
