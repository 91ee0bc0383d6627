"""MuJoCo's own C stepping, timed: `mujoco.rollout`, on one thread or on its pool.

Used by mujoco_states.py (operation "speed"). The first call for a model samples
starting states from roll-outs and controls, and writes them, so that another engine
can do the same work: qpos [N,nq], qvel [N,nv], ctrl [S*N,nu], row s * N + e for
environment e during the s-th `hold` steps. Every call steps all of it once and
answers with the seconds: of processor time on one thread, of the clock on several or
if it is asked for.
"""

import time

import mujoco
import numpy as np
from mujoco import rollout

CASES = {}


def prepare(model, worlds, steps, hold, seed, controls):
    """Start states as MuJoCo's rollout takes them, controls [N,steps,nu]."""
    rng = np.random.default_rng(seed)
    data = mujoco.MjData(model)
    starts = []
    while len(starts) < worlds:
        mujoco.mj_resetData(model, data)
        data.qvel[:] = rng.normal(size=model.nv) * 0.1
        for step in range(1, 401):
            if step % 5 == 1:
                data.ctrl[:] = controls(model, rng)
            mujoco.mj_step(model, data)
            if step % 25 == 0 and len(starts) < worlds:
                starts.append((data.qpos.copy(), data.qvel.copy()))
    qpos, qvel = (np.array(x).astype(np.float32).astype(np.float64) for x in zip(*starts))
    size = mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    state = np.zeros((worlds, size))
    state[:, 1 : 1 + model.nq] = qpos
    state[:, 1 + model.nq : 1 + model.nq + model.nv] = qvel
    plan = np.array([[controls(model, rng) for _ in range(worlds)] for _ in range(steps // hold)])
    plan = plan.reshape(steps // hold, worlds, model.nu).astype(np.float32).astype(np.float64)
    return qpos, qvel, state, plan


def speed(model, out, controls, worlds=256, steps=100, hold=5, seed=0, threads=1, by_clock=False):
    """Seconds for `worlds * steps` steps by the Euler integrator."""
    key = (model, worlds, steps, hold, seed, threads)
    if key not in CASES:
        loaded = mujoco.MjModel.from_xml_path(model)
        loaded.opt.integrator = mujoco.mjtIntegrator.mjINT_EULER
        qpos, qvel, state, plan = prepare(loaded, worlds, steps, hold, seed, controls)
        np.savez(out, qpos=qpos, qvel=qvel, ctrl=plan.reshape(steps // hold * worlds, loaded.nu))
        held = np.ascontiguousarray(np.repeat(plan.transpose(1, 0, 2), hold, axis=1))
        data = [mujoco.MjData(loaded) for _ in range(threads)]
        pool = rollout.Rollout(nthread=threads if threads > 1 else 0)
        CASES[key] = loaded, data, state, held, pool
    loaded, data, state, held, pool = CASES[key]
    clock = time.perf_counter if by_clock or threads > 1 else time.process_time
    begin = clock()
    end, _ = pool.rollout(loaded, data, state, held, nstep=steps)
    taken = clock() - begin
    return {"seconds": taken, "finite": bool(np.isfinite(end).all())}
