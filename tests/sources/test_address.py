from __future__ import annotations

import pytest

from homeport.errors import SourceError
from homeport.sources.address import MissingFact, fill, follow, shown, web_address

FIELDS = {"uuid": "11-22", "serial": "S/N 7?#ü", "mac": "52:54:00:ab:cd:ef", "hostname": ".."}


@pytest.mark.parametrize(("template", "wanted"), [
    ("https://cfg.example/{uuid}.yaml", "https://cfg.example/11-22.yaml"),
    ("https://cfg.example/x.yaml", "https://cfg.example/x.yaml"),
    # Whatever firmware has in a serial number stays one component of the path.
    ("https://cfg.example/{serial}/{uuid}", "https://cfg.example/S%2FN%207%3F%23%C3%BC/11-22"),
    ("https://cfg.example/?id={uuid}&m={mac}", "https://cfg.example/?id=11-22&m=52:54:00:ab:cd:ef"),
    # A name that would climb: neither urllib3 nor a file system may see dots alone.
    ("/etc/homeport/{hostname}/net.yaml", "/etc/homeport/%2E%2E/net.yaml"),
])
def test_fields_are_filled_and_encoded(template: str, wanted: str) -> None:
    assert fill(template, FIELDS) == wanted


@pytest.mark.parametrize(("name", "said"), [("tpmhash", "no TPM"), ("serial", "no serial number")])
def test_a_field_this_machine_lacks_is_named(name: str, said: str) -> None:
    with pytest.raises(MissingFact, match=said) as caught:
        fill(f"https://u:pw@cfg.example/{{{name}}}?token=geheim", {"serial": ""})
    assert "pw" not in str(caught.value) and "geheim" not in str(caught.value)


@pytest.mark.parametrize(("url", "wanted"), [
    ("https://cfg.example/a.yaml", "https://cfg.example/a.yaml"),
    ("https://user:pw@cfg.example:8443/a?token=x#y", "https://cfg.example:8443/a"),
    ("https://cfg.example?token=x/y", "https://cfg.example"),
    ("https://user:p@w@cfg.example/a", "https://cfg.example/a"),  # an @ that should have been %40
    ("https://cfg.example/@scope/a", "https://cfg.example/@scope/a"),
    ("/etc/homeport/what?.yaml", "/etc/homeport/what?.yaml"),
])
def test_what_people_see_has_no_secrets(url: str, wanted: str) -> None:
    assert shown(url) == wanted


def test_user_name_and_password_leave_the_url() -> None:
    address = web_address("https://us%20er:p%40w@cfg.example:8443/a?b=c#d")
    assert address.url == "https://cfg.example:8443/a?b=c"
    assert address.authorization == "Basic dXMgZXI6cEB3"  # "us er:p@w"


@pytest.mark.parametrize("url", [
    "ftp://cfg.example/a", "https:///a", "https://cfg.example:port/a", "https://cfg.example:0/a", "https://[::1/a"])
def test_what_is_no_web_address_is_refused(url: str) -> None:
    with pytest.raises(SourceError, match="not an http or https address"):
        web_address(url)


@pytest.mark.parametrize(("location", "url", "keeps"), [
    ("/b.yaml", "https://cfg.example/b.yaml", True),
    ("b.yaml?x=1", "https://cfg.example/dir/b.yaml?x=1", True),
    ("https://cfg.example:443/b", "https://cfg.example:443/b", True),  # the same port, spelt out
    ("//cdn.example/b", "https://cdn.example/b", False),
    ("https://cfg.example:8443/b", "https://cfg.example:8443/b", False),
    # Credentials that the redirect brings along are not ours to send.
    ("https://evil:pw@cdn.example/b", "https://cdn.example/b", False),
    ("https://evil:pw@cfg.example/b", "https://cfg.example/b", True),
])
def test_redirects_keep_credentials_only_for_the_origin(location: str, url: str, keeps: bool) -> None:
    asked = web_address("https://user:pw@cfg.example/dir/a.yaml?token=geheim")
    found = follow(asked, location)
    assert found.url == url
    assert found.authorization == (asked.authorization if keeps else "")


def test_a_redirect_may_go_to_https_and_leaves_the_credentials_behind() -> None:
    found = follow(web_address("http://user:pw@cfg.example/a"), "https://cfg.example/a")
    assert (found.url, found.authorization) == ("https://cfg.example/a", "")


@pytest.mark.parametrize("location", ["http://cfg.example/a?token=geheim", "file:///etc/shadow", "ftp://cfg.example/a"])
def test_redirects_that_are_not_followed(location: str) -> None:
    with pytest.raises(SourceError, match="redirects to") as caught:
        follow(web_address("https://cfg.example/a"), location)
    assert "geheim" not in str(caught.value)
