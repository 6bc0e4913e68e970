// Activations, and the parts of an epilogue as one type: the argument of a kernel's template.
#pragma once

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
