// Mistake: a product on the tensor cores adds to a fragment that was never filled.
// Cure: fill_fragment(sum, 0) before the first product.
// Launch: sm_80 grid 1 block 32 args float16[256]:ones float16[256]:ones float32[256]
// Says: UninitialisedRead
#include <mma.h>
using namespace nvcuda::wmma;

__global__ void fragment_unfilled(const half* a, const half* b, float* c)
{
    fragment<matrix_a, 16, 16, 16, half, row_major> of_a;
    fragment<matrix_b, 16, 16, 16, half, row_major> of_b;
    fragment<accumulator, 16, 16, 16, float> sum;
#ifdef CURED
    fill_fragment(sum, 0);
#endif
    load_matrix_sync(of_a, a, 16);
    load_matrix_sync(of_b, b, 16);
    mma_sync(sum, of_a, of_b, sum);
    store_matrix_sync(c, sum, 16, mem_row_major);
}
