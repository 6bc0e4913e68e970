"""The page "Try your own kernel" as it stands before a click: a form, and an example's run."""

from __future__ import annotations

import html
import json
from typing import Any

from book.panel import controls, examples
from lib.compiler.arguments import FILLS
from lib.panel.trial import MAX_THREADS, Trial
from lib.ptx.launch import LANDINGS, SCHEDULES

PAGE = "chapters/try"
_TEXT = html.escape
_TYPES = ("float32", "float16", "float64", "int32", "uint32", "int64", "int8", "uint8", "uint16",
          "bool", "map", "bytes", "null")
_HOW = {
    "nvcc": "nvcc -ptx -lineinfo -arch=sm_80 kernel.cu -o kernel.ptx",
    "NVRTC, by CuPy": "python -m lib emulate kernel.cu … --link",
    "clang": "clang++ -x cuda --cuda-device-only --cuda-gpu-arch=sm_80 -O3 -S kernel.cu "
             "-o kernel.ptx",
    "Triton": "print(kernel[grid](…).asm[\"ptx\"])",
    "numba-cuda": "print(next(iter(kernel.inspect_asm().values())))",
    "Compiler Explorer": "language CUDA C++, compiler NVCC, output: PTX",
}


def write(every: list[dict[str, Any]], base: str, megabytes: float) -> str:
    """The page's panel.

    Parameters
    ----------
    every : list of dict
        What `examples.write` returned.
    base : str
        The address of the folder that holds the runtime, from the page.
    megabytes : float
        What a click loads.
    """
    first = next(one for one in every if one["name"] == examples.FIRST)
    answer = json.loads(Trial().ask(json.dumps({**first, "do": "run"})))
    # Steps need the emulator: until it is loaded, the lines are no buttons.
    shown = answer["html"].replace('<button type="button" data-row', '<button disabled data-row')
    how = "".join(f"<li>{_TEXT(name)}: <code>{_TEXT(line)}</code></li>"
                  for name, line in _HOW.items())
    given = json.dumps(first, separators=(",", ":")).replace("<", "\\u003c")
    lists = "".join(
        f'<datalist id="own-{name}">{"".join(f"<option>{_TEXT(one)}</option>" for one in values)}'
        "</datalist>" for name, values in (("types", _TYPES), ("fills", FILLS)))
    return f"""\
<section class="live own" data-live="own" data-base="{_TEXT(base)}" data-stem=""
 aria-labelledby="own-title">
<h2 id="own-title">Your kernel</h2>
<script type="application/json" data-part="given">{given}</script>{lists}
<noscript><p>The form needs scripts. Below is what the emulator said of an example when the page was
built.</p></noscript>
<form data-part="form" data-scripted hidden>
<div class="live-row">
<label>Example <select data-part="example"><option value="">your own</option>
{examples.options(every)}</select></label>
<label>File <input type="file" data-part="open" accept=".ptx,.cu,.txt"></label>
</div>
<div data-part="source" hidden>
<label class="own-text"><span data-part="file">CUDA</span>
<textarea data-part="cuda" rows="10" spellcheck="false" wrap="off" readonly></textarea></label>
<div class="live-row" data-part="compiler" hidden>
<label>Architecture <select name="arch"></select></label>
<label>Template <input name="expression" size="18" placeholder="gemm&lt;128, 8&gt;"></label>
<button type="button" data-part="compile">Compile</button>
</div></div>
<label class="own-text">PTX, pasted or dropped
<textarea data-part="ptx" rows="10" spellcheck="false" autocomplete="off" autocapitalize="off"
 wrap="off"></textarea></label>
<details data-part="how"><summary>How to get PTX</summary><ul>{how}</ul>
<p>With line information (<code>-lineinfo</code>) verdicts name your source's lines.</p></details>
<fieldset><legend>Launch</legend>
<label>Kernel <select data-part="kernel"></select></label>
<button type="button" data-part="read" data-ask>Read its parameters again</button>
<label>Grid <input name="grid" size="7" value="1"></label>
<label>Block <input name="block" size="7" value="1"></label>
<label>Cluster <input name="cluster" size="5" placeholder="none"></label>
<label>Dynamic shared memory, bytes <input name="shared" type="number" min="0" value="0"></label>
</fieldset>
<fieldset class="own-arguments"><legend>Arguments</legend>
<div class="own-argument own-head" aria-hidden="true"><span>name</span><span>type</span>
<span>shape or box</span><span>filling or value</span></div>
<div data-part="args"></div>
<p class="live-limits">An array: <code>float32</code>, <code>64,64</code>, <code>uniform</code>,
<code>normal</code>, <code>integers</code>, <code>arange</code>, <code>zeros</code>,
<code>nan</code>, <code>1,2,0</code> or <code>0..9</code>. A number has no shape. A tensor map:
<code>map</code>, its box, and <code>A:128</code>: the array and the swizzle.</p>
</fieldset>
<label class="own-text">What an array should hold, in NumPy
<input name="expect" placeholder="C = A @ B" autocomplete="off" spellcheck="false"></label>
<details><summary>How it runs</summary><fieldset>
<label>Warps run <select name="schedule">{controls.options(
    {one: controls.ORDERS[one] for one in SCHEDULES})}</select></label>
<label>Asynchronous copies land <select name="landing">{controls.options(
    {one: controls.COPIES[one] for one in LANDINGS})}</select></label>
<label>Seed <input name="seed" type="number" min="0" value="0"></label>
<label><input name="strict" type="checkbox"> stop at memory that nobody wrote</label>
</fieldset></details>
<div class="live-row">
<button type="submit" data-part="run" data-ask>Load and run</button>
<button type="button" data-part="stop" disabled>Stop</button>
<progress data-part="bar" max="1" value="0" aria-label="Progress" hidden></progress>
<button type="button" data-part="link">Copy a link</button>
<button type="button" data-part="report">Copy a report</button>
</div>
<p class="live-limits">The first run loads the emulator, {megabytes:.1f} MB, from this site. A run
has at most {MAX_THREADS:,} threads and ends after {controls.LIMIT} seconds. Nothing leaves your
browser.</p>
<p data-part="status" role="status"></p>
<textarea data-part="copied" aria-label="To be copied" rows="4" readonly hidden></textarea>
</form>
<div data-part="answer">{shown}</div>
<div class="live-tools" data-scripted hidden>
{controls.STEPS}</div>
</section>
"""
