'use strict';
// Unpacks the page's data and begins.
async function unpack(id) {
  const text = $(id).textContent;
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Response(stream).arrayBuffer();
}

// Rows are stored column by column, the bytes of each significance together: they pack better.
function rowsOf(blob, { rows_at: at, row_count: count, layout: { width } }) {
  const from = new Uint8Array(blob, at, 4 * width * count), to = new Uint8Array(from.length);
  for (let c = 0; c < width; c++) {
    for (let b = 0; b < 4; b++) {
      const column = (c * 4 + b) * count;
      for (let r = 0; r < count; r++) to[4 * (r * width + c) + b] = from[column + r];
    }
  }
  return new Float32Array(to.buffer);
}

function themes(view, panel) {
  const set = (dark) => {
    document.documentElement.dataset.theme = dark ? 'dark' : 'light';
    view.theme(dark);
    if (panel.group) panel.make();
  };
  set(matchMedia('(prefers-color-scheme: dark)').matches);
  $('theme').onclick = () => set(document.documentElement.dataset.theme !== 'dark');
}

function tools(view) {
  const follow = $('follow');
  follow.checked = view.follow;
  follow.onchange = () => { view.follow = follow.checked; };
  $('show-contacts').onchange = (e) => view.contacts.show(e.target.checked);
  $('show-commands').onchange = (e) => [view.given, view.had].forEach((a) => a.show(e.target.checked));
  $('show-shadows').onchange = (e) => { view.sun.castShadow = e.target.checked; };
  $('force-scale').oninput = (e) => { view.forceScale = 10 ** +e.target.value; };
  $('home').onclick = () => view.home();
}

function about(data) {
  document.title = `${data.title} - Ostler`;
  $('title').textContent = data.title;
  $('subtitle').textContent = data.subtitle;
  for (const [key, value] of [...data.about, ...data.scene.notes.map((n) => ['note', n])]) {
    const row = element('tr');
    row.append(element('td', key), element('td', value, 'name'));
    $('about').querySelector('tbody').append(row);
  }
}

async function begin() {
  const data = JSON.parse($('data').textContent);
  about(data);
  if (!globalThis.DecompressionStream) throw new Error('this browser is too old: it cannot unpack the page (Chromium 80, Firefox 113 and Safari 16.4 can)');
  const blob = await unpack('blob');
  const textures = await texturesOf(data.scene, blob);
  let view;
  try {
    view = new View($('canvas'), data.scene, blob, data.layout, textures);
  } catch (e) {
    throw new Error(`this browser draws no WebGL: ${e.message}`);
  }
  const shown = {};
  const panel = new Panel(data.layout, (time) => shown.source.seek(time));
  themes(view, panel);
  tools(view);
  shown.source = data.live ? new Live(data, view, panel) : new Player(data, rowsOf(blob, data), view, panel);
  $('play').textContent = 'Pause';
  globalThis.ostler = { data, view, panel, source: shown.source, frames: 0 };
  let last = performance.now(), counted = last, frames = 0, slow = 0;
  const frame = (now) => {
    // A picture's time may lie before that of its script.
    shown.source.tick(Math.min(Math.max(now - last, 0) / 1000, 0.2));
    last = now;
    view.draw();
    globalThis.ostler.frames += 1;
    frames += 1;
    if (now - counted > 1000) {
      const rate = 1000 * frames / (now - counted);
      $('rate').textContent = `${rate.toFixed(0)} fps`;
      [frames, counted] = [0, now];
      slow = rate < 20 && !document.hidden ? slow + 1 : 0;
      if (slow === 2) {
        view.lessen();
        slow = 0;
      }
    }
    document.body.dataset.state = 'ready';
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}

begin().catch((e) => {
  $('message').textContent = e.message;
  document.body.dataset.state = 'failed';
});
