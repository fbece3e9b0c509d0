"""Elemental's registration as values: what is said, in which order, and what an answer means.

Knows the protocol of Rancher Elemental's operator (spec/elemental.md, 1 to 5), whose messages carry no network
traffic of their own: who connects, and how, is `sources/elemental.py`. What comes from the other side is untrusted.
"""
