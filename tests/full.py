"""A disk that is full, for tests."""

import resource
from contextlib import contextmanager


@contextmanager
def no_room(nbytes=1000):
    """No file of this process can have more bytes than that: writing on is an OSError."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (nbytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
