// The tensor memory accelerator: one thread asks for a box of a matrix, the copy engine moves it
// (sm_90).
//
// A tensor map, which the host encodes, knows the matrix: its address, sizes, row stride, the box,
// and how the box is swizzled in shared memory. Elements of the box outside the matrix arrive as
// zeros and are never written. PTX ISA 9.7.9.27.
#pragma once

// CUtensorMap, without the driver's header.
struct alignas(64) TensorMap {
    char bytes[128];
};

__device__ inline void tma_prefetch(const TensorMap& map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

// Begin to load the box at (row, column); its bytes arrive on the mbarrier.
__device__ inline void tma_load(unsigned to, const TensorMap& map, unsigned barrier, int row,
                                int column)
{
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        " [%0], [%1, {%3, %4}], [%2];"
        ::"r"(to), "l"(&map), "r"(barrier), "r"(column), "r"(row) : "memory");
}

// The same for each block of the cluster whose bit is set in `ranks`: the bytes arrive at the same
// place of its shared memory, and on its mbarrier.
__device__ inline void tma_load_multicast(unsigned to, const TensorMap& map, unsigned barrier,
                                          int row, int column, unsigned short ranks)
{
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        ".multicast::cluster [%0], [%1, {%3, %4}], [%2], %5;"
        ::"r"(to), "l"(&map), "r"(barrier), "r"(column), "r"(row), "h"(ranks) : "memory");
}

// One or the other: a box that SHARERS blocks of the cluster need, of which `ranks` has the bits.
template <int SHARERS>
__device__ inline void tma_load_shared(unsigned to, const TensorMap& map, unsigned barrier, int row,
                                       int column, unsigned short ranks)
{
    if constexpr (SHARERS > 1) tma_load_multicast(to, map, barrier, row, column, ranks);
    else tma_load(to, map, barrier, row, column);
}

// Begin to store the box at (row, column), as a part of the thread's next bulk group.
__device__ inline void tma_store(const TensorMap& map, unsigned from, int row, int column)
{
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];"
                 ::"l"(&map), "r"(from), "r"(column), "r"(row) : "memory");
}

__device__ inline void tma_commit()
{
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Hold the thread until all but its last PENDING bulk groups have read their shared memory.
template <int PENDING>
__device__ inline void tma_wait_read()
{
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(PENDING) : "memory");
}

// What this thread wrote to shared memory may be read by the copy engine (and by wgmma).
__device__ inline void fence_async_proxy()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
