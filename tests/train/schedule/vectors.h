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
  int group;  ///< 0 = the default
};

/// Orders to be met action by action.
inline const std::vector<Vector>& vectors() {
  static const std::vector<Vector> all = {
      {"1f1b_p2_m4", Template::one_f_one_b, 0},
      {"1f1b_p4_m2", Template::one_f_one_b, 0},
      {"1f1b_p4_m8", Template::one_f_one_b, 0},
      {"1f1b_ovl_p4_m8", Template::one_f_one_b_overlap, 0},
      {"interleaved_p2_v2_m4", Template::interleaved, 0},
      {"interleaved_p2_v2_m5_N3", Template::interleaved, 3},
      {"interleaved_p4_v2_m4", Template::interleaved, 0},
      {"interleaved_p4_v2_m8", Template::interleaved, 0},
      {"interleaved_p4_v2_m8_N8", Template::interleaved, 8},
      {"interleaved_p4_v2_m12_N6", Template::interleaved, 6},
      {"interleaved_ovl_p2_v2_m4", Template::interleaved_overlap, 0},
      {"interleaved_ovl_p4_v2_m8", Template::interleaved_overlap, 0},
      {"gpipe_p2_m4", Template::gpipe, 0},
      {"gpipe_p4_m8", Template::gpipe, 0},
      {"looped_bfs_p2_v2_m4", Template::looped_bfs, 0},
      {"interleaved_zb_p2_v2_m8", Template::interleaved_zb, 0},
      {"interleaved_zb_p4_v2_m8", Template::interleaved_zb, 0},
      {"interleaved_zb_p4_v2_m10", Template::interleaved_zb, 0},
      {"zbv_torch_p2_m4", Template::zb_v_torch, 0},
      {"zbv_torch_p4_m6", Template::zb_v_torch, 0},
      {"zbv_torch_p4_m8", Template::zb_v_torch, 0},
      {"dualpipe_p4_m8", Template::dual_pipe, 0},
      {"dualpipev_p2_m4", Template::dual_pipe_v, 0},
      {"dualpipev_p4_m10", Template::dual_pipe_v, 0},
  };
  return all;
}

/// Of orders that depend on durations: to be met in makespan and peak.
inline const std::vector<Vector>& heuristic_vectors() {
  static const std::vector<Vector> all = {
      {"zb_h1_p4_m8", Template::zb_h1, 0},   {"zb_h2_p4_m8", Template::zb_h2, 0},
      {"zbv_p2_m4", Template::zb_v, 0},      {"zbv_p4_m8", Template::zb_v, 0},
      {"v_half_p4_m8", Template::v_half, 0}, {"1f1b_v_p4_m8", Template::one_f_one_b_v, 0},
  };
  return all;
}

/// "d1:3F0", position 3 of the second of two pipelines, as the stage that it is: "7F0" on 4 ranks.
inline std::string with_stages(std::string text, int ranks) {
  for (std::size_t d = text.find('d'); d != std::string::npos; d = text.find('d')) {
    const std::size_t end = text.find_first_not_of("0123456789", d + 3);
    const int stage = std::stoi(text.substr(d + 3, end - d - 3)) + (text[d + 1] == '1' ? ranks : 0);
    text.replace(d, end - d, std::to_string(stage));
  }
  return text;
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
