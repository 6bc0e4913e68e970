// One kernel for each way to get synchronisation or memory wrong. The lines of the accesses that a
// report must name are marked "// first" and "// second" in the order in which they conflict; of a
// kernel that is stopped, the line that the message must name is marked "// here".

struct alignas(64) TensorMap { char bytes[128]; };

__device__ inline unsigned shared_address(const void* p) {
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
}
#define ASM(...) asm volatile(__VA_ARGS__)
#define INIT(bar, n) ASM("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(n) : "memory")
#define WAIT(bar, parity) ASM("{ .reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;" \
                              " @!p bra W; }" ::"r"(bar), "r"(parity) : "memory")

// -- races --------------------------------------------------------------------------------------

__global__ void shared_race(float* out) {
    __shared__ float s[64];
    s[threadIdx.x] = threadIdx.x;  // first
    out[threadIdx.x] = s[threadIdx.x ^ 32];  // second
}

__global__ void shared_write_after_read(float* out) {
    __shared__ float s[64];
    s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    float mine = s[threadIdx.x ^ 32];  // first
    s[threadIdx.x] = 2 * mine;  // second
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x];
}

__global__ void warp_race(float* out) {
    __shared__ float s[32];
    if (threadIdx.x < 32) s[0] = threadIdx.x;  // first second
    __syncthreads();
    out[threadIdx.x] = s[0];
}

__global__ void global_race(float* out) {
    out[threadIdx.x] = blockIdx.x;  // first second
}

__global__ void global_race_in_a_block(float* out) {
    out[threadIdx.x] = threadIdx.x;  // first
    float mine = out[threadIdx.x ^ 32];  // second
    __syncthreads();
    out[64 + threadIdx.x] = mine;
}

__global__ void __cluster_dims__(2, 1, 1) cluster_race(float* out) {
    __shared__ float s[64];
    unsigned peer, address = shared_address(s + threadIdx.x);
    float got;
    ASM("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(peer) : "r"(address), "r"((blockIdx.x & 1) ^ 1));
    s[threadIdx.x] = blockIdx.x;  // first
    ASM("ld.shared::cluster.f32 %0, [%1];" : "=f"(got) : "r"(peer) : "memory");  // second
    out[blockIdx.x * 64 + threadIdx.x] = got;
    ASM("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}

// -- asynchronous copies ------------------------------------------------------------------------

__global__ void missing_wait_group(float* out) {
    __shared__ float s[64];
    unsigned at = shared_address(s + threadIdx.x);
    ASM("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(at), "l"(out + threadIdx.x) : "memory");  // first
    ASM("cp.async.commit_group;" ::: "memory");
    out[64 + threadIdx.x] = s[threadIdx.x];  // second
}

__global__ void missing_proxy_fence(float* out) {
    __shared__ alignas(128) float s[64];
    s[threadIdx.x] = threadIdx.x;  // first
    __syncthreads();
    if (threadIdx.x == 0) {
        ASM("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;"  // second
            ::"l"(out), "r"(shared_address(s)) : "memory");
        ASM("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
    }
}

__global__ void bulk_store_unread(float* out) {
    __shared__ alignas(128) float s[64];
    s[threadIdx.x] = threadIdx.x;
    ASM("fence.proxy.async;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        ASM("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;"  // first
            ::"l"(out), "r"(shared_address(s)) : "memory");
        ASM("cp.async.bulk.commit_group;" ::: "memory");
        s[0] = 7;  // second
        ASM("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}

// -- wgmma --------------------------------------------------------------------------------------

#define PRODUCT(d, a) ASM("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %4, 1, 1, 1, 0, 0;" \
    : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a) : "memory")

__device__ inline unsigned long long prepared(float* s) {
    for (int i = threadIdx.x; i < 512; i += 128) s[i] = 0;
    ASM("fence.proxy.async;" ::: "memory");
    __syncthreads();
    return (shared_address(s) >> 4) | (4ull << 16) | (8ull << 32);
}

__global__ void wgmma_operand(float* out) {
    __shared__ alignas(1024) float s[512];
    unsigned long long a = prepared(s);
    float d[4] = {};
    ASM("wgmma.fence.sync.aligned;" ::: "memory");
    PRODUCT(d, a);  // first
    ASM("wgmma.commit_group.sync.aligned;" ::: "memory");
    s[threadIdx.x] = 1;  // second
    ASM("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    out[threadIdx.x] = d[0];
}

__global__ void wgmma_accumulator(float* out) {
    __shared__ alignas(1024) float s[512];
    unsigned long long a = prepared(s);
    float d[4] = {};
    ASM("wgmma.fence.sync.aligned;" ::: "memory");
    PRODUCT(d, a);  // first
    ASM("wgmma.commit_group.sync.aligned;" ::: "memory");
    ASM("st.global.f32 [%0], %1;" ::"l"(out + threadIdx.x), "f"(d[0]) : "memory");  // second
    ASM("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}

__global__ void wgmma_fence(float* out) {
    __shared__ alignas(1024) float s[512];
    unsigned long long a = prepared(s);
    float d[4] = {};
    ASM("wgmma.fence.sync.aligned;" ::: "memory");
    ASM("add.f32 %0, %0, 0f3F800000;" : "+f"(d[0]));  // first
    PRODUCT(d, a);  // second
    ASM("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
    out[threadIdx.x] = d[0];
}

// -- mbarriers ----------------------------------------------------------------------------------

__global__ void mbarrier_wrong_count(float* out) {
    __shared__ alignas(8) unsigned long long bar;
    unsigned b = shared_address(&bar);
    if (threadIdx.x == 0) INIT(b, 65);
    __syncthreads();
    ASM("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(b) : "memory");
    WAIT(b, 0);  // here
    out[threadIdx.x] = 1;
}

__global__ void mbarrier_too_many(float* out) {
    __shared__ alignas(8) unsigned long long bar;
    unsigned b = shared_address(&bar);
    if (threadIdx.x == 0) INIT(b, 64);
    __syncthreads();
    ASM("mbarrier.arrive.shared::cta.b64 _, [%0], 3;" ::"r"(b) : "memory");  // here
    out[threadIdx.x] = 1;
}

__global__ void mbarrier_wrong_phase(float* out) {
    __shared__ alignas(8) unsigned long long bar;
    unsigned b = shared_address(&bar);
    if (threadIdx.x == 0) INIT(b, 64);
    __syncthreads();
    ASM("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(b) : "memory");
    WAIT(b, 0);
    WAIT(b, 1);  // here
    out[threadIdx.x] = 1;
}

__global__ void mbarrier_expect_too_little(float* out) {
    __shared__ alignas(128) float s[64];
    __shared__ alignas(8) unsigned long long bar;
    unsigned b = shared_address(&bar);
    if (threadIdx.x == 0) {
        INIT(b, 1);  // first
        ASM("fence.mbarrier_init.release.cluster;" ::: "memory");
        ASM("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];"  // second
            ::"r"(shared_address(s)), "l"(out), "r"(b) : "memory");
        ASM("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(b) : "memory");
    }
}

// -- blocks and barriers ------------------------------------------------------------------------

__global__ void __cluster_dims__(2, 1, 1) block_exits(float* out) {
    __shared__ float s[64];
    unsigned peer, address = shared_address(s + threadIdx.x);
    float got;
    ASM("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(peer) : "r"(address), "r"((blockIdx.x & 1) ^ 1));
    s[threadIdx.x] = blockIdx.x;
    ASM("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
    ASM("ld.shared::cluster.f32 %0, [%1];" : "=f"(got) : "r"(peer) : "memory");  // first
    out[blockIdx.x * 64 + threadIdx.x] = got;
}  // second

__global__ void barrier_divergence(float* out) {
    if (threadIdx.x % 32 < 16) {
        ASM("bar.sync 1, 64;" ::: "memory");  // first second
        out[threadIdx.x] = 1;
    } else {
        ASM("bar.sync 1, 64;" ::: "memory");  // first second
        out[threadIdx.x] = 2;
    }
}

__global__ void exits_before_barrier(float* out) {
    if (threadIdx.x >= 32) ASM("exit;");  // first
    __syncthreads();  // second
    out[threadIdx.x] = 1;
}

__global__ void deadlock(float* out) {
    if (threadIdx.x < 32) ASM("bar.sync 1, 64;" ::: "memory");  // here
    else ASM("bar.sync 2, 64;" ::: "memory");  // here
    out[threadIdx.x] = 1;
}

// -- memory -------------------------------------------------------------------------------------

__global__ void out_of_bounds(float* out) {
    out[threadIdx.x + 449] = 1;  // here
}

__global__ void shared_out_of_bounds(float* out) {
    __shared__ float s[64];
    s[threadIdx.x + 1] = 1;  // here
    out[threadIdx.x] = s[threadIdx.x + 1];
}

__global__ void misaligned(float* out) {
    *(float2*)(out + threadIdx.x) = make_float2(1, 2);  // here
}

__global__ void uninitialised(float* out) {
    __shared__ float s[64];
    if (threadIdx.x < 63) s[threadIdx.x] = 1;
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x];  // here
}
