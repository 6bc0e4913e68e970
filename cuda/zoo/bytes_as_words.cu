// Mistake: words are kept in an array of bytes in shared memory, behind three bytes: none of them
//   is aligned.
// Cure: round the words' place up to their size.
// Seen: https://github.com/kokkos/kokkos/issues/686
// Launch: sm_80 grid 1 block 32 args int32[32]:arange int32[32]
// Says: Misaligned
__global__ void bytes_as_words(const int* x, int* y)
{
    __shared__ alignas(8) unsigned char bytes[8 + 4 * 32];
#ifdef CURED
    int* words = reinterpret_cast<int*>(bytes + 4);
#else
    int* words = reinterpret_cast<int*>(bytes + 3);
#endif
    words[threadIdx.x] = x[threadIdx.x];
    __syncwarp();
    y[threadIdx.x] = words[31 - threadIdx.x];
}
