// C = alpha * sum + beta * C where C is half: beside `update` of vector.cuh, which is for float.
#pragma once

#include <cuda_fp16.h>

#include "vector.cuh"

template <int VEC> struct HalvesOf;
template <> struct HalvesOf<4> { using type = uint2; };
template <> struct HalvesOf<2> { using type = unsigned; };
template <> struct HalvesOf<1> { using type = unsigned short; };

// VEC neighbours in a row, which are read and written at once. They are summed in FP32 and rounded
// once; where beta is 0, C isn't read.
template <int VEC>
__device__ inline void update(half* c, float alpha, const float* sum, float beta)
{
    using Halves = typename HalvesOf<VEC>::type;
    Halves halves{};
    if (beta != 0.0f) halves = *reinterpret_cast<const Halves*>(c);
    half* values = reinterpret_cast<half*>(&halves);
#pragma unroll
    for (int i = 0; i < VEC; ++i) {
        float value = __half2float(values[i]);
        update(&value, alpha, sum[i], beta);
        values[i] = __float2half_rn(value);
    }
    *reinterpret_cast<Halves*>(c) = halves;
}
