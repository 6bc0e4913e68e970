// C = alpha * sum + beta * C for what tensor cores leave in registers, in C's own type.
//
// mma.m16n8 and wgmma deal their sums alike: of 16 rows and 8 columns, lane l has the columns
// 2 (l % 4) and the next one, in row l / 4 and in the row 8 below. PTX ISA 9.7.14.5.8, 9.7.15.5.1.
#pragma once

#include "types.cuh"

template <class T> struct PairOf;
template <> struct PairOf<float> { using type = float2; };
template <> struct PairOf<half> { using type = half2; };
template <> struct PairOf<__nv_bfloat16> { using type = __nv_bfloat162; };

__device__ inline float2 widen(float2 pair) { return pair; }
__device__ inline float2 widen(half2 pair) { return __half22float2(pair); }
__device__ inline float2 widen(__nv_bfloat162 pair) { return __bfloat1622float2(pair); }

__device__ inline void narrow(float2& to, float2 pair) { to = pair; }
__device__ inline void narrow(half2& to, float2 pair) { to = __float22half2_rn(pair); }
__device__ inline void narrow(__nv_bfloat162& to, float2 pair) { to = __float22bfloat162_rn(pair); }

// Two neighbours of a row, of which the first `inside` lie in C. WHOLE: rows have an even length,
// so that both are inside or neither, and aligned.
template <bool WHOLE, class TC>
__device__ inline float2 read_pair(const TC* c, int inside)
{
    if (WHOLE && inside > 0) return widen(*reinterpret_cast<const typename PairOf<TC>::type*>(c));
    return make_float2(inside > 0 ? float(c[0]) : 0.0f, inside > 1 ? float(c[1]) : 0.0f);
}

template <bool WHOLE, class TC>
__device__ inline void write_pair(TC* c, int inside, float2 pair)
{
    if constexpr (WHOLE) {
        if (inside > 0) narrow(*reinterpret_cast<typename PairOf<TC>::type*>(c), pair);
    } else {
        if (inside > 0) c[0] = TC(pair.x);
        if (inside > 1) c[1] = TC(pair.y);
    }
}

// READS: beta is not 0; otherwise C isn't read.
template <bool WHOLE, bool READS, int SUMS, class TC>
__device__ inline void update_rows(TC* C, int M, int N, int row, int col, float alpha,
                                   const float (&sum)[SUMS], float beta)
{
    constexpr int BLOCKS = SUMS / 4, AHEAD = BLOCKS < 8 ? BLOCKS : 8;  // reads in flight
    const int lane = threadIdx.x % 32, y = row + lane / 4, x = col + lane % 4 * 2;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        TC* c = &C[(size_t)(y + 8 * h) * N + x];
        const int inside = y + 8 * h < M ? N - x : 0;
#pragma unroll
        for (int j = 0; j < BLOCKS; j += AHEAD) {
            float2 old[AHEAD];
            if constexpr (READS) {
#pragma unroll
                for (int i = j; i < j + AHEAD; ++i)
                    old[i - j] = read_pair<WHOLE>(c + 8 * i, inside - 8 * i);
            }
#pragma unroll
            for (int i = j; i < j + AHEAD; ++i) {
                const float* s = &sum[4 * i + 2 * h];
                float2 pair = make_float2(alpha * s[0], alpha * s[1]);
                if constexpr (READS) pair.x += beta * old[i - j].x, pair.y += beta * old[i - j].y;
                write_pair<WHOLE>(c + 8 * i, inside - 8 * i, pair);
            }
        }
    }
}

// The 16 rows from `row` on and the 2 * SUMS columns from `col` on, as far as they lie in C.
template <int SUMS, class TC>
__device__ inline void update_fragment(TC* C, int M, int N, int row, int col, float alpha,
                                       const float (&sum)[SUMS], float beta)
{
    // Four versions of the code, so that no pair has to ask.
    if (N % 2 == 0) {
        if (beta == 0.0f) update_rows<true, false>(C, M, N, row, col, alpha, sum, beta);
        else update_rows<true, true>(C, M, N, row, col, alpha, sum, beta);
    } else {
        if (beta == 0.0f) update_rows<false, false>(C, M, N, row, col, alpha, sum, beta);
        else update_rows<false, true>(C, M, N, row, col, alpha, sum, beta);
    }
}
