// The scalar narrow phase of collide.cpp, for kernels that are linked to it.
#pragma once

extern "C" {
int ostler_collide_f32(int kind, const void* a, const void* b, float margin, void* hits);
int ostler_collide_f64(int kind, const void* a, const void* b, double margin, void* hits);
}
OSTLER_FN int collide_elsewhere(int kind, const void* a, const void* b, float margin, void* hits) {
  return ostler_collide_f32(kind, a, b, margin, hits);
}
OSTLER_FN int collide_elsewhere(int kind, const void* a, const void* b, double margin, void* hits) {
  return ostler_collide_f64(kind, a, b, margin, hits);
}
template <class T>
OSTLER_FN int collide_pair(int kind, const Solid<T>& a, const Solid<T>& b, T margin, Hit<T>* out) {
  return collide_elsewhere(kind, &a, &b, margin, out);
}
