"""Race detection: the interface that lanes and accesses report to."""

from .errors import Error


class Races:
    """Refuses until the detector arrives with the next commit."""

    def __init__(self, hazards, code):
        raise Error("race detection is not available in this revision")
