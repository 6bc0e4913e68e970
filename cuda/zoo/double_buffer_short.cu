// Mistake: two buffers and no barrier between filling one and reading it: only the other's reuse
//   is ordered.
// Cure: the barrier after filling, once per turn.
// Launch: sm_80 grid 1 block 64 args int32[256]:arange int32[64]
// Says: race
__global__ void double_buffer_short(const int* x, int* y)
{
    __shared__ int tile[2][64];
    int sum = 0;
    tile[0][threadIdx.x] = x[threadIdx.x];
#ifdef CURED
    __syncthreads();
#endif
    for (int turn = 0; turn < 4; turn++) {
        if (turn < 3) tile[(turn + 1) % 2][threadIdx.x] = x[64 * (turn + 1) + threadIdx.x];
        sum += tile[turn % 2][63 - threadIdx.x];
#ifdef CURED
        __syncthreads();
#else
        if (turn % 2) __syncthreads();
#endif
    }
    y[threadIdx.x] = sum;
}
