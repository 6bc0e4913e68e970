"""The kernel of the played Colab: IPython's, in which `google.colab` is imported, as on Colab."""

import sys
import types

del sys.path[0]  # this folder, which Colab doesn't have
for name in ("google", "google.colab"):
    sys.modules[name] = types.ModuleType(name)

from ipykernel.kernelapp import launch_new_instance  # noqa: E402 - as Colab's launcher does it

launch_new_instance()
