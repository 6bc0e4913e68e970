"""The few names a chapter imports: pictures and tables, each with its kind of evidence.

Functions are for any page; `Chapter` is one kernel version's. On a machine with a GPU a chapter
measures. Without one it shows what was recorded, and says so.
"""

from __future__ import annotations

from lib import gpus, reported
from lib.measure import records
from lib.pages.display import note, once_recorded, show, table
from lib.pages.hopper import HopperPages, buffers, descriptors, swizzle
from lib.pages.pictures import (
    Pictures,
    ladder,
    layouts,
    loading_ahead,
    pipeline,
    rival_slots,
)
from lib.pages.tables import (
    Tables,
    calibrated,
    claims,
    gpu_table,
    other_shapes_table,
    provenance,
    results_table,
    roof,
    roofs_table,
)
from lib.pages.tensor import TensorPictures, fragment, matrix_load
from lib.pages.version import RECORDED_ON, TRACED
from lib.pages.wmma import TensorTables

__all__ = [
    "RECORDED_ON", "TRACED", "Chapter", "buffers", "calibrated", "claims", "descriptors",
    "fragment", "gpu_table", "gpus", "ladder", "layouts", "loading_ahead", "matrix_load", "note",
    "once_recorded", "other_shapes_table", "pipeline", "provenance", "records", "reported",
    "results_table", "rival_slots", "roof", "roofs_table", "show", "swizzle", "table",
]


class Chapter(Tables, Pictures, TensorTables, TensorPictures, HopperPages):
    """One kernel version: everything its page shows.

    Parameters
    ----------
    stem : str
        Name in the catalogue.
    """
