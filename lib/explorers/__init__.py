"""Explorers of the tensor-core and asynchronous chapters, one a module (see `lib.explore`)."""
