# Packages: `make dist` runs cpack for a Debian package and a tarball. Names and contents depend on the sources alone.
set(CPACK_PACKAGE_NAME ortcrypt)
set(CPACK_PACKAGE_VENDOR ortcrypt)
set(CPACK_PACKAGE_CONTACT "the ortcrypt authors <ortcrypt@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "keeps ONNX models encrypted at rest, compiled ones included")
set(CPACK_RESOURCE_FILE_LICENSE "${CMAKE_SOURCE_DIR}/LICENSE")
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_STRIP_FILES ON)
string(TOLOWER "ortcrypt-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR}" CPACK_PACKAGE_FILE_NAME)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
    "A bundle holds an ONNX model, its weights and what execution providers compile from it, each of them encrypted and
authenticated; ONNX Runtime gets the plaintext in memory only. Library, headers, command line and a reference
execution provider. ONNX Runtime itself is not part of it.")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON) # libc6, libssl3, libjansson4, with the versions that the symbols need
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "age, libssl-dev, libjansson-dev")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
include(CPack)
