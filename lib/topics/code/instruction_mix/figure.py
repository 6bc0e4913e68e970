"""What are the issue slots spent on? Instructions a thousand FMA, this version and the last."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

from lib.plotting import shapes, style

_NAME, _BAR, _ROW, _HEAD = 138.0, 280.0, 27.0, 16.0
_NARROW_BAR, _LINE = 205.0, 13.0  # a class's name stands above its bars


@style.styled
def draw(
    this: tuple[str, Mapping[str, float]], previous: tuple[str, Mapping[str, float]] | None = None,
    *, evidence: str, title: str | None = None, unit: str | None = None, narrow: bool = False,
) -> Figure:
    """Draw one row a class of instruction.

    Parameters
    ----------
    this, previous : (str, mapping of str to float)
        A version's name and its `lib.topics.code.instruction_mix.model.per_thousand_fma`.
    unit : str, optional
        What there are a thousand of, if it is no instruction.
    """
    left, full, above = (0.0, _NARROW_BAR, _LINE) if narrow else (_NAME, _BAR, 0.0)
    versions = [this] if previous is None else [previous, this]
    classes = list(dict.fromkeys(name for _, mix in reversed(versions) for name in mix))
    row = above + (_ROW if previous is not None else _ROW - 9)
    head = _HEAD + (_LINE * len(versions) if narrow else 0.0)  # the versions' names in lines
    height = head + row * len(classes)
    fig, ax = style.canvas(title or _finding(this, previous, unit), height, narrow)
    scale = full / max(value for _, mix in versions for value in mix.values())
    bar = (row - above - 7) / len(versions)
    for index, name in enumerate(classes):
        top = height - head - row * index
        if narrow:
            ax.text(0, top - 2, name, va="top")
        else:
            ax.text(left - 6, top - row / 2, name, size=style.NORMAL, ha="right", va="center")
        for order, (version, mix) in enumerate(versions):
            value = mix.get(name, 0.0)
            y = top - above - 3.5 - bar * (order + 1)
            is_this = version == this[0]
            shapes.rectangles(ax, [(left, y + 0.7, value * scale, bar - 1.4)],
                              facecolor=style.FOCUS if is_this else style.OTHER,
                              alpha=1.0 if is_this else 0.55)
            ax.text(left + value * scale + 5, y + bar / 2, style.number(value), va="center",
                    weight="bold" if is_this else "normal")
    ax.text(0, height - 2, f"for every 1,000 {unit or _unit(this[1])}", va="top")
    # The names begin behind the unit, however long that is; on a phone under it.
    x = 0.0 if narrow else max(_NAME, 18 + 4.9 * len(f"for every 1,000 {unit or _unit(this[1])}"))
    y = height - (_LINE if narrow else 0.0)
    for version, _ in versions:
        is_this = version == this[0]
        shapes.rectangles(ax, [(x, y - 11, 8, 8)],
                          facecolor=style.FOCUS if is_this else style.OTHER,
                          alpha=1.0 if is_this else 0.55)
        ax.text(x + 12, y - 2, version, va="top", weight="bold" if is_this else "normal")
        if narrow:
            y -= _LINE
        else:
            x += 34 + 6.2 * len(version)
    return style.finish(fig, alt=_alt(versions, unit), evidence=evidence)


def _unit(mix: Mapping[str, float]) -> str:
    """What a loop's instructions are counted against."""
    return "FMA" if "FMA" in mix else "tensor instructions"


def _overhead(mix: Mapping[str, float]) -> float:
    return sum(value for name, value in mix.items() if name not in ("FMA", "tensor"))


def _finding(
    this: tuple[str, Mapping[str, float]], previous: tuple[str, Mapping[str, float]] | None,
    given: str | None,
) -> str:
    unit = given or _unit(this[1])
    now = f"{style.number(_overhead(this[1]))} other instructions for every 1,000 {unit}"
    if previous is None:
        return f"{this[0]}: {now}"
    before = f"{previous[0]} needed {style.number(_overhead(previous[1]))}"
    same = given or _unit(previous[1]) == unit
    of_other = "" if same else f" for 1,000 {_unit(previous[1])}"
    return f"{this[0]}: {now}, where {before}{of_other}"


def _alt(versions: list[tuple[str, Mapping[str, float]]], unit: str | None) -> str:
    return " ".join(
        f"{version}, for every 1,000 {unit or _unit(mix)}: "
        + ", ".join(f"{style.number(v)} {k}" for k, v in list(mix.items())[0 if unit else 1:])
        + "."
        for version, mix in versions
    )
