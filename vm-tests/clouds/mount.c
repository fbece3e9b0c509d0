/* A drive as a folder: for a kernel without iso9660 or vfat, as that of the test bench may be.

   Preloaded into a program that mounts a drive: if it asks for the file system $DRIVE_TYPE, it gets the folder
   $DRIVE_FOLDER instead, and what it then reads is up to it as before. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>

int mount(const char *source, const char *target, const char *type, unsigned long flags, const void *data)
{
    int (*real)(const char *, const char *, const char *, unsigned long, const void *) = dlsym(RTLD_NEXT, "mount");
    const char *wanted = getenv("DRIVE_TYPE");
    if (wanted && type && strcmp(type, wanted) == 0)
        return real(getenv("DRIVE_FOLDER"), target, NULL, MS_BIND, NULL)
            || real(NULL, target, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL);
    return real(source, target, type, flags, data);
}
