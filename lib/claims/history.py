"""Processors from 1971 to 2023, as their makers describe them: the data behind claim W31.

Everything here is *reported*: each row carries the key of its source in
``chapters/references.bib``.
"""

from __future__ import annotations

from dataclasses import dataclass

from lib.show.markdown import markdown as table


@dataclass(frozen=True)
class Processor:
    """One processor as it was first sold."""

    name: str
    year: int  # year of its introduction
    transistors: int
    # Highest clock it was introduced with, Hz; None where the maker publishes none.
    clock_hz: float | None
    source: str  # key in ``chapters/references.bib``
    note: str = ""  # what a reader could otherwise misread


PROCESSORS: tuple[Processor, ...] = (
    Processor("Intel 4004", 1971, 2_300, 1 / 1350e-9, "intel1971mcs4",
              "its data sheet gives a shortest clock period of 1,350 ns; the 108 kHz often quoted "
              "mixes it up with the instruction cycle of eight clocks, 10.8 µs"),
    Processor("Intel 386", 1985, 275_000, 16e6, "intel2008reference"),
    Processor("Intel 486", 1989, 1_200_000, 25e6, "intel2008reference"),
    Processor("Pentium 4", 2000, 42_000_000, 1.5e9, "intel2008reference"),
    Processor("Pentium 4 (130 nm)", 2002, 55_000_000, 3.06e9, "intel2008reference"),
    Processor("Core 2 Extreme X6800", 2006, 291_000_000, 2.93e9, "intel2008reference",
              "two cores; the fastest Core 2 Duo of that year ran at 2.67 GHz"),
    Processor("Apple M2 Pro", 2023, 40_000_000_000, None, "apple2023m2pro",
              "Apple publishes no clock"),
)


def find(name: str) -> Processor:
    """Return the processor of that name; a KeyError lists the names."""
    for processor in PROCESSORS:
        if processor.name == name:
            return processor
    raise KeyError(f"no processor {name!r}; known: {', '.join(p.name for p in PROCESSORS)}")


def clock(processor: Processor) -> float:
    """The highest clock that a processor was introduced with, Hz.

    Raises ValueError if its maker publishes none.
    """
    if processor.clock_hz is None:
        raise ValueError(f"no published clock for {processor.name}")
    return processor.clock_hz


def yearly_growth(first: Processor, last: Processor) -> float:
    """Mean growth of the clock a year between two processors, as a fraction.

    (f₂ / f₁)^(1 / years) − 1.

    Raises ValueError if one of the two has no published clock, or the second is not the younger.
    """
    if last.year <= first.year:
        raise ValueError(f"{last.name} is not younger than {first.name}")
    return (clock(last) / clock(first)) ** (1 / (last.year - first.year)) - 1


def clock_text(processor: Processor) -> str:
    """The clock with a unit that suits it, or "not published"."""
    if processor.clock_hz is None:
        return "not published"
    for limit, unit in ((1e9, "GHz"), (1e6, "MHz"), (1e3, "kHz")):
        if processor.clock_hz >= limit:
            return f"{processor.clock_hz / limit:.3g} {unit}"
    return f"{processor.clock_hz:.3g} Hz"


def count_text(count: int) -> str:
    """A count, in millions from a million on."""
    return f"{count / 1e6:,.10g} M" if count >= 1e6 else f"{count:,}"


def markdown() -> str:
    """The processors as a Markdown table, with the growth of the clock since the row before."""
    rows: list[tuple[object, ...]] = []
    before: Processor | None = None
    for processor in PROCESSORS:
        growth = ""
        if before and before.clock_hz and processor.clock_hz:
            growth = f"{yearly_growth(before, processor):+.0%}".replace("-", "−")
        rows.append((processor.year, processor.name, count_text(processor.transistors),
                     clock_text(processor), growth))
        before = processor
    return table(("year", "processor", "transistors", "clock", "growth of the clock a year"), rows)
