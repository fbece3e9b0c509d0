#!/bin/sh
# homeport in the initramfs. -I: nothing from the environment or the folder one stands in; -S: there is no
# site-packages here, all is in the standard library's folder.
exec /usr/bin/python3 -I -S /usr/lib/homeport/homeport.pyz "$@"
