// Barriers of a block by number: some warps wait at one, others only say that they were there.
//
// Number 0 is __syncthreads(); 1 to 15 are free. A barrier opens when `threads` have come to it,
// and is then as new.
#pragma once

// Waits for the others. What they wrote before they came is visible after.
__device__ inline void barrier_sync(int number, int threads)
{
    asm volatile("bar.sync %0, %1;" :: "r"(number), "r"(threads) : "memory");
}

// Comes, and doesn't wait.
__device__ inline void barrier_arrive(int number, int threads)
{
    asm volatile("bar.arrive %0, %1;" :: "r"(number), "r"(threads) : "memory");
}
