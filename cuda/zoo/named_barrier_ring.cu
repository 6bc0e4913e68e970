// Mistake: readers of a ring say that a buffer is empty, and read it after that.
// Cure: they read, and say so then.
// Launch: sm_80 grid 1 block 128 args int32[256]:arange int32[64]
// Says: race
__device__ void meet(int barrier) { asm volatile("bar.sync %0, 128;" :: "r"(barrier) : "memory"); }
__device__ void pass(int barrier) { asm volatile("bar.arrive %0, 128;" :: "r"(barrier) : "memory"); }

__global__ void named_barrier_ring(const int* x, int* y)
{
    enum { FULL = 1, EMPTY = 3 };  // of the first buffer; the next number is the second's
    __shared__ int s[2][64];
    const int lane = threadIdx.x % 64;
    if (threadIdx.x >= 64) {
        for (int i = 0; i < 4; ++i) {
            if (i >= 2) meet(EMPTY + i % 2);
            s[i % 2][lane] = x[64 * i + lane];
            pass(FULL + i % 2);
        }
    } else {
        int sum = 0;
        for (int i = 0; i < 4; ++i) {
            meet(FULL + i % 2);
#ifdef CURED
            sum += s[i % 2][63 - lane];
            if (i < 2) pass(EMPTY + i % 2);
#else
            if (i < 2) pass(EMPTY + i % 2);
            sum += s[i % 2][63 - lane];
#endif
        }
        y[lane] = sum;
    }
}
