'use strict';
// The three-dimensional picture: shapes on bodies, floor, contacts, commands, camera.
const V = Vendor;

class View {
  constructor(canvas, scene, blob, layout, textures) {
    Object.assign(this, { canvas, data: scene, layout, size: scene.size, textures });
    this.renderer = new V.WebGLRenderer({ canvas, antialias: true });
    this.renderer.setPixelRatio(Math.min(devicePixelRatio, 2));
    this.renderer.shadowMap.enabled = true;
    this.scene = new V.Scene();
    this.camera = new V.PerspectiveCamera(40, 1, 0.02 * this.size, 400 * this.size);
    this.camera.up.set(0, 0, 1);
    this.controls = new V.OrbitControls(this.camera, canvas);
    this.controls.enableDamping = true;
    this.controls.dampingFactor = 0.15;
    this.follow = scene.follow;
    this.root = new V.Vector3();
    this.forceScale = 1;
    this.lights();
    this.floor(blob);
    if (this.terrain) {
      // Episodes begin far from the initial pose, which the camera is about.
      this.first = new V.Vector3(...scene.root_pos);
      this.root.copy(this.first);
      this.tracked = true;
    }
    this.bodies(blob);
    this.contacts = new Arrows(this.scene, Math.max(1, layout.contact_bodies.length), 0xd81b60);
    this.given = new Arrows(this.scene, 4, 0x2e9e4f);
    this.had = new Arrows(this.scene, 4, 0x1f77d0);
    this.pushing = new Arrows(this.scene, 1, 0xf59e0b);
    this.marks();
    this.home();
    new ResizeObserver(() => this.resize()).observe(canvas.parentElement);
    this.resize();
  }

  // What has no shape of its own: tendons, and points that commands ask for.
  marks() {
    const ends = new V.BufferAttribute(new Float32Array(6 * this.layout.string_count), 3);
    const lines = new V.BufferGeometry().setAttribute('position', ends);
    this.strings = new V.LineSegments(lines, new V.LineBasicMaterial({ color: 0x555b66 }));
    this.strings.frustumCulled = false;
    this.scene.add(this.strings);
    const places = this.layout.commands.filter((c) => c.unit === 'm' && c.ranges.length === 3);
    this.goals = places.map(({ first }) => {
      const ball = new V.Mesh(new V.SphereGeometry(0.025, 24, 16), new V.MeshStandardMaterial({ color: 0x2e9e4f }));
      this.scene.add(ball);
      return { first, ball };
    });
  }

  mark(row) {
    const { strings: at, string_count: n } = this.layout, ends = this.strings.geometry.getAttribute('position');
    ends.array.set(row.slice(at, at + 6 * n));
    ends.needsUpdate = true;
    for (const { first, ball } of this.goals) {
      ball.position.set(row[first], row[first + 1], row[first + 2]);
      ball.visible = Number.isFinite(ball.position.length());
    }
  }

  lights() {
    this.ambient = new V.HemisphereLight(0xffffff, 0x8b8f99, 1.6);
    this.ambient.position.set(0, 0, 1);
    this.sun = new V.DirectionalLight(0xffffff, 2.2);
    this.sun.castShadow = true;
    this.sun.shadow.mapSize.set(1024, 1024);
    const s = 1.6 * this.size, c = this.sun.shadow.camera;
    Object.assign(c, { left: -s, right: s, top: s, bottom: -s, near: 0.1 * s, far: 8 * s });
    this.sun.shadow.normalBias = 0.01 * this.size;
    this.offset = new V.Vector3(0.9, -0.7, 2.2).multiplyScalar(1.5 * this.size);
    this.scene.add(this.ambient, this.sun, this.sun.target);
  }

  floor(blob) {
    const half = this.data.floor_half.map((h) => h ?? 150 * this.size);
    // Checks of about a third of the robot, of a round length.
    const step = 10 ** Math.floor(Math.log10(this.size));
    this.check = [1, 2, 5, 10].map((k) => k * step).find((k) => k > 0.3 * this.size) / 2;
    const material = new V.MeshStandardMaterial({ roughness: 1 });
    if (this.data.floor_paint) this.painted = paint(material, { kind: 'plane' }, this.data.floor_paint, this.textures);
    else material.map = this.checks(half);
    if (this.data.terrain) {
      material.map?.repeat.set(1, 1);
      this.terrain = new Ground(this.data.terrain, blob, material, this.check, half[0]);
      this.ground = this.terrain.mesh;
      this.scene.add(this.ground);
      return;
    }
    this.ground = new V.Mesh(new V.PlaneGeometry(2 * half[0], 2 * half[1]), material);
    this.ground.receiveShadow = true;
    this.ground.matrixAutoUpdate = false;
    this.floorFrame = frameOf(this.data.floor);
    this.endless = this.data.floor_half.map((h) => h === null);
    this.ground.matrix.copy(this.floorFrame);
    this.scene.add(this.ground);
  }

  checks(half) {
    const pixels = new Uint8Array([255, 255, 255, 255, 222, 222, 222, 255, 222, 222, 222, 255, 255, 255, 255, 255]);
    const map = new V.DataTexture(pixels, 2, 2);
    map.wrapS = map.wrapT = V.RepeatWrapping;
    map.colorSpace = V.SRGBColorSpace;
    map.generateMipmaps = true;
    map.minFilter = 1008; // linear, between mipmaps
    map.anisotropy = 8;
    map.repeat.set(half[0] / this.check, half[1] / this.check);
    map.needsUpdate = true;
    return map;
  }

  bodies(blob) {
    const meshes = this.data.meshes.map((m) => meshOf(m, blob));
    this.groups = this.data.bodies.map(() => {
      const g = new V.Group();
      g.matrixAutoUpdate = false;
      this.scene.add(g);
      return g;
    });
    this.robot = [];
    for (const s of this.data.solids) {
      const material = new V.MeshStandardMaterial({ color: new V.Color(...s.color), roughness: 0.65, metalness: 0.05 });
      if (s.kind === 'plane' || s.kind === 'mesh') material.side = V.DoubleSide;
      if (s.paint) paint(material, s, s.paint, this.textures);
      const mesh = new V.Mesh(s.kind === 'mesh' ? meshes[s.mesh] : shapeOf(s, 150 * this.size), material);
      mesh.matrixAutoUpdate = false;
      mesh.matrix.copy(frameOf(s.local));
      if (s.kind === 'ellipsoid') mesh.matrix.scale(new V.Vector3(...s.size));
      mesh.castShadow = !s.ground;
      mesh.receiveShadow = true;
      mesh.userData.body = s.body;
      this.groups[s.body].add(mesh);
      if (s.robot) this.robot.push(mesh);
    }
  }

  theme(dark) {
    const sky = new V.Color(dark ? 0x161c25 : 0xdfe9f5);
    this.scene.background = sky;
    this.scene.fog = new V.FogExp2(sky, 0.035 / this.size);
    if (!this.painted) this.ground.material.color.set(dark ? 0x3a4554 : 0xc9d3df);
    this.ambient.intensity = dark ? 1.2 : 1.6;
  }

  // Less work for a machine that draws too few pictures a second; false: there is nothing more
  // to leave out.
  lessen() {
    this.level = (this.level ?? 0) + 1;
    if (this.level === 1) this.sun.shadow.mapSize.set(512, 512);
    else if (this.level <= 3) this.renderer.setPixelRatio(this.renderer.getPixelRatio() * 0.75);
    else return false;
    this.sun.shadow.map?.dispose();
    this.sun.shadow.map = null;
    this.resize();
    return true;
  }

  home() {
    const moved = this.follow ? this.root.clone().sub(this.first ?? this.root) : new V.Vector3();
    this.camera.position.set(...this.data.eye).add(moved);
    this.controls.target.set(...this.data.target).add(moved);
    this.controls.update();
  }

  resize() {
    const box = this.canvas.parentElement, w = Math.max(box.clientWidth, 1), h = Math.max(box.clientHeight, 1);
    this.renderer.setSize(w, h, false);
    this.camera.aspect = w / h;
    this.camera.updateProjectionMatrix();
    // The canvas is empty after a change of its size.
    this.draw();
  }

  // Shows the row of numbers `row`; `jump`: it is another episode's.
  show(row, jump) {
    const q = new V.Quaternion(), p = new V.Vector3(), one = new V.Vector3(1, 1, 1);
    this.groups.forEach((group, b) => {
      const at = this.layout.poses + 7 * b;
      p.set(row[at], row[at + 1], row[at + 2]);
      q.set(row[at + 4], row[at + 5], row[at + 6], row[at + 3]).normalize();
      group.visible = [p.x, p.y, p.z, q.x, q.y, q.z, q.w].every(Number.isFinite) && p.length() < 1e5;
      if (group.visible) group.matrix.compose(p, q, one);
    });
    this.track(row, jump);
    this.touch(row);
    this.steer(row);
    this.mark(row);
  }

  track(row, jump) {
    const at = this.layout.poses + 7 * this.data.root;
    const now = new V.Vector3(row[at], row[at + 1], row[at + 2]);
    if (![now.x, now.y, now.z].every(Number.isFinite)) return;
    this.first ??= now.clone();
    this.yaw = Math.atan2(2 * (row[at + 3] * row[at + 6] + row[at + 4] * row[at + 5]), 1 - 2 * (row[at + 5] ** 2 + row[at + 6] ** 2));
    if (this.follow && this.tracked) {
      const by = now.clone().sub(this.root);
      if (!jump && !this.terrain) by.z *= 0.2;
      this.camera.position.add(by);
      this.controls.target.add(by);
    }
    this.tracked = true;
    this.root.copy(now);
    const around = this.follow ? now : new V.Vector3(...this.data.target);
    this.sun.target.position.copy(around);
    this.sun.position.copy(around).add(this.offset);
    if (this.terrain) {
      this.terrain.around(now.x, now.y);
      // Not into a hill.
      const eye = this.camera.position;
      eye.z = Math.max(eye.z, this.terrain.height(eye.x, eye.y) + 0.3 * this.size);
      return;
    }
    // An endless floor goes along, by whole checks.
    const local = now.clone().applyMatrix4(this.floorFrame.clone().invert());
    const by = [local.x, local.y].map((x, i) => (this.endless[i] ? 2 * this.check * Math.round(x / (2 * this.check)) : 0));
    this.ground.matrix.copy(this.floorFrame).multiply(new V.Matrix4().makeTranslation(by[0], by[1], 0));
    this.painted?.paintOrigin.value.set(by[0], by[1]);
  }

  touch(row) {
    const unit = this.forceScale * 0.5 * this.size / Math.max(this.data.weight, 1e-6);
    const from = new V.Vector3(), to = new V.Vector3();
    this.layout.contact_bodies.forEach((_, i) => {
      const at = this.layout.contacts + 6 * i;
      from.set(row[at], row[at + 1], row[at + 2]);
      to.set(row[at + 3], row[at + 4], row[at + 5]).multiplyScalar(unit);
      this.contacts.set(i, from, to.clampLength(0, 2 * this.size), 0.009 * this.size);
    });
    this.contacts.done();
  }

  // Velocities that are asked for, in the robot's heading, and had.
  steer(row) {
    const above = this.root.clone().add(new V.Vector3(0, 0, 0.45 * this.size));
    let n = 0;
    for (const c of this.layout.commands) {
      const moves = (c.unit === 'm/s' || /vel|speed/i.test(c.name)) && c.ranges.length <= 3;
      if (!moves || n >= 4 || !Number.isFinite(this.yaw)) continue;
      const x = row[c.first], y = c.ranges.length > 1 ? row[c.first + 1] : 0;
      const [s, k] = [Math.sin(this.yaw), Math.cos(this.yaw)];
      const v = new V.Vector3(k * x - s * y, s * x + k * y, 0).multiplyScalar(0.5 * this.size);
      this.given.set(n, above, v, 0.016 * this.size);
      const before = this.last && this.last.time < row[0] && row[0] - this.last.time < 0.5;
      const own = before ? this.root.clone().sub(this.last.root).divideScalar(row[0] - this.last.time) : null;
      if (own) this.speed = (this.speed ?? own).lerp(own, 0.2);
      const had = this.speed && before ? this.speed.clone().setZ(0).multiplyScalar(0.5 * this.size) : new V.Vector3();
      this.had.set(n, above.clone().add(new V.Vector3(0, 0, 0.05 * this.size)), had, 0.016 * this.size);
      n++;
    }
    this.last = { time: row[0], root: this.root.clone() };
    this.given.done();
    this.had.done();
  }

  draw() {
    this.controls.update();
    this.renderer.render(this.scene, this.camera);
  }

  // The part of the robot at a point of the canvas: its body, and the place in the world.
  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const point = new V.Vector2(2 * (event.clientX - box.left) / box.width - 1, 1 - 2 * (event.clientY - box.top) / box.height);
    const ray = new V.Raycaster();
    ray.setFromCamera(point, this.camera);
    const hit = ray.intersectObjects(this.robot, false)[0];
    return { ray, body: hit?.object.userData.body, point: hit?.point };
  }
}

// Arrows from points along vectors.
class Arrows {
  constructor(scene, count, color) {
    const material = new V.MeshBasicMaterial({ color, depthTest: true });
    const shaft = new V.CylinderGeometry(1, 1, 1, 10).translate(0, 0.5, 0).rotateX(Math.PI / 2);
    const head = new V.ConeGeometry(1, 1, 14).translate(0, 0.5, 0).rotateX(Math.PI / 2);
    this.parts = [shaft, head].map((g) => new V.InstancedMesh(g, material, count));
    for (const part of this.parts) {
      part.frustumCulled = false;
      scene.add(part);
    }
    for (let i = 0; i < count; i++) this.set(i, new V.Vector3(), new V.Vector3(), 1);
    this.done();
  }

  show(on) {
    for (const part of this.parts) part.visible = on;
  }

  set(i, from, along, radius) {
    const length = along.length(), m = new V.Matrix4();
    if (!(length > 1e-3 * radius) || !Number.isFinite(length + from.x + from.y + from.z)) {
      m.makeScale(0, 0, 0);
      this.parts.forEach((p) => p.setMatrixAt(i, m));
      return;
    }
    const turn = new V.Quaternion().setFromUnitVectors(new V.Vector3(0, 0, 1), along.clone().divideScalar(length));
    const head = Math.min(5 * radius, 0.5 * length);
    m.compose(from, turn, new V.Vector3(radius, radius, length - head));
    this.parts[0].setMatrixAt(i, m);
    const neck = from.clone().addScaledVector(along, (length - head) / length);
    m.compose(neck, turn, new V.Vector3(2.4 * radius, 2.4 * radius, head));
    this.parts[1].setMatrixAt(i, m);
  }

  done() {
    for (const part of this.parts) part.instanceMatrix.needsUpdate = true;
  }
}

function frameOf(f) {
  return new V.Matrix4().set(f[0], f[3], f[6], f[9], f[1], f[4], f[7], f[10], f[2], f[5], f[8], f[11], 0, 0, 0, 1);
}

function shapeOf({ kind, size: [x, y, z] }, far) {
  switch (kind) {
    case 'sphere': return new V.SphereGeometry(x, 32, 20);
    case 'ellipsoid': return new V.SphereGeometry(1, 32, 20);
    case 'capsule': return new V.CapsuleGeometry(x, 2 * y, 10, 24).rotateX(Math.PI / 2);
    case 'cylinder': return new V.CylinderGeometry(x, x, 2 * y, 32).rotateX(Math.PI / 2);
    case 'box': return new V.BoxGeometry(2 * x, 2 * y, 2 * z);
    default: return new V.PlaneGeometry(2 * (x || far), 2 * (y || far));
  }
}

function meshOf(m, blob) {
  const g = new V.BufferGeometry();
  g.setAttribute('position', new V.BufferAttribute(new Float32Array(blob, m.corners, 3 * m.count), 3));
  const packed = new Int8Array(blob, m.corners + 12 * m.count, 4 * m.count), normals = new Int8Array(3 * m.count);
  for (let i = 0; i < m.count; i++) for (let k = 0; k < 3; k++) normals[3 * i + k] = packed[4 * i + k];
  g.setAttribute('normal', new V.BufferAttribute(normals, 3, true));
  if (m.coords != null) g.setAttribute('coords', new V.BufferAttribute(new Float32Array(blob, m.coords, 2 * m.count), 2));
  g.setIndex(new V.BufferAttribute(new Uint32Array(blob, m.indices, m.index_count), 1));
  return g;
}
