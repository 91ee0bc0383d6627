// The operations of task expressions, as sim/lang/src/expr/ops.rs defines them.
#pragma once

OSTLER_FN float truth(bool b) { return b ? 1.0f : 0.0f; }
OSTLER_FN float op_Neg(float x) { return -x; }
OSTLER_FN float op_Abs(float x) { return magnitude(x); }
OSTLER_FN float op_Sqrt(float x) { return sqrt_(x); }
OSTLER_FN float op_Exp(float x) { return exp_(x); }
OSTLER_FN float op_Ln(float x) { return ln_(x); }
OSTLER_FN float op_Sin(float x) { return sin_(x); }
OSTLER_FN float op_Cos(float x) { return cos_(x); }
OSTLER_FN float op_Tan(float x) { return tan_(x); }
OSTLER_FN float op_Asin(float x) { return asin_(x); }
OSTLER_FN float op_Acos(float x) { return acos_(x); }
OSTLER_FN float op_Tanh(float x) { return tanh_(x); }
OSTLER_FN float op_Floor(float x) { return floor_(x); }
OSTLER_FN float op_Round(float x) { return rint_(x); }
OSTLER_FN float op_Sign(float x) { return x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x; }
OSTLER_FN float op_Finite(float x) { return truth(is_finite(x)); }
OSTLER_FN float op_Not(float x) { return 1.0f - x; }
OSTLER_FN float op_Add(float a, float b) { return a + b; }
OSTLER_FN float op_Sub(float a, float b) { return a - b; }
OSTLER_FN float op_Mul(float a, float b) { return a * b; }
OSTLER_FN float op_Div(float a, float b) { return a / b; }
OSTLER_FN float op_Min(float a, float b) { return a < b || is_nan(a) ? a : b; }
OSTLER_FN float op_Max(float a, float b) { return a > b || is_nan(a) ? a : b; }
OSTLER_FN float op_Pow(float a, float b) { return pow_(a, b); }
OSTLER_FN float op_Atan2(float a, float b) { return atan2_of(a, b); }
OSTLER_FN float op_Lt(float a, float b) { return truth(a < b); }
OSTLER_FN float op_Le(float a, float b) { return truth(a <= b); }
OSTLER_FN float op_Eq(float a, float b) { return truth(a == b); }
OSTLER_FN float op_And(float a, float b) { return a * b; }
OSTLER_FN float op_Or(float a, float b) { return a + b - a * b; }
OSTLER_FN float op_Select(float p, float q, float r) { return p != 0.0f ? q : r; }
