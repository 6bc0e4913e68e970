// Tensor-core GEMMs as people write them for sm_75 and sm_80: C = A B, all row-major, C in float
// (int for s8), with M, N and K multiples of the tile.
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

__device__ inline unsigned shared_address(const void* p) {
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

// WMMA: a 64 x 64 tile by 4 warps of 32 x 32, K in steps of 32, staged in padded shared memory.
__global__ void __launch_bounds__(128) wmma_gemm(int M, int N, int K, const half* A, const half* B, float* C) {
    constexpr int BM = 64, BN = 64, BK = 32, PAD = 8;
    __shared__ __align__(32) half As[BM][BK + PAD], Bs[BK][BN + PAD];
    const int warp = threadIdx.x / 32, row = warp / 2 * 32, column = warp % 2 * 32;
    A += blockIdx.y * BM * K;
    B += blockIdx.x * BN;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c[2][2];
    for (auto& line : c)
        for (auto& tile : line) wmma::fill_fragment(tile, 0.0f);
    for (int k = 0; k < K; k += BK) {
        for (int i = threadIdx.x; i < BM * BK / 8; i += 128) {
            const int r = i / (BK / 8), s = i % (BK / 8) * 8;
            *reinterpret_cast<uint4*>(&As[r][s]) = *reinterpret_cast<const uint4*>(&A[r * K + k + s]);
        }
        for (int i = threadIdx.x; i < BK * BN / 8; i += 128) {
            const int r = i / (BN / 8), s = i % (BN / 8) * 8;
            *reinterpret_cast<uint4*>(&Bs[r][s]) = *reinterpret_cast<const uint4*>(&B[(k + r) * N + s]);
        }
        __syncthreads();
        for (int kk = 0; kk < BK; kk += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a[2];
            wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> b[2];
            for (int i = 0; i < 2; i++) {
                wmma::load_matrix_sync(a[i], &As[row + 16 * i][kk], BK + PAD);
                wmma::load_matrix_sync(b[i], &Bs[kk][column + 16 * i], BN + PAD);
            }
            for (int i = 0; i < 2; i++)
                for (int j = 0; j < 2; j++) wmma::mma_sync(c[i][j], a[i], b[j], c[i][j]);
        }
        __syncthreads();
    }
    C += (blockIdx.y * BM + row) * N + blockIdx.x * BN + column;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            wmma::store_matrix_sync(C + 16 * i * N + 16 * j, c[i][j], N, wmma::mem_row_major);
}

// ldmatrix and mma.m16n8k8, which is all that sm_75 has: 64 x 64 by 4 warps of 32 x 32, K by 32.
__global__ void __launch_bounds__(128) mma_m16n8k8(int M, int N, int K, const half* A, const half* B, float* C) {
    constexpr int BM = 64, BN = 64, BK = 32, PAD = 8;
    __shared__ __align__(16) half As[BM][BK + PAD], Bs[BK][BN + PAD];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int row = warp / 2 * 32, column = warp % 2 * 32;
    A += blockIdx.y * BM * K;
    B += blockIdx.x * BN;
    float c[2][4][4] = {};
    for (int k = 0; k < K; k += BK) {
        for (int i = threadIdx.x; i < BM * BK / 8; i += 128) {
            const int r = i / (BK / 8), s = i % (BK / 8) * 8;
            *reinterpret_cast<uint4*>(&As[r][s]) = *reinterpret_cast<const uint4*>(&A[r * K + k + s]);
        }
        for (int i = threadIdx.x; i < BK * BN / 8; i += 128) {
            const int r = i / (BN / 8), s = i % (BN / 8) * 8;
            *reinterpret_cast<uint4*>(&Bs[r][s]) = *reinterpret_cast<const uint4*>(&B[(k + r) * N + s]);
        }
        __syncthreads();
#pragma unroll
        for (int kk = 0; kk < BK; kk += 8) {
            unsigned a[2][2], b[4];
            for (int i = 0; i < 2; i++)
                asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                             : "=r"(a[i][0]), "=r"(a[i][1])
                             : "r"(shared_address(&As[row + 16 * i + lane % 16][kk])));
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                         : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
                         : "r"(shared_address(&Bs[kk + lane % 8][column + lane / 8 * 8])));
            for (int i = 0; i < 2; i++)
                for (int j = 0; j < 4; j++)
                    asm volatile(
                        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
                        "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
                        : "+f"(c[i][j][0]), "+f"(c[i][j][1]), "+f"(c[i][j][2]), "+f"(c[i][j][3])
                        : "r"(a[i][0]), "r"(a[i][1]), "r"(b[j]));
        }
        __syncthreads();
    }
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 4; j++)
            for (int h = 0; h < 2; h++) {
                float* to = C + (blockIdx.y * BM + row + 16 * i + 8 * h + lane / 4) * N +
                            blockIdx.x * BN + column + 8 * j + lane % 4 * 2;
                *reinterpret_cast<float2*>(to) = make_float2(c[i][j][2 * h], c[i][j][2 * h + 1]);
            }
}

#if __CUDA_ARCH__ >= 800
// cp.async in three stages, XOR-swizzled tiles, ldmatrix, mma.m16n8k16: 64 x 64 by 4 warps, K by 32.
__global__ void __launch_bounds__(128) pipelined(int M, int N, int K, const half* A, const half* B, float* C) {
    constexpr int BM = 64, BN = 64, BK = 32, STAGES = 3;
    __shared__ __align__(128) half As[STAGES][BM * BK], Bs[STAGES][BK * BN];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int row = warp / 2 * 32, column = warp % 2 * 32;
    A += blockIdx.y * BM * K;
    B += blockIdx.x * BN;
    // Chunks of 16 bytes: A has 4 a row, B has 8.
    auto in_a = [](int r, int chunk) { return (r * 4 + (chunk ^ (r >> 1 & 3))) * 8; };
    auto in_b = [](int r, int chunk) { return (r * 8 + (chunk ^ (r & 7))) * 8; };
    auto load = [&](int stage, int k) {
        for (int i = threadIdx.x; i < BM * BK / 8; i += 128) {
            const int r = i / 4, chunk = i % 4;
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                             shared_address(&As[stage][in_a(r, chunk)])),
                         "l"(&A[r * K + k + chunk * 8]) : "memory");
        }
        for (int i = threadIdx.x; i < BK * BN / 8; i += 128) {
            const int r = i / 8, chunk = i % 8;
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                             shared_address(&Bs[stage][in_b(r, chunk)])),
                         "l"(&B[(k + r) * N + chunk * 8]) : "memory");
        }
    };
    float c[2][4][4] = {};
    const int tiles = K / BK;
    for (int s = 0; s < STAGES - 1; s++) {
        if (s < tiles) load(s, s * BK);
        asm volatile("cp.async.commit_group;" ::: "memory");
    }
    for (int t = 0; t < tiles; t++) {
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        __syncthreads();
        const int next = t + STAGES - 1;
        if (next < tiles) load(next % STAGES, next * BK);
        asm volatile("cp.async.commit_group;" ::: "memory");
        const int stage = t % STAGES;
#pragma unroll
        for (int kk = 0; kk < BK; kk += 16) {
            unsigned a[2][4], b[2][4];
            for (int i = 0; i < 2; i++) {
                const int r = row + 16 * i + lane % 16, chunk = kk / 8 + lane / 16;
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                             : "=r"(a[i][0]), "=r"(a[i][1]), "=r"(a[i][2]), "=r"(a[i][3])
                             : "r"(shared_address(&As[stage][in_a(r, chunk)])));
            }
            for (int j = 0; j < 2; j++) {
                const int r = kk + lane % 16, chunk = column / 8 + 2 * j + lane / 16;
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                             : "=r"(b[j][0]), "=r"(b[j][1]), "=r"(b[j][2]), "=r"(b[j][3])
                             : "r"(shared_address(&Bs[stage][in_b(r, chunk)])));
            }
            for (int i = 0; i < 2; i++)
                for (int j = 0; j < 4; j++)
                    asm volatile(
                        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
                        "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                        : "+f"(c[i][j][0]), "+f"(c[i][j][1]), "+f"(c[i][j][2]), "+f"(c[i][j][3])
                        : "r"(a[i][0]), "r"(a[i][1]), "r"(a[i][2]), "r"(a[i][3]),
                          "r"(b[j / 2][j % 2 * 2]), "r"(b[j / 2][j % 2 * 2 + 1]));
        }
    }
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 4; j++)
            for (int h = 0; h < 2; h++) {
                float* to = C + (blockIdx.y * BM + row + 16 * i + 8 * h + lane / 4) * N +
                            blockIdx.x * BN + column + 8 * j + lane % 4 * 2;
                *reinterpret_cast<float2*>(to) = make_float2(c[i][j][2 * h], c[i][j][2 * h + 1]);
            }
}

// One warp a 16 x 8 tile straight from global memory; B is given as (N, K).
__global__ void int8_mma(int M, int N, int K, const signed char* A, const signed char* B, int* C) {
    const int g = threadIdx.x / 4, t = threadIdx.x % 4;
    A += blockIdx.y * 16 * K;
    B += blockIdx.x * 8 * K;
    int c[4] = {};
    for (int k = 0; k < K; k += 32) {
        auto word = [&](const signed char* from, int r, int s) {
            return *reinterpret_cast<const unsigned*>(from + r * K + k + s + 4 * t);
        };
        asm volatile("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32 {%0, %1, %2, %3}, "
                     "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
                     : "r"(word(A, g, 0)), "r"(word(A, g + 8, 0)), "r"(word(A, g, 16)),
                       "r"(word(A, g + 8, 16)), "r"(word(B, g, 0)), "r"(word(B, g, 16)));
    }
    for (int i = 0; i < 4; i++)
        C[(blockIdx.y * 16 + g + 8 * (i / 2)) * N + blockIdx.x * 8 + 2 * t + i % 2] = c[i];
}

__global__ void tf32_mma(int M, int N, int K, const float* A, const float* B, float* C) {
    const int g = threadIdx.x / 4, t = threadIdx.x % 4;
    A += blockIdx.y * 16 * K;
    B += blockIdx.x * 8;
    float c[4] = {};
    auto rounded = [](float x) {
        unsigned word;
        asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(word) : "f"(x));
        return word;
    };
    for (int k = 0; k < K; k += 8)
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, "
                     "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(rounded(A[g * K + k + t])), "r"(rounded(A[(g + 8) * K + k + t])),
                       "r"(rounded(A[g * K + k + t + 4])),
                       "r"(rounded(A[(g + 8) * K + k + t + 4])),
                       "r"(rounded(B[(k + t) * N + g])), "r"(rounded(B[(k + t + 4) * N + g])));
    for (int i = 0; i < 4; i++)
        C[(blockIdx.y * 16 + g + 8 * (i / 2)) * N + blockIdx.x * 8 + 2 * t + i % 2] = c[i];
}
#endif
