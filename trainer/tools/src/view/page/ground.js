'use strict';
// The ground that environments share: what of it lies around the robot, made anew where the robot
// has gone far. Beyond that it is drawn level, which the haze hides.
class Ground {
  constructor(data, blob, material, check, far) {
    Object.assign(this, { data, far, check });
    this.total = data.tiles.map((tiles) => tiles * data.cells);
    this.heights = new Uint16Array(blob, data.heights, data.tiles[0] * data.tiles[1] * (data.cells + 1) ** 2);
    // Cells from the robot on.
    this.reach = Math.min(Math.ceil(18 / data.cell), 200);
    material.side = V.DoubleSide;
    this.mesh = new V.Mesh(new V.BufferGeometry(), material);
    this.mesh.receiveShadow = true;
    this.mesh.frustumCulled = false;
  }

  // Heights at a cell's corners: least x and y, the next along x, the next along y, both; as in
  // sim/kernels/collide/ground.cuh.
  corners(c, r) {
    const { tiles, cells, low, step } = this.data;
    if (c < 0 || r < 0 || c >= this.total[0] || r >= this.total[1]) return [0, 0, 0, 0];
    const i = Math.floor(c / cells), k = Math.floor(r / cells), side = cells + 1;
    const at = ((i * tiles[1] + k) * side + r - k * cells) * side + c - i * cells;
    const z = (place) => low + step * (this.heights[place] >> 1);
    return this.heights[at] & 1 ? new Array(4).fill(z(at)) : [z(at), z(at + 1), z(at + side), z(at + side + 1)];
  }

  // Greatest height of the cell at a place (m).
  height(x, y) {
    const { cell, corner } = this.data;
    return Math.max(...this.corners(...[x, y].map((p, i) => Math.floor((p - corner[i]) / cell))));
  }

  // Draws what lies around a place.
  around(x, y) {
    const { cell, corner } = this.data, here = [x, y].map((p, i) => Math.round((p - corner[i]) / cell));
    if (this.here && Math.max(...here.map((p, i) => Math.abs(p - this.here[i]))) < 0.3 * this.reach) return;
    this.here = here;
    const points = [], normals = [], indices = [];
    const quad = (corners, normal) => {
      const first = points.length / 3;
      for (const p of corners) points.push(...p), normals.push(...normal);
      indices.push(first, first + 1, first + 2, first, first + 2, first + 3);
    };
    const [[c0, c1], [r0, r1]] = here.map((p) => [p - this.reach, p + this.reach]);
    const X = (c) => corner[0] + c * cell, Y = (r) => corner[1] + r * cell;
    // A little larger, so that there is no gap where a row's end meets another row's middle.
    const more = 1e-3;
    const flat = (ca, cb, ra, rb, z) => {
      const [x, y] = [[X(ca) - more, X(cb) + more], [Y(ra) - more, Y(rb) + more]];
      quad([[x[0], y[0], z], [x[1], y[0], z], [x[1], y[1], z], [x[0], y[1], z]], [0, 0, 1]);
    };
    const slope = (a, b, c) => {
      const [u, v] = [b, c].map((p) => p.map((x, i) => x - a[i]));
      const n = [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]];
      const first = points.length / 3, length = Math.hypot(...n);
      for (const p of [a, b, c]) points.push(...p), normals.push(...n.map((x) => x / length));
      indices.push(first, first + 1, first + 2);
    };
    const side = (from, to, low, high, normal) => {
      if (low[0] === high[0] && low[1] === high[1]) return;
      const sign = low[0] + low[1] < high[0] + high[1] ? -1 : 1;
      quad([[...from, low[0]], [...to, low[1]], [...to, high[1]], [...from, high[0]]], normal.map((x) => sign * x));
    };
    let before = [];
    for (let r = r0; r < r1; r++) {
      const row = [];
      for (let c = c0; c < c1; c++) row.push(this.corners(c, r));
      const level = ([a, b, c, d]) => a === b && a === c && a === d;
      for (let i = 0; i < row.length; i++) {
        const h = row[i], c = c0 + i, left = row[i - 1], below = before[i];
        // Walls to the cells on the left and below.
        if (left) side([X(c), Y(r)], [X(c), Y(r + 1)], [left[1], left[3]], [h[0], h[2]], [1, 0, 0]);
        if (below) side([X(c), Y(r)], [X(c + 1), Y(r)], [below[2], below[3]], [h[0], h[1]], [0, 1, 0]);
        if (level(h)) {
          // Level neighbours are one.
          if (left && level(left) && left[0] === h[0]) continue;
          let end = i + 1;
          while (end < row.length && level(row[end]) && row[end][0] === h[0]) end++;
          flat(c, c0 + end, r, r + 1, h[0]);
        } else {
          const [a, b, d, e] = [[c, r], [c + 1, r], [c, r + 1], [c + 1, r + 1]].map(([x, y], k) => [X(x), Y(y), h[k]]);
          slope(a, b, e);
          slope(a, e, d);
        }
      }
      before = row;
    }
    const n = Math.ceil(this.far / cell);
    flat(c0 - n, c0, r0 - n, r1 + n, 0);
    flat(c1, c1 + n, r0 - n, r1 + n, 0);
    flat(c0, c1, r0 - n, r0, 0);
    flat(c0, c1, r1, r1 + n, 0);
    const g = new V.BufferGeometry(), places = new Float32Array((2 * points.length) / 3);
    for (let i = 0; i < places.length; i++) {
      // A wall has the check behind it: it may lie between two.
      const k = 3 * (i >> 1) + (i & 1);
      places[i] = (points[k] - 0.01 * normals[k]) / (2 * this.check);
    }
    g.setAttribute('position', new V.BufferAttribute(new Float32Array(points), 3));
    g.setAttribute('normal', new V.BufferAttribute(new Float32Array(normals), 3));
    g.setAttribute('uv', new V.BufferAttribute(places, 2));
    g.setIndex(new V.BufferAttribute(new Uint32Array(indices), 1));
    this.mesh.geometry.dispose();
    this.mesh.geometry = g;
  }
}
