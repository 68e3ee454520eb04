/* os/uffd.c: userfaultfd(2). Constants that older kernel headers lack are defined here, as linux/userfaultfd.h has them. */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/uffd.h"

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

/* UFFDIO_POISON, Linux 6.6 */
struct poison {
    struct uffdio_range range;
    uint64_t mode; /* 1: wake nobody */
    int64_t updated;
};
#define POISON_DONTWAKE 1
#define POISON_IOCTL _IOWR(UFFDIO, 0x08, struct poison)

int oc_uffd_probe(void)
{
    const int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
    struct uffdio_api api = {.api = UFFD_API};

    if (fd >= 0 && ioctl(fd, UFFDIO_API, &api) != 0) {
        const int reason = errno;
        (void)close(fd);
        errno = reason;
        return -1;
    }
    return fd;
}

int oc_uffd_open(void *at, size_t len)
{
    struct uffdio_register range = {.range = {(uintptr_t)at, len}, .mode = UFFDIO_REGISTER_MODE_MISSING};
    const int fd = oc_uffd_probe();

    if (fd >= 0 && ioctl(fd, UFFDIO_REGISTER, &range) != 0) {
        const int reason = errno;
        (void)close(fd);
        errno = reason;
        return -1;
    }
    return fd;
}

bool oc_uffd_next(int fd, uintptr_t *address)
{
    struct uffd_msg message;
    ssize_t len = 0;

    do {
        len = read(fd, &message, sizeof(message));
    } while (len < 0 && errno == EINTR);
    if (len != (ssize_t)sizeof(message) || message.event != UFFD_EVENT_PAGEFAULT) {
        return false;
    }
    *address = (uintptr_t)message.arg.pagefault.address;
    return true;
}

int oc_uffd_copy(int fd, uint8_t *to, const uint8_t *from, size_t len)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t done = 0;

    while (done < len) {
        struct uffdio_copy copy = {.dst = (uintptr_t)to + done,
                                   .src = (uintptr_t)from + done,
                                   .len = len - done,
                                   .mode = UFFDIO_COPY_MODE_DONTWAKE};
        if (ioctl(fd, UFFDIO_COPY, &copy) == 0) {
            break;
        }
        if (copy.copy > 0) {
            done += (size_t)copy.copy;
        } else if (errno == EEXIST) {
            done += page;
        } else if (errno != EAGAIN) {
            return errno;
        }
    }
    return 0;
}

void oc_uffd_poison(int fd, uint8_t *at, size_t len)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);

    for (size_t done = 0; done < len; done += page) { /* one by one: pages that are there are right, and stay */
        struct poison poison = {.range = {(uintptr_t)at + done, page}, .mode = POISON_DONTWAKE};
        int rc = 0;
        do {
            rc = ioctl(fd, POISON_IOCTL, &poison);
        } while (rc != 0 && errno == EAGAIN);
        if (rc != 0 && errno != EEXIST) {
            (void)mprotect(at + done, len - done, PROT_NONE);
            return;
        }
    }
}

void oc_uffd_wake(int fd, uint8_t *at, size_t len)
{
    struct uffdio_range range = {(uintptr_t)at, len};

    (void)ioctl(fd, UFFDIO_WAKE, &range);
}

/*
 * Wiped where they are, a reader could see the zeros. Moved away first, all it can see is a page that is not there. The moved
 * mapping reports nothing any more and keeps MADV_DONTDUMP and MADV_DONTFORK.
 */
bool oc_uffd_evict(uint8_t *at, size_t len)
{
    /* with an address, as MREMAP_FIXED: the kernel reads it here too, and glibc before 2.40 hands over what the register holds */
    void *const moved = mremap(at, len, len, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);

    if (moved == MAP_FAILED) {
        (void)madvise(at, len, MADV_DONTNEED);
        return false;
    }
    oc_wipe(moved, len);
    (void)munmap(moved, len);
    return true;
}

/* The kernel writes: a poisoned page, or one that is not there, ends the call and not the process. */
void oc_uffd_overwrite(uint8_t *at, size_t len)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);

    (void)mprotect(at, len, PROT_READ | PROT_WRITE); /* where oc_uffd_poison had to close them */
    for (size_t begin = 0; begin < len; begin += page) {
        size_t done = 0;
        ssize_t part = 0;
        do {
            part = getrandom(at + begin + done, page - done, GRND_NONBLOCK);
            done += part > 0 ? (size_t)part : 0;
        } while (done < page && (part > 0 || (part < 0 && errno == EINTR)));
    }
}

bool oc_uffd_present(const uint8_t *at)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char there = 0;

    return mincore((void *)((uintptr_t)at / page * page), page, &there) == 0 && (there & 1) != 0;
}
