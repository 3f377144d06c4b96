// Reads tests/data/schedules.
#pragma once

#include <string>
#include <vector>

#include "tessera/core/base/document.h"
#include "tessera/train/schedule/schedule_template.h"

namespace tessera::train::testing {

struct Vector {
  std::string file;
  Template schedule;
  int group;  ///< 0 = the number of ranks
};

inline const std::vector<Vector>& vectors() {
  static const std::vector<Vector> all = {
      {"1f1b_p2_m4", Template::one_f_one_b, 0},
      {"1f1b_p4_m2", Template::one_f_one_b, 0},
      {"1f1b_p4_m8", Template::one_f_one_b, 0},
      {"1f1b_ovl_p4_m8", Template::interleaved_overlap, 0},
      {"interleaved_p2_v2_m4", Template::interleaved, 0},
      {"interleaved_p2_v2_m5_N3", Template::interleaved, 3},
      {"interleaved_p4_v2_m4", Template::interleaved, 0},
      {"interleaved_p4_v2_m8", Template::interleaved, 0},
      {"interleaved_p4_v2_m8_N8", Template::interleaved, 8},
      {"interleaved_p4_v2_m12_N6", Template::interleaved, 6},
      {"interleaved_ovl_p2_v2_m4", Template::interleaved_overlap, 0},
      {"interleaved_ovl_p4_v2_m8", Template::interleaved_overlap, 0},
  };
  return all;
}

inline Document read_vector(const std::string& name) {
  return Document::read(std::string(TESSERA_TEST_DATA) + "/schedules/" + name + ".json").value();
}
inline std::int32_t integer_at(Cursor cursor) {
  return static_cast<std::int32_t>(cursor.integer(-1 << 20, 1 << 20).value());
}
inline std::int32_t integer_of(Cursor cursor, std::string_view key) {
  return integer_at(cursor.find(key).value());
}

inline TemplateSizes sizes_of(Cursor root, int group) {
  return {.pp = integer_of(root, "ranks"),
          .vp = integer_of(root, "chunks_per_rank"),
          .microbatches = integer_of(root, "microbatches"),
          .group = group};
}

}  // namespace tessera::train::testing
