// C = alpha * sum + beta * C for sums as tensor memory gives them: to each thread a part of a row.
#pragma once

#include "pairs.cuh"
#include "tma.cuh"

// A row of a slice of C: 128 bytes, and 32 of them for a warp.
constexpr int ROW_BYTES = 128, WARP_SLICE_BYTES = 32 * ROW_BYTES;

// The sums of a row from `c` on, of which the first `inside` lie in C: scaled, and C added where
// beta isn't 0; otherwise C isn't read. In vectors of VEC, which speak for all of theirs.
template <int VEC, int COLUMNS, class TC>
__device__ inline void scale_row(float (&sum)[COLUMNS], const TC* c, int inside, float alpha,
                                 float beta)
{
    struct alignas(VEC * sizeof(TC)) Vector { TC values[VEC]; };
#pragma unroll
    for (int i = 0; i < COLUMNS; ++i) sum[i] *= alpha;
    if (beta == 0.0f) return;
#pragma unroll
    for (int i = 0; i < COLUMNS; i += VEC) {
        if (i >= inside) break;
        const Vector old = *reinterpret_cast<const Vector*>(c + i);
#pragma unroll
        for (int j = 0; j < VEC; ++j) sum[i + j] += beta * float(old.values[j]);
    }
}

// Each thread its part of a row, element by element: where TMA can't step over C's rows.
template <int COLUMNS, class TC>
__device__ inline void store_row(TC* c, int inside, const float (&sum)[COLUMNS])
{
#pragma unroll
    for (int i = 0; i < COLUMNS; ++i)
        if (i < inside) c[i] = TC(sum[i]);
}

// A warp's 32 rows of 128 bytes, through the slice of shared memory at `slice`, by TMA. The chunks
// of 16 bytes are swizzled: of the eight that leave together each goes to other banks.
template <int COLUMNS, class TC>
__device__ inline void stage_rows(const TensorMap& C_map, unsigned slice, int row, int col,
                                  const float (&sum)[COLUMNS])
{
    constexpr int EACH = 16 / sizeof(TC);  // elements of a chunk
    static_assert(COLUMNS * sizeof(TC) == ROW_BYTES);
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int chunk = 0; chunk < ROW_BYTES / 16; ++chunk) {
        typename PairOf<TC>::type pairs[EACH / 2];
#pragma unroll
        for (int i = 0; i < EACH; i += 2)
            narrow(pairs[i / 2], make_float2(sum[chunk * EACH + i], sum[chunk * EACH + i + 1]));
        const uint4& v = reinterpret_cast<const uint4&>(pairs);
        asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};"
                     ::"r"(slice + lane * ROW_BYTES + (chunk ^ lane % 8) * 16),
                     "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
    }
    fence_async_proxy();
    __syncwarp();
    if (lane == 0) {
        tma_store(C_map, slice, row, col);
        tma_commit();
    }
}
