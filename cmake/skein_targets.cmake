# Libraries that are optimised in the sanitizer builds, too: without it their tests take many times as long.
set(skein_computing_libraries "kernel|emulator|engine|model|sampling|tokenizer|automata|base|device|storage|persistence")

# Libraries that are optimised as in a release in SKEIN_HERE, too. For the others it would take a quarter of the time to
# compile them, and what they do takes little of the time of a token. Models load somewhat slower.
set(skein_fast_libraries "kernel|emulator|sampling")

# Libraries with compiler options of their own, which cannot use the common precompiled headers.
set(skein_own_options "kernel|emulator|sampling")

# Half of the time to compile a file goes into headers; the files of one unit share it. A few large units take the least
# time in total, and many smaller ones end earlier where there are many cores.
cmake_host_system_information(RESULT skein_cores QUERY NUMBER_OF_LOGICAL_CORES)
set(skein_unit_files 50)
if(skein_cores GREATER 4)
  set(skein_unit_files 8)
endif()
function(skein_unity name)
  set_target_properties(${name} PROPERTIES UNITY_BUILD ${SKEIN_UNITY} UNITY_BUILD_BATCH_SIZE ${skein_unit_files})
endfunction()

# Without times in Clang's precompiled headers, ccache finds what uses them after a new checkout.
set(skein_without_times "$<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>")

# skein_precompiled(name OPTION...): the standard headers, compiled once for all libraries with these compiler options.
function(skein_precompiled name)
  add_library(${name} STATIC EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/src/base/precompiled.cpp)
  target_link_libraries(${name} PRIVATE skein_flags)
  target_compile_options(${name} PRIVATE ${skein_without_times} ${ARGN})
  target_precompile_headers(${name} PRIVATE ${CMAKE_SOURCE_DIR}/src/base/precompiled.hpp)
endfunction()

# skein_library(name SOURCES ... DEPS ...): the static library of one folder. Without sources it is header-only.
function(skein_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPS" ${ARGN})
  if(arg_SOURCES)
    add_library(${name} STATIC ${arg_SOURCES})
    target_link_libraries(${name} PUBLIC skein_flags ${arg_DEPS})
    skein_unity(${name})
    set(headers skein_headers)
    # Optimising the sanitizer's checks takes up to half of the compile time.
    if(SKEIN_SANITIZE AND NOT name MATCHES "${skein_computing_libraries}")
      target_compile_options(${name} PRIVATE -O0)
      set(headers skein_plain_headers)
    endif()
    if(SKEIN_HERE AND NOT name MATCHES "${skein_fast_libraries}")
      target_compile_options(${name} PRIVATE -O1)
      set(headers skein_light_headers)
    endif()
    # A missing #include shows in a build without unity, so precompiled headers are left to unity builds, too.
    if(SKEIN_UNITY AND NOT name MATCHES "${skein_own_options}")
      target_precompile_headers(${name} REUSE_FROM ${headers})
    endif()
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE skein_flags ${arg_DEPS})
  endif()
endfunction()

# skein_test(name [THREADS] SOURCES ... DEPS ... [LABELS ...]): one Boost.Test program; the sources contain the cases, and
# tests/support/test_main.cpp contains main. A test that must run alone or takes long has LABELS slow; the others are
# left to the sanitizer builds if SKEIN_SANITIZED_TESTS is off. With THREADS, several threads run our code in it: the
# others are slow to ThreadSanitizer. If SKEIN_SLOW_TESTS is off, a sanitizer build leaves out all that is slow. A folder
# whose tests compute a lot themselves sets skein_tests_compute. With SKEIN_UNITY the sources of a program are compiled as
# one, so names in them must be unique within the program.
function(skein_test name)
  cmake_parse_arguments(arg "THREADS" "" "SOURCES;DEPS;LABELS" ${ARGN})
  if(SKEIN_SANITIZE STREQUAL "thread" AND NOT arg_THREADS AND NOT arg_LABELS)
    set(arg_LABELS slow)
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE skein_test_support ${arg_DEPS})
  skein_unity(${name})
  set(headers skein_test_headers)
  if(SKEIN_SANITIZE AND NOT skein_tests_compute)
    target_compile_options(${name} PRIVATE -O0)
    set(headers skein_plain_test_headers)
  endif()
  target_precompile_headers(${name} REUSE_FROM ${headers})
  if(skein_sanitized_room AND NOT SKEIN_SANITIZED_TESTS AND NOT arg_LABELS)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL TRUE)
    set(arg_LABELS sanitized)
  endif()
  skein_left_to_the_night(left_out ${arg_LABELS})
  if(left_out)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL TRUE)
  endif()
  add_test(NAME ${name} COMMAND ${name} --color_output=no --log_level=error --report_level=short)
  set(limit 600)
  if(SKEIN_SANITIZE)
    set(limit 1800)
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${limit} LABELS "${arg_LABELS}")
endfunction()

# skein_left_to_the_night(variable LABEL...): whether this build does not need the program of a test with these labels.
function(skein_left_to_the_night variable)
  set(${variable} FALSE PARENT_SCOPE)
  if("nightly" IN_LIST ARGN AND NOT (SKEIN_SANITIZED_TESTS AND SKEIN_SLOW_TESTS))
    set(${variable} TRUE PARENT_SCOPE)
  elseif(SKEIN_SANITIZE AND "slow" IN_LIST ARGN AND NOT SKEIN_SLOW_TESTS)
    set(${variable} TRUE PARENT_SCOPE)
  endif()
endfunction()

# skein_bench(name SOURCES ... DEPS ...): one Google Benchmark program.
function(skein_bench name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE skein_flags benchmark::benchmark_main ${arg_DEPS})
endfunction()
