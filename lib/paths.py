"""Where things lie in a checkout of this repository."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CUDA = ROOT / "cuda"
CHAPTERS = ROOT / "chapters"
RESULTS = ROOT / "results"
