import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeport.core.keyfile import Keyfile, KeyfileError, escape_gc, parse

# What the format can hold: no control characters but the tab, no lone surrogates.
CHARS = st.characters(exclude_categories=["Cs", "Cc"])
WORDS = st.text(st.one_of(CHARS, st.sampled_from(" ;\\=[]#\t")), max_size=20)
NAMES = st.text(st.sampled_from("abzAZ09-_. ;\\é"), min_size=1, max_size=8).filter(
    lambda name: name == name.strip(" "))
TEXTS = st.text(st.one_of(CHARS, st.sampled_from(" ;\\=[]#\t\n\r")), max_size=30)


@st.composite
def keyfiles(draw: st.DrawFn) -> Keyfile:
    sections = draw(st.dictionaries(NAMES, st.dictionaries(NAMES, WORDS, max_size=4), max_size=4))
    return Keyfile(tuple(
        (section, tuple((key, raw.lstrip(" \t")) for key, raw in keys.items()))
        for section, keys in sections.items()))


@given(keyfiles())
def test_what_is_rendered_is_read_back(keyfile: Keyfile) -> None:
    assert parse(keyfile.render()) == keyfile


@given(st.one_of(st.text(), st.text("[]=#;\\ \t\n\rab")))
def test_any_text_is_refused_or_stable(text: str) -> None:
    try:
        keyfile = parse(text)
    except KeyfileError as error:
        assert error.complaints
    else:
        assert parse(keyfile.render()) == keyfile


@given(TEXTS)
def test_a_value_comes_back_as_it_went_in(text: str) -> None:
    keyfile = Keyfile().set("a", "b", text)
    assert parse(keyfile.render()).get("a", "b") == text


@given(st.lists(TEXTS.filter(bool)))
def test_a_list_comes_back_as_it_went_in(items: list[str]) -> None:
    keyfile = Keyfile().set_list("a", "b", items)
    assert parse(keyfile.render()).get_list("a", "b") == tuple(items)


@pytest.mark.parametrize(("text", "raw"), [
    ("plain", "plain"),
    ("a=b;c#d [e]", "a=b;c#d [e]"),
    ("  two", r"\s\stwo"),
    ("\ttab\tand more", "\\ttab\tand more"),     # only a leading blank would be lost
    ("trailing  ", "trailing  "),                # GLib keeps those
    ("line\nbreak\r", r"line\nbreak\r"),
    (r"back\slash", r"back\\slash"),
    ("Ünïcödé ✓", "Ünïcödé ✓"),
])
def test_escapes_are_glibs(text: str, raw: str) -> None:
    keyfile = Keyfile().set("s", "k", text)
    assert keyfile.raw("s", "k") == raw
    assert keyfile.get("s", "k") == text


@pytest.mark.parametrize(("raw", "items"), [
    ("1.1.1.1;8.8.8.8;", ("1.1.1.1", "8.8.8.8")),
    ("1.1.1.1;8.8.8.8", ("1.1.1.1", "8.8.8.8")),        # as gc writes it
    (r"a\;b;c", ("a;b", "c")),
    ("a;;b;", ("a", "", "b")),
    ("", ()),
    (r"\sa;\sb;", (" a", " b")),
])
def test_lists(raw: str, items: tuple[str, ...]) -> None:
    assert parse(f"[s]\nk={raw}\n").get_list("s", "k") == items


@pytest.mark.parametrize("raw", [r"a\x", "a\\", r"a\;b"])  # `\;` is an escape in lists only
def test_an_unknown_escape_is_no_value(raw: str) -> None:
    with pytest.raises(KeyfileError, match=r"\[s\] k: escape"):
        parse(f"[s]\nk={raw}\n").get("s", "k")


@pytest.mark.parametrize(("text", "wanted"), [
    ("key=1\n", ["line 1: key “key” before any section"]),
    ("[a]\nx=1\n[b]\n[a]\nx=2\n", ["line 4: second section [a]; each section once; the first is on line 1"]),
    ("[a]\nx=1\nx=2\n", ["line 3: second “x” in its section; each key once; the first is on line 2"]),
    ("[a]\nx=1\n x =2\n", ["line 3: second “x”"]),          # blanks do not make another key
    ("[a]\nnothing\n", ["line 2: “nothing”"]),
    ("[a]\n; comment\n", ["line 2: “; comment”"]),           # GLib's comments begin with #
    ("[a]\n=1\n", ["line 2: key “”"]),
    ("[a]\nx[de]=1\n", ["line 2: key “x[de]”"]),
    ("[a\n", ["line 1: “[a”"]),
    ("[a] x\n", ["line 1: “[a] x”"]),
    ("[]\n", ["line 1: “[]”"]),
    ("[a]b]\nx=1\n", ["line 1: “[a]b]”"]),
    ("[a]\nx=1\0\n", ["line 2: control character U+0000"]),
    ("[a]\nx=\x1b[2J\n", ["line 2: control character U+001B"]),
    ("[a]\nx=1\r2\n", ["line 2: control character U+000D"]),
    ("[a]\nx=\x852\n", ["line 2: control character U+0085"]),  # splitlines() would break here
    ("x\n[a]\ny\nx=1\nx=2\n", ["line 1", "line 3", "line 5"]),  # all of them at once
])
def test_faults_are_named_with_their_line(text: str, wanted: list[str]) -> None:
    with pytest.raises(KeyfileError) as caught:
        parse(text)
    found = [str(complaint) for complaint in caught.value.complaints]
    assert len(found) == len(wanted)
    assert all(line.startswith(start) for line, start in zip(found, wanted, strict=True)), found


def test_what_glib_tolerates_is_read() -> None:
    text = "# head\r\n  [a]  \r\n\r\n\t key =\t value \r\n# tail\nempty=\n"
    assert parse(text).sections == (("a", (("key", "value "), ("empty", ""))),)


def test_size_is_bounded_and_complaints_too() -> None:
    with pytest.raises(KeyfileError, match="more than"):
        parse("[a]\nx=" + "é" * 600_000)
    with pytest.raises(KeyfileError) as caught:
        parse("fault\n" * 100_000)
    assert len(caught.value.complaints) == 100


@pytest.mark.parametrize("sections", [
    (("a", ()), ("a", ())),
    (("a", (("x", "1"), ("x", "2"))),),
    (("a]", ()),),
    (("a", (("x=y", "1"),)),),
    (("a", (("x", "1\n[b]"),)),),
    (("a", (("x", " 1"),)),),            # the blank would be lost
    (("a", (("#x", "1"),)),),
])
def test_what_cannot_be_written_cannot_be_made(sections: tuple[tuple[str, tuple[tuple[str, str], ...]], ...],
                                               ) -> None:
    with pytest.raises(KeyfileError):
        Keyfile(sections)


def test_a_value_that_has_no_escape_is_refused() -> None:
    with pytest.raises(KeyfileError, match="control characters"):
        Keyfile().set("a", "b", "bell\a")


def test_sets_and_removals_keep_the_order() -> None:
    keyfile = parse("[a]\nx=1\ny=2\n[b]\n").set("a", "x", "3").set("b", "z", "4").set("c", "w", "5")
    assert keyfile.render() == "[a]\nx=3\ny=2\n\n[b]\nz=4\n\n[c]\nw=5\n"
    assert keyfile.remove("a", "x").remove("b").remove("none").render() == "[a]\ny=2\n\n[c]\nw=5\n"


@pytest.mark.parametrize(("raw", "mac"), [
    ("AA:BB:CC:00:11:22", "aa:bb:cc:00:11:22"),
    ("aa-bb-cc-00-11-22", "aa:bb:cc:00:11:22"),
    ("170;187;204;0;17;34;", "aa:bb:cc:00:11:22"),      # before NetworkManager 0.9.8
    ("0;17;34", "00:11:22"),
    ("170;187;204;0;17;300;", None),
    ("stable", None),
    ("", None),
    ("1;" + " " * 50_000 + "x", None),        # in no time
])
def test_macs(raw: str, mac: str | None) -> None:
    assert parse(f"[ethernet]\nmac-address={raw}\n").get_mac("ethernet", "mac-address") == mac


@pytest.mark.parametrize(("raw", "ssid"), [
    ("home", b"home"),
    ("97;59;195;169;", "a;é".encode()),
    (r"a\\;b", b"a;b"),
    (r"a\;b", b"a;b"),
    ("a;b", b"a;b"),
    ("12", b"12"),                # a name of two digits
    ("12;", bytes([12])),
    ("300;1;", b"300;1;"),
])
def test_ssids(raw: str, ssid: bytes) -> None:
    assert parse(f"[wifi]\nssid={raw}\n").get_bytes("wifi", "ssid") == ssid


@pytest.mark.parametrize(("raw", "number"), [("45", 45), ("-900", -900), ("1e3", None), ("", None), ("٣", None)])
def test_numbers(raw: str, number: int | None) -> None:
    assert parse(f"[a]\nb={raw}\n").get_int("a", "b") == number


def test_gc_text_is_literal() -> None:
    # nmstate writes values as they are: this password has a backslash, this description leading blanks.
    text = "[802-1x]\npassword=a\\nb;c\n[user]\nnmstate.interface.description=  x\n[dns]\nlist=a;b\n"
    keyfile = parse(escape_gc(text))
    assert keyfile.get("802-1x", "password") == r"a\nb;c"
    assert keyfile.get("user", "nmstate.interface.description") == "  x"
    assert keyfile.get_list("dns", "list") == ("a", "b")
