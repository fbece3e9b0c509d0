"""The names of the platforms, apart from their modules: the settings check a name at every boot, also a fast one.

A test holds them together with the registry (`platforms/`).
"""

from __future__ import annotations

NAMES = (
    "akamai", "aliyun", "aws", "azure", "cloudstack", "digitalocean", "exoscale", "gcp", "hetzner", "ibmcloud",
    "ibmcloud-classic", "kubevirt", "nocloud", "openstack", "oraclecloud", "packet", "powervs", "proxmoxve",
    "scaleway", "upcloud", "vmware", "vultr",
)
ALIASES = {
    "alibaba": "aliyun", "amazon": "aws", "azurestack": "azure", "cloudstack-configdrive": "cloudstack",
    "cloudstack-metadata": "cloudstack", "configdrive": "openstack", "ec2": "aws", "equinix": "packet",
    "google": "gcp", "linode": "akamai", "oci": "oraclecloud", "openstack-metadata": "openstack",
    "oracle": "oraclecloud", "proxmox": "proxmoxve",
}


def find_name(text: str) -> str:
    """The name of the platform that is called so; "" if there is none."""
    name = text.strip().lower()
    name = ALIASES.get(name, name)
    return name if name in NAMES else ""
