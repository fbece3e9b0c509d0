"""What will change, where that is decided by a rule of its own."""

from __future__ import annotations

from typing import Any

import pytest

from homeport import planning
from homeport.core.facts import Stage


@pytest.mark.parametrize(("hostname", "there"), [
    ({"running": "berth-7", "config": "berth-7"}, {"config": "berth-7"}),
    ({"running": "berth-7"}, None),
    ({"config": ""}, {"config": ""}),
    (None, None),
])
def test_the_running_host_name_is_not_the_initramfs_s(
    hostname: dict[str, str] | None, there: dict[str, str] | None,
) -> None:
    """NetworkManager there puts back what its /etc/hostname says: nothing could ever be proven."""
    config: dict[str, Any] = {"interfaces": []} | ({"hostname": hostname} if hostname else {})
    assert planning.of_this_stage(Stage.HOST, config) == config
    assert planning.of_this_stage(Stage.INITRD, config) == {"interfaces": []} | ({"hostname": there} if there else {})
