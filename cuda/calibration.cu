// The calibration set: one warp makes one access, and a profiler counts what it costs.
//
// Which lanes take part and which addresses they name comes from `pattern`, in constant memory, so
// that the access under test is the only one of its kind in the launch. What a load returns is
// stored, because ptxas deletes a load whose value nobody needs. lib/measure/patterns.py has the
// patterns, lib/measure/calibration.py runs them.
//
// Launch: one block of 32 threads; `memory` of MEMORY bytes, `sink` of 32 words.
// Runs on: sm_75 and later; copy_async from sm_80, store_matrix from sm_90.

struct Pattern {
    unsigned offset[32];  // bytes: where each lane's access begins, in the tile or in `memory`
    unsigned source[32];  // bytes: copy_async only, where in `memory` each lane reads
    unsigned active;      // one bit a lane
    unsigned stride;      // load_fragment and store_fragment only: elements from row to row
};

__constant__ Pattern pattern;

enum Space { SHARED, GLOBAL };

constexpr unsigned TILE = 17408;  // bytes of shared memory that a pattern may touch
constexpr unsigned VECTOR = 16;

struct Lane {
    unsigned number, on, offset, source;

    __device__ Lane() : number(threadIdx.x)
    {
        on = pattern.active >> number & 1;
        offset = pattern.offset[number];
        source = pattern.source[number];
    }
};

// The tile's address in shared memory. Bytes that will be read are written first: unit stride,
// 128 bits a lane, 34 stores of four wavefronts.
template <bool FILLED>
__device__ unsigned tile()
{
    __shared__ __align__(128) unsigned char bytes[TILE];
    const unsigned base = static_cast<unsigned>(__cvta_generic_to_shared(bytes));
    if constexpr (FILLED) {
#pragma unroll 1
        for (unsigned at = threadIdx.x * VECTOR; at < TILE; at += 32 * VECTOR)
            asm volatile("st.shared.v4.u32 [%0], {%1, %1, %1, %1};" ::"r"(base + at), "r"(at));
        __syncwarp();
    }
    return base;
}

// One predicated instruction; its predicate is operand 0.
#define WHERE_ON(instruction) \
    "{ .reg .pred on; setp.ne.u32 on, %0, 0; @on " instruction "; }"

#define LOAD(space, at)                                                                       \
    if constexpr (BYTES == 1)                                                                 \
        asm volatile(WHERE_ON("ld." space ".u8 %1, [%2]") : "+r"(on), "+r"(x) : at);          \
    else if constexpr (BYTES == 2)                                                            \
        asm volatile(WHERE_ON("ld." space ".u16 %1, [%2]") : "+r"(on), "+r"(x) : at);         \
    else if constexpr (BYTES == 4)                                                            \
        asm volatile(WHERE_ON("ld." space ".u32 %1, [%2]") : "+r"(on), "+r"(x) : at);         \
    else if constexpr (BYTES == 8)                                                            \
        asm volatile(WHERE_ON("ld." space ".v2.u32 {%1, %2}, [%3]")                           \
                     : "+r"(on), "+r"(x), "+r"(y) : at);                                      \
    else                                                                                      \
        asm volatile(WHERE_ON("ld." space ".v4.u32 {%1, %2, %3, %4}, [%5]")                   \
                     : "+r"(on), "+r"(x), "+r"(y), "+r"(z), "+r"(w) : at)

#define STORE(space, at)                                                                      \
    if constexpr (BYTES == 1)                                                                 \
        asm volatile(WHERE_ON("st." space ".u8 [%1], %2") : "+r"(on) : at, "r"(x));           \
    else if constexpr (BYTES == 2)                                                            \
        asm volatile(WHERE_ON("st." space ".u16 [%1], %2") : "+r"(on) : at, "r"(x));          \
    else if constexpr (BYTES == 4)                                                            \
        asm volatile(WHERE_ON("st." space ".u32 [%1], %2") : "+r"(on) : at, "r"(x));          \
    else if constexpr (BYTES == 8)                                                            \
        asm volatile(WHERE_ON("st." space ".v2.u32 [%1], {%2, %2}") : "+r"(on) : at, "r"(x)); \
    else                                                                                      \
        asm volatile(WHERE_ON("st." space ".v4.u32 [%1], {%2, %2, %2, %2}")                   \
                     : "+r"(on) : at, "r"(x))

// What the others are held against: the tile is filled and the sink written, nothing else.
template <bool FILLED>
__global__ void nothing(unsigned char* memory, unsigned* sink)
{
    const Lane lane;
    sink[lane.number] = tile<FILLED>() + lane.offset;
}

template <Space SPACE, int BYTES>
__global__ void load(unsigned char* memory, unsigned* sink)
{
    Lane lane;
    unsigned on = lane.on, x = 0, y = 0, z = 0, w = 0;
    if constexpr (SPACE == SHARED) {
        const unsigned from = tile<true>() + lane.offset;
        LOAD("shared", "r"(from));
    } else {
        const unsigned char* from = memory + lane.offset;
        LOAD("global", "l"(from));
    }
    sink[lane.number] = x + y + z + w;
}

template <Space SPACE, int BYTES>
__global__ void store(unsigned char* memory, unsigned* sink)
{
    Lane lane;
    unsigned on = lane.on, x = lane.number;
    if constexpr (SPACE == SHARED) {
        const unsigned to = tile<false>() + lane.offset;
        STORE("shared", "r"(to));
    } else {
        unsigned char* to = memory + lane.offset;
        STORE("global", "l"(to));
    }
}

// Rows of 8 x 8 matrices of 16-bit elements; each lane's offset is a row's. No lane may be off.
template <int MATRICES, bool TRANSPOSED>
__global__ void load_matrix(unsigned char* memory, unsigned* sink)
{
    const Lane lane;
    const unsigned from = tile<true>() + lane.offset;
    unsigned x = 0, y = 0, z = 0, w = 0;
    if constexpr (MATRICES == 1 && !TRANSPOSED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(x) : "r"(from));
    else if constexpr (MATRICES == 1)
        asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];"
                     : "=r"(x) : "r"(from));
    else if constexpr (MATRICES == 2 && !TRANSPOSED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                     : "=r"(x), "=r"(y) : "r"(from));
    else if constexpr (MATRICES == 2)
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                     : "=r"(x), "=r"(y) : "r"(from));
    else if constexpr (!TRANSPOSED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(x), "=r"(y), "=r"(z), "=r"(w) : "r"(from));
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(x), "=r"(y), "=r"(z), "=r"(w) : "r"(from));
    sink[lane.number] = x + y + z + w;
}

#if __CUDA_ARCH__ >= 900
template <int MATRICES, bool TRANSPOSED>
__global__ void store_matrix(unsigned char* memory, unsigned* sink)
{
    const Lane lane;
    const unsigned to = tile<false>() + lane.offset, x = lane.number;
    if constexpr (MATRICES == 1 && !TRANSPOSED)
        asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};" ::"r"(to), "r"(x));
    else if constexpr (MATRICES == 1)
        asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};" ::"r"(to), "r"(x));
    else if constexpr (MATRICES == 2 && !TRANSPOSED)
        asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %1};" ::"r"(to), "r"(x));
    else if constexpr (MATRICES == 2)
        asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %1};"
                     ::"r"(to), "r"(x));
    else if constexpr (!TRANSPOSED)
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %1, %1, %1};"
                     ::"r"(to), "r"(x));
    else
        asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %1, %1, %1};"
                     ::"r"(to), "r"(x));
}
#endif

#if __CUDA_ARCH__ >= 800
// Copies from `source` in global memory to `offset` in the tile: through the L1 or past it.
template <int BYTES, bool PAST_L1>
__global__ void copy_async(unsigned char* memory, unsigned* sink)
{
    Lane lane;
    unsigned on = lane.on;
    const unsigned to = tile<false>() + lane.offset;
    const unsigned char* from = memory + lane.source;
    if constexpr (PAST_L1)
        asm volatile(WHERE_ON("cp.async.cg.shared.global [%1], [%2], 16")
                     : "+r"(on) : "r"(to), "l"(from));
    else
        asm volatile(WHERE_ON("cp.async.ca.shared.global [%1], [%2], %3")
                     : "+r"(on) : "r"(to), "l"(from), "n"(BYTES));
    asm volatile("cp.async.wait_all;");
}
#endif

// A 16 x 16 matrix that begins at lane 0's offset: A and B of halves, the accumulator of floats.
enum Fragment { A_ROW, A_COL, B_ROW, B_COL, C_ROW, C_COL };

#define HALVES(instruction, at)                                                               \
    asm volatile(instruction " {%0, %1, %2, %3, %4, %5, %6, %7}, [%8], %9;"                   \
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]),    \
                   "=r"(r[6]), "=r"(r[7])                                                     \
                 : at, "r"(pattern.stride))

#define FLOATS(instruction, at)                                                               \
    asm volatile(instruction " {%0, %1, %2, %3, %4, %5, %6, %7}, [%8], %9;"                   \
                 : "=f"(c[0]), "=f"(c[1]), "=f"(c[2]), "=f"(c[3]), "=f"(c[4]), "=f"(c[5]),    \
                   "=f"(c[6]), "=f"(c[7])                                                     \
                 : at, "r"(pattern.stride))

#define LOAD_FRAGMENT(space, at)                                                              \
    if constexpr (FRAGMENT == A_ROW)                                                          \
        HALVES("wmma.load.a.sync.aligned.row.m16n16k16." space ".f16", at);                   \
    else if constexpr (FRAGMENT == A_COL)                                                     \
        HALVES("wmma.load.a.sync.aligned.col.m16n16k16." space ".f16", at);                   \
    else if constexpr (FRAGMENT == B_ROW)                                                     \
        HALVES("wmma.load.b.sync.aligned.row.m16n16k16." space ".f16", at);                   \
    else if constexpr (FRAGMENT == B_COL)                                                     \
        HALVES("wmma.load.b.sync.aligned.col.m16n16k16." space ".f16", at);                   \
    else if constexpr (FRAGMENT == C_ROW)                                                     \
        FLOATS("wmma.load.c.sync.aligned.row.m16n16k16." space ".f32", at);                   \
    else                                                                                      \
        FLOATS("wmma.load.c.sync.aligned.col.m16n16k16." space ".f32", at)

template <Space SPACE, Fragment FRAGMENT>
__global__ void load_fragment(unsigned char* memory, unsigned* sink)
{
    unsigned r[8] = {};
    float c[8] = {};
    if constexpr (SPACE == SHARED) {
        const unsigned from = tile<true>() + pattern.offset[0];
        LOAD_FRAGMENT("shared", "r"(from));
    } else {
        const unsigned char* from = memory + pattern.offset[0];
        LOAD_FRAGMENT("global", "l"(from));
    }
    unsigned sum = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i) sum += r[i] + __float_as_uint(c[i]);
    sink[threadIdx.x] = sum;
}

#define STORE_FRAGMENT(instruction, at)                                                       \
    asm volatile(instruction " [%0], {%2, %2, %2, %2, %2, %2, %2, %2}, %1;"                   \
                 ::at, "r"(pattern.stride), "f"(x))

template <Space SPACE, Fragment FRAGMENT>
__global__ void store_fragment(unsigned char* memory, unsigned* sink)
{
    const float x = threadIdx.x;
    if constexpr (SPACE == SHARED) {
        const unsigned to = tile<false>() + pattern.offset[0];
        if constexpr (FRAGMENT == C_ROW)
            STORE_FRAGMENT("wmma.store.d.sync.aligned.row.m16n16k16.shared.f32", "r"(to));
        else
            STORE_FRAGMENT("wmma.store.d.sync.aligned.col.m16n16k16.shared.f32", "r"(to));
    } else {
        unsigned char* to = memory + pattern.offset[0];
        if constexpr (FRAGMENT == C_ROW)
            STORE_FRAGMENT("wmma.store.d.sync.aligned.row.m16n16k16.global.f32", "l"(to));
        else
            STORE_FRAGMENT("wmma.store.d.sync.aligned.col.m16n16k16.global.f32", "l"(to));
    }
}
