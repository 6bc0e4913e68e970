// VEC floats at once: 4 in 128 bits, 2 in 64, or 1 where a row doesn't allow more.
#pragma once

#include "epilogue.cuh"

// `inside` speaks for all VEC floats: a row's length is a multiple of VEC, and so is each index.
template <int VEC>
__device__ inline void load(float* to, const float* from, bool inside = true)
{
    if constexpr (VEC == 4) {
        const float4 zeros = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        float4 v = inside ? *reinterpret_cast<const float4*>(from) : zeros;
        to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
    } else if constexpr (VEC == 2) {
        float2 v = inside ? *reinterpret_cast<const float2*>(from) : make_float2(0.0f, 0.0f);
        to[0] = v.x, to[1] = v.y;
    } else {
        to[0] = inside ? *from : 0.0f;
    }
}

template <int VEC>
__device__ inline void store(float* to, const float* from)
{
    if constexpr (VEC == 4) {
        *reinterpret_cast<float4*>(to) = make_float4(from[0], from[1], from[2], from[3]);
    } else if constexpr (VEC == 2) {
        *reinterpret_cast<float2*>(to) = make_float2(from[0], from[1]);
    } else {
        *to = *from;
    }
}

// C = alpha * sum + beta * C for VEC neighbours in a row.
template <int VEC>
__device__ inline void update(float* c, float alpha, const float* sum, float beta)
{
    float values[VEC];
    load<VEC>(values, c, beta != 0.0f);
#pragma unroll
    for (int i = 0; i < VEC; ++i) update(&values[i], alpha, sum[i], beta);
    store<VEC>(c, values);
}
