# skein_library(name SOURCES ... DEPS ...): the static library of one folder. Without sources it is header-only.
function(skein_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPS" ${ARGN})
  if(arg_SOURCES)
    add_library(${name} STATIC ${arg_SOURCES})
    target_link_libraries(${name} PUBLIC skein_flags ${arg_DEPS})
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE skein_flags ${arg_DEPS})
  endif()
endfunction()

# skein_test(name SOURCES ... DEPS ... [LABELS ...] [NIGHTLY]): one Boost.Test program; the sources hold the cases,
# tests/support/test_main.cpp holds main. A test that must run alone or long says so with LABELS slow. A folder whose tests
# themselves compute a lot sets skein_tests_compute.
function(skein_test name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPS;LABELS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE skein_test_support ${arg_DEPS})
  # To optimise the checks of undefined behaviour is half of the time to compile.
  if(SKEIN_SANITIZE STREQUAL "address" AND NOT skein_tests_compute)
    target_compile_options(${name} PRIVATE -O0)
  endif()
  add_test(NAME ${name} COMMAND ${name} --color_output=no --log_level=error --report_level=short)
  set_tests_properties(${name} PROPERTIES TIMEOUT 600 LABELS "${arg_LABELS}")
endfunction()

# skein_bench(name SOURCES ... DEPS ...): one Google Benchmark program.
function(skein_bench name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE skein_flags benchmark::benchmark_main ${arg_DEPS})
endfunction()
