// Mistake: a flag is read past the L1 cache by a plain load: a cache operator is a hint, and orders
//   nothing.
// Cure: a volatile or atomic read.
// Seen: https://github.com/NVIDIA/cub/issues/356
// Launch: sm_80 grid 2 block 1 args int32[1] int32[1] int32[1]
// Says: race
__global__ void flag_read_weakly(int* data, int* flag, int* out)
{
    if (blockIdx.x == 0) {
        *data = 42;
        __threadfence();
        atomicExch(flag, 1);
    } else {
        int seen = 0;
        do {
#ifdef CURED
            seen = *(volatile int*)flag;
#else
            asm volatile("ld.global.cg.s32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
#endif
        } while (seen == 0);
        __threadfence();
        *out = *data;
    }
}
