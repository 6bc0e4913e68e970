// Mistake: a reduction over eleven lanes takes values from lanes that don't take part.
// Cure: all lanes take part, those beyond with a value that changes nothing.
// Seen: https://github.com/apache/tvm/issues/12274
// Launch: sm_80 grid 1 block 32 args int32[32]:arange int32[1]
// Says: shuffle from a missing lane
__global__ void shuffle_from_outside(const int* x, int* largest)
{
#ifdef CURED
    const unsigned mask = 0xffffffff;
#else
    const unsigned mask = 0x7ff;
    if (threadIdx.x >= 11) return;
#endif
    int value = threadIdx.x < 11 ? x[threadIdx.x] : x[0];
    for (int d = 8; d > 0; d /= 2) value = max(value, __shfl_down_sync(mask, value, d));
    if (threadIdx.x == 0) *largest = value;
}
