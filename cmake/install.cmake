# What `cmake --install` puts where. Included by the top CMakeLists.txt after every target is known.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(PACKAGE_DIR "${CMAKE_INSTALL_LIBDIR}/cmake/ortcrypt")

# Two sets of targets: who links the shared library needs neither OpenSSL's nor jansson's development files.
set_target_properties(ortcrypt_shared PROPERTIES EXPORT_NAME ortcrypt)
set_target_properties(ortcrypt_static PROPERTIES EXPORT_NAME static)
install(TARGETS ortcrypt_shared EXPORT ortcryptTargets LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
        INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(TARGETS ortcrypt_static EXPORT ortcryptStaticTargets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
        INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(EXPORT ortcryptTargets NAMESPACE ortcrypt:: DESTINATION "${PACKAGE_DIR}")
install(EXPORT ortcryptStaticTargets NAMESPACE ortcrypt:: DESTINATION "${PACKAGE_DIR}")
install(DIRECTORY include/ortcrypt DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
# What an EP author copies: one source file, made of src/ep_context, and its headers.
install(FILES "${CMAKE_BINARY_DIR}/ep_context/ortcrypt_ep_context.c" include/ortcrypt/ep_context.h include/ortcrypt/ep_context.hpp
        DESTINATION "${CMAKE_INSTALL_DATADIR}/ortcrypt/ep_context")

configure_package_config_file(cmake/ortcryptConfig.cmake.in "${CMAKE_BINARY_DIR}/ortcryptConfig.cmake" INSTALL_DESTINATION "${PACKAGE_DIR}")
write_basic_package_version_file("${CMAKE_BINARY_DIR}/ortcryptConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_BINARY_DIR}/ortcryptConfig.cmake" "${CMAKE_BINARY_DIR}/ortcryptConfigVersion.cmake" DESTINATION "${PACKAGE_DIR}")

# The prefix is found from the .pc file's own place, so that an unpacked tarball works anywhere.
file(RELATIVE_PATH PC_PREFIX "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
string(REGEX REPLACE "/$" "" PC_PREFIX "${PC_PREFIX}")
configure_file(cmake/ortcrypt.pc.in "${CMAKE_BINARY_DIR}/ortcrypt.pc" @ONLY)
install(FILES "${CMAKE_BINARY_DIR}/ortcrypt.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

install(TARGETS ortcrypt RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
install(TARGETS ortcrypt-probe ortcrypt_witness RUNTIME DESTINATION "${CMAKE_INSTALL_LIBEXECDIR}/ortcrypt"
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBEXECDIR}/ortcrypt")
install(TARGETS ortcrypt_reference_ep ortcrypt_bridge LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/ortcrypt")
if(TARGET generated)
  install(DIRECTORY "${CMAKE_BINARY_DIR}/generated/man/" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")
  install(DIRECTORY "${CMAKE_BINARY_DIR}/generated/completion/bash/" DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions")
  install(DIRECTORY "${CMAKE_BINARY_DIR}/generated/completion/zsh/" DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions")
  install(DIRECTORY "${CMAKE_BINARY_DIR}/generated/completion/fish/" DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d")
endif()
install(FILES README.md docs/format.md docs/threat-model.md docs/api.md docs/ep-authors.md DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}" RENAME copyright)
install(DIRECTORY examples DESTINATION "${CMAKE_INSTALL_DOCDIR}" FILES_MATCHING PATTERN "*.c" PATTERN "*.cpp" PATTERN "*.h")
