// The 16-bit types of A and B.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

template <class T> constexpr bool is_half = false;
template <> constexpr bool is_half<half> = true;
