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

// The shared address, in the cluster's window, of what lies at `address` in the block of a rank.
__device__ inline unsigned cluster_address(unsigned address, int rank)
{
    unsigned there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
    return there;
}

__device__ inline float4 cluster_load(unsigned address)
{
    float4 v;
    asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "r"(address) : "memory");
    return v;
}
