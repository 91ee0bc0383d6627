// A scalar type that writes down what is done to it.
//
// Kernels instantiated with R = Sym and run once on the host record their arithmetic through the
// functions declared here, which sim/engine/src/physics/native/tape/ffi.rs defines. A Sym is a number
// of that tape; one that was never set is recognised as such when it is used. There is no
// any(SymMask): data cannot steer a recording.
//
// Included behind scalar.cuh, in the namespace that the kernels are in.
#pragma once

extern "C" {
unsigned ostler_sym_const(double value);
unsigned ostler_sym_mask(unsigned holds);
unsigned ostler_sym_op1(unsigned op, unsigned a);
unsigned ostler_sym_op2(unsigned op, unsigned a, unsigned b);
unsigned ostler_sym_op3(unsigned op, unsigned a, unsigned b, unsigned c);
void ostler_sym_store(unsigned array, unsigned index, unsigned value);
unsigned ostler_sym_is_const(unsigned id, double* value);
void ostler_sym_begin(const char* name);
void ostler_sym_end(void);
}

// Operations.
enum SymOp : unsigned {
  SYM_NEG = 1, SYM_SQRT = 2, SYM_RECIP = 3, SYM_ABS = 4, SYM_SIN = 5, SYM_COS = 6,
  SYM_RINT = 7, SYM_NOT = 8,
  SYM_ADD = 16, SYM_SUB = 17, SYM_MUL = 18, SYM_DIV = 19, SYM_MIN = 20, SYM_MAX = 21,
  SYM_LT = 22, SYM_LE = 23, SYM_AND = 24, SYM_OR = 25, SYM_XOR = 26, SYM_ATAN2 = 27,
  SYM_FMA = 32, SYM_SEL = 33,
};

struct Sym {
  unsigned id;
  Sym() : id(~0u) {}
  explicit Sym(unsigned raw) : id(raw) {}
};

struct SymMask {
  unsigned id;
  SymMask() : id(~0u) {}
  explicit SymMask(unsigned raw) : id(raw) {}
};

// A lane's numbers are those of the tables, in double precision.
template<> struct Lane<Sym> { typedef double T; typedef SymMask Mask; enum { N = 1 }; };
template<> struct Broadcast<Sym> {
  static inline Sym of(double value) { return Sym(ostler_sym_const(value)); }
};
template<> inline SymMask mask_of<SymMask>(bool holds) { return SymMask(ostler_sym_mask(holds)); }
// Tapes are printed for single precision.
template<> struct Tiny<Sym> : Tiny<float> {};

// Whether a value is a constant, and which.
inline bool is_const(Sym a, double* value = nullptr) { return ostler_sym_is_const(a.id, value) != 0; }

inline Sym operator-(Sym a) { return Sym(ostler_sym_op1(SYM_NEG, a.id)); }
inline Sym operator+(Sym a, Sym b) { return Sym(ostler_sym_op2(SYM_ADD, a.id, b.id)); }
inline Sym operator-(Sym a, Sym b) { return Sym(ostler_sym_op2(SYM_SUB, a.id, b.id)); }
inline Sym operator*(Sym a, Sym b) { return Sym(ostler_sym_op2(SYM_MUL, a.id, b.id)); }
inline Sym operator/(Sym a, Sym b) { return Sym(ostler_sym_op2(SYM_DIV, a.id, b.id)); }
inline Sym& operator+=(Sym& a, Sym b) { return a = a + b; }
inline Sym& operator-=(Sym& a, Sym b) { return a = a - b; }
inline Sym& operator*=(Sym& a, Sym b) { return a = a * b; }
inline Sym& operator/=(Sym& a, Sym b) { return a = a / b; }

inline SymMask operator<(Sym a, Sym b) { return SymMask(ostler_sym_op2(SYM_LT, a.id, b.id)); }
inline SymMask operator<=(Sym a, Sym b) { return SymMask(ostler_sym_op2(SYM_LE, a.id, b.id)); }
inline SymMask operator>(Sym a, Sym b) { return b < a; }
inline SymMask operator>=(Sym a, Sym b) { return b <= a; }
inline SymMask operator&(SymMask a, SymMask b) { return SymMask(ostler_sym_op2(SYM_AND, a.id, b.id)); }
inline SymMask operator|(SymMask a, SymMask b) { return SymMask(ostler_sym_op2(SYM_OR, a.id, b.id)); }
inline SymMask mask_xor(SymMask a, SymMask b) { return SymMask(ostler_sym_op2(SYM_XOR, a.id, b.id)); }
inline SymMask operator!(SymMask a) { return SymMask(ostler_sym_op1(SYM_NOT, a.id)); }

inline Sym fma(Sym a, Sym b, Sym c) { return Sym(ostler_sym_op3(SYM_FMA, a.id, b.id, c.id)); }
inline Sym sel(SymMask m, Sym a, Sym b) { return Sym(ostler_sym_op3(SYM_SEL, m.id, a.id, b.id)); }
inline SymMask sel(SymMask m, SymMask a, SymMask b) { return (m & a) | ((!m) & b); }
inline Sym sqrt_(Sym a) { return Sym(ostler_sym_op1(SYM_SQRT, a.id)); }
inline Sym recip_(Sym a) { return Sym(ostler_sym_op1(SYM_RECIP, a.id)); }
inline Sym abs_(Sym a) { return Sym(ostler_sym_op1(SYM_ABS, a.id)); }
inline Sym min_(Sym a, Sym b) { return Sym(ostler_sym_op2(SYM_MIN, a.id, b.id)); }
inline Sym max_(Sym a, Sym b) { return Sym(ostler_sym_op2(SYM_MAX, a.id, b.id)); }
inline Sym rint_(Sym a) { return Sym(ostler_sym_op1(SYM_RINT, a.id)); }
inline Sym atan2_(Sym s, Sym c) { return Sym(ostler_sym_op2(SYM_ATAN2, s.id, c.id)); }
inline void sincos_(Sym x, Sym& s, Sym& c) {
  s = Sym(ostler_sym_op1(SYM_SIN, x.id));
  c = Sym(ostler_sym_op1(SYM_COS, x.id));
}

// An element as the open function finds it, by its place in all arrays one behind
// the other. It is loaded where it is used first.
enum : unsigned { SYM_ELEMENT = 1u << 31 };
inline void sym_find(Sym* to, unsigned first, unsigned count) {
  for (unsigned i = 0; i < count; i++) to[i] = Sym(SYM_ELEMENT | (first + i));
}

// An array's elements as the open function leaves them; an element that still has its first
// value, or was never set, counts as unchanged.
inline void sym_store(const Sym* from, unsigned array, unsigned first, unsigned count) {
  for (unsigned i = 0; i < count; i++)
    if (from[i].id != ~0u && from[i].id != (SYM_ELEMENT | (first + i))) ostler_sym_store(array, i, from[i].id);
}
