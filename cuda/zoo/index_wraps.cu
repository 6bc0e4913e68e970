// Mistake: a row times a row's length is computed in 32 bits and wraps: the address lies before the
//   array.
// Cure: 64 bits before the product.
// Seen: https://github.com/microsoft/onnxruntime/issues/28107
// Seen: https://github.com/flagos-ai/FlagGems/issues/4153
// Launch: sm_80 grid 1 block 32 args int32[64]:arange int32[32] int:268435456
// Says: OutOfBounds
__global__ void index_wraps(const int* x, int* y, int length)
{
    const int row = threadIdx.x;
#ifdef CURED
    const long long place = (long long)row * length;
#else
    const long long place = row * length;
#endif
    y[row] = x[place / (1 << 27)];
}
