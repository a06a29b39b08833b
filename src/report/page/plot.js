// Axes, ticks and tooltips that all plots share. A plot is drawn for the width it has, so that text keeps its size.

const ticksLinear = (low, high, most) => {
  const raw = (high - low) / most || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= raw);
  const out = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-9; at += step) out.push(Math.abs(at) < step * 1e-9 ? 0 : at);
  return out;
};

const ticksLog = (low, high, most) => {
  const first = Math.ceil(Math.log10(low) - 1e-9);
  const last = Math.floor(Math.log10(high) + 1e-9);
  const every = Math.max(1, Math.ceil((last - first + 1) / most));
  const out = [];
  for (let power = first; power <= last; power += every) out.push(10 ** power);
  return out;
};

// Of memory: powers of two.
const ticksBytes = (low, high, most) => {
  let step = 1;
  while ((high - low) / step > most) step *= 2;
  const out = [];
  for (let at = Math.ceil(low / step) * step; at <= high; at += step) out.push(at);
  return out;
};

function axis({low, high, log, text, ticks}, from, to, most) {
  const at = log ? (value) => from + (to - from) * (Math.log(value / low) / Math.log(high / low)) : (value) => from + (to - from) * ((value - low) / (high - low || 1));
  const marks = ticks ? ticks(low, high, most) : log ? ticksLog(low, high, most) : ticksLinear(low, high, most);
  return {at, marks, text: text ?? ((value) => number(value)), low, high};
}

// A frame with ticks: {picture, x, y, inner}. x and y map values to pixels.
function frame(width, height, name, x, y) {
  const room = {left: 70, right: 16, top: 14, bottom: 44};
  const across = axis(x, room.left, width - room.right, Math.max(3, Math.floor((width - 90) / 90)));
  const up = axis(y, height - room.bottom, room.top, 6);
  const picture = svg('svg', {viewBox: `0 0 ${width} ${height}`, height, role: 'group', 'aria-label': name});
  for (const value of across.marks)
    picture.append(svg('line', {class: 'grid', x1: across.at(value), x2: across.at(value), y1: room.top, y2: height - room.bottom}),
      svg('text', {x: across.at(value), y: height - room.bottom + 16, 'text-anchor': 'middle'}, across.text(value)));
  for (const value of up.marks)
    picture.append(svg('line', {class: 'grid', x1: room.left, x2: width - room.right, y1: up.at(value), y2: up.at(value)}),
      svg('text', {x: room.left - 7, y: up.at(value) + 4, 'text-anchor': 'end'}, up.text(value)));
  picture.append(
    svg('line', {class: 'axis', x1: room.left, x2: width - room.right, y1: height - room.bottom, y2: height - room.bottom}),
    svg('line', {class: 'axis', x1: room.left, x2: room.left, y1: room.top, y2: height - room.bottom}),
    svg('text', {class: 'title', x: (room.left + width - room.right) / 2, y: height - 6, 'text-anchor': 'middle'}, x.name),
    svg('text', {class: 'title', transform: `translate(13 ${(room.top + height - room.bottom) / 2}) rotate(-90)`, 'text-anchor': 'middle'}, y.name));
  return {picture, x: across.at, y: up.at, room, width, height};
}

// Draws into a new element whenever its width changes.
function plotIn(draw) {
  const host = el('div', {class: 'plot'});
  let drawn = 0;
  const redrawPlot = () => {
    const width = Math.round(host.clientWidth);
    if (width < 50 || width === drawn) return;
    drawn = width;
    host.replaceChildren(draw(width));
  };
  new ResizeObserver(redrawPlot).observe(host);
  addEventListener('beforeprint', () => host.replaceChildren(draw(700)));  // so wide on paper
  addEventListener('afterprint', () => host.again());
  host.again = () => {
    drawn = 0;
    redrawPlot();
  };
  return host;
}

function showTip(text, x, y) {
  const tip = byId('tip');
  tip.textContent = text;
  tip.hidden = false;
  const {width, height} = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(innerWidth - width - 4, x + 12))}px`;
  tip.style.top = `${y + 16 + height > innerHeight ? Math.max(4, y - height - 12) : y + 16}px`;
}

const hideTip = () => {
  byId('tip').hidden = true;
};

// The marks of a plot as one stop of the Tab key: arrows go from one to the next, Enter chooses. `marks`: [{element,
// text, choose}], in the order of the arrows.
function walkable(marks) {
  marks.forEach(({element, text, choose}, i) => {
    element.setAttribute('tabindex', i === 0 ? '0' : '-1');
    element.setAttribute('role', choose ? 'button' : 'img');
    element.setAttribute('aria-label', text);
    element.addEventListener('pointerenter', (event) => showTip(text, event.clientX, event.clientY));
    element.addEventListener('pointerleave', hideTip);
    element.addEventListener('focus', () => {
      const {x, y, width} = element.getBoundingClientRect();
      showTip(text, x + width, y);
    });
    element.addEventListener('blur', hideTip);
    if (choose) element.addEventListener('click', choose);
    element.addEventListener('keydown', (event) => {
      const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
      if (step) {
        const next = marks[(i + step + marks.length) % marks.length].element;
        element.setAttribute('tabindex', '-1');
        next.setAttribute('tabindex', '0');
        next.focus();
      } else if (event.key === 'Enter' && choose) choose();
      else return;
      event.preventDefault();
    });
  });
}

// Rows of a name, a bar of parts and a figure: [{name, parts: [{share, colour, text}], figure, choose}].
function bars(name, rows) {
  return el('div', {class: 'bars', role: 'list', 'aria-label': name}, rows.map((row) => el('div', {class: 'row-of', role: 'listitem'},
    el('span', {class: 'words', title: row.name}, row.choose ? el('button', {class: 'link', type: 'button', onclick: row.choose}, row.name) : row.name),
    el('span', {class: 'track', title: row.parts.map((part) => part.text).join('\n')},
      row.parts.map((part) => el('span', {class: 'part', style: `width:${100 * part.share}%;background:${part.colour}`}))),
    el('span', {class: 'number'}, row.figure))));
}

// Selects in the graph and goes there.
function goTo(item) {
  select(item);
  byId('graph').scrollIntoView({behavior: 'smooth'});
}
