// A prototype: Newton's method of sim/kernels/newton.cuh with one warp an environment, working
// memory in shared memory, lanes over degrees of freedom, rows and contacts. Not part of any
// program: docs/gpu.md has what it costs and what it is for.
//
// DOFS, ROWS, CONTACTS, DIM: the robot's degrees of freedom, the most rows that are no cones, the
// most cones and their most directions.
// Source: MuJoCo, Computation, "Primal problem"; engine_solver.c.

struct Args { const float* in; float* out; int n; float tolerance; };

enum { EQUALITY, FRICTION, TENDON_FRICTION, LIMIT, TENDON_LIMIT, FRICTIONLESS, PYRAMID, ELLIPTIC };
enum { WIDE = (DOFS + 3) / 4 * 4, LONG = WIDE + 1, OWN = (DOFS + 31) / 32, CONES = DIM * CONTACTS };
enum { ROUNDS = (ROWS + 31) / 32, EACH = ROWS + CONES, ALL = DOFS * DOFS + 2 * DOFS + EACH * DOFS + 4 * EACH + 2 + DIM * CONTACTS };
constexpr unsigned EVERY = 0xffffffffu;

// Of one environment. Rows of cones stand behind the others, DIM for each; a cone of fewer
// directions has rows of zeros.
struct Shared {
  float4 j[EACH][WIDE / 4];         // Jacobian
  float mass[DOFS][LONG], factor[DOFS][LONG];  // the latter of the Hessian
  float4 x[WIDE / 4], step[WIDE / 4];
  float ma[WIDE], mstep[WIDE], grad[WIDE];
  float d[EACH], jar[EACH], js[EACH], slope[EACH], loss[ROWS], curve[ROWS];
  float4 cone[CONTACTS][DIM][2];    // curvature of a contact
  float mu[CONTACTS], friction[CONTACTS][DIM - 1];
  int type[ROWS];
};

__device__ float sum(float x) {
  for (int by = 16; by > 0; by /= 2) x += __shfl_xor_sync(EVERY, x, by);
  return x;
}
__device__ float& number(float4* all, int i) { return ((float*)all)[i]; }
__device__ float jacobian(const Shared& s, int row, int dof) { return ((const float*)s.j[row])[dof]; }

// out = J x: of the first rows, and of the cones.
__device__ void rows_mul(Shared& s, int rows, int contacts, const float4* x, float* out, unsigned lane) {
  const int all = rows + DIM * contacts;
  for (int i = lane; i < all; i += 32) {
    const int r = i < rows ? i : ROWS + i - rows;
    float sum = 0;
#pragma unroll
    for (int c = 0; c < WIDE / 4; c++) {
      const float4 j = s.j[r][c], v = x[c];
      sum = fmaf(j.x, v.x, fmaf(j.y, v.y, fmaf(j.z, v.z, fmaf(j.w, v.w, sum))));
    }
    out[r] = sum;
  }
  __syncwarp();
}
// out = M x.
__device__ void mass_mul(Shared& s, const float4* x, float* out, unsigned lane) {
#pragma unroll
  for (int o = 0; o < OWN; o++) {
    const int r = lane + 32 * o;
    if (r >= DOFS) break;
    float sum = 0;
#pragma unroll
    for (int c = 0; c < WIDE / 4; c++) {
      const float4 v = x[c];
      sum = fmaf(s.mass[r][4 * c], v.x, sum);
      if (4 * c + 1 < DOFS) sum = fmaf(s.mass[r][4 * c + 1], v.y, sum);
      if (4 * c + 2 < DOFS) sum = fmaf(s.mass[r][4 * c + 2], v.z, sum);
      if (4 * c + 3 < DOFS) sum = fmaf(s.mass[r][4 * c + 3], v.w, sum);
    }
    out[r] = sum;
  }
  __syncwarp();
}

struct Cone { float n, t, nt, u[DIM - 1]; bool top, bottom; };
__device__ Cone cone_of(const Shared& s, int k, const float (&x)[DIM]) {
  Cone c;
  const float mu = s.mu[k];
  float t2 = 0;
#pragma unroll
  for (int i = 0; i < DIM - 1; i++) {
    c.u[i] = x[i + 1] * s.friction[k][i];
    t2 = fmaf(c.u[i], c.u[i], t2);
  }
  c.n = mu * x[0];
  c.t = sqrtf(t2);
  c.nt = fmaf(-mu, c.t, c.n);
  const bool point = c.t < 1e-15f;
  c.top = c.n >= mu * c.t || (point && c.n >= 0);
  c.bottom = !c.top && (fmaf(mu, c.n, c.t) <= 0 || (point && c.n < 0));
  return c;
}
__device__ void residuals(const Shared& s, int k, const float* from, float (&x)[DIM]) {
#pragma unroll
  for (int i = 0; i < DIM; i++) x[i] = from[ROWS + DIM * k + i];
}
// Slope and curvature of a row that is no cone.
__device__ float2 row_cost(const Shared& s, int r, float x) {
  const float d = s.d[r];
  if (s.type[r] >= LIMIT) return x < 0 ? make_float2(d * x, d) : make_float2(0, 0);
  const float f = d * x, loss = s.loss[r];
  if (s.type[r] == EQUALITY || (f < loss && f > -loss)) return make_float2(f, d);
  return make_float2(f > 0 ? loss : -loss, 0);
}

// Slopes and curvatures of all rows and contacts; which rows have a curvature, which a slope
// alone, which contacts push.
__device__ void costs(Shared& s, int rows, int contacts, unsigned (&curved)[ROUNDS], unsigned (&slips)[ROUNDS], unsigned& pushing, unsigned lane) {
#pragma unroll
  for (int o = 0; o < ROUNDS; o++) {
    const int r = lane + 32 * o;
    float2 c = make_float2(0, 0);
    if (r < rows) {
      c = row_cost(s, r, s.jar[r]);
      s.slope[r] = c.x, s.curve[r] = c.y;
    }
    curved[o] = __ballot_sync(EVERY, c.y != 0);
    slips[o] = __ballot_sync(EVERY, c.y == 0 && c.x != 0);
  }
  bool pushes = false;
  if (lane < contacts) {
    const int k = lane, row = ROWS + DIM * k;
    float x[DIM];
    residuals(s, k, s.jar, x);
    const Cone c = cone_of(s, k, x);
    pushes = !c.top;
    if (pushes) {
      const float mu = s.mu[k], it = c.bottom ? 0 : 1 / c.t, dm = c.bottom ? 0 : s.d[row] / (mu * mu * (1 + mu * mu)), ratio = mu * c.n * it;
      float u[DIM], h[8];
      u[0] = -mu;
#pragma unroll
      for (int i = 1; i < DIM; i++) u[i] = c.u[i - 1] * it * s.friction[k][i - 1];
#pragma unroll
      for (int i = 0; i < DIM; i++) {
        s.slope[row + i] = c.bottom ? s.d[row + i] * x[i] : -dm * c.nt * (i == 0 ? -mu : mu * u[i]);
#pragma unroll
        for (int j = 0; j < 8; j++) {
          float v = 0;
          if (j < DIM && (i == 0 || j == 0)) v = i + j == 0 ? mu * mu : -mu * mu * u[i + j];
          else if (j < DIM) v = fmaf(ratio, u[i] * u[j], i == j ? (mu * mu - ratio) * s.friction[k][i - 1] * s.friction[k][i - 1] : 0);
          h[j] = fmaf(dm, v, i == j && c.bottom ? s.d[row + i] : 0);
        }
        s.cone[k][i][0] = make_float4(h[0], h[1], h[2], h[3]);
        s.cone[k][i][1] = make_float4(h[4], h[5], 0, 0);
      }
    }
  }
  pushing = __ballot_sync(EVERY, pushes);
  __syncwarp();
}

// a += t J[row] for the lane's own rows of the Hessian.
__device__ void add_row(const Shared& s, int row, const float (&t)[OWN], float (&a)[OWN][WIDE]) {
#pragma unroll
  for (int c = 0; c < WIDE / 4; c++) {
    const float4 j = s.j[row][c];
#pragma unroll
    for (int o = 0; o < OWN; o++) {
      a[o][4 * c] = fmaf(t[o], j.x, a[o][4 * c]);
      a[o][4 * c + 1] = fmaf(t[o], j.y, a[o][4 * c + 1]);
      a[o][4 * c + 2] = fmaf(t[o], j.z, a[o][4 * c + 2]);
      a[o][4 * c + 3] = fmaf(t[o], j.w, a[o][4 * c + 3]);
    }
  }
}

// grad = M x - smooth + J' slope; step = -H^-1 grad.
__device__ void direction(Shared& s, const unsigned (&curved)[ROUNDS], const unsigned (&slips)[ROUNDS], unsigned pushing, unsigned lane) {
  float a[OWN][WIDE], g[OWN], t[OWN], j[OWN][DIM];
#pragma unroll
  for (int o = 0; o < OWN; o++) {
    const int r = lane + 32 * o, own = r < DOFS ? r : 0;
    g[o] = s.ma[own];
#pragma unroll
    for (int c = 0; c < WIDE; c++) a[o][c] = c < DOFS ? s.mass[own][c] : 0;
  }
#pragma unroll
  for (int round = 0; round < ROUNDS; round++) {
    for (unsigned rest = curved[round]; rest; rest &= rest - 1) {
      const int r = __ffs(rest) - 1 + 32 * round;
#pragma unroll
      for (int o = 0; o < OWN; o++) {
        const float one = jacobian(s, r, lane + 32 * o);
        g[o] = fmaf(s.slope[r], one, g[o]);
        t[o] = s.curve[r] * one;
      }
      add_row(s, r, t, a);
    }
    // Dry friction that slips.
    for (unsigned rest = slips[round]; rest; rest &= rest - 1) {
      const int r = __ffs(rest) - 1 + 32 * round;
#pragma unroll
      for (int o = 0; o < OWN; o++) g[o] = fmaf(s.slope[r], jacobian(s, r, lane + 32 * o), g[o]);
    }
  }
  for (; pushing; pushing &= pushing - 1) {
    const int k = __ffs(pushing) - 1, row = ROWS + DIM * k;
#pragma unroll
    for (int i = 0; i < DIM; i++)
#pragma unroll
      for (int o = 0; o < OWN; o++) {
        j[o][i] = jacobian(s, row + i, lane + 32 * o);
        g[o] = fmaf(s.slope[row + i], j[o][i], g[o]);
      }
#pragma unroll
    for (int i = 0; i < DIM; i++) {
      const float4 low = s.cone[k][i][0], high = s.cone[k][i][1];
      const float h[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
      for (int o = 0; o < OWN; o++) {
        t[o] = 0;
#pragma unroll
        for (int e = 0; e < DIM; e++) t[o] = fmaf(h[e], j[o][e], t[o]);
      }
      add_row(s, row + i, t, a);
    }
  }
  // L D L', a row a lane; below the diagonal a has L's columns, times D's.
  float inverse[DOFS], mine[OWN], y[OWN];
#pragma unroll
  for (int k = 0; k < DOFS; k++) {
    inverse[k] = 1 / __shfl_sync(EVERY, a[k / 32][k], k % 32);
    float l[OWN];
#pragma unroll
    for (int o = 0; o < OWN; o++) l[o] = a[o][k] * inverse[k];
#pragma unroll
    for (int c = k + 1; c < DOFS; c++) {
      const float lc = __shfl_sync(EVERY, a[c / 32][k], c % 32);
#pragma unroll
      for (int o = 0; o < OWN; o++) a[o][c] = fmaf(-l[o], lc, a[o][c]);
    }
  }
#pragma unroll
  for (int o = 0; o < OWN; o++) {
    const int r = lane + 32 * o;
    y[o] = -g[o];
    if (r < DOFS) {
      s.grad[r] = g[o];
#pragma unroll
      for (int c = 0; c < DOFS; c++) s.factor[r][c] = a[o][c];
    }
  }
  __syncwarp();
  float own[OWN];  // of y / D
#pragma unroll
  for (int k = 0; k < DOFS; k++) {
    const float yk = __shfl_sync(EVERY, y[k / 32], k % 32) * inverse[k];
#pragma unroll
    for (int o = 0; o < OWN; o++) {
      if (lane + 32 * o == k) own[o] = yk, mine[o] = inverse[k];
      y[o] = fmaf(-a[o][k], yk, y[o]);
    }
  }
#pragma unroll
  for (int k = DOFS - 1; k >= 0; k--) {
    const float xk = __shfl_sync(EVERY, own[k / 32], k % 32);
#pragma unroll
    for (int o = 0; o < OWN; o++)
      if (lane + 32 * o < k) own[o] = fmaf(-s.factor[k][lane + 32 * o] * mine[o], xk, own[o]);
  }
#pragma unroll
  for (int o = 0; o < OWN; o++)
    if (lane + 32 * o < DOFS) number(s.step, lane + 32 * o) = own[o];
  __syncwarp();
}

// Whether a step of 1 leaves a row or a cone in the piece of its cost where it is.
__device__ bool changes(const Shared& s, int rows, int contacts, unsigned lane) {
  bool change = false;
#pragma unroll
  for (int o = 0; o < ROUNDS; o++) {
    const int r = lane + 32 * o;
    if (r >= rows) continue;
    change |= row_cost(s, r, s.jar[r]).y != row_cost(s, r, s.jar[r] + s.js[r]).y;
  }
  if (lane < contacts) {
    float x[DIM], y[DIM];
    residuals(s, lane, s.jar, x);
    residuals(s, lane, s.js, y);
#pragma unroll
    for (int i = 0; i < DIM; i++) y[i] += x[i];
    const Cone a = cone_of(s, lane, x), b = cone_of(s, lane, y);
    change |= !((a.top && b.top) || (a.bottom && b.bottom));
  }
  return __any_sync(EVERY, change);
}

// Slope and curvature of the cost along the step at length a, but of the quadratic.
__device__ float2 along(const Shared& s, int rows, int contacts, float a, unsigned lane) {
  float d1 = 0, d2 = 0;
#pragma unroll
  for (int o = 0; o < ROUNDS; o++) {
    const int r = lane + 32 * o;
    if (r >= rows) continue;
    const float2 c = row_cost(s, r, fmaf(a, s.js[r], s.jar[r]));
    d1 = fmaf(c.x, s.js[r], d1);
    d2 = fmaf(c.y * s.js[r], s.js[r], d2);
  }
  if (lane < contacts) {
    const int k = lane, row = ROWS + DIM * k;
    float x[DIM], y[DIM];
    residuals(s, k, s.jar, x);
    residuals(s, k, s.js, y);
#pragma unroll
    for (int i = 0; i < DIM; i++) x[i] = fmaf(a, y[i], x[i]);
    const Cone c = cone_of(s, k, x);
    if (c.bottom) {
#pragma unroll
      for (int i = 0; i < DIM; i++) {
        const float dy = s.d[row + i] * y[i];
        d1 = fmaf(dy, x[i], d1);
        d2 = fmaf(dy, y[i], d2);
      }
    } else if (!c.top) {
      const float mu = s.mu[k], it = 1 / c.t, dm = s.d[row] / (mu * mu * (1 + mu * mu));
      float uv = 0, vv = 0;
#pragma unroll
      for (int i = 0; i < DIM - 1; i++) {
        const float v = y[i + 1] * s.friction[k][i];
        uv = fmaf(c.u[i], v, uv);
        vv = fmaf(v, v, vv);
      }
      const float t1 = uv * it, t2 = fmaf(-t1, t1, vv) * it, e = fmaf(-mu, t1, y[0] * mu);
      d1 = fmaf(dm * c.nt, e, d1);
      d2 = fmaf(dm, fmaf(-mu * c.nt, t2, e * e), d2);
    }
  }
  return make_float2(sum(d1), sum(d2));
}

extern "C" __global__ void __launch_bounds__(32) newton(const __grid_constant__ Args args) {
  __shared__ Shared s;
  const unsigned lane = threadIdx.x;
  const float* in = args.in + (unsigned long long)ALL * blockIdx.x;
  if (blockIdx.x >= args.n) return;
  const float *mass = in, *smooth = mass + DOFS * DOFS, *start = smooth + DOFS, *jac = start + DOFS, *d = jac + EACH * DOFS,
              *aref = d + EACH, *loss = aref + EACH, *type = loss + EACH, *counts = type + EACH, *con = counts + 2;
  const int rows = (int)counts[0], contacts = (int)counts[1];
  for (int r = 0; r < DOFS; r++)
    for (int c = lane; c < DOFS; c += 32) s.mass[r][c] = mass[r * DOFS + c];
  for (int i = lane; i < WIDE; i += 32) {
    number(s.x, i) = i < DOFS ? start[i] : 0;
    number(s.step, i) = 0;
  }
  for (int i = 0; i < rows + DIM * contacts; i++) {
    const int r = i < rows ? i : ROWS + i - rows;
    for (int c = lane; c < WIDE; c += 32) number(s.j[r], c) = c < DOFS ? jac[r * DOFS + c] : 0;
    if (lane == 0) s.d[r] = d[r], s.slope[r] = 0;
  }
  for (int r = lane; r < rows; r += 32) s.loss[r] = loss[r], s.type[r] = (int)type[r];
  if (lane < contacts) {
    s.mu[lane] = con[DIM * lane];
    for (int i = 0; i < DIM - 1; i++) s.friction[lane][i] = con[DIM * lane + 1 + i];
  }
  __syncwarp();
  rows_mul(s, rows, contacts, s.x, s.jar, lane);
  for (int i = lane; i < rows + DIM * contacts; i += 32) {
    const int r = i < rows ? i : ROWS + i - rows;
    s.jar[r] -= aref[r];
  }
  mass_mul(s, s.x, s.ma, lane);
  for (int i = lane; i < DOFS; i += 32) s.ma[i] -= smooth[i];
  __syncwarp();
  int it = 0;
  for (bool done = false; !done && it < 100; it++) {
    unsigned curved[ROUNDS], slips[ROUNDS], pushing;
    costs(s, rows, contacts, curved, slips, pushing, lane);
    direction(s, curved, slips, pushing, lane);
    rows_mul(s, rows, contacts, s.step, s.js, lane);
    const bool change = changes(s, rows, contacts, lane);
    mass_mul(s, s.step, s.mstep, lane);
    float slope = 0, q1 = 0, q2 = 0;
    for (int i = lane; i < DOFS; i += 32) {
      slope = fmaf(number(s.step, i), s.grad[i], slope);
      q1 = fmaf(number(s.step, i), s.ma[i], q1);
      q2 = fmaf(number(s.step, i), s.mstep[i], q2);
    }
    slope = sum(slope), q1 = sum(q1), q2 = sum(q2);
    float a = 1, lo = 0, hi = 1e30f;
    for (int k = 0; change && k < 16; k++) {
      const float2 c = along(s, rows, contacts, a, lane);
      const float d1 = fmaf(a, q2, q1) + c.x, d2 = q2 + c.y;
      if (!(fabsf(d1) > -0.01f * slope)) break;
      if (d1 < 0) lo = fmaxf(lo, a);
      if (d1 > 0) hi = fminf(hi, a);
      const float next = a - d1 / d2;
      a = next > lo && next < hi ? next : hi < 1e29f ? 0.5f * (lo + hi) : a + a;
    }
    __syncwarp();
    for (int i = lane; i < DOFS; i += 32) {
      number(s.x, i) = fmaf(a, number(s.step, i), number(s.x, i));
      s.ma[i] = fmaf(a, s.mstep[i], s.ma[i]);
    }
    for (int i = lane; i < rows + DIM * contacts; i += 32) {
      const int r = i < rows ? i : ROWS + i - rows;
      s.jar[r] = fmaf(a, s.js[r], s.jar[r]);
    }
    done = !change || !(-0.5f * slope > args.tolerance);
    __syncwarp();
  }
  for (int i = lane; i < DOFS; i += 32) args.out[(DOFS + 1ull) * blockIdx.x + i] = number(s.x, i);
  if (lane == 0) args.out[(DOFS + 1ull) * blockIdx.x + DOFS] = it;
}
