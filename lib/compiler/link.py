"""What a link to the page "Try your own kernel" holds: a request, packed into its fragment.

A fragment stays in the browser: no server sees the kernel that a link holds.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from lib.ptx.core.parser import with_files

PAGE = "https://gemm-worklog.github.io/gemm-worklog/chapters/try.html"
MAX_LINK = 1 << 20  # characters, which current browsers and `git` hosts' issues still take


def link(request: Mapping[str, Any], page: str = PAGE) -> str:
    """The address that opens a request: `lib.panel.trial.DEFAULT` has its keys.

    Raises ValueError if it is longer than browsers take.
    """
    given = {key: value for key, value in request.items() if value not in (None, "", [], {})}
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    data = packer.compress(json.dumps(given, separators=(",", ":")).encode()) + packer.flush()
    address = f"{page}#k={base64.urlsafe_b64encode(data).decode().rstrip('=')}"
    if len(address) > MAX_LINK:
        raise ValueError(f"the link would have {len(address):,} characters, of at most "
                         f"{MAX_LINK:,}: the PTX is too long")
    return address


def of_kernel(
    kernel: Any, sources: Mapping[str, str], options: Any, block: Sequence[int], shared: int
) -> str:
    """The link to what the command ran, with its options; a path in it is its last part alone.

    Raises ValueError if it took a file or a constant, which a link doesn't hold.
    """
    if options.constant or any(re.search(r"(?:^|[=:])@", word) for word in options.arg):
        raise ValueError("--link: a link holds no file and no constant: describe the array in "
                         "words, such as A=float32[128,128]:uniform")
    missing = len(kernel.function.entry.parameters) - len(options.arg)
    merge = kernel.merge
    return link({
        "ptx": without_folders(kernel.text), "kernel": kernel.name,
        "sources": {PurePath(name).name: text for name, text in sources.items()},
        "args": [*options.arg, *["null"] * missing], "grid": list(options.grid),
        "block": list(block), "cluster": list(options.cluster or ()), "shared": shared,
        "schedule": options.schedule, "landing": options.landing, "seed": options.seed,
        "strict": options.strict,
        "template": options.kernel if "<" in (options.kernel or "") else "",
        "merge": merge and {line: wide and tuple(wide) for line, wide in merge.items()},
    })


def without_folders(ptx: str) -> str:
    """PTX whose files are named by the last part of their path alone."""
    return with_files(ptx, lambda name: PurePath(name).name)
