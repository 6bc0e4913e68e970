// What becomes of a product before it is stored: an epilogue, all in FP32 and rounded once.
//
//     x = alpha * sum + beta * C + bias        bias: one for each column of the product
//     y = activation(x) + residual             residual: a matrix of C's shape
//     C = y in C's type;  amax = max(amax, |y|)  before y is rounded
//
// Bias and residual have C's type. SwiGLU folds 16 columns of the product into 8 of C: the first
// eight are gates, the next eight what they let through, so that both meet in one lane.
#pragma once

#include "activation.cuh"
#include "pairs.cuh"

// An epilogue's operands, and what a thread has seen of |y|. They are read by plain loads: a kernel
// launched early may begin while the one before it still writes them (grid.cuh), and so they aren't
// read-only while it runs, as __ldg asks.
template <class E, class TC>
struct Fused {
    using Pair = typename PairOf<TC>::type;
    const TC *C, *bias, *residual;
    int M, N;  // of C
    unsigned most = 0;

    // Magnitudes are in the order of their bits, and a NaN lies above all numbers.
    __device__ void see(float y) { most = max(most, __float_as_uint(fabsf(y))); }

    // Let the caches fetch what 64 rows and COLS columns of C need, before their sums are there: it
    // takes no registers. By all threads of a warpgroup.
    template <int COLS>
    __device__ void prefetch(int row, int x, bool reads) const
    {
        constexpr int EACH = 128 / sizeof(TC), LINES = (COLS + EACH - 1) / EACH;
        const int thread = threadIdx.x % 128, column = x * E::FOLD + thread * EACH;
        if (E::BIAS && thread < LINES * E::FOLD && column < N * E::FOLD)
            asm volatile("prefetch.global.L1 [%0];" ::"l"(bias + column));
        if (!E::RESIDUAL && !reads) return;
#pragma unroll
        for (int i = thread; i < 64 * LINES; i += 128) {
            const int r = row + i / LINES, c = x + i % LINES * EACH;
            if (!inside(r, c)) continue;
            const size_t at = (size_t)r * N + c;
            if (E::RESIDUAL) asm volatile("prefetch.global.L2 [%0];" ::"l"(residual + at));
            if (reads) asm volatile("prefetch.global.L2 [%0];" ::"l"(C + at));
        }
    }

    // A lane's biases of so many blocks of 8 columns of the product, from x on.
    template <int BLOCKS>
    __device__ void fetch(Pair (&to)[BLOCKS], int x) const
    {
        x += threadIdx.x % 4 * 2;
#pragma unroll
        for (int i = 0; E::BIAS && i < BLOCKS; ++i)
            if (x + i * 8 < N * E::FOLD) to[i] = *reinterpret_cast<const Pair*>(bias + x + i * 8);
    }

    // y of a warp's 16 rows from `row` on and of BLOCKS blocks of 8 columns, from the one `first`
    // behind `x` on: of each in row lane / 4 and 8 rows below. READS: beta is not 0; otherwise C
    // isn't read.
    template <bool READS, int BLOCKS, int SUMS>
    __device__ void apply(float2 (&to)[2 * BLOCKS], const float (&sum)[SUMS],
                          const Pair (&biases)[BLOCKS * E::FOLD], int first, int row, int x,
                          float alpha, float beta)
    {
        Pair old[2 * BLOCKS], beside[2 * BLOCKS];
        x += first * 8 + threadIdx.x % 4 * 2, row += threadIdx.x % 32 / 4;
#pragma unroll
        for (int i = 0; i < 2 * BLOCKS; ++i) {
            const size_t at = (size_t)(row + i % 2 * 8) * N + x + i / 2 * 8;
            const bool reads = inside(row + i % 2 * 8, x + i / 2 * 8);
            if (READS && reads) old[i] = *reinterpret_cast<const Pair*>(C + at);
            if (E::RESIDUAL && reads)
                beside[i] = *reinterpret_cast<const Pair*>(residual + at);
        }
#pragma unroll
        for (int i = 0; i < 2 * BLOCKS; ++i) {
            float2 in[E::FOLD];
#pragma unroll
            for (int f = 0; f < E::FOLD; ++f) {
                const int block = (first + i / 2) * E::FOLD + f;
                const float* s = &sum[4 * block + i % 2 * 2];
                in[f] = make_float2(alpha * s[0], alpha * s[1]);
                if constexpr (READS) add(in[f], beta, old[i]);
                if constexpr (E::BIAS) add(in[f], 1.0f, biases[i / 2 * E::FOLD + f]);
            }
            to[i] = make_float2(E::of(in[0].x, in[E::FOLD - 1].x),
                                E::of(in[0].y, in[E::FOLD - 1].y));
            if constexpr (E::RESIDUAL) add(to[i], 1.0f, beside[i]);
            if (E::AMAX && inside(row + i % 2 * 8, x + i / 2 * 8)) see(to[i].x), see(to[i].y);
        }
    }

    // y of one element: x is alpha * sum.
    __device__ float one(float x, int row, int col, float beta)
    {
        const size_t at = (size_t)row * N + col;
        const bool there = inside(row, col);
        if (there && beta != 0.0f) x += beta * float(C[at]);
        if (E::BIAS && there) x += float(bias[col]);
        float y = E::of(x, x);
        if (E::RESIDUAL && there) y += float(residual[at]);
        if (E::AMAX && there) see(y);
        return y;
    }

    // For all lanes of a warp, at its end: one atomic each.
    __device__ void report(unsigned* amax) const
    {
        if constexpr (E::AMAX) {
            const unsigned all = __reduce_max_sync(0xffffffff, most);
            if (threadIdx.x % 32 == 0) atomicMax(amax, all);
        }
    }

    __device__ bool inside(int y, int x) const { return y < M && x < N; }

private:
    __device__ static void add(float2& to, float factor, const Pair& pair)
    {
        const float2 values = widen(pair);
        to.x += factor * values.x, to.y += factor * values.y;
    }
};
