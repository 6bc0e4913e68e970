// cp.async: a thread asks for bytes, which go from global to shared memory past its registers
// (sm_80).
//
// A thread's copies fly until it waits for their group; other threads see them behind a barrier
// after that. PTX ISA 9.7.9.25.
#pragma once

#include "shared.cuh"

// Eight elements of 16 bits, of which the first `inside` exist; the others become zeros. VEC of
// them are copied at once: rows begin on a multiple of VEC, so that a vector is inside or outside
// as a whole. Of outside ones nothing is read. Single elements are no copy's size: these are loaded
// and stored by the thread.
//
// PAST_L1: 16 bytes may go straight from the L2 to shared memory (.cg), or through the L1 (.ca).
// Either way the chunks of a line may change their places for nothing.
template <int VEC, bool PAST_L1, class T>
__device__ inline void copy_chunk(unsigned to, const T* from, int inside)
{
    static_assert(sizeof(T) == 2);
    if constexpr (VEC == 8 && PAST_L1) {
        asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;"
                     ::"r"(to), "l"(from), "r"(inside > 0 ? 16 : 0) : "memory");
    } else if constexpr (VEC > 1) {
#pragma unroll
        for (int i = 0; i < 8; i += VEC)
            asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], %2, %3;"
                         ::"r"(to + 2 * i), "l"(from + i), "n"(2 * VEC),
                         "r"(inside > i ? 2 * VEC : 0) : "memory");
    } else {
        const unsigned short* bits = reinterpret_cast<const unsigned short*>(from);
        unsigned words[4];
#pragma unroll
        for (int i = 0; i < 8; i += 2) {
            const unsigned low = inside > i ? bits[i] : 0, high = inside > i + 1 ? bits[i + 1] : 0;
            words[i / 2] = low | high << 16;
        }
        asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(words[0]),
                     "r"(words[1]), "r"(words[2]), "r"(words[3]) : "memory");
    }
}

// Close the group of the copies since the last one.
__device__ inline void copies_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Hold the thread until all but its last PENDING groups have arrived.
template <int PENDING>
__device__ inline void copies_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}
