// Mistake: blocks add to a tile in turns, and pass the turn on with no fence behind what they
//   added.
// Cure: __threadfence() by every thread, then a barrier, then the semaphore; and a fence behind the
//   wait.
// Seen: https://github.com/NVIDIA/Fuser/pull/2391
// Seen: https://github.com/kokkos/kokkos/issues/2681
// Launch: sm_80 grid 3 block 32 args int32[96]:arange int32[32] int32[1]
// Says: race
__global__ void semaphore_without_fence(const int* x, int* sum, int* turn)
{
    if (threadIdx.x == 0)
        while (atomicAdd(turn, 0) != blockIdx.x) { }
#ifdef CURED
    __threadfence();
#endif
    __syncthreads();
    sum[threadIdx.x] += x[32 * blockIdx.x + threadIdx.x];
#ifdef CURED
    __threadfence();
#endif
    __syncthreads();
    if (threadIdx.x == 0) atomicExch(turn, blockIdx.x + 1);
}
