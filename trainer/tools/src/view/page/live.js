'use strict';
// What happens now: rows come over a WebSocket, and wishes go back.
const KEPT_S = 20;

class Live {
  constructor(data, view, panel) {
    Object.assign(this, { data, view, panel, rows: [], times: [], filled: 0, received: 0 });
    $('live').hidden = $('reset').hidden = false;
    for (const id of ['episode', 'back', 'forward', 'time']) $(id).hidden = true;
    $('play').onclick = () => this.say({ do: 'pause', on: !this.status?.paused });
    $('reset').onclick = () => this.say({ do: 'reset' });
    $('speed').onchange = (e) => this.say({ do: 'speed', factor: +e.target.value });
    $('agent').onchange = (e) => this.say({ do: 'agent', who: e.target.value });
    $('checkpoint').onchange = (e) => this.say({ do: 'checkpoint', name: e.target.value });
    addEventListener('keydown', (e) => {
      if (/SELECT|INPUT/.test(e.target.tagName)) return;
      const act = { ' ': () => $('play').click(), r: () => $('reset').click() }[e.key];
      if (act) { e.preventDefault(); act(); }
    });
    this.sliders();
    this.mouse();
    this.open();
  }

  open() {
    const url = new URL('live', location.href);
    url.protocol = 'ws:';
    url.search = location.search;
    this.socket = new WebSocket(url);
    this.socket.binaryType = 'arraybuffer';
    this.socket.onmessage = ({ data }) => (typeof data === 'string' ? this.heard(JSON.parse(data)) : this.take(new Float32Array(data)));
    this.socket.onopen = () => { $('message').textContent = ''; };
    this.socket.onclose = () => {
      $('message').textContent = 'the program has ended or is out of reach: trying again';
      setTimeout(() => this.open(), 1000);
    };
  }

  say(wish) {
    if (this.socket.readyState === 1) this.socket.send(JSON.stringify(wish));
  }

  heard(status) {
    if (status.error) {
      $('message').textContent = status.error;
      setTimeout(() => { $('message').textContent = ''; }, 6000);
      return;
    }
    this.status = status;
    $('play').textContent = status.paused ? 'Play' : 'Pause';
    $('speed').value = status.speed;
    const fill = (id, names, now) => {
      const select = $(id), before = [...select.options].map((o) => o.value);
      if (before.join('\n') !== names.join('\n')) select.replaceChildren(...names.map((n) => new Option(n, n)));
      select.value = now;
      select.hidden = !names.length;
    };
    fill('agent', status.agents, status.agent);
    fill('checkpoint', status.checkpoints, status.checkpoint);
    $('checkpoint').disabled = status.agent !== 'policy';
    $('subtitle').textContent = `${this.data.subtitle}   ${status.shown}`;
  }

  take(row) {
    if (row.length !== this.data.layout.width) return;
    this.jump = this.jump || row[0] < (this.row?.[0] ?? 0);
    this.row = row;
    this.received += 1;
    this.clock = (this.clock ?? 0) + Math.max(row[0] - (this.before ?? row[0]), 0);
    this.before = row[0];
    this.rows.push(row);
    this.times.push(this.clock);
    while (this.times[0] < this.clock - KEPT_S) {
      this.rows.shift();
      this.times.shift();
    }
  }

  tick() {
    if (!this.row || this.row === this.shown) return;
    this.shown = this.row;
    this.view.show(this.row, this.jump);
    this.jump = false;
    this.panel.show(this.row, this.clock);
    $('hud').textContent = `time ${this.row[0].toFixed(2)} s\nreturn ${number(this.row[1])}\nreward ${number(this.row[2])}`;
    const now = performance.now();
    if (now - this.filled > 250) {
      this.filled = now;
      this.panel.fill(this.times.slice(), this.rows.slice());
    }
    for (const s of this.inputs) {
      const x = this.row[s.at];
      s.value.textContent = number(x);
      if (!s.hold.checked) s.range.value = x;
    }
  }

  seek() {}

  sliders() {
    this.inputs = [];
    this.data.layout.commands.forEach((command, index) => {
      const box = element('fieldset'), legend = element('legend'), hold = element('input'), own = [];
      hold.type = 'checkbox';
      legend.append(hold, ` ${command.name} ${command.unit && `[${command.unit}]`}`);
      box.append(legend);
      const send = () => this.say({ do: 'command', index, values: hold.checked ? own.map((r) => +r.value) : null });
      hold.onchange = send;
      command.ranges.forEach(([low, high], i) => {
        const line = element('div', undefined, 'slider'), range = element('input'), value = element('span');
        const name = command.ranges.length > 1 ? 'xyzw'[i] ?? `[${i}]` : 'value';
        const wide = Math.max(high - low, 1e-6);
        Object.assign(range, { type: 'range', min: low - 0.25 * wide, max: high + 0.25 * wide, step: wide / 100 });
        range.oninput = () => { hold.checked = true; send(); };
        own.push(range);
        line.append(element('span', name), range, value);
        box.append(line);
        this.inputs.push({ range, value, hold, at: command.first + i });
      });
      $('sliders').append(box);
    });
  }

  // Shift and drag: the longer, the harder.
  mouse() {
    const { view } = this, canvas = view.canvas;
    let grip = null;
    const along = (e) => {
      const { ray } = view.at(e), normal = view.camera.getWorldDirection(new V.Vector3());
      const plane = new V.Plane().setFromNormalAndCoplanarPoint(normal, grip.point), p = new V.Vector3();
      return ray.ray.intersectPlane(plane, p) ? p.sub(grip.point) : new V.Vector3();
    };
    canvas.addEventListener('pointerdown', (e) => {
      if (!e.shiftKey) return;
      const hit = view.at(e);
      if (!hit.point) return;
      grip = hit;
      view.controls.enabled = false;
      e.stopImmediatePropagation();
    }, true);
    addEventListener('pointermove', (e) => {
      if (!grip) return;
      view.pushing.set(0, grip.point, along(e), 0.015 * view.size);
      view.pushing.done();
    });
    addEventListener('pointerup', (e) => {
      if (!grip) return;
      // A drag as long as the robot changes the velocity by three of its lengths a second.
      const v = along(e).multiplyScalar(3);
      this.say({ do: 'push', body: grip.body, point: grip.point.toArray(), change: v.toArray() });
      view.pushing.set(0, grip.point, new V.Vector3(), 1);
      view.pushing.done();
      grip = null;
      view.controls.enabled = true;
    });
  }
}
