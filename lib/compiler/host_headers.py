"""Stand-ins for headers of the host that NVRTC lacks, given to it by name.

Device code wants little of them: integer types, limits, a few templates of ``std``, which the
toolkit has as ``cuda::std``. What only the host's part of a file uses is left empty, since that
part is not compiled. The templates take seconds to read: who needs none of ``std`` gets those
headers empty, too.
"""

from __future__ import annotations

from collections.abc import Iterable

_EMPTY = (
    "assert.h", "atomic", "cassert", "cctype", "cerrno", "chrono", "condition_variable", "cstdarg",
    "cstdio", "cstdlib", "cstring", "ctime", "ctype.h", "deque", "errno.h", "exception", "fstream",
    "future", "iomanip", "ios", "iosfwd", "iostream", "istream", "list", "locale", "map", "memory",
    "mutex", "new", "omp.h", "ostream", "queue", "random", "regex", "set", "sstream", "stdarg.h",
    "stdbool.h", "stddef.h", "stdexcept", "stdio.h", "stdlib.h", "string", "string.h",
    "string_view", "sys/stat.h", "sys/time.h", "sys/types.h", "thread", "time.h", "typeindex",
    "typeinfo", "unistd.h", "unordered_map", "unordered_set", "vector",
)
_STD = (
    "array", "bit", "cmath", "complex", "cstddef", "functional", "initializer_list", "iterator",
    "limits", "numeric", "optional", "ratio", "span", "tuple", "type_traits", "utility", "variant",
)
_THRUST = (
    "thrust/copy.h", "thrust/device_ptr.h", "thrust/device_vector.h", "thrust/execution_policy.h",
    "thrust/fill.h", "thrust/host_vector.h", "thrust/reduce.h", "thrust/scan.h", "thrust/sort.h",
    "thrust/transform.h",
)
# Libraries for the host, by the folder or the file that is included of them: who includes one in
# quotes means no file of their own.
_LIBRARIES = frozenset((
    "ATen", "Eigen", "GL", "GLFW", "Python.h", "absl", "benchmark", "boost", "c10", "catch2",
    "cuda_gl_interop.h", "cudaGL.h", "cudnn.h", "cufft.h", "cufftXt.h", "cupti.h", "curand.h",
    "cusolverDn.h", "cusparse.h", "cusparseLt.h", "driver_functions.h", "fmt", "gflags", "glog",
    "gtest", "helper_cuda.h", "helper_functions.h", "helper_gl.h", "helper_image.h",
    "helper_string.h", "helper_timer.h", "mpi.h", "nccl.h", "npp.h", "nvToolsExt.h", "nvml.h",
    "nvtx3", "opencv", "opencv2", "pybind11", "sys", "torch", "unistd.h", "windows.h",
))
_IN_STD = "namespace std { using namespace cuda::std; }\n"
_INTEGERS = "#include <cuda/std/cstdint>\n"  # small, and the toolkit's headers bring it as well
# cuda/std/algorithm came late.
_ALGORITHM = """
#if __has_include(<cuda/std/algorithm>)
#include <cuda/std/algorithm>
namespace std { using namespace cuda::std; }
#else
#include <cuda/std/utility>
namespace std {
using cuda::std::swap;
template <class T>
__device__ constexpr const T& min(const T& a, const T& b) { return b < a ? b : a; }
template <class T>
__device__ constexpr const T& max(const T& a, const T& b) { return a < b ? b : a; }
template <class T>
__device__ constexpr const T& clamp(const T& x, const T& low, const T& high)
{
    return x < low ? low : high < x ? high : x;
}
}
#endif
"""

_PLAIN: dict[str, str] = {
    **dict.fromkeys((*_EMPTY, *_STD, "algorithm"), ""),
    **dict.fromkeys(("stdint.h", "inttypes.h", "cstdint", "cinttypes"), _INTEGERS),
    **dict.fromkeys(("limits.h", "climits"), "#include <cuda/std/climits>\n"),
    **dict.fromkeys(("float.h", "cfloat", "math.h", "cmath"), ""),  # see PRELUDE
    **dict.fromkeys(("cublas_v2.h", "cublasLt.h", "cublas_api.h"),  # which bring these
                    "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n"),
    **dict.fromkeys(("cub/cub.cuh", *_THRUST), ""),
}
_WITH_STD: dict[str, str] = {
    **_PLAIN,
    **{name: f"#include <cuda/std/{name}>\n{_IN_STD}" for name in _STD},
    **dict.fromkeys(("cstdint", "cinttypes"), _INTEGERS + _IN_STD),
    "algorithm": _ALGORITHM,
}
# What of CUB is for the device; the rest of <cub/cub.cuh> is the host's.
_CUB = "".join(f"#include <cub/{name}.cuh>\n" for name in (
    "block/block_load", "block/block_store", "block/block_reduce", "block/block_scan",
    "block/block_radix_sort", "warp/warp_reduce", "warp/warp_scan",
))

# What each name of ``std`` in device code takes. A file need not include it: the host's headers
# bring one another, so what nvcc takes without it is taken here as well.
_BRINGS = {
    "algorithm": "clamp max min swap",
    "array": "array",
    "bit": "bit_cast bit_ceil countl_zero countr_zero has_single_bit popcount",
    "cmath": "abs ceil copysign cos erf exp exp2 fabs floor fma fmax fmin fmod isfinite isinf "
             "isnan ldexp log log10 log2 lround nearbyint pow rint round sin sqrt tan tanh trunc",
    "complex": "complex",
    "cstddef": "byte max_align_t nullptr_t ptrdiff_t size_t",
    "cstdint": "int8_t int16_t int32_t int64_t intptr_t uint8_t uint16_t uint32_t uint64_t "
               "uintptr_t",
    "functional": "divides equal_to greater greater_equal less less_equal minus multiplies plus",
    "limits": "numeric_limits",
    "optional": "nullopt optional",
    "tuple": "get make_tuple tie tuple tuple_element_t tuple_size_v",
    "type_traits": "bool_constant conditional conditional_t decay_t enable_if enable_if_t "
                   "false_type integral_constant invoke_result_t is_arithmetic_v is_const "
                   "is_convertible_v is_enum_v is_floating_point is_floating_point_v "
                   "is_integral is_integral_v is_pointer_v is_same is_same_v is_signed_v "
                   "is_trivially_copyable_v is_unsigned_v make_signed_t make_unsigned_t "
                   "remove_const_t remove_cv_t remove_cvref_t remove_pointer_t "
                   "remove_reference_t true_type underlying_type_t void_t",
    "utility": "declval exchange forward index_sequence integer_sequence make_index_sequence "
               "make_pair move pair",
}
_BROUGHT = {name: header for header, names in _BRINGS.items() for name in names.split()}

# What every file that nvcc compiles finds without asking: the host's headers bring it.
PRELUDE = """\
#include <cuda/std/cstdint>
#include <cuda/std/climits>
typedef unsigned int uint;
typedef unsigned short ushort;
typedef unsigned long ulong;
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#define HUGE_VALF INFINITY
#define HUGE_VAL ((double)INFINITY)
#define FLT_EPSILON 1.19209290e-7f
#define FLT_MIN 1.17549435e-38f
#define FLT_MAX 3.40282347e+38f
#define DBL_EPSILON 2.2204460492503131e-16
#define DBL_MIN 2.2250738585072014e-308
#define DBL_MAX 1.7976931348623157e+308
"""


def headers(std: bool = True, cub: bool = True) -> dict[str, str]:
    """Return the stand-ins by the name that they are included by.

    `std`, `cub`: whether device code uses ``std`` and CUB.
    """
    found = dict(_WITH_STD if std else _PLAIN)
    return found | ({"cub/cub.cuh": _CUB} if cub else {})


def brought(names: Iterable[str]) -> list[str]:
    """The headers that names of ``std`` take, such as ``algorithm`` for ``max``, in their order."""
    return sorted({_BROUGHT[name] for name in names if name in _BROUGHT})


def of_the_host(name: str) -> bool:
    """Whether a header is of a library that only a host's code has a use for."""
    return name.partition("/")[0] in _LIBRARIES
