/*
 * os/uffd.h: the few system calls behind paged.c: pages of one range of this process that are filled by hand when touched.
 * Open -> read events -> copy, poison, wake, evict -> close. Every function is thread-safe. Linux, user-mode faults only, so
 * that no privilege is needed. Addresses and lengths are multiples of the page size.
 */
#ifndef OC_OS_UFFD_H
#define OC_OS_UFFD_H

#include "base/bytes.h"

/* A descriptor that reports touches of absent pages of [at, at + len); -1 with errno where the kernel or a filter denies it. */
int oc_uffd_open(void *at, size_t len);
/* A descriptor for no range, to find out whether there could be one; -1 with errno. */
int oc_uffd_probe(void);

/* The next touched address, without waiting. false: none is pending. */
bool oc_uffd_next(int fd, uintptr_t *address);

/* Puts `len` bytes at `to`; pages that are there already are left alone. 0 or an errno value. Wakes nobody. */
int oc_uffd_copy(int fd, uint8_t *to, const uint8_t *from, size_t len);

/* Whoever touches [at, at + len) from now on gets SIGBUS, or SIGSEGV before Linux 6.6. Never zeros. Wakes nobody. */
void oc_uffd_poison(int fd, uint8_t *at, size_t len);

/* Those who wait for a page of the range try again. */
void oc_uffd_wake(int fd, uint8_t *at, size_t len);

/* Takes the pages out of the range (the next touch is reported again), wipes them, gives them back. false: they were not wiped. */
bool oc_uffd_evict(uint8_t *at, size_t len);

/* Overwrites the pages of a range that are there, whether poisoned ones are among them or not. Nobody reads it any more. */
void oc_uffd_overwrite(uint8_t *at, size_t len);

/* The page at `at` is there. Of a poisoned one kernels say either. */
bool oc_uffd_present(const uint8_t *at);

#endif
