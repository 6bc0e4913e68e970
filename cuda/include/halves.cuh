// Elements of 16 bits: 8 of them in one 128-bit access, or 1 where a row doesn't allow more.
#pragma once

#include <cuda_fp16.h>

template <int VEC> struct PackOf;
template <> struct PackOf<8> { using type = uint4; };
template <> struct PackOf<1> { using type = unsigned short; };

// VEC neighbours in registers; only their bits matter until they are multiplied.
template <int VEC> using Pack = typename PackOf<VEC>::type;

// `inside` speaks for all VEC: a row's length is a multiple of VEC, and so is each index. Outside
// the matrices are zeros, which add nothing to a sum.
template <int VEC>
__device__ inline Pack<VEC> load(const half* from, bool inside = true)
{
    return inside ? *reinterpret_cast<const Pack<VEC>*>(from) : Pack<VEC>{};
}

template <int VEC>
__device__ inline void store(half* to, Pack<VEC> pack)
{
    *reinterpret_cast<Pack<VEC>*>(to) = pack;
}
