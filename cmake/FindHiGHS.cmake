# HiGHS as the Python package highsbox ships it: library and headers in one folder, which the package names.
# Debian 12 has no HiGHS, and the CMake files inside highsbox point at a folder that is not there.
#
# Gives HiGHS::HiGHS. Its C++ classes use the old std::string ABI and do not link: use the C API.
# HiGHS_ROOT, given or from an earlier run, is used as it is.
if(NOT HiGHS_ROOT OR NOT EXISTS "${HiGHS_ROOT}")
  unset(HiGHS_ROOT CACHE)
  # Of a previous place, which may be gone.
  unset(HiGHS_INCLUDE_DIR CACHE)
  unset(HiGHS_LIBRARY CACHE)
  find_program(HiGHS_PYTHON NAMES python3 python)
  mark_as_advanced(HiGHS_PYTHON)
  foreach(python "${PROJECT_SOURCE_DIR}/.venv/bin/python" "${HiGHS_PYTHON}")
    if(NOT EXISTS "${python}")
      continue()
    endif()
    execute_process(COMMAND "${python}" -c "import highsbox; print(highsbox.highs_dist_dir())"
                    OUTPUT_VARIABLE prefix OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
    if(NOT failed AND EXISTS "${prefix}")
      set(HiGHS_ROOT "${prefix}" CACHE PATH "folder with HiGHS' include and lib")
      break()
    endif()
  endforeach()
endif()

find_path(HiGHS_INCLUDE_DIR interfaces/highs_c_api.h HINTS "${HiGHS_ROOT}" PATH_SUFFIXES include/highs highs)
find_library(HiGHS_LIBRARY highs HINTS "${HiGHS_ROOT}" PATH_SUFFIXES lib)
mark_as_advanced(HiGHS_INCLUDE_DIR HiGHS_LIBRARY)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  HiGHS REQUIRED_VARS HiGHS_LIBRARY HiGHS_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "No Python here has the package highsbox: run tools/setup.sh, or set HiGHS_ROOT.")
if(HiGHS_FOUND AND NOT TARGET HiGHS::HiGHS)
  add_library(HiGHS::HiGHS SHARED IMPORTED)
  set_target_properties(HiGHS::HiGHS PROPERTIES IMPORTED_LOCATION "${HiGHS_LIBRARY}"
                        INTERFACE_INCLUDE_DIRECTORIES "${HiGHS_INCLUDE_DIR}")
endif()
