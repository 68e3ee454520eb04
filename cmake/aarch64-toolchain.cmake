# Cross building for aarch64 with Debian's gcc-aarch64-linux-gnu, against the sysroot that tools/aarch64.py makes.
# cmake --toolchain cmake/aarch64-toolchain.cmake; ORTCRYPT_AARCH64_SYSROOT names another sysroot.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

set(ORTCRYPT_AARCH64_SYSROOT "${CMAKE_CURRENT_LIST_DIR}/../build/deps/aarch64/sysroot" CACHE PATH "Debian arm64 libraries and headers")
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES ORTCRYPT_AARCH64_SYSROOT)
get_filename_component(CMAKE_SYSROOT "${ORTCRYPT_AARCH64_SYSROOT}" ABSOLUTE)

# Libraries and headers come from the sysroot alone; programs (python3, bats, pkg-config) from this machine.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_PATH} "")
set(ENV{PKG_CONFIG_SYSROOT_DIR} "${CMAKE_SYSROOT}")
set(ENV{PKG_CONFIG_LIBDIR} "${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${CMAKE_SYSROOT}/usr/share/pkgconfig")

# How to run what was built on another machine (ctest); tools/aarch64.py does it by itself.
if(NOT CMAKE_HOST_SYSTEM_PROCESSOR STREQUAL "aarch64")
  set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L "${CMAKE_SYSROOT}")
endif()
