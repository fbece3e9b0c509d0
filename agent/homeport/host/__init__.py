"""Hands on this machine: each module knows one thing about it, and decides nothing."""
