"""The panel as a page has it before a click: a recorded run, and controls that scripts show."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping

from lib.dispatch.plan import plan
from lib.kernels.catalogue import find
from lib.kernels.spec import Variant
from lib.panel import render
from lib.panel.bundle import Bundle
from lib.panel.request import MAX_SIDE
from lib.panel.session import Session
from lib.panel.tasks import TASKS
from lib.ptx.launch import LANDINGS, SCHEDULES

LIMIT = 60  # s that a run may take, as `engine.js` has it
ORDERS = {
    "lowest": "together, the lowest program counter first",
    "highest": "the highest warp first, until it must wait", "random": "at random",
}
COPIES = {"early": "at once", "late": "as late as a wait allows"}
_TEXT = html.escape
# Which warp to record, and that warp, of which `engine.js` shows one instruction at a time.
STEPS = """\
<div class="live-row">
<label>Block <input data-part="block" type="number" min="0" value="0"></label>
<label>Warp <input data-part="warp" type="number" min="0" value="0"></label>
<label>From instruction <input data-part="first" type="number" min="0" value="0"></label>
<button type="button" data-part="microscope" data-ask>Step through this warp</button>
</div>
<div data-part="steps" hidden>
<div class="live-row">
<button type="button" data-part="back" data-ask aria-label="One instruction back">◀</button>
<button type="button" data-part="forward" data-ask aria-label="One instruction forward">▶</button>
<button type="button" data-part="line" data-ask>Next CUDA line</button>
<button type="button" data-part="access" data-ask>Next memory access</button>
<input data-part="at" type="range" min="0" value="0" aria-label="Instruction of the recording">
<span data-part="of"></span>
<label>Registers <input data-part="registers" type="text" size="14" placeholder="%r1 %f2"
 autocomplete="off"></label>
</div>
<div data-part="moment"></div>
</div>
"""


# What a shape's sides may have to be multiples of; further ones are said as "other" shapes.
_GRAINS = (1, 2, 4, 8, 16, 32, 64)


def recorded(bundle: Bundle) -> render.Answer:
    """What stands in the page: the first variant's run as the controls have it first, and tasks.

    Raises
    ------
    ValueError
        If a task's runs don't answer it.
    """
    session = Session(bundle)
    answer = json.loads(session.ask('{"do": "run"}'))
    answer["tasks"] = []
    for number, task in enumerate(TASKS.get(bundle.stem, ())):
        controls = session.settings(task.after)
        found = json.loads(session.ask(json.dumps({"do": "task", "task": number, **controls})))
        if "numbers" not in found:
            raise ValueError(f"{bundle.stem}: task {number + 1}: {found['said']}")
        answer["tasks"].append({"set": controls, "said": found["said"]})
    return answer


def write(bundle: Bundle, answer: render.Answer, base: str, megabytes: float) -> str:
    """The panel of a chapter.

    Parameters
    ----------
    bundle : Bundle
    answer : dict
        What `recorded` returned.
    base : str
        The address of the folder that holds the runtime, from the page.
    megabytes : float
        What a click loads.
    """
    kernel = find(bundle.stem)
    variants = [kernel.variant(name) for name in bundle.variants]
    name = f"live-{bundle.stem}"
    accesses = answer["accesses"][answer["first"] : answer["first"] + 1]
    # A picture stands in the page once: a run here brings the others.
    pictures = accesses[0]["html"] if accesses else ""
    return f"""\
<section class="live" data-live data-base="{_TEXT(base)}" data-stem="{bundle.stem}"
 aria-labelledby="{name}">
<h3 id="{name}">Run it here</h3>
<p>Below is a recorded run: the emulator ran this kernel when the page was built. "Load and run"
loads the emulator itself, {megabytes:.1f} MB, once, from this site, and runs the kernel in your
browser. <a href="try.html#example={bundle.stem}">Open it in "Try your own kernel"</a> to change
its launch, or to send it to somebody.</p>
<noscript><p>The controls need scripts.</p></noscript>
{_tasks(bundle.stem, answer)}<form data-part="form" data-scripted hidden>
<p class="live-limits">Sides up to {MAX_SIDE}; a run ends after {LIMIT} seconds.</p>
<fieldset><legend>Kernel and problem</legend>
<label>Variant <select name="variant">{_variants(bundle, variants)}</select></label>
{_sizes()}
<label>α <input name="alpha" type="number" step="any" value="1" required></label>
<label>β <input name="beta" type="number" step="any" value="0" required></label>
</fieldset>
<fieldset><legend>How it runs</legend>
<label>Warps run <select name="schedule">
{options({s: ORDERS[s] for s in SCHEDULES})}</select></label>
<label>Asynchronous copies land <select name="landing">
{options({s: COPIES[s] for s in LANDINGS})}</select></label>
<label><input name="races" type="checkbox" checked> look for races</label>
</fieldset>
<div class="live-row">
<input name="mistake" type="hidden" value="">
<span>Mistake in the source: <output data-part="mistake">none</output></span>
<button type="button" data-part="choose" data-ask aria-expanded="false"
 aria-controls="{name}-seeds">Choose one</button>
<button type="button" data-part="cure" hidden>Take it out</button>
</div>
<div id="{name}-seeds" data-part="seeds" hidden></div>
<div class="live-row">
<button type="submit" data-part="run" data-ask>Load and run</button>
<button type="button" data-part="stop" disabled>Stop</button>
<progress data-part="bar" max="1" value="0" aria-label="Progress of {name}" hidden></progress>
</div>
<p data-part="status" role="status"></p>
</form>
<div data-part="answer">{answer["html"]}</div>
<div data-part="pictures">{pictures}</div>
<div class="live-tools" data-scripted hidden>
<div class="live-row">
<button type="button" data-part="edit" data-ask aria-expanded="false">Edit the PTX</button>
<span>Your PTX runs with "Run", without a seeded mistake; closing the editor brings the compiler's
back. Line numbers of a verdict are those of the whole text.</span>
</div>
<div class="live-editor" data-part="editor" hidden>
<div><label for="{name}-ptx" data-part="place">PTX</label>
<button type="button" data-part="all">Show all lines</button>
<textarea id="{name}-ptx" data-part="ptx" spellcheck="false" autocomplete="off"
 autocapitalize="off" wrap="off"></textarea></div>
<div><span id="{name}-file" data-part="file"></span>
<ol data-part="cuda" aria-labelledby="{name}-file"></ol></div>
</div>
{STEPS}</div>
</section>
"""


def _data(value: object) -> str:
    """An attribute's value, quoted: JSON, whose own quotes stay as they are."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return "'" + html.escape(text, quote=False).replace("'", "&#x27;") + "'"


def _tasks(stem: str, answer: render.Answer) -> str:
    """The tasks, each with a field for a guess; its answer is folded for who runs nothing."""
    rows = []
    for number, (task, run) in enumerate(zip(TASKS.get(stem, ()), answer["tasks"], strict=True)):
        rows.append(f"""\
<li><p>{_TEXT(task.question)}</p>
<div class="live-row" data-scripted hidden>
<label>Your guess <input data-guess inputmode="decimal" size="8" autocomplete="off"></label>
<button type="button" data-task="{number}" data-set={_data(run["set"])} data-ask>Run
before and after</button></div>
<details><summary>The answer of this page's build</summary><p>Emulated: {_TEXT(run["said"])}</p>
</details></li>
""")
    if not rows:
        return ""
    return f"<h4>Tasks</h4>\n<ol class=\"live-tasks\">\n{''.join(rows)}</ol>\n"


def grain(bundle: Bundle, name: str) -> int | None:
    """What all sides must be multiples of for the page to have a variant's instantiation.

    None if no `_GRAINS` is enough.
    """
    kernel = find(bundle.stem)
    variant = kernel.variant(name)
    for step in _GRAINS:
        try:
            chosen = plan(kernel, variant, variant.problem(*(64 + step,) * 3), exact=True)
        except ValueError:
            continue
        if kernel.expression(chosen.variant) in bundle.instances:
            return step
    return None


def _variants(bundle: Bundle, variants: list[Variant]) -> str:
    named = {}
    for variant in variants:
        step = grain(bundle, variant.name)
        limit = "" if step == 1 else (
            f" (sides: multiples of {step})" if step else " (not every shape)")
        named[variant.name] = f"{variant.name}: {variant.meaning}{limit}"
    return options(named)


def options(named: Mapping[str, str]) -> str:
    return "".join(
        f'<option value="{_TEXT(value)}">{_TEXT(said)}</option>' for value, said in named.items())


def _sizes() -> str:
    return "\n".join(
        f'<label>{name} <input name="{name}" type="number" min="{least}" max="{MAX_SIDE}" step="1" '
        'value="128" required></label>'
        for name, least in (("M", 1), ("N", 1), ("K", 0))
    )
