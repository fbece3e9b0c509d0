#!/bin/bash
# homeport in the initramfs: the assigned network is in force before there is a root file system.
#
# dracut sources this file and calls the functions. All that goes in stands here, with its reason, but for the
# Python modules, which python-deps.py finds out.
# shellcheck disable=SC2154  # moddir, initdir, systemdsystemunitdir, ... come from dracut

# What a document may describe, as far as dracut's network-manager module brings it not: a machine keeps the
# configuration that was proven here, so all of it must be possible here, not only the way to the root file system.
# The list is that of homeport's preflight (agent/homeport/host/preflight.py) and nmstate's WireGuard.
homeport_links=(
    bonding 8021q bridge dummy hsr ib_ipoib ip6_tunnel ipip ipvlan macsec macvlan macvtap sit tun veth vrf vxlan
    wireguard xfrm_interface
    gcm ctr ghash_generic       # macsec's cipher, which it asks for by name
)

# Who this machine is: a TPM's key, SMBIOS tables, and what a hypervisor says by fw_cfg.
homeport_facts=("=drivers/char/tpm" dmi-sysfs qemu_fw_cfg)

# Drives with an assignment: the file systems that such drives have, with vfat's usual character sets; what they are
# plugged into, also in an image for one machine that does without when the image is made.
homeport_drives=(
    isofs vfat ext4 nls_cp437 nls_iso8859-1 nls_ascii nls_utf8
    sr_mod cdrom sd_mod virtio_blk virtio_scsi ata_piix ahci usb_storage uas xhci_pci ehci_pci
)

# How the real root is looked at without a byte of it being written (agent/homeport/host/loop.py).
homeport_look=(loop)

# Never by itself: whoever installs homeport has not asked for another initramfs, and most machines need the network
# only later. `dracut --add homeport`, or add_dracutmodules+=" homeport " in a dracut.conf.d file.
check() {
    require_binaries /usr/bin/python3 NetworkManager || return 1
    if [[ ! $(homeport_nmstatectl) ]]; then
        derror "homeport: there is no nmstatectl in this root"
        return 1
    fi
    # The Python of another root's initramfs can only be asked in that root.
    if [[ ${dracutsysrootdir-} && $dracutsysrootdir != / ]]; then
        derror "homeport: dracut --sysroot is not possible with it; run dracut in that root"
        return 1
    fi
    return 255
}

# systemd starts us, dbus is how we speak with NetworkManager. udev-rules: names of cards, labels of drives. Not
# url-lib, which brings curl; not tpm2-tss: the TPM is spoken to through /dev/tpmrm*.
depends() { echo systemd dbus network-manager udev-rules; }

installkernel() {
    # Links, facts and drives are what a document or a machine brings along: an image for one machine, which has no
    # such link while the image is made, needs them, too. -o: some kernels have them built in or not at all.
    hostonly='' instmods -o "${homeport_links[@]}" "${homeport_facts[@]}" "${homeport_drives[@]}" "${homeport_look[@]}"
}

install() {
    homeport_python || exit 1
    # It unpacks a seed of the kernel line, loaded by name; kmod and systemd have brought it, or not.
    inst_libdir_file "libzstd.so.1*" ||
        dwarn "homeport in this initramfs is without libzstd: a seed on the kernel line must be packed with gzip"
    inst "$(homeport_nmstatectl)" /usr/bin/nmstatectl
    homeport_settings
    homeport_units
}

# The interpreter, our program, and what it imports.
homeport_python() {
    local what from to found
    # A message instead of half a program: an image with that would be found out at the next boot.
    if ! found=$(/usr/bin/python3 -I -B "$moddir/python-deps.py" /usr/lib/homeport/homeport.pyz "$initdir"); then
        dfatal "homeport: ${found##*say }"
        return 1
    fi
    while read -r what from to; do
        case $what in
            lib) homeport_library "$from" "$to" ;;
            file) inst "$from" ;;
            say) dwarn "$from $to" ;;
        esac
    done <<< "$found"
    inst /usr/bin/python3
    inst_simple "$moddir/launcher.sh" /usr/bin/homeport
}

# A C extension, and the libraries that it needs: dracut looks for those of files that may be executed only (-R of any).
homeport_library() {
    inst "$1" "$2"
    $DRACUT_INSTALL -D "$initdir" -R "$1"
}

# Where it is packaged, and where people put their own, which dracut does not look in.
homeport_nmstatectl() { PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin type -P nmstatectl; }

# Settings, and an assignment that the image itself holds. What says which machine this is goes only into an
# image for this machine.
homeport_settings() {
    local file
    for file in /usr/lib/homeport/* /usr/lib/homeport/homeport.conf.d/* /etc/homeport/* \
        /etc/homeport/homeport.conf.d/* /usr/lib/credstore/homeport.* /etc/credstore/homeport.*; do
        [[ -f $file ]] || continue
        [[ $file == /etc/homeport/identity && ! ${hostonly-} ]] && continue
        inst_simple "$file"
    done
    # DHCP until there is something better. Not where NetworkManager would find it by itself: from 1.54 on
    # it starts in every initramfs that has a profile. prepare puts it there if the network is wanted.
    inst_simple /usr/lib/NetworkManager/system-connections/homeport-bootstrap.nmconnection \
        /usr/lib/homeport/homeport-bootstrap.nmconnection
    # Which cards are not for DHCP.
    inst_rules 85-homeport.rules
    (umask 077 && mkdir -p "$initdir/var/lib/homeport")
}

homeport_units() {
    local unit
    for unit in homeport-prepare.service homeport-initrd.service homeport-handover.service homeport-tidy.service; do
        inst_simple "$systemdsystemunitdir/$unit"
        # Wanted by initrd.target, not required: that target's failure is an emergency shell.
        $SYSTEMCTL -q --root "$initdir" enable "$unit"
    done
    # For both generations of NetworkManager's units; a drop-in of a unit that is not there does nothing.
    for unit in nm-wait-online-initrd.service NetworkManager-wait-online-initrd.service; do
        inst_simple "$systemdsystemunitdir/$unit.d/50-homeport.conf"
    done
}
