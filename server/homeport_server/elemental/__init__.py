"""Elemental's registration protocol, the server's half (spec/elemental.md, 1 and 2).

`messages.py` the bytes, `attestation.py` the TPM, `config.py` the answer, `session.py` the conversation. None of
them knows sockets.
"""
