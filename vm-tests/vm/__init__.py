"""Whole machines in QEMU: firmware tables, a TPM, a dracut initramfs, real NIC drivers. `machine.py` is the way in."""
