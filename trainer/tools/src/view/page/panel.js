'use strict';
// Numbers beside the picture: lines over time, a table of values, joints.
const $ = (id) => document.getElementById(id);
const COLORS = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#8a6fd1', '#b0413e', '#5a8f29', '#7a7a7a'];
const SHOWN = 8;

function element(name, content, className) {
  const e = document.createElement(name);
  if (content !== undefined) e.textContent = content;
  if (className) e.className = className;
  return e;
}

function number(x) {
  if (!Number.isFinite(x)) return String(x);
  const a = Math.abs(x);
  return a !== 0 && (a < 1e-3 || a >= 1e5) ? x.toExponential(2) : x.toFixed(a < 10 ? 3 : a < 1000 ? 2 : 0);
}

class Panel {
  // `seek` is told a time (s) that was chosen in the lines.
  constructor(layout, seek) {
    Object.assign(this, { layout, seek, off: new Map() });
    const select = $('group');
    layout.groups.forEach((g, i) => select.append(new Option(`${g.name} (${g.names.length})`, i)));
    select.onchange = () => this.choose(+select.value);
    this.joints = layout.joints.map((j) => this.joint(j));
    $('joints').hidden = !layout.joints.length;
    this.times = [];
    this.rows = [];
    if (layout.groups.length) this.choose(0);
  }

  joint(j) {
    const row = element('tr'), value = element('td', '', 'number'), speed = element('td', '', 'number');
    const bar = element('div', undefined, 'bar'), mark = element('i'), cell = element('td');
    if (j.range) {
      bar.append(mark);
      cell.append(bar);
    }
    row.append(element('td', j.name, 'name'), cell, value, speed);
    $('joints').querySelector('tbody').append(row);
    return { value, speed, mark, ...j };
  }

  choose(i) {
    this.group = this.layout.groups[i];
    const body = $('values').querySelector('tbody');
    body.replaceChildren();
    this.cells = this.group.names.map((name, k) => {
      const row = element('tr'), cell = element('td', '', 'number'), label = element('td', name, 'name');
      const swatch = element('span', undefined, 'swatch');
      swatch.style.background = COLORS[k % COLORS.length];
      label.prepend(swatch);
      row.append(label, cell, element('td', this.group.units[k] ?? '', 'unit'));
      row.classList.toggle('off', !this.on(k));
      row.onclick = () => {
        this.off.set(`${this.group.first}/${k}`, this.on(k));
        row.classList.toggle('off', !this.on(k));
        this.plot?.setSeries(k + 1, { show: this.on(k) });
      };
      body.append(row);
      return cell;
    });
    this.make();
  }

  on(k) {
    return !(this.off.get(`${this.group.first}/${k}`) ?? k >= SHOWN);
  }

  make() {
    this.plot?.destroy();
    const style = getComputedStyle(document.documentElement);
    const ink = style.getPropertyValue('--faint'), line = style.getPropertyValue('--line');
    const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line }, font: '11px system-ui' };
    const series = this.group.names.map((label, k) => ({ label, stroke: COLORS[k % COLORS.length], width: 1.5, show: this.on(k), points: { show: false } }));
    const options = {
      width: Math.max(($('chart').clientWidth || 340), 120), height: 190, series: [{ label: 's' }, ...series],
      scales: { x: { time: false } }, axes: [{ ...axis, size: 28 }, { ...axis, size: 52, values: (_, all) => all.map(number) }],
      cursor: { drag: { x: false, y: false }, points: { show: false } }, legend: { show: false },
    };
    this.plot = new V.uPlot(options, this.columns(), $('chart'));
    this.plot.over.addEventListener('click', (e) => this.seek(this.plot.posToVal(e.offsetX, 'x')));
    this.mark();
  }

  columns() {
    const { first, names } = this.group;
    return [this.times, ...names.map((_, k) => this.rows.map((row) => (Number.isFinite(row[first + k]) ? row[first + k] : null)))];
  }

  // Lines over these rows, at these times (s).
  fill(times, rows) {
    Object.assign(this, { times, rows });
    this.plot?.setData(this.columns());
    this.mark();
  }

  // The moment that is shown.
  show(row, time) {
    this.now = time;
    if (this.group) this.cells.forEach((cell, k) => { cell.textContent = number(row[this.group.first + k]); });
    if ($('joints').open) {
      for (const j of this.joints) {
        j.value.textContent = `${number(row[j.position])} ${j.unit}`;
        j.speed.textContent = `${number(row[j.velocity])} ${j.unit}/s`;
        if (j.range) j.mark.style.left = `calc(${100 * Math.min(Math.max((row[j.position] - j.range[0]) / (j.range[1] - j.range[0]), 0), 1)}% - 1px)`;
      }
    }
    this.mark();
  }

  mark() {
    if (this.plot && this.times.length && this.now !== undefined) this.plot.setCursor({ left: this.plot.valToPos(this.now, 'x'), top: 0 }, false);
  }
}
