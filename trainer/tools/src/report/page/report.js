'use strict';
{
  const $ = (id) => document.getElementById(id);
  const COLORS = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#8a6fd1', '#b0413e', '#5a8f29', '#7a7a7a'];
  const data = JSON.parse($('data').textContent);
  const labels = [...new Set(data.runs.map((r) => r.label))];
  const colorOf = (label) => COLORS[labels.indexOf(label) % COLORS.length];
  let over = 'steps', plots = [];

  const element = (name, text, className) => {
    const e = document.createElement(name);
    if (text !== undefined) e.textContent = text;
    if (className) e.className = className;
    return e;
  };
  const number = (x) => {
    if (x === null || x === undefined || !Number.isFinite(x)) return '-';
    const a = Math.abs(x);
    if (a >= 1e9) return `${(x / 1e9).toFixed(1)}G`;
    if (a >= 1e6) return `${(x / 1e6).toFixed(1)}M`;
    if (a >= 1e4) return `${(x / 1e3).toFixed(0)}k`;
    return a !== 0 && a < 1e-3 ? x.toExponential(1) : String(+x.toPrecision(4));
  };

  // Curves [{x, y, label, color, low, high, dash}] as one plot: all x, with gaps.
  function plot(where, title, curves, options = {}) {
    curves = curves.filter((c) => c.y.some((y) => y !== null));
    if (!curves.length) return;
    const box = element('div', undefined, 'plot'), style = getComputedStyle(document.documentElement);
    box.append(element('h3', title));
    where.append(box);
    const xs = [...new Set(curves.flatMap((c) => c.x))].sort((a, b) => a - b);
    const place = new Map(xs.map((x, i) => [x, i]));
    const spread = (x, y) => {
      const out = new Array(xs.length).fill(undefined);
      x.forEach((v, i) => { out[place.get(v)] = y[i]; });
      return out;
    };
    const columns = [xs], series = [{}], bands = [];
    for (const c of curves) {
      columns.push(spread(c.x, c.y));
      series.push({ label: c.label, stroke: c.color, width: 1.6, spanGaps: true, dash: c.dash, points: { show: c.y.filter((y) => y !== null).length < 2 } });
      if (c.low?.some((v) => v !== null)) {
        columns.push(spread(c.x, c.high), spread(c.x, c.low));
        for (let i = 0; i < 2; i++) series.push({ stroke: 'transparent', spanGaps: true, points: { show: false } });
        bands.push({ series: [series.length - 2, series.length - 1], fill: `${c.color}33` });
      }
    }
    const ink = style.getPropertyValue('--faint'), line = style.getPropertyValue('--line');
    const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line }, font: '11px system-ui', values: (_, all) => all.map(number) };
    const marks = options.marks ?? [];
    const lines = (u) => {
      u.ctx.save();
      u.ctx.strokeStyle = '#d0342c';
      u.ctx.globalAlpha = 0.5;
      for (const x of marks) {
        const at = u.valToPos(x, 'x', true);
        u.ctx.beginPath();
        u.ctx.moveTo(at, u.bbox.top);
        u.ctx.lineTo(at, u.bbox.top + u.bbox.height);
        u.ctx.stroke();
      }
      u.ctx.restore();
    };
    const u = new Vendor.uPlot({
      width: Math.max(box.clientWidth - 18, 200), height: 210, series, bands, legend: { show: false }, hooks: { draw: [lines] },
      scales: { x: { time: false } }, axes: [{ ...axis, size: 28 }, { ...axis, size: 56 }],
      cursor: { sync: { key: 'x' }, drag: { x: true, y: false }, points: { show: true, size: 5 } },
    }, columns, box);
    const keys = element('div', undefined, 'keys');
    const spans = curves.map((c) => {
      const span = element('span'), swatch = element('i', undefined, 'swatch');
      swatch.style.background = c.color;
      const value = element('b', number(c.y.filter((y) => y !== null).at(-1)));
      span.append(swatch, `${c.label} `, value);
      keys.append(span);
      return { value, c };
    });
    u.hooks.setCursor = [() => {
      const x = u.posToVal(u.cursor.left, 'x');
      for (const { value, c } of spans) {
        let best = -1;
        c.x.forEach((v, i) => { if (c.y[i] !== null && (best < 0 || Math.abs(v - x) < Math.abs(c.x[best] - x))) best = i; });
        value.textContent = number(u.cursor.left < 0 ? c.y.filter((y) => y !== null).at(-1) : c.y[best]);
      }
    }];
    box.append(keys);
    plots.push(u);
  }

  const name = (run) => {
    const same = data.runs.filter((r) => r.label === run.label);
    return same.length > 1 ? `${run.label} ${same.indexOf(run) + 1}` : run.label;
  };
  const one = (run, tag, color, label, dash) => ({ x: run[over], y: run.tags[tag] ?? [], label, color, dash });
  const runsOf = (tag) => data.runs.filter((r) => r.tags[tag]);

  // A tag: the band over the seeds of each label where there is one, else a line a run.
  function tagged(where, title, tag, marks) {
    const bands = over === 'iteration' ? [] : data.bands.filter((b) => b.tag === tag && b.over === over);
    const curves = bands.length
      ? bands.map((b) => ({ x: b.x, y: b.mean, low: b.low, high: b.high, label: b.runs > 1 ? `${b.label} (${b.runs} runs)` : b.label, color: colorOf(b.label) }))
      : runsOf(tag).map((r) => one(r, tag, colorOf(r.label), name(r)));
    plot(where, title, curves, { marks });
  }

  function section(title) {
    const s = element('section'), grid = element('div', undefined, 'plots');
    s.append(element('h2', title), grid);
    $('sections').append(s);
    return { grid, end: () => { if (!grid.children.length) s.remove(); } };
  }

  // Something happened: counts of guards, roll-backs, levels of memory.
  function events() {
    const all = [];
    for (const run of data.runs) {
      for (const [tag, values] of Object.entries(run.tags)) {
        const level = tag === 'Memory/level', state = /roll_backs$|bad_updates$|lost_log_records$/.test(tag);
        if (!(tag.startsWith('Guard/') || level) || /return_drop$|invalid_samples$/.test(tag)) continue;
        let last = 0;
        values.forEach((v, i) => {
          const happened = level || state ? v > last : v > 0;
          if (happened) all.push({ run, i, tag, count: v });
          if (v !== null) last = v;
        });
      }
    }
    return all.sort((a, b) => a.i - b.i);
  }

  const happened = events();

  function draw() {
    plots.forEach((p) => p.destroy());
    plots = [];
    $('sections').replaceChildren();
    const marks = data.runs.length === 1 ? happened.filter((e) => !/unsolved|overflow/.test(e.tag)).map((e) => e.run[over][e.i]) : [];
    let s = section('Returns');
    tagged(s.grid, 'mean return of evaluations', 'Eval/mean_reward', marks);
    tagged(s.grid, 'mean return in training', 'Train/mean_reward', marks);
    tagged(s.grid, 'episode length [control steps]', 'Train/mean_episode_length', marks);
    const tags = [...new Set(data.runs.flatMap((r) => Object.keys(r.tags)))].sort();
    for (const tag of tags.filter((t) => t.startsWith('Metrics/') || t.startsWith('Eval/Metrics/'))) tagged(s.grid, tag, tag, []);
    s.end();
    for (const [title, start] of [['Reward terms, per episode', 'Episode_Reward/'], ['Ends of episodes, shares', 'Episode_Termination/'], ['Curriculum', 'Curriculum/']]) {
      s = section(title);
      const own = tags.filter((t) => t.startsWith(start));
      for (const run of data.runs.slice(0, 12)) {
        const curves = own.filter((t) => run.tags[t]).map((t, i) => one(run, t, COLORS[i % COLORS.length], t.slice(start.length), i >= COLORS.length ? [6, 4] : undefined));
        plot(s.grid, name(run), curves, {});
      }
      s.end();
    }
    s = section('Throughput');
    tagged(s.grid, 'environment steps per second', 'Perf/total_fps', []);
    for (const run of data.runs.slice(0, 12)) {
      const parts = [['Perf/collection_time', 'collection'], ['Perf/learning_time', 'learning'], ['Perf/evaluation_time', 'evaluation']];
      plot(s.grid, `${name(run)}: time of an iteration [s]`, parts.map(([t, l], i) => one(run, t, COLORS[i], l)), {});
      const inside = [['Perf/physics_ms', 'environments'], ['Perf/policy_ms', 'policy'], ['Perf/gae_ms', 'advantages'], ['Perf/update_ms', 'update']];
      plot(s.grid, `${name(run)}: of it [ms]`, inside.map(([t, l], i) => one(run, t, COLORS[i], l)), {});
    }
    s.end();
    s = section('Memory and environments');
    for (const tag of ['Memory/rss_mib', 'Memory/share', 'Memory/level', 'Memory/gpu_used_mib', 'Perf/num_envs']) tagged(s.grid, tag, tag, []);
    s.end();
    s = section('Learning');
    for (const tag of tags.filter((t) => /^(Loss|Policy|Replay|Search|SelfPlay)\//.test(t))) tagged(s.grid, tag, tag, []);
    s.end();
    s = section('Guards, counts');
    for (const tag of tags.filter((t) => t.startsWith('Guard/') && data.runs.some((r) => r.tags[t]?.some((v) => v > 0)))) tagged(s.grid, tag, tag, []);
    s.end();
  }

  function row(cells, className) {
    const tr = element('tr', undefined, className);
    tr.append(...cells.map((c) => element('td', c)));
    return tr;
  }

  function tables() {
    const body = $('events').querySelector('tbody');
    for (const e of happened.slice(0, 500)) {
      body.append(row([name(e.run), number(e.run.iteration[e.i]), number(e.run.steps[e.i]), number(e.run.time[e.i]), e.tag, number(e.count)]));
    }
    if (!happened.length) body.append(row(['none', '', '', '', '', '']));
    if (happened.length > 500) body.append(row([`and ${happened.length - 500} more`, '', '', '', '', '']));
    const head = element('tr');
    head.append(element('th', 'key'), ...data.runs.map((r) => element('th', name(r))));
    $('config').querySelector('thead').append(head);
    const differs = (values) => new Set(values.map((v) => v ?? '')).size > 1;
    const fill = () => {
      const all = $('all-keys').checked, rows = data.configs.rows.filter(([, v]) => all || differs(v));
      $('config').querySelector('tbody').replaceChildren(...rows.map(([key, v]) => row([key, ...v.map((x) => x ?? '-')], differs(v) ? 'differs' : '')));
      if (!rows.length) $('config').querySelector('tbody').append(row([data.runs.length > 1 ? 'the configurations are the same' : 'one run: choose all keys']));
    };
    $('all-keys').checked = data.runs.length === 1;
    $('all-keys').onchange = fill;
    fill();
    const flat = (path, v, out) => {
      if (v && typeof v === 'object' && !Array.isArray(v)) for (const [k, x] of Object.entries(v)) flat(path ? `${path}.${k}` : k, x, out);
      else if (path && !path.startsWith('earlier_sessions')) out.set(path, Array.isArray(v) ? v.map((x) => (typeof x === 'object' ? JSON.stringify(x) : x)).join(' ') : String(v));
      return out;
    };
    const facts = data.runs.map((r) => flat('', r.meta ?? {}, new Map([['folder', r.folder]])));
    const other = element('tr');
    other.append(element('th', ''), ...data.runs.map((r) => element('th', name(r))));
    $('runs').querySelector('thead').append(other);
    for (const key of new Set(facts.flatMap((f) => [...f.keys()]))) {
      const values = facts.map((f) => f.get(key));
      $('runs').querySelector('tbody').append(row([key, ...values.map((x) => x ?? '-')], data.runs.length > 1 && differs(values) ? 'differs' : ''));
    }
  }

  function begin() {
    document.title = `${data.title} - Ostler report`;
    $('title').textContent = data.title;
    $('subtitle').textContent = `${data.runs.length} ${data.runs.length === 1 ? 'run' : 'runs'}, ${data.made_by}. Lines: interquartile mean over the runs of a label; bands: its 95 % bootstrap interval.`;
    for (const label of labels) {
      const span = element('span'), swatch = element('i', undefined, 'swatch');
      swatch.style.background = colorOf(label);
      span.append(swatch, label);
      $('legend').append(span);
    }
    for (const note of data.notes) $('legend').append(element('span', note));
    for (const [title, gif] of data.pictures) {
      const figure = element('figure'), image = element('img');
      image.src = `data:image/gif;base64,${gif}`;
      image.alt = title;
      figure.append(image, element('figcaption', title));
      $('pictures').append(figure);
    }
    const theme = (dark) => {
      document.documentElement.dataset.theme = dark ? 'dark' : 'light';
      draw();
    };
    $('theme').onclick = () => theme(document.documentElement.dataset.theme !== 'dark');
    $('over').onchange = () => { over = $('over').value; draw(); };
    tables();
    theme(matchMedia('(prefers-color-scheme: dark)').matches);
    globalThis.report = { data, plots: () => plots };
    document.body.dataset.state = 'ready';
  }

  try {
    begin();
  } catch (e) {
    $('message').textContent = e.message;
    document.body.dataset.state = 'failed';
  }
}
