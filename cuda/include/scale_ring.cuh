// Scales in shared memory, which a warp copies into a ring beside the tiles that they scale.
#pragma once

#include "scales.cuh"
#include "shared.cuh"

// Of a stage: the scales of BM rows of A, then B's one; a multiple of 16 bytes.
template <int BM> constexpr int SCALE_BYTES = (BM + 4) * 4;

// Begin to copy one scale past the registers.
__device__ inline void copy_scale(unsigned to, const float* from)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(from) : "memory");
}

// Arrive on an mbarrier when all that this thread has begun to copy is there. PTX ISA 9.7.13.15.17.
__device__ inline void arrive_behind_copies(unsigned barrier)
{
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}

__device__ inline float read_scale(unsigned from)
{
    float scale;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(scale) : "r"(from) : "memory");
    return scale;
}

// The factors of a lane's sums of the 16 rows from `row` on, of the stage whose scales lie at
// `stage`.
template <int BM>
__device__ inline Factors read_factors(unsigned stage, int row)
{
    const unsigned mine = stage + (row + threadIdx.x % 32 / 4) * 4;
    return {read_scale(mine), read_scale(mine + 8 * 4), read_scale(stage + BM * 4)};
}
