// Mistake: a variable gets its value in a branch that not all threads take, and all of them store
//   it.
// Cure: a value for the others, before the branch.
// Launch: sm_80 grid 1 block 64 args int32[64]:arange int32[64]
// Says: UninitialisedRead
__global__ void value_of_one_branch(const int* x, int* y)
{
#ifdef CURED
    int value = 0;
#else
    int value;
#endif
    if (x[threadIdx.x] % 3 == 0) value = x[63 - threadIdx.x];
    y[threadIdx.x] = value;
}
