// Functions that are really called: recursion, pointers, virtual functions, and CUDA's own.
__device__ __noinline__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__device__ int odd(int n);
__device__ __noinline__ int even(int n) { return n == 0 ? 1 : odd(n - 1); }
__device__ __noinline__ int odd(int n) { return n == 0 ? 0 : even(n - 1); }
__device__ __noinline__ int forever(int n) { return forever(n + 1) * n + n; }

// Each call has an array of its own, which its own calls must not touch.
__device__ __noinline__ int nested(int depth, int seed) {
    int mine[4];
    for (int i = 0; i < 4; i++) mine[i] = seed * 7 + i * depth;
    int below = depth > 0 ? nested(depth - 1, seed + 1) : 0;
    return below * 3 + mine[(seed + depth) & 3];
}

struct Pair {
    double d;
    int a[5];
};
__device__ __noinline__ Pair changed(Pair p, int k) {
    p.a[k] += 100;
    p.d *= 2;
    return p;
}

__global__ void recursion(int* out) {
    int t = blockIdx.x * blockDim.x + threadIdx.x, n = out[3 * t];
    out[3 * t] = fib(n);
    out[3 * t + 1] = n & 1 ? even(n + 3) : odd(n);
    out[3 * t + 2] = nested(n, t);
}
__global__ void endless(int* out) { out[0] = forever(out[1]); }
__global__ void structs(int* out) {
    int t = threadIdx.x;
    Pair p;
    for (int i = 0; i < 5; i++) p.a[i] = t + i;
    p.d = t + 0.5;
    p = changed(p, t % 5);
    out[t] = p.a[t % 5] + p.a[(t + 1) % 5] + (int)p.d;
}

struct Shape {
    __device__ virtual int area(int x) const { return x; }
};
struct Square : Shape {
    int side;
    __device__ Square(int side) : side(side) {}
    __device__ int area(int x) const override { return side * side + x; }
};
struct Unit : Shape {
    __device__ int area(int x) const override { return x + 1; }
};
__global__ void virtuals(int* out) {
    Square square(threadIdx.x);
    Unit unit;
    const Shape* shape = out[threadIdx.x] ? (const Shape*)&square : (const Shape*)&unit;
    out[threadIdx.x] = shape->area(threadIdx.x);
}

__device__ __noinline__ int inc(int x) { return x + 1; }
__device__ __noinline__ int twice(int x) { return x * 2; }
__device__ int (*table[3])(int) = {inc, twice, nullptr};
__global__ void pointers(int* out) {
    out[threadIdx.x] = table[out[threadIdx.x]](threadIdx.x);
}

__shared__ int shared[64];
__device__ __noinline__ int neighbour(int t, bool wait) {
    shared[t] = t * t;
    if (wait) __syncthreads();
    return shared[t ^ 33];
}
__global__ void exchange(int* out, bool wait) { out[threadIdx.x] = neighbour(threadIdx.x, wait); }

__device__ __noinline__ float weight(float x) { return x * x + 1; }
__global__ void come_together(float* out, const float* in) {
    float x = in[threadIdx.x];
    if (threadIdx.x & 1) x = weight(x);
    else x = x + 1;
    out[threadIdx.x] = x;
}

__constant__ const char* names[2] = {"even", "odd"};
__global__ void prints(int n) {
    if (threadIdx.x < n)
        printf("%d/%u %s|%5.2f|%-4c|%lld|%#x|%05d|%+.3e|%%|%*d\n", (int)blockIdx.x, threadIdx.x,
               names[threadIdx.x & 1], threadIdx.x * 1.5, 'a' + (int)threadIdx.x, 1ll << 40, 255,
               -42, 12345.678, 6, 7);
}
__global__ void asserts(int* out, int n) {
    assert(threadIdx.x < n);
    out[threadIdx.x] = 1;
}
__global__ void heap(int* out, int mode) {
    int* p = (int*)malloc(mode == 3 ? 1 << 20 : 40);
    if (!p) {
        out[threadIdx.x] = -1;
        return;
    }
    for (int i = 0; i < 10; i++) p[i] = i * threadIdx.x;
    int sum = 0;
    for (int i = 0; i < 10; i++) sum += p[i];
    if (mode != 3) free(p);
    if (mode == 1) sum += *(volatile int*)p;
    if (mode == 2) free(p);
    out[threadIdx.x] = sum;
}
__global__ void doubles(const double* x, double* out, int n) {
    int t = threadIdx.x;
    out[t] = pow(x[t], 2.5);
    out[t + n] = sin(x[t] * 1e6);
    out[t + 2 * n] = tgamma(x[t]);
    out[t + 3 * n] = sin(x[t] * 1e15);  // reduced by a function with a table and local memory
}
