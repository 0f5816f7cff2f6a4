# The folder that `./dev bundle` makes for another machine, by `cmake --install BUILD --component bundle`. It contains
# the program, the GPU back end in lib, beside it the shared libraries that a minimal system does not have, the demo
# model, and in tests and bench/gpu the programs that test a GPU. The C and C++ run-time libraries are those of the
# machine: the loader rejects older ones, and newer ones are compatible.
add_custom_target(skein_bundle_programs)

# skein_bundle(target folder): adds a program or library to the bundle. Targets that are not built by then are left out.
function(skein_bundle target folder)
  add_dependencies(skein_bundle_programs ${target})
  file(RELATIVE_PATH libraries /bundle/${folder} /bundle/lib)
  # The program in the build folder has the same RPATH. Otherwise CMake would reserve space with empty entries, and an
  # empty entry is the working directory, from which the loader would load libraries.
  set_target_properties(${target} PROPERTIES INSTALL_RPATH "$ORIGIN/${libraries}" BUILD_WITH_INSTALL_RPATH ON)
  # DT_RPATH instead of DT_RUNPATH, because it also applies to the dependencies of the libraries.
  target_link_options(${target} PRIVATE -Wl,--disable-new-dtags)
  install(TARGETS ${target}
          RUNTIME DESTINATION ${folder} COMPONENT bundle EXCLUDE_FROM_ALL OPTIONAL
          LIBRARY DESTINATION ${folder} COMPONENT bundle EXCLUDE_FROM_ALL OPTIONAL)
  set_property(GLOBAL APPEND PROPERTY skein_bundled $<TARGET_FILE:${target}>)
endfunction()

# Called after all calls of skein_bundle(). Libraries are copied as plain files under the names that programs load,
# because symbolic links often get lost when a folder is copied to another machine.
function(skein_finish_bundle)
  get_property(bundled GLOBAL PROPERTY skein_bundled)
  install(CODE "set(programs \"${bundled}\")" COMPONENT bundle EXCLUDE_FROM_ALL)
  install(CODE [[
    foreach(program IN LISTS programs)
      if(EXISTS ${program})
        list(APPEND present ${program})
      endif()
    endforeach()
    file(GET_RUNTIME_DEPENDENCIES EXECUTABLES ${present} RESOLVED_DEPENDENCIES_VAR libraries
         PRE_EXCLUDE_REGEXES "^lib(c|m|dl|rt|pthread|gcc_s|stdc\\+\\+)\\.so" "^ld-linux")
    set(folder "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/lib")
    file(MAKE_DIRECTORY ${folder})
    foreach(library IN LISTS libraries)
      get_filename_component(name ${library} NAME)
      message(STATUS "Installing: ${folder}/${name}")
      file(REAL_PATH ${library} library)
      file(COPY_FILE ${library} ${folder}/${name})
    endforeach()
  ]] COMPONENT bundle EXCLUDE_FROM_ALL)
  install(DIRECTORY models/demo DESTINATION share/skein COMPONENT bundle EXCLUDE_FROM_ALL
          FILES_MATCHING REGEX "/(skein-demo.*|README.md)$" PATTERN train EXCLUDE)
  install(DIRECTORY bench/gpu DESTINATION bench USE_SOURCE_PERMISSIONS COMPONENT bundle EXCLUDE_FROM_ALL
          PATTERN __pycache__ EXCLUDE)
  install(DIRECTORY tests/golden DESTINATION tests COMPONENT bundle EXCLUDE_FROM_ALL FILES_MATCHING PATTERN "*.py"
          PATTERN __pycache__ EXCLUDE)
endfunction()
