// C = alpha * sum + beta * C for tiles that may come out transposed, and for sums that lie beside
// each other, two or four of them.
#pragma once

#include "exchange.cuh"
#include "pairs.cuh"

// C = alpha * sum + beta * C for two neighbours; where beta is 0, C isn't read.
template <bool WHOLE, class TC>
__device__ inline void update_pair(TC* c, int inside, float alpha, float2 sum, float beta)
{
    float2 pair = make_float2(alpha * sum.x, alpha * sum.y);
    if (beta != 0.0f) {
        const float2 old = read_pair<WHOLE>(c, inside);
        pair.x += beta * old.x, pair.y += beta * old.y;
    }
    write_pair<WHOLE>(c, inside, pair);
}

// Whether all rows of C begin on a multiple of so many bytes.
template <int BYTES, class TC>
__device__ inline bool begins_on(const TC* C, int N)
{
    return (reinterpret_cast<size_t>(C) | N * sizeof(TC)) % BYTES == 0;
}

template <int BYTES> struct VectorOf { using type = uint4; };
template <> struct VectorOf<2> { using type = uint2; };

// update_pair for four neighbours, which a vector holds.
template <class TC>
__device__ inline void update_four(TC* c, float alpha, float4 sum, float beta)
{
    using Pair = typename PairOf<TC>::type;
    using Vector = typename VectorOf<sizeof(TC)>::type;
    Vector four;
    Pair* pairs = reinterpret_cast<Pair*>(&four);
    float2 low = make_float2(alpha * sum.x, alpha * sum.y);
    float2 high = make_float2(alpha * sum.z, alpha * sum.w);
    if (beta != 0.0f) {
        four = *reinterpret_cast<const Vector*>(c);
        const float2 a = widen(pairs[0]), b = widen(pairs[1]);
        low.x += beta * a.x, low.y += beta * a.y, high.x += beta * b.x, high.y += beta * b.y;
    }
    narrow(pairs[0], low);
    narrow(pairs[1], high);
    *reinterpret_cast<Vector*>(c) = four;
}

// The 16 columns from `col` on and the 2 * SUMS rows from `row` on, as far as they lie in C, of a
// tile that comes out transposed: a lane's pairs are neighbours in a column.
template <int SUMS, class TC>
__device__ inline void update_columns(TC* C, int M, int N, int row, int col, float alpha,
                                      const float (&sum)[SUMS], float beta)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < SUMS; ++i) {
        const int y = row + i / 4 * 8 + lane % 4 * 2 + i % 2, x = col + lane / 4 + i / 2 % 2 * 8;
        if (y >= M || x >= N) continue;
        TC& c = C[(size_t)y * N + x];
        c = TC(beta == 0.0f ? alpha * sum[i] : alpha * sum[i] + beta * float(c));
    }
}

// What a warp of 22 and 24 has of a tile: the 16 rows of C from `row` on, or, SWAPPED, the 16
// columns from `col` on. Sums of 16 bits leave in vectors where C's rows allow it.
template <bool SWAPPED, int SUMS, class TC>
__device__ inline void update_tile(TC* C, int M, int N, int row, int col, float alpha,
                                   const float (&sum)[SUMS], float beta)
{
    if constexpr (sizeof(TC) == 2) {
        if (begins_on<16>(C, N)) update_vectors<SWAPPED>(C, M, N, row, col, alpha, sum, beta);
    }
    if (sizeof(TC) == 4 || !begins_on<16>(C, N)) {
        if constexpr (SWAPPED) update_columns(C, M, N, row, col, alpha, sum, beta);
        else update_fragment(C, M, N, row, col, alpha, sum, beta);
    }
}
