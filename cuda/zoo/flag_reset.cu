// Mistake: a shared flag is read by all and reset by one thread, with one barrier per turn too
//   few.
// Cure: a barrier between reading the flag and resetting it.
// Launch: sm_80 grid 1 block 64 args int32[256]:arange int32[64]
// Says: race
__global__ void flag_reset(const int* x, int* y)
{
    __shared__ int any;
    int found = 0;
    for (int turn = 0; turn < 4; turn++) {
        if (threadIdx.x == 0) any = 0;
        __syncthreads();
        if (x[64 * turn + threadIdx.x] % 7 == 0) atomicExch(&any, 1);
        __syncthreads();
        found += any;
#ifdef CURED
        __syncthreads();
#endif
    }
    y[threadIdx.x] = found;
}
