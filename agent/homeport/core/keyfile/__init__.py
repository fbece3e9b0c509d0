"""Connection profiles as text: the keyfile format, what makes one ours, what we refuse to write.

`format` reads and writes the format, `escapes` its values; `ours` turns NetworkManager's or `gc`'s text into a profile
that homeport can keep; `untrusted` complains about text that others wrote; `names` gives file names
and UUIDs. Nothing here knows where the files lie: that is `host/keyfiles.py`.
"""

from homeport.core.keyfile.dns import add_dns
from homeport.core.keyfile.escapes import KeyfileError, escape_gc
from homeport.core.keyfile.format import Keyfile, parse
from homeport.core.keyfile.names import file_name, stable_uuid
from homeport.core.keyfile.ours import OWNED, is_ours, own_profile, own_profiles
from homeport.core.keyfile.untrusted import check_untrusted

__all__ = [
    "OWNED",
    "Keyfile",
    "KeyfileError",
    "add_dns",
    "check_untrusted",
    "escape_gc",
    "file_name",
    "is_ours",
    "own_profile",
    "own_profiles",
    "parse",
    "stable_uuid",
]
