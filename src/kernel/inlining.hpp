// Functions that the compiler must inline into a loop, and those that it must keep out of one; loops of a few steps that it
// must write out, which GCC does not do at -O2.
#pragma once

#ifdef _MSC_VER
#define STEELYARD_INLINE __forceinline
#define STEELYARD_APART __declspec(noinline)
#define STEELYARD_UNROLL
#else
#define STEELYARD_INLINE inline __attribute__((always_inline))
#define STEELYARD_APART __attribute__((noinline))
#define STEELYARD_UNROLL _Pragma("GCC unroll 8")
#endif
