// Mistake: lanes shuffle with a mask that doesn't name them.
// Cure: a mask of all that come.
// Seen: https://github.com/arrayfire/arrayfire/issues/3575
// Seen: https://github.com/kokkos/kokkos/issues/1958
// Launch: sm_80 grid 1 block 32 args int32[32]:arange int32[32]
// Says: hazard or error
__global__ void shuffle_outside_mask(const int* x, int* y)
{
#ifdef CURED
    const unsigned mask = 0xffffffff;
#else
    const unsigned mask = 0x0000ffff;
#endif
    y[threadIdx.x] = __shfl_xor_sync(mask, x[threadIdx.x], 1);
}
