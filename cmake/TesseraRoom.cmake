# A room of the house: one static library per folder of src/, named after the folder.
#   tessera_room(core/model DEPENDS core/base)            -> library tessera_core_model
# DEPENDS lists the rooms below it. tools/check_arrows.py holds the same arrows against the #include lines.

add_library(tessera_options INTERFACE)
target_include_directories(tessera_options INTERFACE "${PROJECT_SOURCE_DIR}/include")
target_compile_options(tessera_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
                                                 -Wno-sign-conversion -Wnon-virtual-dtor
                                                 # designated initialisers leave fields out on purpose
                                                 -Wno-missing-field-initializers
                                                 # GCC 12 reports impossible sizes and overlaps inside std::string
                                                 $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
                                                 $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow>
                                                 $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds>
                                                 $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)

# Headers that nearly every file of a kind includes, parsed once: they are most of the build time.
function(tessera_precompile target)
  add_library(${target} OBJECT "${PROJECT_SOURCE_DIR}/cmake/empty.cc")
  target_link_libraries(${target} PRIVATE tessera_options fmt::fmt)
  target_precompile_headers(${target} PRIVATE ${ARGN})
endfunction()
tessera_precompile(tessera_pch <algorithm> <array> <cstdint> <expected> <map> <memory> <optional> <span> <string>
                   <string_view> <utility> <variant> <vector> <fmt/format.h>)

function(tessera_target_name room out)
  string(REPLACE "/" "_" name "${room}")
  set(${out} "tessera_${name}" PARENT_SCOPE)
endfunction()

function(tessera_room room)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LIBRARIES;PRIVATE_LIBRARIES" ${ARGN})
  tessera_target_name(${room} target)
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/${room}/*.cc")
  if(NOT sources)
    set(sources "${PROJECT_SOURCE_DIR}/cmake/empty.cc")
  endif()
  add_library(${target} STATIC ${sources})
  target_link_libraries(${target} PUBLIC tessera_options ${ARG_LIBRARIES} PRIVATE ${ARG_PRIVATE_LIBRARIES})
  target_precompile_headers(${target} REUSE_FROM tessera_pch)
  foreach(dependency IN LISTS ARG_DEPENDS)
    tessera_target_name(${dependency} library)
    target_link_libraries(${target} PUBLIC ${library})
  endforeach()
endfunction()

# The tests of one room: tests/<room>/*_test.cc in one program, which ctest lists test by test.
function(tessera_room_tests room)
  cmake_parse_arguments(ARG "" "" "DEPENDS" ${ARGN})
  tessera_target_name(${room} library)
  string(REPLACE "/" "_" name "${room}")
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/${room}/*_test.cc")
  if(NOT sources)
    return()
  endif()
  add_executable(test_${name} ${sources})
  target_link_libraries(test_${name} PRIVATE ${library} GTest::gmock GTest::gtest_main)
  # Tests are compiled more often than they run.
  target_compile_options(test_${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  target_precompile_headers(test_${name} REUSE_FROM tessera_test_pch)
  foreach(dependency IN LISTS ARG_DEPENDS)
    tessera_target_name(${dependency} extra)
    target_link_libraries(test_${name} PRIVATE ${extra})
  endforeach()
  target_include_directories(test_${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  target_compile_definitions(test_${name} PRIVATE
    TESSERA_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data"
    TESSERA_SHARED="${PROJECT_SOURCE_DIR}/../shared"
    TESSERA_SOURCE="${PROJECT_SOURCE_DIR}")
  gtest_discover_tests(test_${name} DISCOVERY_MODE PRE_TEST PROPERTIES TIMEOUT 300)
endfunction()
