// CUTLASS for sm_90a: FP16 in, sums and C in FP32, all by rows; or, with -DBF16_COLUMN, BF16 in and
// out and B by columns. Several tiles, clusters and schedules. Compile with -I CUTLASS/include.
#include "peer.h"

#include "cute/tensor.hpp"
#include "cutlass/epilogue/collective/collective_builder.hpp"
#include "cutlass/gemm/collective/collective_builder.hpp"
#include "cutlass/gemm/device/gemm_universal_adapter.h"
#include "cutlass/gemm/kernel/gemm_universal.hpp"
#include "cutlass/util/packed_stride.hpp"

namespace {
using namespace cute;
using Row = cutlass::layout::RowMajor;
#ifdef BF16_COLUMN
using In = cutlass::bfloat16_t;
using Out = cutlass::bfloat16_t;
using LayoutB = cutlass::layout::ColumnMajor;
#else
using In = cutlass::half_t;
using Out = float;
using LayoutB = Row;
#endif

template <class Tile, class Cluster, class Main, class End>
struct Made {
    using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
        cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster,
        cutlass::epilogue::collective::EpilogueTileAuto, float, float, void, Row, 16 / sizeof(Out),
        Out, Row, 16 / sizeof(Out), End>::CollectiveOp;
    using Loop = typename cutlass::gemm::collective::CollectiveBuilder<
        cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, In, Row, 8, In, LayoutB, 8, float,
        Tile, Cluster,
        cutlass::gemm::collective::StageCountAutoCarveout<
            static_cast<int>(sizeof(typename Epilogue::SharedStorage))>,
        Main>::CollectiveOp;
    using Kernel = cutlass::gemm::kernel::GemmUniversal<Shape<int, int, int, int>, Loop, Epilogue>;
    using Gemm = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;
};

template <class G>
void *prepare(int M, int N, int K, const void *A, const void *B, void *C)
{
    using Kernel = typename G::GemmKernel;
    auto a = cutlass::make_cute_packed_stride(typename Kernel::StrideA{}, make_shape(M, K, 1));
    auto b = cutlass::make_cute_packed_stride(typename Kernel::StrideB{}, make_shape(N, K, 1));
    auto d = cutlass::make_cute_packed_stride(typename Kernel::StrideD{}, make_shape(M, N, 1));
    typename G::Arguments arguments{cutlass::gemm::GemmUniversalMode::kGemm, {M, N, K, 1},
                                    {(const In *)A, a, (const In *)B, b},
                                    {{1.0f, 0.0f}, nullptr, {}, (Out *)C, d}};
    arguments.hw_info.sm_count =
        cutlass::KernelHardwareInfo::query_device_multiprocessor_count(0);
    void *workspace = nullptr;
    if (size_t bytes = G::get_workspace_size(arguments))
        if (cudaMalloc(&workspace, bytes) != cudaSuccess) return nullptr;
    auto *gemm = new G;
    if (gemm->can_implement(arguments) != cutlass::Status::kSuccess
        || gemm->initialize(arguments, workspace) != cutlass::Status::kSuccess)
        return nullptr;
    return gemm;
}

template <class G>
int run(void *prepared)
{
    return static_cast<G *>(prepared)->run() == cutlass::Status::kSuccess ? cudaSuccess
                                                                          : cudaErrorUnknown;
}

struct Configuration {
    const char *name;
    void *(*prepare)(int, int, int, const void *, const void *, void *);
    int (*run)(void *);
};

using PingPong = cutlass::gemm::KernelTmaWarpSpecializedPingpong;
using Together = cutlass::gemm::KernelTmaWarpSpecializedCooperative;
using PingPongEnd = cutlass::epilogue::TmaWarpSpecialized;
using TogetherEnd = cutlass::epilogue::TmaWarpSpecializedCooperative;

#define TILE(M, N, CM, CN, SCHEDULE) \
    {#M "x" #N "x64, cluster " #CM "x" #CN ", " #SCHEDULE, \
     prepare<Made<Shape<Int<M>, Int<N>, _64>, Shape<Int<CM>, Int<CN>, _1>, SCHEDULE, SCHEDULE##End>::Gemm>, \
     run<Made<Shape<Int<M>, Int<N>, _64>, Shape<Int<CM>, Int<CN>, _1>, SCHEDULE, SCHEDULE##End>::Gemm>}

const Configuration configurations[] = {
    TILE(64, 128, 2, 1, PingPong),
    TILE(64, 256, 2, 1, PingPong),
    TILE(128, 128, 2, 1, Together),
    TILE(128, 256, 2, 1, Together),
    TILE(256, 128, 1, 2, Together),
};
}

int peer_count() { return sizeof(configurations) / sizeof(*configurations); }
const char *peer_name(int configuration) { return configurations[configuration].name; }
int peer_takes(int, int, int N, int K) { return N % 8 == 0 && K % 8 == 0; }

void *peer_prepare(int configuration, int M, int N, int K, const void *A, const void *B, void *C,
                   const float *, const float *)
{
    return configurations[configuration].prepare(M, N, K, A, B, C);
}

int peer_run(int configuration, void *prepared)
{
    return configurations[configuration].run(prepared);
}
