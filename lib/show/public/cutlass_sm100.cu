// The GEMM of CUTLASS's first tutorial for sm_100, called from a kernel that takes plain pointers:
// its own takes tensors of CuTe, which the host's code makes.
#include <cute/tensor.hpp>
#include <cute/algorithm/cooperative_copy.hpp>
#include <cute/arch/cluster_sm90.hpp>
#include <cute/arch/tmem_allocator_sm100.hpp>
#include <cute/numeric/integral_constant.hpp>
#include <cutlass/arch/barrier.h>
#include <cutlass/half.h>

#define print(...) ((void)0)  // it tells of each of its tensors
using namespace cute;

// The kernel's own lines stand here.

using Half = cutlass::half_t;

// D = alpha * A B' + beta * C: A is M×K, B N×K, all rows contiguous; multiples of 128, 256 and 64.
extern "C" __global__ void tutorial_gemm(
    const Half* A, const Half* B, const float* C, float* D, int M, int N, int K, float alpha,
    float beta)
{
    const auto rows = [](auto pointer, int m, int n) {
        return make_tensor(make_gmem_ptr(pointer),
                           make_layout(make_shape(m, n), make_stride(n, Int<1>{})));
    };
    const auto mma = make_tiled_mma(
        SM100_MMA_F16BF16_SS<Half, Half, float, 128, 256, UMMA::Major::K, UMMA::Major::K>{});
    const auto tile =
        make_shape(tile_size<0>(mma), tile_size<1>(mma), tile_size<2>(mma) * Int<4>{});
    const auto a = UMMA::tile_to_mma_shape(
        UMMA::Layout_K_SW128_Atom<Half>{},
        partition_shape_A(mma, make_shape(size<0>(tile), size<2>(tile))));
    const auto b = UMMA::tile_to_mma_shape(
        UMMA::Layout_K_SW128_Atom<Half>{},
        partition_shape_B(mma, make_shape(size<1>(tile), size<2>(tile))));
    using Storage = SharedStorage<Half, Half, remove_cvref_t<decltype(a)>,
                                  remove_cvref_t<decltype(b)>>;
    gemm_device<Storage>(rows(A, M, K), rows(B, N, K), rows(C, M, N), rows(D, M, N), tile, mma,
                         make_shape(Int<1>{}, Int<1>{}, Int<1>{}), alpha, beta);
}
