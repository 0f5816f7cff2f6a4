# Interface targets that carry warnings, sanitizers and library-wide definitions to every target.
add_library(skein_flags INTERFACE)
target_include_directories(skein_flags INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/src)
set(warnings -Wall -Wextra -Wnon-virtual-dtor -Wconversion -Wno-sign-conversion -fno-omit-frame-pointer)
if(SKEIN_HERE)  # for those who run it: warnings take a twelfth of the compile time
  set(warnings -w -fno-omit-frame-pointer)
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND warnings -Wshadow=local -Wno-maybe-uninitialized)  # GCC 12 is wrong about std::variant
else()
  list(APPEND warnings -Wno-deprecated-declarations)  # Clang warns about std::stable_sort of libstdc++ 12
endif()
target_compile_options(skein_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:${warnings}>)
if(SKEIN_WERROR)
  target_compile_options(skein_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
# Checks of the standard library: indexes, empty optionals, iterators of another container.
if(NOT CMAKE_BUILD_TYPE STREQUAL "Release")
  target_compile_definitions(skein_flags INTERFACE _GLIBCXX_ASSERTIONS)
endif()
# Every target gets these definitions: a file without them would break the one-definition rule of Asio and Beast.
target_compile_definitions(skein_flags INTERFACE BOOST_ASIO_SEPARATE_COMPILATION BOOST_BEAST_SEPARATE_COMPILATION
                                                 BOOST_ASIO_NO_DEPRECATED BOOST_TEST_DYN_LINK)

# Linking the tests with GNU ld takes four times the CPU time of LLVM's linker.
if(NOT CMAKE_BUILD_TYPE STREQUAL "Release")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    find_program(SKEIN_LLD ld.lld HINTS /usr/lib/llvm-19/bin)
    set(lld --ld-path=${SKEIN_LLD})
  else()
    find_program(SKEIN_LLD ld.lld)
    set(lld -fuse-ld=lld)
  endif()
  if(SKEIN_LLD)
    target_link_options(skein_flags INTERFACE ${lld})
  endif()
endif()

# Hardening: memory errors end the program instead of being exploitable.
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT SKEIN_SANITIZE)
  set(hardening -fstack-protector-strong -fstack-clash-protection -D_FORTIFY_SOURCE=2)
  if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
    list(APPEND hardening -fcf-protection)
  endif()
  target_compile_options(skein_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:${hardening}>)
  target_link_options(skein_flags INTERFACE -Wl,-z,relro,-z,now)
endif()

if(SKEIN_SANITIZE STREQUAL "address")
  target_compile_options(skein_flags INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=undefined)
  target_link_options(skein_flags INTERFACE -fsanitize=address,undefined)
  if(NOT SKEIN_SANITIZE_POINTERS)
    # A third of the compile time. AddressSanitizer reports a null pointer that is used; the nightly run has them all.
    target_compile_options(skein_flags INTERFACE
      -fno-sanitize=null,alignment,object-size,vptr,nonnull-attribute,returns-nonnull-attribute
      $<$<CXX_COMPILER_ID:Clang>:-fsanitize-address-use-after-return=never>)
  endif()
  if(SKEIN_FUZZ)
    target_compile_options(skein_flags INTERFACE -fsanitize=fuzzer-no-link)
  endif()
elseif(SKEIN_SANITIZE STREQUAL "thread")
  target_compile_options(skein_flags INTERFACE -fsanitize=thread)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(skein_flags INTERFACE -Wno-tsan)  # TSan does not model atomic_thread_fence; our code does not use it
  endif()
  target_link_options(skein_flags INTERFACE -fsanitize=thread)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    # Tests replace operator new, which they cannot if the runtime is linked statically.
    execute_process(
      COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libclang_rt.tsan-${CMAKE_SYSTEM_PROCESSOR}.so
      OUTPUT_VARIABLE tsan_runtime OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    cmake_path(GET tsan_runtime PARENT_PATH tsan_folder)
    target_link_options(skein_flags INTERFACE -shared-libsan -Wl,-rpath,${tsan_folder})
  endif()
elseif(NOT SKEIN_SANITIZE STREQUAL "")
  message(FATAL_ERROR "SKEIN_SANITIZE: '${SKEIN_SANITIZE}' is unknown; accepted: empty, address, thread")
endif()
