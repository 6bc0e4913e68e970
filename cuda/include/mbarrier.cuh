// mbarriers: barriers in shared memory on which threads and asynchronous copies arrive (sm_90).
//
// A phase of an mbarrier is complete when as many arrivals as it was made for have come, and as
// many bytes as were announced. The next phase then begins by itself. Who waits names the phase by
// its parity: 0 for the first, third, ...; a wait for the phase before the first succeeds at once.
// PTX ISA 9.7.13.15.
#pragma once

#include "shared.cuh"

// One thread makes the barrier; then init_fence(), and a barrier of all who will use it.
__device__ inline void mbarrier_init(unsigned barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals)
                 : "memory");
}

// New barriers become known to the copy engine and to the other blocks of a cluster.
__device__ inline void mbarrier_init_fence()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Arrive, and announce bytes that copies will bring before the phase is complete.
__device__ inline void mbarrier_expect(unsigned barrier, int bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}

__device__ inline void mbarrier_arrive(unsigned barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// Arrive on the barrier at the same place of another block of the cluster, or of this one.
//
// It passes on a turn and no data: what came before it are reads that are complete. So the order
// of one block, which is the default, is enough; `.release.cluster` would hold the thread until all
// that it ever wrote has reached the L2 (MEMBAR.ALL.GPU), at every step.
__device__ inline void mbarrier_arrive_at(unsigned barrier, int rank)
{
    asm volatile(
        "{\n"
        ".reg .b32 there;\n"
        "mapa.shared::cluster.u32 there, %0, %1;\n"
        "mbarrier.arrive.shared::cluster.b64 _, [there];\n"
        "}\n" ::"r"(barrier), "r"(rank) : "memory");
}

// Hold the thread until the phase of this parity is complete. try_wait sleeps for a while by itself.
__device__ inline void mbarrier_wait(unsigned barrier, unsigned parity)
{
    unsigned done;
    do {
        asm volatile(
            "{\n"
            ".reg .pred p;\n"
            "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
            "selp.u32 %0, 1, 0, p;\n"
            "}\n" : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
    } while (!done);
}

// A place in a ring of STAGES buffers, and the parity of the round that goes through it.
template <int STAGES>
struct Ring {
    int stage = 0;
    unsigned parity = 0;

    __device__ void next()
    {
        if (++stage == STAGES) stage = 0, parity ^= 1;
    }

    __device__ void skip(int buffers)
    {
        stage += buffers;
        parity ^= stage / STAGES & 1;
        stage %= STAGES;
    }
};
