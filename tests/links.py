"""What a link to the page "Try your own kernel" holds, read as that page's script reads it."""

import base64
import json
import zlib


def unpacked(address):
    """The request that a link holds."""
    text = address.partition("#k=")[2]
    packed = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    return json.loads(zlib.decompress(packed, -zlib.MAX_WBITS))
