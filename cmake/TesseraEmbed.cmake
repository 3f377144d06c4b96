# Puts a data file into a library, so that the programs need no path at run time.
#   tessera_embed(tessera_core_cost data/kernels/measured.csv measured_csv)
# gives `std::string_view tessera::embedded::measured_csv()`, declared by the caller in its own .cc.

function(tessera_embed target file symbol)
  set(path "${PROJECT_SOURCE_DIR}/${file}")
  set(source "${CMAKE_CURRENT_BINARY_DIR}/embedded_${symbol}.cc")
  file(CONFIGURE OUTPUT "${source}" CONTENT [[
#include <cstddef>
#include <string_view>
asm(".section .rodata\n.balign 16\n"
    ".global tessera_embedded_@symbol@_begin\n.global tessera_embedded_@symbol@_end\n"
    "tessera_embedded_@symbol@_begin:\n.incbin \"@path@\"\n"
    "tessera_embedded_@symbol@_end:\n.byte 0\n.previous\n");
extern "C" const char tessera_embedded_@symbol@_begin[];
extern "C" const char tessera_embedded_@symbol@_end[];
namespace tessera::embedded {
std::string_view @symbol@();
std::string_view @symbol@() {
  return {tessera_embedded_@symbol@_begin,
          static_cast<std::size_t>(tessera_embedded_@symbol@_end - tessera_embedded_@symbol@_begin)};
}
}  // namespace tessera::embedded
]] @ONLY)
  set_source_files_properties("${source}" PROPERTIES OBJECT_DEPENDS "${path}")
  target_sources(${target} PRIVATE "${source}")
endfunction()
