// Functions for tests on the cart-pole: all that a function sees, does and breaks.
#pragma once
#include "parts/table.cuh"

static_assert(native_version == 1);

OSTLER_NATIVE void view(const Env& env, float (&out)[8]) {
  const Vec3 pole = env.body_pos(BODY_pole), velocity = env.body_lin_vel(BODY_pole);
  const Vec3 up = rotate(env.body_quat(BODY_pole), {0.0f, 0.0f, 1.0f});
  out[0] = env.qpos(QPOS_hinge) + env.qvel(QVEL_slider);
  out[1] = dot(up, pole) + length(cross(velocity, env.body_ang_vel(BODY_pole)));
  out[2] = sin(env.time()) + cos(8.0f * env.command(COMMAND_goal)) * exp(-env.time());
  out[3] = atan2(up.x, up.z) + tanh(velocity.x) + pow(abs(velocity.x), 1.3f);
  out[4] = env.action(0) - env.last_action(0) + env.ctrl(ACTUATOR_slide) + env.actuator_force(0);
  out[5] = env.uniform(3) + 0.1f * env.normal(70);
  out[6] = lookup(4.0f * pole.x);
  out[7] = env.first() ? -1.0f : (float)env.step();
}

OSTLER_NATIVE void push(const Env& env, const float (&in)[4], float (&out)[3], float (&memory)[2]) {
  memory[0] = 0.9f * memory[0] + env.uniform(0);
  memory[1] = max(memory[1], abs(in[1]));
  out[0] = memory[0] / (1.0f + in[0]);
  out[1] = 0.1f * in[2] + 0.1f * in[3];
  out[2] = memory[1];
}

// Large actions break it: what it gives, or what it remembers.
OSTLER_NATIVE void weak(const Env&, const float* in, float* out, float* memory) {
  memory[0] += in[0] > 2.2f ? 1.0f / 0.0f : 0.1f;
  out[0] = in[0] < -2.2f ? sqrt(-1.0f) : memory[0];
}
