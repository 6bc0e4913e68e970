"""Makes the PTX beside it, where Triton and numba-cuda are installed."""

from __future__ import annotations

import lzma
import re
from pathlib import Path

from lib.compiler import from_python

HERE = Path(__file__).parent
TRITON = {
    "softmax": ("*fp32:16,*fp32:16,i32,i32,512", ("sm_75", "sm_120")),
    "matmul": ("*fp16:16,*fp16:16,*fp16:16,i32:16,i32:16,i32:16,128,64,64", ("sm_90a", "sm_100a")),
    "racing": ("*fp32:16,*fp32:16,i32,128", ("sm_80",)),
}
NUMBA = {
    "saxpy": ("float32[:], float32[:], float32", ("sm_80",)),
    "matmul": ("float32[:,:], float32[:,::1], float32[:,::1]", ("sm_90",)),
}


def main() -> None:
    """Write each, without the folder that it was made in."""
    for compiler, kernels in ((from_python.triton, TRITON), (from_python.numba, NUMBA)):
        path = HERE / f"{compiler.__name__}_kernels.py"
        for name, (signature, archs) in kernels.items():
            for arch in archs:
                made = compiler(path, name, signature, arch)
                text = made.kernel.text.replace(str(HERE), "/kernels")
                text = re.sub(r'"[^"\n]*/site-packages/', '"/', text)
                note = f"// shared {made.shared}, scratch {made.scratch}\n"
                file = HERE / f"{compiler.__name__}_{name}_{arch}.ptx.xz"
                file.write_bytes(lzma.compress((note + text).encode(), preset=9))


if __name__ == "__main__":
    main()
