// CUTLASS 3.x's GemmUniversal for sm_90a: half A, (M, K), and B, (N, K), float C = alpha A B^T +
// beta C; TMA, wgmma, warp specialization. Its parameters are made by a kernel of their own, from
// tensor maps that the test hands in, for the host's encoder wants a driver.
#include <cuda/std/type_traits>
namespace std {  // what CUTLASS uses of a standard library that NVRTC has not
template <class T> inline constexpr bool is_pointer_v = cuda::std::is_pointer<T>::value;
template <class...> using void_t = void;
}
#include "cute/tensor.hpp"
#include "cutlass/cutlass.h"
#include "cutlass/epilogue/collective/default_epilogue.hpp"
#include "cutlass/epilogue/collective/detail.hpp"
#include "cutlass/epilogue/thread/linear_combination.h"
#include "cutlass/gemm/collective/collective_builder.hpp"
#include "cutlass/gemm/dispatch_policy.hpp"
#include "cutlass/gemm/kernel/gemm_universal.hpp"
#include "cutlass/numeric_types.h"
using namespace cute;

using Mainloop = cutlass::gemm::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, cutlass::half_t,
    cutlass::layout::RowMajor, 8, cutlass::half_t, cutlass::layout::ColumnMajor, 8, float,
    Shape<_128, _128, _64>, Shape<_1, _1, _1>, cutlass::gemm::collective::StageCount<4>,
    cutlass::gemm::KernelTmaWarpSpecialized>::CollectiveOp;
using Rows = cutlass::gemm::TagToStrideC_t<cutlass::layout::RowMajor>;
using Epilogue = cutlass::epilogue::collective::detail::Sm90TmaWarpSpecializedAdapter<
    cutlass::epilogue::collective::DefaultEpilogue<
        float, Rows, Rows, cutlass::epilogue::thread::LinearCombination<float, 1, float, float>,
        cutlass::gemm::EpilogueDefault>>;
using Gemm = cutlass::gemm::kernel::GemmUniversal<Shape<int, int, int, int>, Mainloop, Epilogue>;

struct alignas(64) Map { unsigned long long words[16]; };

extern "C" __global__ void sizes(int* out)
{
    out[0] = Gemm::SharedStorageSize;
    out[1] = Gemm::MaxThreadsPerBlock;
    out[2] = sizeof(Gemm::Params);
}

// One block for each block of the GEMM: each has parameters of its own.
extern "C" __global__ void build(Gemm::Params* p, const __grid_constant__ Map a,
                                 const __grid_constant__ Map b, int M, int N, int K, float alpha,
                                 float beta)
{
    p += blockIdx.x;
    p->problem_shape = make_shape(M, N, K, 1);
    memcpy((void*)&p->mainloop.tma_load_a.tma_desc_, &a, 128);
    memcpy((void*)&p->mainloop.tma_load_b.tma_desc_, &b, 128);
    p->mainloop.tma_transaction_bytes = Mainloop::TmaTransactionBytes;
    p->epilogue.thread.alpha = alpha;
    p->epilogue.thread.beta = beta;
    get<0>(p->epilogue.dC) = N;
    get<0>(p->epilogue.dD) = N;
}

extern "C" __global__ void __launch_bounds__(Gemm::MaxThreadsPerBlock, 1)
gemm(Gemm::Params* p, float* C)
{
    extern __shared__ __align__(128) char storage[];
    p += blockIdx.y * gridDim.x + blockIdx.x;
    // An array lies elsewhere in each launch of the emulator, so it was not known to `build`.
    if (threadIdx.x == 0) p->epilogue.ptr_C = p->epilogue.ptr_D = C;
    __syncthreads();
    Gemm()(*p, storage);
}
