# Debian packages by cpack: skein, and skein-cuda and skein-hip if those GPU back ends are built. `./dev package` makes
# them from a release build, whose target skein_packaged builds all their contents. Files of the folder packaging are
# included unchanged; the program writes its manual pages and completions.
set(SKEIN_MAINTAINER "The Skein project <skein@example.org>"
    CACHE STRING "Maintainer of packages of this build: NAME <ADDRESS>")
set(doc ${CMAKE_INSTALL_DATADIR}/doc)
set(man ${CMAKE_INSTALL_MANDIR})
set(pages ${CMAKE_BINARY_DIR}/packaging)
file(MAKE_DIRECTORY ${pages})

# skein_compressed(file COMMAND ...): writes the output of a command to a compressed file in the build folder, without a
# timestamp, so that the same contents give the same file.
function(skein_compressed file)
  cmake_parse_arguments(arg "" "" "COMMAND;DEPENDS" ${ARGN})
  string(JOIN " " command ${arg_COMMAND})
  add_custom_command(OUTPUT ${pages}/${file} DEPENDS ${arg_DEPENDS}
    COMMAND sh -c "${command} | gzip -9n > ${pages}/${file}" COMMENT "Writing ${file}" VERBATIM)
endfunction()
skein_compressed(skein.1.gz COMMAND $<TARGET_FILE:skein> manual skein.1 DEPENDS skein)
skein_compressed(skein.toml.5.gz COMMAND $<TARGET_FILE:skein> manual skein.toml.5 DEPENDS skein)
configure_file(${CMAKE_SOURCE_DIR}/packaging/changelog.in ${pages}/changelog @ONLY)
skein_compressed(changelog.gz COMMAND cat ${pages}/changelog DEPENDS ${pages}/changelog)

# skein_completion(shell folder name): writes a completion and installs it where that shell looks for it.
function(skein_completion shell folder name)
  add_custom_command(OUTPUT ${pages}/${shell} DEPENDS skein
    COMMAND sh -c "$<TARGET_FILE:skein> manual ${shell} > ${pages}/${shell}"
    COMMENT "Writing the completion of ${shell}" VERBATIM)
  install(FILES ${pages}/${shell} DESTINATION ${CMAKE_INSTALL_DATADIR}/${folder} RENAME ${name} COMPONENT program)
endfunction()
skein_completion(bash bash-completion/completions skein)
skein_completion(zsh zsh/vendor-completions _skein)
skein_completion(fish fish/vendor_completions.d skein.fish)
add_custom_target(skein_packaged ALL DEPENDS ${pages}/skein.1.gz ${pages}/skein.toml.5.gz ${pages}/changelog.gz
                                             ${pages}/bash ${pages}/zsh ${pages}/fish)

install(FILES ${pages}/skein.1.gz DESTINATION ${man}/man1 COMPONENT program)
install(FILES ${pages}/skein.toml.5.gz DESTINATION ${man}/man5 COMPONENT program)

# Files for packages only; they do not belong in /usr/local.
function(skein_for_packages component)
  install(${ARGN} COMPONENT ${component} EXCLUDE_FROM_ALL)
endfunction()
skein_for_packages(program FILES config/skein.toml DESTINATION /etc/skein)
skein_for_packages(program FILES systemd/skein.service systemd/skein.socket DESTINATION /lib/systemd/system)
skein_for_packages(program FILES systemd/skein.sysusers DESTINATION lib/sysusers.d RENAME skein.conf)
skein_for_packages(program FILES systemd/skein.tmpfiles DESTINATION lib/tmpfiles.d RENAME skein.conf)
skein_for_packages(program FILES packaging/skein/copyright ${pages}/changelog.gz DESTINATION ${doc}/skein)
skein_for_packages(program FILES README.md DESTINATION ${doc}/skein)
install(DIRECTORY docs DESTINATION ${doc}/skein COMPONENT program EXCLUDE_FROM_ALL
        FILES_MATCHING PATTERN "*.md" PATTERN openapi.yaml PATTERN design EXCLUDE PATTERN howto EXCLUDE)
skein_for_packages(cuda FILES packaging/cuda/copyright ${pages}/changelog.gz DESTINATION ${doc}/skein-cuda)
skein_for_packages(hip FILES packaging/hip/copyright ${pages}/changelog.gz DESTINATION ${doc}/skein-hip)

# The libraries of the bundle are beside its program; a package uses those of the system.
install(CODE [[file(RPATH_REMOVE FILE "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/bin/skein")]] COMPONENT program)
if(SKEIN_CUDA)
  add_dependencies(skein_packaged skein_cuda)
  install(CODE [[file(RPATH_REMOVE FILE "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/lib/skein/libskein_cuda.so")]]
          COMPONENT cuda)
endif()
if(SKEIN_HIP)
  add_dependencies(skein_packaged skein_hip)
  install(CODE [[file(RPATH_REMOVE FILE "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/lib/skein/libskein_hip.so")]]
          COMPONENT hip)
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "${SKEIN_MAINTAINER}")
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/package)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ
                                                WORLD_EXECUTE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_COMPONENTS_ALL program)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME skein)
set(CPACK_DEBIAN_PROGRAM_DESCRIPTION "inference server for RWKV language models
Skein serves RWKV-4 to RWKV-7 models to clients of the OpenAI API over HTTP,
server-sent events and WebSocket, on CPUs and, with skein-cuda, on NVIDIA GPUs.
It keeps conversations as states of constant size, in memory and on disk. A
small model is included.")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_DEPENDS
    "systemd | systemd-standalone-sysusers | systemd-sysusers, systemd | systemd-standalone-tmpfiles | systemd-tmpfiles")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SUGGESTS "skein-cuda, skein-hip")
set(control ${CMAKE_SOURCE_DIR}/packaging/skein)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_CONTROL_EXTRA ${control}/conffiles ${control}/triggers ${control}/postinst
                                               ${control}/prerm ${control}/postrm)

if(SKEIN_CUDA)
  list(APPEND CPACK_COMPONENTS_ALL cuda)
  set(CPACK_DEBIAN_CUDA_PACKAGE_NAME skein-cuda)
  set(CPACK_DEBIAN_CUDA_DESCRIPTION "inference server for RWKV language models: NVIDIA GPUs
The back end of Skein that runs models on NVIDIA GPUs. It needs NVIDIA's driver,
but no CUDA toolkit.")
  set(CPACK_DEBIAN_CUDA_PACKAGE_DEPENDS "skein (= ${PROJECT_VERSION})")
endif()
if(SKEIN_HIP)
  list(APPEND CPACK_COMPONENTS_ALL hip)
  set(CPACK_DEBIAN_HIP_PACKAGE_NAME skein-hip)
  set(CPACK_DEBIAN_HIP_DESCRIPTION "inference server for RWKV language models: AMD GPUs
The back end of Skein that runs models on AMD GPUs. It needs AMD's driver, which
Linux contains, and the HIP runtime. It has been compiled and tested in an
emulator, and has not run on an AMD GPU yet.")
  set(CPACK_DEBIAN_HIP_PACKAGE_DEPENDS "skein (= ${PROJECT_VERSION})")
endif()
include(CPack)
