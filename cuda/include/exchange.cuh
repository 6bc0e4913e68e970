// C = alpha * sum + beta * C where C has 16 bits: four lanes exchange pairs, so that each stores 16
// bytes of a row and all that the L2 is sent are whole sectors.
#pragma once

#include "pairs.cuh"

// The transpose of an 8×8 matrix of 16-bit elements that a warp holds as tensor cores do: lane l
// has the elements 2 (l % 4) and the next one of row l / 4. PTX ISA 9.7.14.5.17.
__device__ inline unsigned transposed(unsigned pair)
{
    unsigned result;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(result) : "r"(pair));
    return result;
}

// The transpose of 4×4 words of which each of four neighbouring lanes has a row.
__device__ inline uint4 exchange(const unsigned (&row)[4])
{
    const bool odd = threadIdx.x & 1, high = threadIdx.x & 2;
    const unsigned a = __shfl_xor_sync(0xffffffff, odd ? row[0] : row[1], 1);
    const unsigned b = __shfl_xor_sync(0xffffffff, odd ? row[2] : row[3], 1);
    const uint4 two = odd ? make_uint4(a, row[1], b, row[3]) : make_uint4(row[0], a, row[2], b);
    const unsigned c = __shfl_xor_sync(0xffffffff, high ? two.x : two.z, 2);
    const unsigned d = __shfl_xor_sync(0xffffffff, high ? two.y : two.w, 2);
    return high ? make_uint4(c, d, two.z, two.w) : make_uint4(two.x, two.y, c, d);
}

// Four 8×8 blocks of sums: lane l's 16 bytes are row l / 4 of block l % 4, at `c`, if that is
// `inside`. SWAPPED: the blocks lie transposed in the sums. READS: beta is not 0.
template <bool SWAPPED, bool READS, class TC>
__device__ inline void update_blocks(TC* c, bool inside, float alpha, const float2 (&sum)[4],
                                     float beta)
{
    using Pair = typename PairOf<TC>::type;
    unsigned old[4] = {}, now[4];
    if constexpr (READS) {
        if (inside) *reinterpret_cast<uint4*>(old) = *reinterpret_cast<const uint4*>(c);
        *reinterpret_cast<uint4*>(old) = exchange(old);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        float2 pair = make_float2(alpha * sum[i].x, alpha * sum[i].y);
        if constexpr (READS) {
            if constexpr (SWAPPED) old[i] = transposed(old[i]);
            const float2 before = widen(reinterpret_cast<const Pair&>(old[i]));
            pair.x += beta * before.x, pair.y += beta * before.y;
        }
        narrow(reinterpret_cast<Pair&>(now[i]), pair);
        if constexpr (SWAPPED) now[i] = transposed(now[i]);
    }
    const uint4 all = exchange(now);
    if (inside) *reinterpret_cast<uint4*>(c) = all;
}

// update_vectors for one case of READS.
template <bool SWAPPED, bool READS, int SUMS, class TC>
__device__ inline void update_sixteen(TC* C, int M, int N, int row, int col, float alpha,
                                      const float (&sum)[SUMS], float beta)
{
    constexpr int BLOCKS = SUMS / 4;  // along the 2 * SUMS
    const int lane = threadIdx.x % 32, mine = lane % 4;
#pragma unroll
    for (int first = 0; first < 2 * BLOCKS; first += 4) {
        float2 four[4] = {};
        int y = row + lane / 4, x = col;
        if constexpr (SWAPPED) {  // two blocks of rows, and of each the 16 columns
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int at = 2 * (first + i);
                if (at < SUMS) four[i] = make_float2(sum[at], sum[at + 1]);
            }
            y += (first + mine) / 2 * 8, x += mine % 2 * 8;
            const bool inside = y < M && x < N && first + mine < 2 * BLOCKS;
            update_blocks<true, READS>(&C[(size_t)y * N + x], inside, alpha, four, beta);
        } else {  // the upper or the lower 8 rows, and four blocks of columns
            const int half = first / BLOCKS, block = first % BLOCKS;
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const float* s = &sum[4 * (block + i) + 2 * half];
                four[i] = make_float2(s[0], s[1]);
            }
            y += half * 8, x += (block + mine) * 8;
            update_blocks<false, READS>(&C[(size_t)y * N + x], y < M && x < N, alpha, four, beta);
        }
    }
}

// A warp's 16 rows and 2 * SUMS columns of C from (row, col) on, or, SWAPPED, 2 * SUMS rows and 16
// columns. Rows of C must be multiples of 16 bytes.
template <bool SWAPPED, int SUMS, class TC>
__device__ inline void update_vectors(TC* C, int M, int N, int row, int col, float alpha,
                                      const float (&sum)[SUMS], float beta)
{
    if (beta == 0.0f) update_sixteen<SWAPPED, false>(C, M, N, row, col, alpha, sum, beta);
    else update_sixteen<SWAPPED, true>(C, M, N, row, col, alpha, sum, beta);
}
