// Thread block clusters: neighbours that run at the same time and reach each other's shared memory
// (sm_90).
#pragma once

__device__ inline int cluster_rank()
{
    int rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

// All threads of all blocks of the cluster meet; what each did before is seen by all behind it.
__device__ inline void cluster_barrier()
{
    asm volatile(
        "barrier.cluster.arrive.release;\n"
        "barrier.cluster.wait.acquire;" ::: "memory");
}
