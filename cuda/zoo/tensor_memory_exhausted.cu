// Mistake: two warps allocate tensor memory that does not suffice for both, and free it behind a barrier of all.
// Cure: allocate no more than there is: 512 columns.
// Launch: sm_100a grid 1 block 64 args float32[64]:zeros
// Says: Deadlock
#include <cuda_fp16.h>
#include "tcgen05.cuh"

__global__ void tensor_memory_exhausted(float* D)
{
    __shared__ unsigned addresses[2];
#ifdef CURED
    constexpr int COLUMNS = 256;
#else
    constexpr int COLUMNS = 512;
#endif
    const unsigned warp = threadIdx.x / 32;
    tensor_alloc<COLUMNS>(&addresses[warp]);
    __syncthreads();
    D[threadIdx.x] = addresses[warp];
    tensor_free<COLUMNS>(addresses[warp]);
}
