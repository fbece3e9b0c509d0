"""The TPM as values: commands and answers as bytes, keys, and the proof that a key lives in this TPM.

Knows the few commands of TPM 2.0 (TCG, "Trusted Platform Module Library", revision 1.59) that an identity and
its attestation need, and Elemental's way to write both down (spec/elemental.md, 2.3). Refuses to know where the
TPM is; `host/tpm.py` does.  An answer of a TPM is as untrusted as any other input.
"""
