// Copies from global to shared memory that are waited for later.
//
// From sm_80 on a copy goes past the registers (cp.async); its thread may wait for groups of them.
// Before that, a copy is a load into registers now and a store when finish() is called.
#pragma once

#include "vector.cuh"

#if __CUDA_ARCH__ >= 800

template <int VEC>
struct Copy {
    // `to` is an address in shared memory. Outside the matrix nothing is read, and zeros arrive.
    __device__ void begin(unsigned to, const void* from, bool inside)
    {
        const int bytes = inside ? 4 * VEC : 0;
        if constexpr (VEC == 4) {  // .cg: kept in the L2 alone, for no one reads it here again
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                         ::"r"(to), "l"(from), "r"(bytes) : "memory");
        } else {
            asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
                         ::"r"(to), "l"(from), "r"(bytes) : "memory");
        }
    }
    __device__ void finish() {}
};

// Blocks an SM that a kernel may ask registers for.
template <int VEC, int BLOCKS>
constexpr int RESIDENT = BLOCKS;

// The copies begun since the last call are one group.
__device__ inline void close_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// All but the newest LEFT groups have arrived, as this thread sees it: a barrier must follow.
template <int LEFT>
__device__ inline void wait_groups()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
}

#else

template <int VEC>
struct Copy {
    static constexpr unsigned NOWHERE = ~0u;
    float values[VEC];
    unsigned to = NOWHERE;

    __device__ void begin(unsigned to, const void* from, bool inside)
    {
        this->to = to;
        load<VEC>(values, static_cast<const float*>(from), inside);
    }
    __device__ void finish()
    {
        if (to != NOWHERE) store<VEC>(static_cast<float*>(__cvta_shared_to_generic(to)), values);
        to = NOWHERE;
    }
};

// Single floats, each with an address of its own, leave registers for one block alone.
template <int VEC, int BLOCKS>
constexpr int RESIDENT = VEC == 1 ? 1 : BLOCKS;

__device__ inline void close_group() {}
template <int LEFT>
__device__ inline void wait_groups() {}

#endif
