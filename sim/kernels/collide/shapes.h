// Shapes of geoms, and the pairs of them whose contacts have a function of their own: a line
// each.
//
// The kernels number shapes and pairs by these lists, and so does Rust by sim/build/columns.rs:
// GeomKind, its words in MJCF, how many contacts a pair has room for.
//
// X(name, surface, lanes, holds, most, says)
//   name     its word in MJCF; of `terrain`, which is a task's, there is none
//   surface  how the search for contacts sees it:
//            Half     all below its z = 0
//            Grid     a terrain, cell by cell
//            Core     the surroundings of a point or a segment
//            Curved   by the farthest point along a direction; smooth but for edges
//            Corners  the same; a polytope whose corners have numbers
//   lanes    yes: pairs of two such shapes are tested on all lanes at once (candidate.cuh)
//   holds    size: its size says all; index(usize): the model's asset of this number
//   most     contacts with a plane: 1 at a point, 2 on a line, 4 on a face (collide/feature.cuh
//            has the lines and faces); of a grid, with anything
//
// All but Half and Grid have a function `NAME_support` (collide/support.cuh). A pair is ordered
// by this list, MuJoCo's mjtGeom but for shapes of Ostler's own; Half and Grid come first.
#pragma once

#define OSTLER_SHAPES(X) \
  X(plane, Half, yes, size, 4, "z = 0 plane, normal +z; size: half-extents x, y (0 = infinite), grid.") \
  X(hfield, Grid, no, index(usize), 50, "The terrain [`Model::hfields`](super::Model::hfields)`[i]`; size is not used.") \
  X(terrain, Grid, no, size, 50, "The ground [`Model::terrain`](super::Model::terrain), which no file has; size is not used.") \
  X(sphere, Core, yes, size, 1, "size: radius.") \
  X(capsule, Core, yes, size, 2, "Along z; size: radius, half-length of the cylinder part.") \
  X(ellipsoid, Curved, no, size, 1, "Semi-axes.") \
  X(cylinder, Curved, no, size, 4, "Along z; size: radius, half-length.") \
  X(box, Corners, no, size, 4, "Half-extents.") \
  X(mesh, Corners, no, index(usize), 4, "The convex hull of [`Model::meshes`](super::Model::meshes)`[i]`; size: half-extents of its bounding box.")

// Pairs with a function FIRST_SECOND. The others are searched: with a plane by the farthest
// point, with a grid cell by cell, else by collide/convex.cuh; they have as many contacts as
// the one of the two with fewer.
//
// X(first, second, hits, says)
//   hits     contacts at most
#define OSTLER_PAIRS(X) \
  X(plane, sphere, 1, "the sphere's lowest point") \
  X(plane, capsule, 2, "its ends") \
  X(plane, ellipsoid, 1, "its lowest point") \
  X(plane, cylinder, 4, "lowest points of the discs, and two of the lower rim") \
  X(plane, box, 4, "corners of the lower half") \
  X(plane, mesh, 4, "corners of the lowest face") \
  X(sphere, sphere, 1, "between the centres") \
  X(sphere, capsule, 1, "between the centre and the segment") \
  X(sphere, cylinder, 1, "side, cap or rim") \
  X(sphere, box, 1, "between the centre and the box") \
  X(capsule, capsule, 2, "between the segments") \
  X(capsule, box, 2, "between the segment and the box") \
  X(box, box, 8, "of faces or edges")
