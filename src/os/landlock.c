/* os/landlock.c: the domain: rights by ABI, the rules for devices, and entering it. */
#include <errno.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/landlock.h"

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif

#define ABI_KNOWN 7
#define ASK_VERSION (1u << 0)
#define ASK_ERRATA (1u << 1)
#define ERRATUM_SIGNALS (1 << 1)     /* set: signals between the threads of one process are never stopped */
#define RULE_PATH_BENEATH 1
#define NO_LOG_SAME_EXEC (1u << 0)   /* ABI 7: what is refused to this program is expected, and is not for the audit log */

enum {
    FS_WRITE_FILE = 1 << 1,
    FS_REMOVE_DIR = 1 << 4,
    FS_REMOVE_FILE = 1 << 5,
    FS_MAKE = 0x7f << 6,   /* character device, folder, file, socket, FIFO, block device, symbolic link: bits 6 to 12 */
    FS_REFER = 1 << 13,    /* ABI 2: rename or link into another folder; in ABI 1 always refused */
    FS_TRUNCATE = 1 << 14, /* ABI 3 */
    FS_IOCTL_DEV = 1 << 15 /* ABI 5 */
};
enum { NET_BIND_TCP = 1 << 0, NET_CONNECT_TCP = 1 << 1 };
enum { SCOPE_ABSTRACT_UNIX = 1 << 0, SCOPE_SIGNAL = 1 << 1 };

/* struct landlock_ruleset_attr; the kernel takes the size it knows. */
struct rights {
    uint64_t fs;
    uint64_t net;
    uint64_t scoped;
};

/* struct landlock_path_beneath_attr */
struct path_rule {
    uint64_t allowed;
    int32_t fd;
} __attribute__((packed));

int oc_landlock_abi(void)
{
    const long abi = syscall(SYS_landlock_create_ruleset, NULL, (size_t)0, ASK_VERSION);

    return abi > 0 ? (int)abi : 0;
}

/* Before this erratum a thread in the domain could not send a signal to our own threads outside, nor change the process's user. */
static bool signals_are_right(void)
{
    const long errata = syscall(SYS_landlock_create_ruleset, NULL, (size_t)0, ASK_ERRATA);

    return errata > 0 && (errata & ERRATUM_SIGNALS) != 0;
}

/* Returns the size of the struct at this ABI. */
static size_t rights_of(int abi, struct rights *rights, oc_landlock_held *held)
{
    *rights = (struct rights){.fs = FS_WRITE_FILE | FS_REMOVE_DIR | FS_REMOVE_FILE | FS_MAKE};
    *held = (oc_landlock_held){.abi = abi, .files = true, .truncate = abi >= 3, .tcp = abi >= OC_LANDLOCK_ABI_NET};
    rights->fs |= abi >= 2 ? FS_REFER : 0;
    rights->fs |= abi >= 3 ? FS_TRUNCATE : 0;
    rights->fs |= abi >= 5 ? FS_IOCTL_DEV : 0;
    rights->net = abi >= OC_LANDLOCK_ABI_NET ? NET_BIND_TCP | NET_CONNECT_TCP : 0;
    if (abi >= OC_LANDLOCK_ABI_SCOPE) {
        held->signals = signals_are_right();
        rights->scoped = SCOPE_ABSTRACT_UNIX | (held->signals ? SCOPE_SIGNAL : 0);
        return sizeof *rights;
    }
    return abi >= OC_LANDLOCK_ABI_NET ? sizeof rights->fs + sizeof rights->net : sizeof rights->fs;
}

struct ruleset {
    int fd;
    uint64_t device; /* rights on a device that stays usable */
};

static int allow_device(void *state, int fd)
{
    const struct ruleset *const set = state;
    const struct path_rule rule = {.allowed = set->device, .fd = fd};

    return syscall(SYS_landlock_add_rule, set->fd, RULE_PATH_BENEATH, &rule, 0u) == 0 ? 0 : errno;
}

static ortcrypt_status allow_devices(struct ruleset *set, const char *const *devices, size_t device_count, ortcrypt_error *err)
{
    const int cause = oc_devices_each(allow_device, set);

    if (cause != 0) {
        return oc_fail_errno(err, ORTCRYPT_E_IO, cause, "the sandbox: a rule for a device");
    }
    for (size_t i = 0; i < device_count; i++) {
        const int why = oc_device_one(devices[i], allow_device, set);
        if (why == ENOTTY) {
            return oc_fail(err, ORTCRYPT_E_INVALID, "%s is no character device, and the sandbox leaves no other files open", devices[i]);
        }
        if (why != 0) {
            return oc_fail_errno(err, ORTCRYPT_E_IO, why, "the device %s", devices[i]);
        }
    }
    return ORTCRYPT_OK;
}

ortcrypt_status oc_landlock_restrict(const char *const *devices, size_t device_count, oc_landlock_held *held, ortcrypt_error *err)
{
    return oc_landlock_restrict_as(ABI_KNOWN, devices, device_count, held, err);
}

ortcrypt_status oc_landlock_restrict_as(int abi_max, const char *const *devices, size_t device_count, oc_landlock_held *held,
                                        ortcrypt_error *err)
{
    struct rights rights;
    oc_landlock_held holds;
    const int offered = oc_landlock_abi();
    const int abi = offered > abi_max ? abi_max : offered;

    if (abi == 0) {
        (void)oc_fail(err, ORTCRYPT_E_UNSUPPORTED, "this kernel has no Landlock, or it is switched off");
        oc_hint(err, "Linux 5.13 or newer, with landlock in the list that the kernel's lsm= parameter gives");
        return ORTCRYPT_E_UNSUPPORTED;
    }
    const size_t size = rights_of(abi, &rights, &holds);
    struct ruleset set = {.fd = (int)syscall(SYS_landlock_create_ruleset, &rights, size, 0u),
                          .device = rights.fs & (FS_WRITE_FILE | FS_TRUNCATE | FS_IOCTL_DEV)};
    if (set.fd < 0) {
        return oc_fail_errno(err, ORTCRYPT_E_UNSUPPORTED, errno, "the sandbox cannot be made: Landlock");
    }
    ortcrypt_status st = allow_devices(&set, devices, device_count, err);
    if (st == ORTCRYPT_OK && (prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L) != 0 ||
                              syscall(SYS_landlock_restrict_self, set.fd, abi >= 7 ? NO_LOG_SAME_EXEC : 0u) != 0)) {
        st = oc_fail_errno(err, ORTCRYPT_E_UNSUPPORTED, errno, "the sandbox cannot be entered: Landlock");
    }
    close(set.fd);
    if (st == ORTCRYPT_OK) {
        *held = holds;
    }
    return st;
}
