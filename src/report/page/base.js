// What every part of the page uses: the data, elements, numbers as text, the theme.
'use strict';

const data = JSON.parse(document.getElementById('data').textContent);

const profileOps = data.profile.ops;  // device ops and transfers, in the order of execution

const byId = (id) => document.getElementById(id);

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.flat(9).filter((child) => child !== undefined && child !== null && child !== false));
  return element;
}

// el('td', {class: 'number'}, 'text', element, ...)
const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) =>
  fill(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);

// So many significant digits, thousands apart: "1,234", "0.0123", "1.2e-7".
function number(value, digits = 3) {
  if (value === null || value === undefined || Number.isNaN(value)) return '';
  if (!Number.isFinite(value)) return value > 0 ? 'infinite' : '-infinite';
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e12)) return value.toExponential(digits - 1);
  return value.toLocaleString('en', {maximumSignificantDigits: Math.max(digits, size >= 1 ? Math.ceil(Math.log10(size + 1)) : 0)});
}

function scaled(value, base, units, digits) {
  let unit = 0;
  while (Math.abs(value) >= base && unit + 1 < units.length) {
    value /= base;
    ++unit;
  }
  return `${number(value, digits)} ${units[unit]}`;
}

// Microseconds in a column: as many decimals as tell them apart.
function micros(value) {
  const digits = value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return value.toLocaleString('en', {minimumFractionDigits: digits, maximumFractionDigits: digits});
}

const bytes = (value, digits = 3) => scaled(value, 1024, ['B', 'KiB', 'MiB', 'GiB', 'TiB'], digits);
const count = (value) => (value === undefined || value === null ? '' : value.toLocaleString('en'));
const flops = (value) => scaled(value, 1000, ['FLOP', 'kFLOP', 'MFLOP', 'GFLOP', 'TFLOP', 'PFLOP'], 3);
const percent = (share, digits = 3) => `${number(100 * share, digits)} %`;
// Correlations lie near 1: as many digits as tell them apart.
const pccText = (value) => (value === null || value === undefined ? '' : value.toFixed(value > 0.9999 ? 7 : 5));
const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;

// "aten.gelu.default" -> "gelu", "tt.linear" -> "linear"
const shortOp = (op) => op.split('.')[1] ?? op;

// A header that begins with '>' has numbers under it. Columns without a value are left out.
function table(caption, allHeaders, allRows) {
  const used = allHeaders.map((_, i) => allRows.some((row) => row[i] !== '' && row[i] !== undefined && row[i] !== null));
  const header = allHeaders.filter((_, i) => used[i]);
  const rows = allRows.map((row) => row.filter((_, i) => used[i]));
  const cell = (tag, text, i) => el(tag, {class: header[i].startsWith('>') ? 'number' : null, scope: tag === 'th' ? 'col' : null}, text);
  return el('div', {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': caption},
    el('table', {}, el('caption', {class: 'unseen'}, caption),
      el('thead', {}, el('tr', {}, header.map((text, i) => cell('th', text.replace(/^>/, ''), i)))),
      el('tbody', {}, rows.map((row) => el('tr', {}, row.map((value, i) => cell('td', value, i)))))));
}

// A section's body where there is no data for it: the command that gives it.
function missing(what, command) {
  return el('p', {class: 'missing'}, `${what} `, el('code', {}, command));
}

const modelName = data.model.file.split('/').pop();

// The theme: the system's, until somebody chooses. A page opened from a file may have no storage.
function keptTheme() {
  try {
    return localStorage.getItem('ttc-theme');
  } catch {
    return null;
  }
}

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
}

function setTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  const button = byId('theme');
  button.textContent = isDark() ? 'Light' : 'Dark';
  button.setAttribute('aria-label', isDark() ? 'Use light colours' : 'Use dark colours');
}

function startTheme() {
  setTheme(keptTheme());
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => setTheme());
  byId('theme').addEventListener('click', () => {
    const theme = isDark() ? 'light' : 'dark';
    setTheme(theme);
    try {
      localStorage.setItem('ttc-theme', theme);
    } catch {
      // The choice then lasts as long as the page.
    }
  });
}
