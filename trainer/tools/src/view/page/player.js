'use strict';
// A recording: episodes of rows, played along a slider.
class Player {
  constructor(data, rows, view, panel) {
    Object.assign(this, { data, rows, view, panel, time: 0, playing: true, speed: 1, mixed: new Float32Array(data.layout.width) });
    const select = $('episode');
    data.episodes.forEach((e, i) => {
      const end = e.end ? `return ${number(e.end[0])}` : 'not ended';
      select.append(new Option(`episode ${i + 1}: ${end}${e.cause ? `, ${e.cause}` : ''}`, i));
    });
    select.onchange = () => this.choose(+select.value);
    $('play').onclick = () => this.toggle();
    $('back').onclick = () => this.step(-1);
    $('forward').onclick = () => this.step(1);
    $('speed').onchange = (e) => { this.speed = +e.target.value; };
    $('time').oninput = (e) => this.seek(+e.target.value);
    addEventListener('keydown', (e) => {
      if (/SELECT|INPUT/.test(e.target.tagName) && e.target.type !== 'range') return;
      const act = { ' ': () => this.toggle(), ArrowLeft: () => this.step(-1), ArrowRight: () => this.step(1) }[e.key];
      if (act) { e.preventDefault(); act(); }
    });
    this.choose(0);
  }

  row(i) {
    const w = this.data.layout.width;
    return this.rows.subarray(i * w, (i + 1) * w);
  }

  choose(i) {
    $('episode').value = i;
    this.number = i;
    this.episode = this.data.episodes[i];
    this.end = (this.episode.rows - 1) * this.data.dt;
    $('time').max = Math.max(this.end, 1e-9);
    const all = Array.from({ length: this.episode.rows }, (_, k) => this.row(this.episode.first + k));
    this.panel.fill(all.map((_, k) => k * this.data.dt), all);
    this.time = 0;
    this.show(true);
  }

  toggle() {
    this.playing = !this.playing;
    if (this.playing && this.time >= this.end) this.time = 0;
    $('play').textContent = this.playing ? 'Pause' : 'Play';
  }

  step(by) {
    if (this.playing) this.toggle();
    this.seek((Math.round(this.time / this.data.dt) + by) * this.data.dt);
  }

  seek(time) {
    this.time = Math.min(Math.max(time, 0), this.end);
    this.show(true);
  }

  tick(seconds) {
    if (!this.playing) return;
    this.time += this.speed * seconds;
    if (this.time > this.end) {
      // On to the next episode, and from the last one to the first.
      this.choose((this.number + 1) % this.data.episodes.length);
      return;
    }
    this.show(false);
  }

  show(jump) {
    const at = this.time / this.data.dt, i = Math.min(Math.floor(at + 1e-6), this.episode.rows - 1);
    const a = this.row(this.episode.first + i), b = this.row(this.episode.first + Math.min(i + 1, this.episode.rows - 1));
    this.view.show(this.between(a, b, Math.max(at - i, 0)), jump);
    this.panel.show(a, this.time);
    $('time').value = this.time;
    $('clock').textContent = `${this.time.toFixed(2)} / ${this.end.toFixed(2)} s`;
    $('hud').textContent = `return ${number(a[1])}\nreward ${number(a[2])}`;
    document.body.dataset.row = this.episode.first + i;
  }

  // Poses between two rows; other numbers are the first one's.
  between(a, b, t) {
    if (t < 1e-3) return a;
    const out = this.mixed, { poses, contacts } = this.data.layout;
    out.set(a);
    for (let k = poses; k < contacts; k += 7) {
      let dot = 0;
      for (let i = 3; i < 7; i++) dot += a[k + i] * b[k + i];
      for (let i = 0; i < 7; i++) out[k + i] = a[k + i] + t * ((i > 2 && dot < 0 ? -b[k + i] : b[k + i]) - a[k + i]);
    }
    out[0] = a[0] + t * (b[0] - a[0]);
    return out;
  }
}
