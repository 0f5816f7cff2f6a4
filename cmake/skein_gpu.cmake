# GPU back ends: SKEIN_CUDA needs nvcc, SKEIN_HIP needs hipcc; each is on if its compiler is found. With sanitizers only
# the emulator is built.
find_program(SKEIN_NVCC nvcc HINTS /usr/local/cuda/bin)
find_program(SKEIN_HIPCC hipcc)
set(can_cuda OFF)
set(can_hip OFF)
if(SKEIN_SANITIZE STREQUAL "")
  if(SKEIN_NVCC)
    set(can_cuda ON)
  endif()
  if(SKEIN_HIPCC)
    set(can_hip ON)
  endif()
endif()
option(SKEIN_CUDA "Build the CUDA back end, libskein_cuda.so" ${can_cuda})
option(SKEIN_HIP "Build the HIP back end for AMD GPUs, libskein_hip.so" ${can_hip})
set(SKEIN_CUDA_TARGETS "90a" CACHE STRING
    "GPUs to compile libskein_cuda.so for, such as 80;86;90a; +PTX adds later ones; 90a-virtual: PTX alone")
set(SKEIN_EMULATOR_WIDTHS "32;64" CACHE STRING "Warp widths that the tests emulate: 32, or 32;64")
option(SKEIN_GPU_OPTIMIZE "Optimise GPU code; without it the library compiles in a quarter of the time and is slow" ON)
set(SKEIN_HIP_TARGETS "" CACHE STRING
    "AMD GPUs to compile libskein_hip.so for, such as gfx90a;gfx1100; empty: all below that hipcc can compile for")
set(skein_hip_usual_targets gfx90a gfx942 gfx1030 gfx1100 gfx1101 gfx1102 gfx1200 gfx1201)

if(SKEIN_CUDA)
  set(CMAKE_CUDA_COMPILER ${SKEIN_NVCC})
  set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})  # both sides of the plug-in interface use one compiler
  set(CMAKE_CUDA_ARCHITECTURES OFF)  # set explicitly, see skein_cuda_gencode
  enable_language(CUDA)
  # CMake 3.25 does not know that nvcc supports C++20.
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  find_package(CUDAToolkit REQUIRED)
  if(NOT SKEIN_GPU_OPTIMIZE)  # the host's part of kernels
    set(CMAKE_CUDA_FLAGS_RELWITHDEBINFO "-O1 -DNDEBUG")
  endif()
endif()

# skein_cuda_gencode(variable): sets the options of nvcc for SKEIN_CUDA_TARGETS and SKEIN_GPU_OPTIMIZE.
function(skein_cuda_gencode variable)
  set(options "")
  foreach(target IN LISTS SKEIN_CUDA_TARGETS)
    if(target STREQUAL "+PTX")
      list(APPEND options -gencode=arch=compute_${last},code=compute_${last})
    elseif(target MATCHES "^(.+)-virtual$")  # the driver compiles the rest when it loads the library
      list(APPEND options -gencode=arch=compute_${CMAKE_MATCH_1},code=compute_${CMAKE_MATCH_1})
    else()
      list(APPEND options -gencode=arch=compute_${target},code=sm_${target})
      set(last ${target})
    endif()
  endforeach()
  if(NOT SKEIN_GPU_OPTIMIZE)
    list(APPEND options "SHELL:-Xcicc -O1 -Xptxas -O0")
  endif()
  set(${variable} ${options} PARENT_SCOPE)
endfunction()

if(SKEIN_HIP)
  # HIP is where hipcc is. CMake's own search for it does not find ROCm where Debian installs it.
  file(REAL_PATH ${SKEIN_HIPCC} hipcc)
  get_filename_component(hip_root ${hipcc} DIRECTORY)
  get_filename_component(hip_root ${hip_root} DIRECTORY)
  find_path(SKEIN_HIP_INCLUDE hip/hip_runtime.h HINTS ${hip_root}/include REQUIRED)
  find_library(SKEIN_HIP_RUNTIME amdhip64 HINTS ${hip_root}/lib REQUIRED)

  # What hipcc can compile for: its compiler may not know a GPU, or its device library may lack it.
  if(NOT DEFINED CACHE{skein_hip_known_targets} AND NOT SKEIN_HIP_TARGETS)
    set(probe ${CMAKE_BINARY_DIR}/hip_probe.hip)
    file(WRITE ${probe} "#include <hip/hip_runtime.h>\n__global__ void probe(float* at) { *at = expf(*at); }\n")
    set(known "")
    foreach(target IN LISTS skein_hip_usual_targets)
      execute_process(COMMAND ${SKEIN_HIPCC} -x hip --offload-arch=${target} -c ${probe} -o ${probe}.o
                      RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
      if(failed EQUAL 0)
        list(APPEND known ${target})
      endif()
    endforeach()
    set(skein_hip_known_targets "${known}" CACHE INTERNAL "The usual AMD GPUs that hipcc can compile for")
  endif()
  set(skein_hip_targets ${SKEIN_HIP_TARGETS})
  if(NOT skein_hip_targets)
    set(skein_hip_targets ${skein_hip_known_targets})
  endif()
  if(NOT skein_hip_targets)
    message(FATAL_ERROR "hipcc (${SKEIN_HIPCC}) compiles for none of ${skein_hip_usual_targets}; set SKEIN_HIP_TARGETS, "
                        "or SKEIN_HIP=OFF")
  endif()
endif()

# skein_hip_object(variable path): appends the object of a source compiled by hipcc to the list. CMake's HIP language
# does not find ROCm where Debian installs it.
function(skein_hip_object variable path)
  set(flags -x hip -std=c++20 $<IF:$<BOOL:${SKEIN_GPU_OPTIMIZE}>,-O3,-O0> -fPIC -fvisibility=hidden -ffp-contract=off
            -I${CMAKE_SOURCE_DIR} -I${CMAKE_SOURCE_DIR}/src)
  foreach(target IN LISTS skein_hip_targets)
    list(APPEND flags --offload-arch=${target})
  endforeach()
  cmake_path(GET path FILENAME name)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/hip)
  set(object ${folder}/${name}.o)
  add_custom_command(OUTPUT ${object}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${folder}
    COMMAND ${CMAKE_CXX_COMPILER_LAUNCHER} ${SKEIN_HIPCC} ${flags} -MD -MF ${object}.d -MT ${object}
            -c ${path} -o ${object}
    DEPENDS ${path} DEPFILE ${object}.d COMMENT "Building HIP object ${name}.o" VERBATIM)
  set(${variable} ${${variable}} ${object} PARENT_SCOPE)
endfunction()

# SKEIN_BUILD_ID: what the program and a back end must have in common, the compiler and the headers of their interface.
set(boundary kernels/gpu/plugin.hpp kernels/gpu/types/device_properties.hpp kernels/gpu/machine_limits.hpp
             kernels/gpu/tick/tick_runner.hpp kernels/gpu/types/gpu_options.hpp kernels/gpu/types/sampler_types.hpp
             kernels/gpu/types/elements.hpp kernels/weights/model_weights.hpp
             kernels/weights/rwkv4.hpp kernels/weights/rwkv5.hpp kernels/weights/rwkv6.hpp kernels/weights/rwkv7.hpp
             kernels/weights/tensor_spec.hpp kernels/weights/weight_format.hpp kernels/weights/weight_plan.hpp kernels/stages.hpp src/base/tensor.hpp
             src/base/error.hpp src/base/result.hpp src/base/ids.hpp)
set(contents "")
foreach(header IN LISTS boundary)
  file(SHA256 ${CMAKE_SOURCE_DIR}/${header} hash)
  string(APPEND contents ${hash})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${header})
endforeach()
string(SHA256 contents "${contents}")
string(SUBSTRING ${contents} 0 12 contents)
set(SKEIN_BUILD_ID "${PROJECT_VERSION} ${contents} ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} ${SKEIN_SANITIZE}")
string(STRIP "${SKEIN_BUILD_ID}" SKEIN_BUILD_ID)
