#pragma once
template<class T> struct ConvexMesh { int x; };
template<class T> struct HeightField { int x; };
template<class T> struct Solid { T pos[3]; T mat[9]; T size[3]; const ConvexMesh<T>* mesh; const HeightField<T>* field; };
template<class T> struct Hit { T dist; T pos[3]; T normal[3]; T tangent[3]; };
enum { MAX_HITS = 8 };
template<class T> int collide_pair(int, const Solid<T>&, const Solid<T>&, T, Hit<T>*) { return 0; }
template<class M, class T> void mesh_of(const M&, int, ConvexMesh<T>&) {}
template<class M, class T> void field_of(const M&, int, HeightField<T>&) {}
