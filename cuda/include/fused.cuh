// What becomes of a product before it is stored: an epilogue, all in FP32 and rounded once.
//
//     x = alpha * sum + beta * C + bias        bias: one for each column of the product
//     y = activation(x) + residual             residual: a matrix of C's shape
//     C = y in C's type;  amax = max(amax, |y|)  before y is rounded
//
// Bias and residual have C's type. SwiGLU folds 16 columns of the product into 8 of C: the first
// eight are gates, the next eight what they let through, so that both meet in one lane.
#pragma once

#include "barrier.cuh"
#include "pairs.cuh"
#include "stmatrix.cuh"
#include "tma.cuh"

constexpr int SLICE_BYTES = 64 * 128;

enum Activation { NONE, RELU, GELU, GELU_UNIT, GELU_ERF, SILU, SWIGLU };

// x / (1 + 2^z) by the hardware's approximations. Where 2^z overflows it is 0.
__device__ inline float gated(float x, float z)
{
    float power, share;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(z));
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(share) : "f"(1.0f + power));
    return x * share;
}

template <Activation ACTIVATION>
__device__ inline float activated(float x)
{
    constexpr float LOG2E = 1.4426950409f;
    // Of GELU's tanh(u), u = sqrt(2 / pi) (x + 0.044715 x^3); (1 + tanh(u)) / 2 = 1 / (1 + e^-2u).
    constexpr float FIRST = 0.7978845608f, THIRD = FIRST * 0.044715f;
    if constexpr (ACTIVATION == RELU) return x < 0.0f ? 0.0f : x;  // a NaN stays one
    if constexpr (ACTIVATION == GELU)
        return gated(x, x * (-2 * LOG2E * FIRST - 2 * LOG2E * THIRD * (x * x)));
    if constexpr (ACTIVATION == GELU_UNIT) {  // by the unit that has a tanh, of 11 bits
        float tanh;
        asm("tanh.approx.f32 %0, %1;" : "=f"(tanh) : "f"(x * (FIRST + THIRD * (x * x))));
        return 0.5f * x + 0.5f * x * tanh;
    }
    if constexpr (ACTIVATION == GELU_ERF) return 0.5f * x + 0.5f * x * erff(0.7071067812f * x);
    if constexpr (ACTIVATION == SILU || ACTIVATION == SWIGLU) return gated(x, -LOG2E * x);
    return x;
}

// The parts of an epilogue: what a kernel takes as one argument of its template.
template <Activation ACTIVATION, bool HAS_BIAS, bool HAS_RESIDUAL, bool HAS_AMAX>
struct Epilogue {
    static constexpr bool BIAS = HAS_BIAS, RESIDUAL = HAS_RESIDUAL, AMAX = HAS_AMAX;
    // Columns of the product for one of C.
    static constexpr int FOLD = ACTIVATION == SWIGLU ? 2 : 1;

    // Of x, or of a gate and what it lets through.
    __device__ static float of(float x, float through)
    {
        return FOLD == 2 ? activated<ACTIVATION>(x) * through : activated<ACTIVATION>(x);
    }
};

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

    // y of a warp's 16 rows from `row` on and of BLOCKS blocks of 8 columns, from the one `first`
    // behind `x` on: of each in row lane / 4 and 8 rows below. READS: beta is not 0; otherwise C
    // isn't read.
    template <bool READS, int BLOCKS, int SUMS>
    __device__ void apply(float2 (&to)[2 * BLOCKS], const float (&sum)[SUMS],
                          int first, int row, int x, float alpha, float beta)
    {
        Pair old[2 * BLOCKS], beside[2 * BLOCKS], biases[BLOCKS * E::FOLD];
        x += first * 8;
#pragma unroll
        for (int i = 0; E::BIAS && i < BLOCKS * E::FOLD; ++i) {
            const int column = x * E::FOLD + i * 8 + threadIdx.x % 4 * 2;
            if (column < N * E::FOLD)
                biases[i] = *reinterpret_cast<const Pair*>(bias + column);
        }
        x += threadIdx.x % 4 * 2, row += threadIdx.x % 32 / 4;
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

    // A warpgroup's 64 rows, EACH blocks at a time, stored as 20 does: by slices (slices.cuh), of
    // which STAGED lie in shared memory, or from registers.
    template <bool READS, int STAGED, int EACH, int SUMS>
    __device__ void store(const TensorMap& C_map, unsigned slices, TC* to, int row, int col,
                          float alpha, const float (&sum)[SUMS], float beta, int warpgroup)
    {
        constexpr int ALL = SUMS / E::FOLD / 4;
        constexpr int BLOCKS = STAGED ? 16 / int(sizeof(TC)) : ALL;
        static_assert(STAGED == 0 || ALL / BLOCKS % STAGED == 0);
        const int mine = row + threadIdx.x / 32 % 4 * 16, x = col / E::FOLD;
#pragma unroll
        for (int first = 0; first < ALL; first += EACH) {
            const unsigned buffer = slices + first / BLOCKS % (STAGED + !STAGED) * SLICE_BYTES;
            __syncwarp();  // without it ptxas mixes the blocks until registers spill
            float2 values[2 * EACH];
            apply<READS, EACH>(values, sum, first, mine, x, alpha, beta);
            if constexpr (STAGED == 0) {
                leave(to, mine, x + first * 8, values);
                continue;
            }
            if (first % BLOCKS == 0) {
                // What was in this buffer has left it.
                if (threadIdx.x % 128 == 0) tma_wait_read<STAGED ? STAGED - 1 : 0>();
                barrier_sync(1 + warpgroup, 128);
            }
            stage(buffer, first % BLOCKS, values);
            if (first % BLOCKS == BLOCKS - EACH) {
                fence_async_proxy();
                barrier_sync(1 + warpgroup, 128);
                if (threadIdx.x % 128 == 0) {
                    tma_store(C_map, buffer, row, x + first / BLOCKS * BLOCKS * 8);
                    tma_commit();
                }
            }
        }
    }

    // For all lanes of a warp, at its end: one atomic each.
    __device__ void report(unsigned* amax) const
    {
        if constexpr (E::AMAX) {
            const unsigned all = __reduce_max_sync(0xffffffff, most);
            if (threadIdx.x % 32 == 0) atomicMax(amax, all);
        }
    }

private:
    __device__ bool inside(int y, int x) const { return y < M && x < N; }

    // A warp's pairs of some blocks, to C.
    template <int VALUES>
    __device__ void leave(TC* to, int row, int x, const float2 (&values)[VALUES]) const
    {
        x += threadIdx.x % 4 * 2, row += threadIdx.x % 32 / 4;
#pragma unroll
        for (int i = 0; i < VALUES; ++i)
            write_pair<true>(to + (size_t)(row + i % 2 * 8) * N + x + i / 2 * 8,
                             inside(row + i % 2 * 8, x + i / 2 * 8), values[i]);
    }

    // The same, to its rows of a slice, from block `first` on, swizzled.
    template <int VALUES>
    __device__ static void stage(unsigned buffer, int first, const float2 (&values)[VALUES])
    {
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
        if constexpr (sizeof(TC) == 2) {
            Pair pairs[VALUES];
#pragma unroll
            for (int i = 0; i < VALUES; ++i) narrow(pairs[i], values[i]);
            // Lane l's row of matrix l / 8: 16 rows, and then the next chunk of 8 columns.
            const int r = warp * 16 + lane % 16;
#pragma unroll
            for (int j = 0; j < VALUES; j += 4)
                stmatrix(buffer + r * 128 + ((first + j / 2 + lane / 16) ^ r % 8) * 16,
                         reinterpret_cast<const unsigned (&)[4]>(pairs[j]));
        } else {
            const int r = warp * 16 + lane / 4;
#pragma unroll
            for (int i = 0; i < VALUES; ++i) {
                const int chunk = first * 2 + i / 2 * 2 + lane % 4 / 2;
                const unsigned to = buffer + (r + i % 2 * 8) * 128 + (chunk ^ r % 8) * 16;
                asm volatile("st.shared.v2.f32 [%0], {%1, %2};"
                             ::"r"(to + lane % 2 * 8), "f"(values[i].x), "f"(values[i].y)
                             : "memory");
            }
        }
    }

    __device__ static void add(float2& to, float factor, const Pair& pair)
    {
        const float2 values = widen(pair);
        to.x += factor * values.x, to.y += factor * values.y;
    }
};
