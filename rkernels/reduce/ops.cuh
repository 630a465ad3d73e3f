// The operations of reductions. Each has a state; elements, with their places in the reduced space, and other states
// are added to it, and in the end it gives the result.
#pragma once

#include "common/math.cuh"
#include "common/rank.cuh"

namespace rk {

// Sums of f(x), with g of the whole: 16-bit floats in float, integers in 64 bits.
template <class In, class Out, class Acc>
struct SumState {
  using State = Acc;
  static RK_ANY State none() { return Acc(0); }
  static RK_ANY State merge(State a, State b) {
    if constexpr (std::is_integral_v<Acc>) {
      return Acc(uint64_t(a) + uint64_t(b));
    } else {
      return a + b;
    }
  }
};

template <class In, class Out>
struct ReduceSum : SumState<In, Out, Calc<In>> {
  using Acc = Calc<In>;
  static RK_ANY Acc of(In x, int) { return Acc(x); }
  static RK_ANY Out result(Acc s, int64_t) { return fn::Cast<Out>(s); }
};

template <class In, class Out>
struct ReduceMean : ReduceSum<In, Out> {
  using Acc = Calc<In>;
  static RK_ANY Out result(Acc s, int64_t n) { return fn::Cast<Out>(fn::Div<Acc>(s, Acc(n))); }
};

template <class In, class Out>
struct ReduceL1 : ReduceSum<In, Out> {
  using Acc = Calc<In>;
  static RK_ANY Acc of(In x, int) { return fn::Abs<Acc>(Acc(x)); }
};

template <class In, class Out>
struct ReduceSumSquare : ReduceSum<In, Out> {
  using Acc = Calc<In>;
  static RK_ANY Acc of(In x, int) { return fn::Mul<Acc>(Acc(x), Acc(x)); }
};

// Roots and logarithms of integer sums are computed as real numbers, and their fractions are cut off.
template <class In, class Out>
struct ReduceRootSum : SumState<In, Out, Real<In>> {
  using Acc = Real<In>;
  static RK_ANY Acc of(In x, int) { return Acc(Calc<In>(x)); }
  static RK_ANY Out result(Acc s, int64_t) { return fn::Cast<Out>(fn::real::sqrt(s)); }
};

template <class In, class Out>
struct ReduceL2 : ReduceRootSum<In, Out> {
  using Acc = Real<In>;
  static RK_ANY Acc of(In x, int) { return Acc(Calc<In>(x)) * Acc(Calc<In>(x)); }
};

template <class In, class Out>
struct ReduceLogSum : SumState<In, Out, Real<In>> {
  using Acc = Real<In>;
  static RK_ANY Acc of(In x, int) { return Acc(Calc<In>(x)); }
  static RK_ANY Out result(Acc s, int64_t) { return fn::Cast<Out>(fn::real::log(s)); }
};

// Products are computed in double, since the rounding errors of many factors add up.
template <class In, class Out>
struct ReduceProd {
  using State = std::conditional_t<is_float<In>, double, Calc<In>>;
  static RK_ANY State none() { return State(1); }
  static RK_ANY State of(In x, int) { return State(Calc<In>(x)); }
  static RK_ANY State merge(State a, State b) { return fn::Mul<State>(a, b); }
  static RK_ANY Out result(State s, int64_t) { return fn::Cast<Out>(s); }
};

template <class In, class Out>
struct ReduceMax {
  using State = Calc<In>;
  static RK_ANY State none() {
    if constexpr (is_float<In>)
      return State(-fn::inf_f());
    else
      return State(kLowest<In>);
  }
  static RK_ANY State of(In x, int) { return State(x); }
  static RK_ANY State merge(State a, State b) { return fn::Max<State>(a, b); }
  static RK_ANY Out result(State s, int64_t) { return fn::Cast<Out>(s); }
};

template <class In, class Out>
struct ReduceMin {
  using State = Calc<In>;
  static RK_ANY State none() {
    if constexpr (is_float<In>)
      return State(fn::inf_f());
    else
      return State(kHighest<In>);
  }
  static RK_ANY State of(In x, int) { return State(x); }
  static RK_ANY State merge(State a, State b) { return fn::Min<State>(a, b); }
  static RK_ANY Out result(State s, int64_t) { return fn::Cast<Out>(s); }
};

// The logarithm of a sum of exponentials. The sum is relative to the largest exponent so far, so that nothing
// overflows.
template <class In, class Out>
struct ReduceLogSumExp {
  using F = Real<In>;
  struct State {
    F most, sum;  // the sum of e^(x - most)
  };
  static RK_ANY State none() { return {F(-fn::inf_f()), F(0)}; }
  static RK_ANY State of(In x, int) { return {F(Calc<In>(x)), F(1)}; }
  static RK_ANY State merge(State a, State b) {
    if (a.most < b.most) {
      const State c = a;
      a = b;
      b = c;
    }
    if (b.most == a.most) return {a.most, a.sum + b.sum};
    return {a.most, a.sum + b.sum * fn::real::exp(b.most - a.most)};
  }
  static RK_ANY Out result(State s, int64_t) {
    const F r = s.most + fn::real::log(s.sum);
    const bool infinite = !(s.most - s.most == F(0)) && s.most == s.most;
    return fn::Cast<Out>(infinite && s.sum == s.sum ? s.most : r);
  }
};

// The place of the largest or smallest element, of the first or the LAST one among equals. The first NaN counts for
// more than any number.
template <class In, bool LARGEST, bool LAST>
struct ReduceArg {
  struct State {
    Calc<In> value;
    int at;  // -1: nothing yet
  };
  static RK_ANY State none() { return {Calc<In>(0), -1}; }
  static RK_ANY State of(In x, int at) { return {Calc<In>(x), at}; }
  static RK_ANY State merge(State a, State b) {
    if (a.at < 0) return b;
    if (b.at < 0) return a;
    const bool first = a.at < b.at;
    const bool nan_a = !(a.value == a.value), nan_b = !(b.value == b.value);
    if (nan_a || nan_b) return nan_a && (!nan_b || first) ? a : b;
    if (a.value == b.value) return first != LAST ? a : b;
    return (a.value > b.value) == LARGEST ? a : b;
  }
  static RK_ANY int64_t result(State s, int64_t) { return s.at; }
};

// The same of a part of what is reduced, as a number of 64 bits whose upper half is greater the sooner the element is
// taken; the lower half is its place in the part. In has at most 32 bits.
template <class In, bool LARGEST, bool LAST>
struct ReduceArgPart : ReduceArg<In, LARGEST, LAST> {
  using State = typename ReduceArg<In, LARGEST, LAST>::State;
  static RK_ANY int64_t result(State s, int64_t) {
    return int64_t(uint64_t(rank_of<In>(s.value, LARGEST, true)) << 32 | uint32_t(s.at));
  }
};

// The place of the element that is taken among those of all parts, each of which has `whole` elements. With NANS those
// of the highest rank are not numbers, of which the first one is taken.
template <bool LAST, bool NANS>
struct ReduceArgParts {
  struct State {
    uint64_t best;
    int part;  // -1: nothing yet
  };
  static RK_ANY State none() { return {0, -1}; }
  static RK_ANY State of(int64_t x, int part) { return {uint64_t(x), part}; }
  static RK_ANY State merge(State a, State b) {
    if (a.part < 0) return b;
    if (b.part < 0) return a;
    const uint32_t rank_a = uint32_t(a.best >> 32), rank_b = uint32_t(b.best >> 32);
    if (rank_a != rank_b) return rank_a > rank_b ? a : b;
    const bool last = LAST && !(NANS && rank_a == 0xffffffffu);
    return (a.part < b.part) != last ? a : b;
  }
  static RK_ANY int64_t result(State s, int64_t whole) { return s.part * whole + int64_t(uint32_t(s.best)); }
};

template <class In, class Out>
using ReduceArgMax = ReduceArg<In, true, false>;
template <class In, class Out>
using ReduceArgMaxLast = ReduceArg<In, true, true>;
template <class In, class Out>
using ReduceArgMin = ReduceArg<In, false, false>;
template <class In, class Out>
using ReduceArgMinLast = ReduceArg<In, false, true>;

template <class In, class Out>
using ReduceArgMaxPart = ReduceArgPart<In, true, false>;
template <class In, class Out>
using ReduceArgMaxLastPart = ReduceArgPart<In, true, true>;
template <class In, class Out>
using ReduceArgMinPart = ReduceArgPart<In, false, false>;
template <class In, class Out>
using ReduceArgMinLastPart = ReduceArgPart<In, false, true>;

template <class In, class Out>
using ReduceArgFirstPart = ReduceArgParts<false, false>;
template <class In, class Out>
using ReduceArgLastPart = ReduceArgParts<true, false>;
template <class In, class Out>
using ReduceArgLastRealPart = ReduceArgParts<true, true>;

}  // namespace rk
