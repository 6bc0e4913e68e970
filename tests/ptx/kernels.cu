// Kernels that the emulator's tests and its benchmark run. They are not the book's.

__global__ void naive(int M, int N, int K, float alpha, const float* A, const float* B, float beta, float* C)
{
    const int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= M || col >= N) return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) sum += A[(long long)row * K + k] * B[(long long)k * N + col];
    const long long i = (long long)row * N + col;
    C[i] = beta == 0.0f ? alpha * sum : alpha * sum + beta * C[i];
}

template <bool SYNC>
__device__ void tile(int M, int N, int K, float alpha, const float* A, const float* B, float beta, float* C)
{
    constexpr int T = 32;
    __shared__ float As[T][T], Bs[T][T];
    const int x = threadIdx.x, y = threadIdx.y, col = blockIdx.x * T + x, row = blockIdx.y * T + y;
    float sum = 0.0f;
    for (int k0 = 0; k0 < K; k0 += T) {
        As[y][x] = row < M && k0 + x < K ? A[(long long)row * K + k0 + x] : 0.0f;
        Bs[y][x] = k0 + y < K && col < N ? B[(long long)(k0 + y) * N + col] : 0.0f;
        __syncthreads();
#pragma unroll
        for (int k = 0; k < T; ++k) sum += As[y][k] * Bs[k][x];
        if (SYNC) __syncthreads();
    }
    if (row < M && col < N) {
        const long long i = (long long)row * N + col;
        C[i] = beta == 0.0f ? alpha * sum : alpha * sum + beta * C[i];
    }
}

__global__ void shared_tile(int M, int N, int K, float alpha, const float* A, const float* B, float beta, float* C)
{
    tile<true>(M, N, K, alpha, A, B, beta, C);
}

__global__ void racing_tile(int M, int N, int K, float alpha, const float* A, const float* B, float beta, float* C)
{
    tile<false>(M, N, K, alpha, A, B, beta, C);  // the second barrier is missing
}

// 128x128 tile, 8 deep, 8x8 results a thread, float4 everywhere. M, N multiples of 128, K of 8.
__global__ void register_tile(int M, int N, int K, float alpha, const float* A, const float* B, float beta, float* C)
{
    constexpr int BM = 128, BN = 128, BK = 8, TM = 8, TN = 8;
    __shared__ float As[BK * BM], Bs[BK * BN];
    A += blockIdx.y * BM * K;
    B += blockIdx.x * BN;
    C += blockIdx.y * BM * N + blockIdx.x * BN;
    const int t = threadIdx.x, row = t / (BN / TN), col = t % (BN / TN);
    const int rowA = t / (BK / 4), colA = t % (BK / 4), rowB = t / (BN / 4), colB = t % (BN / 4);
    float sum[TM * TN] = {0.0f}, m[TM], n[TN];
    for (int k0 = 0; k0 < K; k0 += BK) {
        const float4 a = *reinterpret_cast<const float4*>(&A[rowA * K + colA * 4]);
        As[(colA * 4 + 0) * BM + rowA] = a.x;
        As[(colA * 4 + 1) * BM + rowA] = a.y;
        As[(colA * 4 + 2) * BM + rowA] = a.z;
        As[(colA * 4 + 3) * BM + rowA] = a.w;
        *reinterpret_cast<float4*>(&Bs[rowB * BN + colB * 4]) = *reinterpret_cast<const float4*>(&B[rowB * N + colB * 4]);
        __syncthreads();
        A += BK;
        B += BK * N;
#pragma unroll
        for (int k = 0; k < BK; ++k) {
#pragma unroll
            for (int i = 0; i < TM; i += 4) *reinterpret_cast<float4*>(&m[i]) = *reinterpret_cast<float4*>(&As[k * BM + row * TM + i]);
#pragma unroll
            for (int i = 0; i < TN; i += 4) *reinterpret_cast<float4*>(&n[i]) = *reinterpret_cast<float4*>(&Bs[k * BN + col * TN + i]);
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int j = 0; j < TN; ++j) sum[i * TN + j] += m[i] * n[j];
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < TM; ++i)
#pragma unroll
        for (int j = 0; j < TN; j += 4) {
            float4* out = reinterpret_cast<float4*>(&C[(row * TM + i) * N + col * TN + j]);
            float4 v = beta == 0.0f ? make_float4(0, 0, 0, 0) : *out;
            v.x = alpha * sum[i * TN + j] + beta * v.x;
            v.y = alpha * sum[i * TN + j + 1] + beta * v.y;
            v.z = alpha * sum[i * TN + j + 2] + beta * v.z;
            v.w = alpha * sum[i * TN + j + 3] + beta * v.w;
            *out = v;
        }
}

// Loops with different trip counts, nested ifs and an early exit.
__global__ void wander(int n, const int* trips, int* out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int total = 0;
    for (int k = 0; k < trips[i]; ++k) {
        if (k % 3 == 0) {
            if (i % 2) total += k; else total -= 1;
        } else if (k > 5) {
            total += 7;
        }
        if (total > 100) break;
    }
    out[i] = total;
}

__device__ int counter;
__constant__ float table[4] = {1.0f, 2.0f, 4.0f, 8.0f};

__global__ void globals(int* order, float* out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    order[i] = atomicAdd(&counter, 1);
    out[i] = table[i % 4] * sqrtf(float(i)) / 3.0f;
}
