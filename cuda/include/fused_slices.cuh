// How 25 stores a tile whose elements an epilogue made: by slices, as 20 does, or from registers.
#pragma once

#include "barrier.cuh"
#include "fused.cuh"
#include "stmatrix.cuh"
#include "tma.cuh"

constexpr int SLICE_BYTES = 64 * 128;

// A warp's pairs of some blocks, to C.
template <class E, class TC, int VALUES>
__device__ void leave(const Fused<E, TC>& epilogue, TC* to, int row, int x,
                      const float2 (&values)[VALUES])
{
    x += threadIdx.x % 4 * 2, row += threadIdx.x % 32 / 4;
#pragma unroll
    for (int i = 0; i < VALUES; ++i)
        write_pair<true>(to + (size_t)(row + i % 2 * 8) * epilogue.N + x + i / 2 * 8,
                         epilogue.inside(row + i % 2 * 8, x + i / 2 * 8), values[i]);
}

// The same, to its rows of a slice, from block `first` on, swizzled.
template <class TC, int VALUES>
__device__ void stage(unsigned buffer, int first, const float2 (&values)[VALUES])
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    if constexpr (sizeof(TC) == 2) {
        typename PairOf<TC>::type pairs[VALUES];
#pragma unroll
        for (int i = 0; i < VALUES; ++i) narrow(pairs[i], values[i]);
        // Lane l's row of matrix l / 8: 16 rows, and then the next chunk of 8 columns.
        const int r = warp * 16 + lane % 16;
#pragma unroll
        for (int j = 0; j < VALUES; j += 4)
            stmatrix(buffer + r * 128 + ((first + j / 2 + lane / 16) ^ r % 8) * 16,
                     reinterpret_cast<const unsigned (&)[4]>(pairs[j]));
    } else {
        const int r = warp * 16 + lane / 4;
#pragma unroll
        for (int i = 0; i < VALUES; ++i) {
            const int chunk = first * 2 + i / 2 * 2 + lane % 4 / 2;
            const unsigned to = buffer + (r + i % 2 * 8) * 128 + (chunk ^ r % 8) * 16;
            asm volatile("st.shared.v2.f32 [%0], {%1, %2};"
                         ::"r"(to + lane % 2 * 8), "f"(values[i].x), "f"(values[i].y)
                         : "memory");
        }
    }
}

// A warpgroup's 64 rows, EACH blocks at a time, stored as 20 does: by slices (slices.cuh), of
// which STAGED lie in shared memory, or from registers. `held`: the biases
// of all blocks, if there are as many.
template <bool READS, int STAGED, int EACH, class E, class TC, int SUMS, int HELD>
__device__ void store(Fused<E, TC>& epilogue, const TensorMap& C_map, unsigned slices, TC* to,
                      int row, int col, float alpha, const float (&sum)[SUMS],
                      const typename Fused<E, TC>::Pair (&held)[HELD], float beta,
                      int warpgroup)
{
    constexpr int ALL = SUMS / E::FOLD / 4;
    constexpr int BLOCKS = STAGED ? 16 / int(sizeof(TC)) : ALL;
    static_assert(STAGED == 0 || ALL / BLOCKS % STAGED == 0);
    const int mine = row + threadIdx.x / 32 % 4 * 16, x = col / E::FOLD;
#pragma unroll
    for (int first = 0; first < ALL; first += EACH) {
        const unsigned buffer = slices + first / BLOCKS % (STAGED + !STAGED) * SLICE_BYTES;
        __syncwarp();  // without it ptxas mixes the blocks until registers spill
        typename Fused<E, TC>::Pair biases[EACH * E::FOLD];
        if constexpr (HELD == SUMS / 4) {
#pragma unroll
            for (int i = 0; i < EACH * E::FOLD; ++i) biases[i] = held[first * E::FOLD + i];
        } else {
            epilogue.fetch(biases, col + first * E::FOLD * 8);
        }
        float2 values[2 * EACH];
        epilogue.template apply<READS, EACH>(values, sum, biases, first, mine, x, alpha, beta);
        if (STAGED == 0 || first >= ALL / BLOCKS * BLOCKS) {  // no slice, or less than one
            leave(epilogue, to, mine, x + first * 8, values);
            continue;
        }
        if (first % BLOCKS == 0) {
            // What was in this buffer has left it.
            if (threadIdx.x % 128 == 0) tma_wait_read<STAGED ? STAGED - 1 : 0>();
            barrier_sync(1 + warpgroup, 128);
        }
        stage<TC>(buffer, first % BLOCKS, values);
        if (first % BLOCKS == BLOCKS - EACH) {
            fence_async_proxy();
            barrier_sync(1 + warpgroup, 128);
            if (threadIdx.x % 128 == 0) {
                tma_store(C_map, buffer, row, x + first / BLOCKS * BLOCKS * 8);
                tma_commit();
            }
        }
    }
}
