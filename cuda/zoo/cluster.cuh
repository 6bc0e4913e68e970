// mbarriers of a cluster, st.async and multicast (sm_90), as the kernels of the zoo use them.
#pragma once
#include "asm.cuh"

enum Scope { BLOCK, CLUSTER };

__device__ inline unsigned address_in(unsigned rank, const void* p)
{
    unsigned there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(there) : "r"(shared_address(p)), "r"(rank));
    return there;
}
template <Scope SCOPE>
__device__ inline void arrive_at(unsigned rank, Barrier* b)
{
    if (SCOPE == CLUSTER)
        asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];"
                     ::"r"(address_in(rank, b)) : "memory");
    else
        asm volatile("mbarrier.arrive.release.cta.shared::cluster.b64 _, [%0];"
                     ::"r"(address_in(rank, b)) : "memory");
}
__device__ inline void arrive_relaxed_at(unsigned rank, Barrier* b)
{
    asm volatile("mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%0];"
                 ::"r"(address_in(rank, b)) : "memory");
}
template <Scope SCOPE>
__device__ inline void wait_at(unsigned barrier, unsigned parity)
{
    unsigned done;
    do {
        if (SCOPE == CLUSTER)
            asm volatile("{\n.reg .pred p;\n"
                         "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n"
                         "selp.u32 %0, 1, 0, p;\n}\n"
                         : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
        else
            asm volatile("{\n.reg .pred p;\n"
                         "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%1], %2;\n"
                         "selp.u32 %0, 1, 0, p;\n}\n"
                         : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
    } while (!done);
}
template <Scope SCOPE>
__device__ inline void wait_for(Barrier* b, unsigned parity)
{
    wait_at<SCOPE>(shared_address(b), parity);
}
// A word into a peer's shared memory, which its mbarrier counts as bytes.
__device__ inline void store_async(unsigned rank, int* to, int value, Barrier* b)
{
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.s32 [%0], %1, [%2];"
                 ::"r"(address_in(rank, to)), "r"(value), "r"(address_in(rank, b)) : "memory");
}
// To the same place in each block whose bit is set, and to the mbarrier at the same place there.
__device__ inline void bulk_load_to_all(
    void* to, const void* from, int bytes, Barrier* b, unsigned short ranks)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1], %2, [%3], %4;"
                 ::"r"(shared_address(to)), "l"(from), "r"(bytes), "r"(shared_address(b)),
                   "h"(ranks) : "memory");
}
