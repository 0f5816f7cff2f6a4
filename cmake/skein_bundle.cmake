# What `./dev bundle` puts into a folder that runs on another machine, by `cmake --install BUILD --component bundle`: the
# program, the GPU back end in lib, the shared libraries that a bare system does not have beside it, the demo model, and
# in tests and bench/gpu what tries out a GPU. The C and C++ run-time libraries stay those of the machine: older ones there
# are refused by the loader, newer ones are right.
add_custom_target(skein_bundle_programs)

# skein_bundle(target folder): a program or library of the bundle. What is not built when it is made is left out.
function(skein_bundle target folder)
  add_dependencies(skein_bundle_programs ${target})
  file(RELATIVE_PATH libraries /bundle/${folder} /bundle/lib)
  # The build folder's program has the same entry: else CMake leaves room for it with empty parts, and an empty part is
  # the working directory, from which the loader would take libraries.
  set_target_properties(${target} PROPERTIES INSTALL_RPATH "$ORIGIN/${libraries}" BUILD_WITH_INSTALL_RPATH ON)
  # As the older kind of entry, which also counts for what the libraries need themselves.
  target_link_options(${target} PRIVATE -Wl,--disable-new-dtags)
  install(TARGETS ${target}
          RUNTIME DESTINATION ${folder} COMPONENT bundle EXCLUDE_FROM_ALL OPTIONAL
          LIBRARY DESTINATION ${folder} COMPONENT bundle EXCLUDE_FROM_ALL OPTIONAL)
  set_property(GLOBAL APPEND PROPERTY skein_bundled $<TARGET_FILE:${target}>)
endfunction()

# Called when everything has been named. Libraries are copied as plain files under the name that programs ask for: links
# get lost on many ways between machines.
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
