// Functions that the compiler must inline into a loop, and those that it must keep out of one.
#pragma once

#ifdef _MSC_VER
#define STEELYARD_INLINE __forceinline
#define STEELYARD_APART __declspec(noinline)
#else
#define STEELYARD_INLINE inline __attribute__((always_inline))
#define STEELYARD_APART __attribute__((noinline))
#endif
