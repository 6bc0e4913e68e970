// Mistake: the grid has more threads than the array has elements, and none is guarded.
// Cure: if (i < n).
// Launch: sm_80 grid 4 block 32 args int32[100]:arange int32[100] int:100
// Says: OutOfBounds
__global__ void no_tail_guard(const int* x, int* y, int n)
{
    const int i = 32 * blockIdx.x + threadIdx.x;
#ifdef CURED
    if (i < n)
#endif
    y[i] = x[i];
}
