// Scales of 8-bit operands: what an element stands for is its value times its scale, in FP32.
#pragma once

// How many elements share a scale: all of a matrix; a row of A or a column of B; of A 128 of K in
// a row, of B a square of 128 of K and 128 columns.
enum Scales { TENSOR, VECTOR, BLOCKS };

// Elements along K that share a scale, and columns of B.
constexpr int SCALED = 128;

// Where scales lie: of which row or column, and of which 128 of K, is how many floats further. They
// are read by plain loads: a kernel that begins early may run beside the one that writes them, and
// __ldg asks that nobody writes while it runs.
struct ScaleMap {
    const float* first;
    int along, k;

    __device__ float at(int place, int block) const
    {
        return first[(size_t)place * along + (size_t)block * k];
    }
};

// What a lane reads of a step's scales: those of a row of A, and of B. Of the rows that a warp has
// sums of, 16 of each 64, lane l reads row l % 16 of the l / 16-th 64.
struct Share {
    float row, common;
};

// The share of the sums of FRAGMENTS * 64 rows from `row` on and a tile's columns from `col` on, of
// a block of 128 of K.
template <Scales SCALES, int FRAGMENTS>
__device__ inline Share share(const ScaleMap& of_a, const ScaleMap& of_b, int M, int N, int row,
                              int col, int block)
{
    static_assert(FRAGMENTS <= 2);
    if constexpr (SCALES != BLOCKS) return {1.0f, 1.0f};
    // A row past A's end takes the last one's, and a column past B's; their sums are never stored.
    const int lane = threadIdx.x % 32, fragment = FRAGMENTS > 1 ? lane / 16 : 0;
    const int y = row + fragment * 64 + threadIdx.x / 32 % 4 * 16 + lane % 16;
    return {of_a.at(min(y, M - 1), block), of_b.at(min(col, N - 1) / SCALED, block)};
}

// Of 16 rows that a warp has sums of, a lane has row lane / 4 and the one 8 below: the scales of
// both, and B's. They are multiplied when they are needed: what asks for them doesn't wait.
struct Factors {
    float upper, lower, common;
};

// The factors of a fragment's sums. All lanes of the warp come here.
template <Scales SCALES>
__device__ inline Factors exchanged(Share mine, int fragment)
{
    if constexpr (SCALES != BLOCKS) return {1.0f, 1.0f, 1.0f};
    const int from = fragment * 16 + threadIdx.x % 32 / 4;
    return {__shfl_sync(0xffffffff, mine.row, from), __shfl_sync(0xffffffff, mine.row, from + 8),
            mine.common};
}

// Add partial sums, which have few bits, to sums in FP32.
template <Scales SCALES, int SUMS>
__device__ inline void promote(float (&sum)[SUMS], const float (&part)[SUMS], Factors scale)
{
    const float upper = scale.upper * scale.common, lower = scale.lower * scale.common;
#pragma unroll
    for (int i = 0; i < SUMS; ++i) {
        if constexpr (SCALES == BLOCKS) sum[i] += (i / 2 % 2 ? lower : upper) * part[i];
        else sum[i] += part[i];
    }
}

// Multiply the sums of 64 rows from `row` on, and 2 * SUMS columns from `col` on, by the scales of
// their rows and columns. A lane reads one row's, and of each 32 columns one's; they are exchanged.
template <int SUMS>
__device__ inline void scale_vectors(float (&sum)[SUMS], const ScaleMap& of_a,
                                     const ScaleMap& of_b, int M, int N, int row, int col)
{
    const int lane = threadIdx.x % 32, y = row + threadIdx.x / 32 % 4 * 16 + lane % 16;
    const float mine = of_a.at(min(y, M - 1), 0);
    float columns[SUMS / 16];
#pragma unroll
    for (int i = 0; i < SUMS / 16; ++i)
        columns[i] = of_b.at(min(col + i * 32 + lane, N - 1), 0);
    const float upper = __shfl_sync(0xffffffff, mine, lane / 4);
    const float lower = __shfl_sync(0xffffffff, mine, lane / 4 + 8);
#pragma unroll
    for (int i = 0; i < SUMS; i += 4) {  // of 8 columns two, in the upper row and in the lower one
        const int x = i / 4 * 8 % 32 + lane % 4 * 2;
        const float left = __shfl_sync(0xffffffff, columns[i / 16], x);
        const float right = __shfl_sync(0xffffffff, columns[i / 16], x + 1);
        sum[i] *= upper * left, sum[i + 1] *= upper * right;
        sum[i + 2] *= lower * left, sum[i + 3] *= lower * right;
    }
}
