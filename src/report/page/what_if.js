// What a call would take if something were chosen otherwise, and what of it is worth choosing.

const saved = (way) => `${way.saves_us < 0 ? '−' : ''}${micros(Math.abs(way.saves_us))} µs`;

function showWhatIf() {
  const host = document.querySelector('#what-if .body');
  const ways = data.what_if;
  if (!ways) {
    host.append(missing('Nothing else was tried. Other boards, formats, fidelities, kernels and grids, each compiled and priced:', `ttc report ${modelName} -o r.html --what-if`));
    return;
  }
  const us = data.profile.total.us;
  const advice = ways.filter((way) => way.advice).sort((a, b) => a.us - b.us);
  const widest = Math.max(us, ...ways.map((way) => way.us)) || 1;
  const rows = [{what: 'as it is', us, saves_us: 0}, ...ways].map((way) => ({
    name: way.what, figure: `${micros(way.us)} µs`,
    parts: [{share: way.us / widest, colour: way.advice ? 'var(--device)' : way.fits === false ? 'var(--host)' : 'var(--edge)',
      text: `${way.what}: ${number(way.us, 4)} µs, saves ${saved(way)}`}]}));
  host.append(
    el('p', {}, advice.length ? `Of what can be chosen for this model on ${data.arch.name}, this saves a hundredth of a call or more:`
      : `Nothing that can be chosen for this model on ${data.arch.name} saves a hundredth of a call.`),
    advice.length ? el('ul', {class: 'advice'}, advice.map((way) => el('li', {},
      `${way.what} save `, el('strong', {}, saved(way)), ` (${percent(way.saves_us / us)}): `, el('code', {}, way.flags)))) : '',
    advice.some((way) => way.flags.startsWith('--weight-dtype')) ? el('p', {}, 'Narrower formats cost accuracy; where a model bears them is found by ',
      el('code', {}, 'ttc compile --min-pcc X --io F')) : '',
    bars('A call, if', rows),
    el('h3', {}, 'Each way'),
    table('What if', ['what if', '>µs', '>saves µs', '>samples/s', '>DRAM', '', 'with'], ways.map((way) => [
      way.what, micros(way.us), saved(way).replace(' µs', ''), number(way.samples_per_s, 4), bytes(way.dram_peak),
      way.fits ? '' : 'does not fit', way.flags ? el('code', {}, way.flags) : ''])));
}
