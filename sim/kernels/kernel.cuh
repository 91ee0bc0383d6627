// The whole engine, in the order in which its parts need each other. Included
// inside a namespace of its own for every instruction set and robot, so that two
// of them in one process cannot share a function.
#pragma once
#include "scalar.cuh"
#include "space.cuh"
#include "tables.cuh"
#include "work.cuh"
#include "smooth.cuh"
#include "wrap.cuh"
#include "tendon.cuh"
#include "actuator.cuh"
#include "forces.cuh"
#include "tree.cuh"
#include "soft.cuh"
#include "collide/all.cuh"
#include "contact.cuh"
#include "rows.cuh"
#include "general.cuh"
#include "cone.cuh"
#include "hooks.cuh"
#include "newton.cuh"
#include "integrate.cuh"
#include "step.cuh"
