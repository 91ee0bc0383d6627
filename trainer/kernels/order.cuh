// Random orders of samples. Which sample stands at a place is a function of that place and the
// key alone, so that every thread finds its own, and nothing is kept.
//
// A Feistel network over a rectangle of rows and columns with room for all samples: by turns the
// rows are turned by a scramble of the column, and the columns by one of the row. Each can be
// undone, so it is a permutation of the rectangle. A place that comes to lie beyond the samples
// goes through it again until it does not, which is a permutation of the samples (Black and
// Rogaway, "Ciphers with arbitrary finite domains", 2002: generalised Feistel ciphers, cycle
// walking). Mitchell et al., "Bandwidth-optimal random shuffling for GPUs", 2022, shuffle by
// such networks over powers of two and leave out what lies beyond. The rectangle has next to no
// place too many, so hardly any place walks.
//
// Numbers of 16 bits throughout: processors multiply most of these at once.
#pragma once

#include "draw.cuh"

typedef unsigned short Half;
// Six would do for orders of thousands of samples, eight for those of tens.
enum { OSTLER_ORDER_ROUNDS = 12 };
// A rectangle has at least so many places: in smaller ones few orders can be told apart.
enum { OSTLER_ORDER_LEAST = 64 };

struct Order {
  unsigned count;      // samples, up to 2^30
  unsigned bits;       // of a column
  Half rows, columns;  // of the rectangle; columns is 2^bits
  unsigned keys[OSTLER_ORDER_ROUNDS];
};

// The order of an epoch of an update.
OSTLER_FN Order order_of(unsigned long long seed, unsigned long long update, unsigned epoch, unsigned count) {
  Order o;
  o.count = count;
  const unsigned least = OSTLER_ORDER_LEAST, room = count > least ? count : least;
  unsigned bits = 0;
  OSTLER_ROLLED while ((room - 1) >> bits) bits++;
  o.bits = (bits + 1) / 2;
  o.columns = (Half)(1u << o.bits);
  o.rows = (Half)((room + o.columns - 1) >> o.bits);
  for (int k = 0; k < OSTLER_ORDER_ROUNDS; k += 4) {
    const draws::Words four = draws::philox(seed, epoch, draws::DRAW_PERMUTATION, update, (unsigned)k / 4);
    for (int j = 0; j < 4; j++) o.keys[k + j] = four.w[j];
  }
  return o;
}

OSTLER_FN Half low_product(Half x, Half y) { return (Half)((unsigned)x * y); }
OSTLER_FN Half high_product(Half x, Half y) { return (Half)(((unsigned)x * y) >> 16); }

// A number below `limit` that follows x and the key by chance.
OSTLER_FN Half scramble(Half x, unsigned key, Half limit) {
  Half h = (Half)(low_product(x, (Half)(key | 1)) + (Half)(key >> 16));
  h = (Half)(h ^ (h >> 8));
  return high_product(low_product(h, 0x9E37), limit);
}

// Two of `ROUND` rounds, and then the others; written out, so that a loop over places has no
// loop in it.
template<int ROUND> struct OrderRounds {
  static OSTLER_FN void run(const Order& o, Half& row, Half& column) {
    const int k = OSTLER_ORDER_ROUNDS - ROUND;
    const Half turned = (Half)(row + scramble(column, o.keys[k], o.rows));
    // Less than nothing is a large number.
    const Half back = (Half)(turned - o.rows);
    row = turned < back ? turned : back;
    column = (Half)(column ^ scramble(row, o.keys[k + 1], o.columns));
    OrderRounds<ROUND - 2>::run(o, row, column);
  }
};
template<> struct OrderRounds<0> {
  static OSTLER_FN void run(const Order&, Half&, Half&) {}
};

OSTLER_FN Half row_of(const Order& o, unsigned place) { return (Half)(place >> o.bits); }
OSTLER_FN Half column_of(const Order& o, unsigned place) { return (Half)(place & (o.columns - 1u)); }
OSTLER_FN unsigned place_of(const Order& o, Half row, Half column) { return ((unsigned)row << o.bits) | column; }

// Where a place of the rectangle comes to lie, walking on from beyond the samples.
OSTLER_FN unsigned walk(const Order& o, unsigned place) {
  while (place >= o.count) {
    Half row = row_of(o, place), column = column_of(o, place);
    OrderRounds<OSTLER_ORDER_ROUNDS>::run(o, row, column);
    place = place_of(o, row, column);
  }
  return place;
}

// The sample at a place below `count`.
OSTLER_FN unsigned sample_at(const Order& o, unsigned place) {
  Half row = row_of(o, place), column = column_of(o, place);
  OrderRounds<OSTLER_ORDER_ROUNDS>::run(o, row, column);
  return walk(o, place_of(o, row, column));
}
