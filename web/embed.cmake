# cmake -D FOLDER=... -D "FILES=a;b" -D OUT=page_files.cpp [-D FUNCTION=page_files] -P embed.cmake: writes the files in
# FOLDER as C++ arrays, with their content types and hashes.
if(NOT DEFINED FUNCTION)
  set(FUNCTION page_files)
endif()
set(arrays "")
set(rows "")
set(number 0)
foreach(path IN LISTS FILES)
  get_filename_component(ending ${path} LAST_EXT)
  if(ending STREQUAL ".html")
    set(type "text/html; charset=utf-8")
  elseif(ending STREQUAL ".css")
    set(type "text/css; charset=utf-8")
  elseif(ending STREQUAL ".js")
    set(type "text/javascript; charset=utf-8")
  elseif(ending STREQUAL ".svg")
    set(type "image/svg+xml")
  elseif(ending STREQUAL ".json")
    set(type "application/json")
  else()
    message(FATAL_ERROR "embed.cmake: no content type is known for ${path}")
  endif()
  file(READ ${FOLDER}/${path} hex HEX)
  file(SHA256 ${FOLDER}/${path} hash)
  string(SUBSTRING ${hash} 0 32 hash)
  string(REGEX REPLACE "(................................................................)" "\\1\n" hex "${hex}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," hex "${hex}")
  string(APPEND arrays "constexpr char file_${number}[] = {\n${hex}};\n")
  string(APPEND rows "    {\"${path}\", \"${type}\", \"\\\"${hash}\\\"\", {file_${number}, sizeof file_${number}}},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE ${OUT} "// Made by web/embed.cmake.
#include \"web/page_files.hpp\"

namespace skein::web {
namespace {
${arrays}
constexpr page_file all[] = {
${rows}};
}  // namespace

std::span<const page_file> ${FUNCTION}() { return all; }

}  // namespace skein::web
")
